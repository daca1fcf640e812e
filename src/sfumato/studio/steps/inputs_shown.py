"""Which inputs a chart of a step shows: one of them against something else, or two against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nicegui import ui

from ...text import shown
from ..parts import labelled


class InputsShown:
    """The inputs ``across`` and ``up``; None stands for what is shown against one input alone, a ``curve``."""

    def __init__(self, names: Sequence[str], curve: str, changed: Callable[[], None], up: str | None = None) -> None:
        self.across, self.up = names[0], up
        if len(names) == 1:
            return
        inputs = {name: shown(name) for name in names}
        with ui.element("div").classes("controls"):
            across = ui.select(inputs, value=self.across, label="Across").props("outlined dense")
            up_or_curve = ui.select(inputs | {"": shown(curve)}, value=up or "", label="Up").props("outlined dense")
        labelled(across, "Across the chart", "across")
        labelled(up_or_curve, "Up the chart", "up")

        def choose() -> None:
            if across.value == up_or_curve.value:  # there is one more: the chart keeps two different ones
                up_or_curve.set_value("" if self.across == across.value else self.across)
                return
            if (self.across, self.up) != (across.value, up_or_curve.value or None):
                self.across, self.up = across.value, up_or_curve.value or None
                changed()

        across.on_value_change(choose)
        up_or_curve.on_value_change(choose)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that are shown, the one across first."""
        return (self.across,) if self.up is None else (self.across, self.up)
