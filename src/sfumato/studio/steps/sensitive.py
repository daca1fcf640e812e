"""What is sensitive: a region that one drags or types, what of it is protected, and from whom.

A drag, and what is filled in by column, become a text in the language of ``sf.parse_region``: the text is what counts,
and what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nicegui import events, ui

from ...errors import InputError
from ...promise import NOT_ANY_RECORD
from ...regions import parse_region, region_text
from ...text import counted, shown
from ..axes import Axis, drawn_text
from ..charts import data_chart
from ..parts import Page, Picture, Sentence, labelled, panel, words
from ..session import Session
from .inputs_shown import InputsShown

#: What can be protected, and what that means.
PROTECTS = {
    "both": "The function and each record in the region.",
    "function": f"The function alone: {NOT_ANY_RECORD}.",
    "records": "Records alone: what is each record's own. Readers may learn the typical value at given inputs.",
}

#: The words for no insiders, and for those who hold one row.
_NOBODY = "nobody: readers hold no rows of these data"
_ROWS = "whoever holds any one row, such as their own"


def sensitive(session: Session, page: Page) -> None:
    """The card of this step."""
    key = lambda: (session.trouble, session.choices.data, session.choices.inputs, session.choices.output)  # noqa: E731
    page.refresh_on(key, lambda: _build(session, page))


def _build(session: Session, page: Page) -> None:
    if session.trouble:
        Sentence(session.trouble, "care")
        ui.button("Go to the data", on_click=lambda: page.go("data")).props("outline no-caps")
        return
    words("p", f"Say where values of {session.choices.output} must not be known too well.")
    _Where(session, page)
    _Protected(session)


class _Where:
    """The chart to drag on, the form to type in, and the list of regions."""

    def __init__(self, session: Session, page: Page) -> None:
        self.session, self.page = session, page
        self.axes = {name: Axis.of(session.inputs, name) for name in session.inputs.sources}
        names = list(self.axes)
        self.replaces: int | None = None
        with panel("Where it is sensitive"):
            words("p", "Drag over the chart, with the mouse or a finger, or say it below. All regions count together.")
            curve = f"{session.choices.output}, the output"
            self.inputs = InputsShown(names, curve, self._show, names[1] if len(names) > 1 else None)
            self.picture = Picture(self._chart(), "region-chart")
            self.picture.plot.on("plotly_selected", self._dragged, args=["range"])
            page.follow(self.picture, lambda: session.choices.regions, self._show)
            self.problem = Sentence()
            page.refresh_on(lambda: (session.choices.regions, session.choices.protects), self._list)
            page.progress_of(session.fit, "Fitting the prior")
        with panel("Say it in numbers or words"):
            self._form()
            self._text()

    # ------------------------------------------------------------------------------------------------ chart

    def _show(self) -> None:
        self.picture.show(self._chart())

    def _chart(self) -> Any:
        session = self.session
        y = session.y.to_numpy(dtype=np.float64)
        return data_chart(session.inputs, y, session.choices.output, session.region, *self.inputs.names)

    def _dragged(self, event: events.GenericEventArguments) -> None:
        """A drag over the chart becomes one more region."""
        ends = event.args.get("range") if isinstance(event.args, dict) else None
        if not isinstance(ends, dict):
            return  # a click that selects nothing
        axes = [self.axes[name] for name in self.inputs.names]
        sides = [(ends.get(name) or [None, None])[:2] for name in ("x", "y")[: len(axes)]]
        with self.problem.catching():
            text = drawn_text(axes, [(side[0], side[-1]) for side in sides], self.session.inputs.sources)
            if text:
                self._take((*self.session.choices.regions, text))
                return
        self._show()  # what was dragged is gone

    # --------------------------------------------------------------------------------------------- regions

    def _take(self, regions: tuple[str, ...]) -> None:
        """Choose ``regions``; the prior is fitted again where it was learnt from other rows."""
        self.session.choose(regions=tuple(dict.fromkeys(regions)))
        if not self.session.fit.is_running and self.session.fit.value is None:
            self.session.start_fit()

    def _list(self) -> None:
        """The regions with their rows, and what all of them are together."""
        session = self.session
        texts = session.choices.regions
        if texts:
            with labelled(ui.element("ul").classes("regions"), "Regions", "regions"):
                for place, text in enumerate(texts):
                    self._item(place, text)
        Sentence(*_counted(session))

    def _item(self, place: int, text: str) -> None:
        inputs = self.session.inputs
        inside = int(parse_region(text, inputs.sources).bind(inputs).contains(inputs.values).sum())
        with ui.element("li"):
            words("span", text, "region")
            words("span", f"{counted(inside, 'row')} inside", "quiet")
            edit = ui.button("Edit", on_click=lambda: self._edit(place, text)).props("flat dense no-caps")
            remove = ui.button("Remove", on_click=lambda: self._remove(place)).props("flat dense no-caps")
            labelled(edit, f"Edit the region {text}", "edit-region")
            labelled(remove, f"Remove the region {text}", "remove-region")

    def _remove(self, place: int) -> None:
        kept = [text for at, text in enumerate(self.session.choices.regions) if at != place]
        self._edit(None, "")
        with self.problem.catching():
            self._take(tuple(kept))

    def _edit(self, place: int | None, text: str) -> None:
        """Put a region into the text; what is there then takes its place."""
        self.replaces = place
        self.text.set_value(text)
        self.add.set_text("Add this region" if place is None else "Change this region")
        self.stop.set_visibility(place is not None)
        if place is not None:
            self.text.run_method("focus")

    # ---------------------------------------------------------------------------------------------- typing

    def _form(self) -> None:
        """From and to for each input, or its levels; what is filled in is written as a text."""
        words("p", "Fill in what bounds the region; an input that is left empty is not bounded.")
        asked: dict[str, Callable[[], Any]] = {}

        def written() -> None:
            bounds = {name: said for name, ask in asked.items() if (said := ask())}
            self.text.set_value(region_text(bounds, self.session.inputs.sources))

        for name, axis in self.axes.items():
            with ui.element("fieldset").classes("bounds"):
                words("legend", name)
                asked[name] = _levels(axis, written) if axis.is_category else _ends(axis, written)

    def _text(self) -> None:
        names = self.session.inputs.sources
        example = region_text({names[0]: _middle(self.axes[names[0]])}, names)
        self.text = ui.input("The region as text", placeholder=shown(example)).props("outlined dense")
        self.text.classes("region-text")
        labelled(self.text, "The region as text", "region-text").on("keydown.enter", self._add)
        words("p", "and, or, <=, >=, =, in (a, b); names that are no single words go in backticks.", "quiet")
        with ui.element("div").classes("controls"):
            self.add = ui.button("Add this region", on_click=self._add).props("unelevated no-caps")
            self.stop = ui.button("Do not change it", on_click=lambda: self._edit(None, "")).props("flat no-caps")
        labelled(self.add, test="add-region")
        self.stop.set_visibility(False)
        self.wrong = Sentence()

    def _add(self) -> None:
        """Take what the text says, as one more region or instead of the one that is edited."""
        texts = list(self.session.choices.regions)
        said = str(self.text.value or "").strip()
        if self.replaces is None or self.replaces >= len(texts):
            texts.append(said)
        else:
            texts[self.replaces] = said
        try:
            parse_region(said, self.session.inputs.sources, outputs=[self.session.choices.output])
            self._take(tuple(texts))
        except InputError as error:
            self.wrong.say(str(error).split("\n")[0], "bad")  # the lines after it point at a place in the text
            return
        self.wrong.say("")
        self._edit(None, "")


def _counted(session: Session) -> tuple[str, Any]:
    """How many rows lie in the region, and what that means."""
    if session.region is None:
        return "Nothing is sensitive yet.", "plain"
    inside, rows = int(session.inside.sum()), session.rows
    if not inside:
        return "No row lies in the region. The promise is about what holds there all the same.", "care"
    if inside == rows:
        told = "There is no elsewhere that could stay useful, and the prior has to be learnt from the rows inside."
        return f"All {counted(rows, 'row')} lie in the region. {told}", "care"
    said = f"{inside:,} of {counted(rows, 'row')} {'lies' if inside == 1 else 'lie'} in the region"
    about = {
        "both": f"{counted(inside, 'record')} and what is typical at every input there are protected",
        "function": f"what is typical there is protected, not the {counted(inside, 'record')}",
        "records": f"{counted(inside, 'record')} {'is' if inside == 1 else 'are'} protected",
    }[session.choices.protects]
    if session.choices.fit_outside and session.excluded is None:
        few = "Too few rows are outside to learn the prior from: it is learnt from all"
        return f"{said}: {about}. {few}, and carries a little of the secret.", "care"
    return f"{said}: {about}.", "plain"


def _ends(axis: Axis, written: Callable[[], None]) -> Callable[[], Any]:
    """Two fields for the ends of numbers or dates; what comes back reads them."""
    is_date = axis.column.kind == "date"
    low, high = axis.drawn([axis.low, axis.high])
    fields = []
    for side, hint in (("from", low), ("to", high)):
        said = (str(hint)[:10] if is_date else f"{hint:.4g}") if hint is not None else ""
        field = ui.input(side, placeholder=said).props("outlined dense")
        field.props(f"type={_date_field(axis)} stack-label" if is_date else "inputmode=decimal")
        field.on_value_change(written)
        fields.append(labelled(field, f"{axis.name} {side}", f"{side}-{axis.name}"))

    def read() -> Any:
        found = [_side(str(field.value or "").strip(), is_date) for field in fields]
        return tuple(found) if any(one is not None for one in found) else None

    return read


def _date_field(axis: Axis) -> str:
    """Days where all dates are days, else moments."""
    return "date" if axis.whole_days else "datetime-local"


def _side(text: str, is_date: bool) -> Any:
    """An end as it was typed; None where there is none, or none yet."""
    try:
        return np.datetime64(text, "us") if is_date and text else float(text) if text else None
    except ValueError:
        return None


def _levels(axis: Axis, written: Callable[[], None]) -> Callable[[], Any]:
    """A box to tick for each level of a category."""
    ticks = {}
    for level in axis.column.levels:
        tick = ui.checkbox(shown(level), on_change=written)
        ticks[level] = labelled(tick, f"{axis.name}: {level}")
    return lambda: [level for level, tick in ticks.items() if tick.value]


def _middle(axis: Axis) -> Any:
    """Bounds for an example: the middle of an axis."""
    if axis.is_category:
        return [axis.column.levels[0]]
    wide = axis.high - axis.low
    return axis.dragged(*axis.drawn([axis.low + 0.4 * wide, axis.low + 0.6 * wide]))


class _Protected:
    """What is protected in the region, and from whom."""

    def __init__(self, session: Session) -> None:
        self.session = session
        with panel("What is protected there"):
            told = ui.radio(PROTECTS, value=session.choices.protects)
            labelled(told, "What is protected", "protects").on_value_change(lambda e: self._choose(protects=e.value))
        with panel("From whom"):
            words(
                "p", "From every reader of the release. Some may hold rows of these data; to them it is promised too:"
            )
            plain = {"": _NOBODY, "rows": _ROWS}
            columns = [facts.name for facts in session.columns if facts.name != session.choices.output]
            groups = {
                name: f"whoever holds all rows with one value of {shown(name)}" for name in columns if name not in plain
            }
            held = ui.select(plain | groups, value=session.choices.insiders or "", label="Insiders")
            labelled(held.props("outlined dense").classes("insiders"), "Insiders", "insiders")
            held.on_value_change(lambda e: self._hold(held, e.value or None))
            words("p", "Which rows belong together is published.", "quiet")
            self.problem = Sentence()

    def _choose(self, **changes: Any) -> None:
        with self.problem.catching():
            self.session.choose(**changes)

    def _hold(self, held: ui.select, asked: str | None) -> None:
        """Choose insiders; a column that cannot be read is said, and nothing is changed."""
        before = self.session.choices.insiders
        self._choose(insiders=asked)
        if self.session.trouble:
            why = self.session.trouble
            self.session.choose(insiders=before)
            held.set_value(before or "")
            self.problem.say(why, "bad")
