"""The page: a header that says what left the machine, six steps from left to right, a footer with what can be repeated.

What was chosen is in the session; the step that a tab shows is in its address. So a reload, or a connection that was
lost and found again, shows what was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nicegui import ui

from ..errors import SfumatoError
from ..text import counted, listed, one_line
from .decisions import decided
from .guard import Guard
from .keeping import keeping
from .parts import Page, Sentence, labelled, words
from .session import Session
from .steps.check import check
from .steps.data import data
from .steps.how_much import how_much
from .steps.model import model
from .steps.publish import publish
from .steps.sensitive import sensitive


@dataclass(frozen=True)
class Step:
    """A step of the path: its name in addresses, its title, and what builds its card."""

    name: str
    title: str
    build: Callable[[Session, Page], None]


STEPS = (
    Step("data", "Data", data),
    Step("model", "Model", model),
    Step("sensitive", "What is sensitive", sensitive),
    Step("how_much", "How much", how_much),
    Step("check", "Check", check),
    Step("publish", "Publish", publish),
)
NAMES = tuple(step.name for step in STEPS)


def build(session_of: Callable[[], Session], guard_of: Callable[[], Guard]) -> None:
    """Register the page at "/", once a process; both are asked when a tab is opened, whose address has the token."""

    @ui.page("/", title="sfumato studio", dark=None, language="en-US")
    def studio(step: str = "data") -> None:
        ui.add_head_html(f"<script>{_beside('studio.js')}</script>")
        ui.add_css(_beside("studio.css"))
        ui.colors(primary="#005a8f")
        _Frame(session_of(), guard_of(), step if step in NAMES else "data")


@cache
def _beside(name: str) -> str:
    """The text of a file beside this one: the same for everybody, with nothing from data in it."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class _Frame:
    """The frame of one tab: it shows one step at a time."""

    def __init__(self, session: Session, guard: Guard, step: str) -> None:
        self.session, self.guard = session, guard
        self.step = step
        client = ui.context.client
        self.page = Page(session, client)
        self.page.go = self.go
        with ui.header().classes("frame-header"):
            words("span", "sfumato studio", "name")
            self.steps = labelled(ui.element("nav").classes("steps"), "Steps")
            words("span", "What left this machine: nothing", "private")
            keeping(session, self.page)
        with ui.element("main").classes("frame-main") as main:
            self.notice = Sentence()
            self.card = ui.element("section")
        with ui.footer(fixed=False).classes("frame-footer"):
            self._footer()
        ui.skip_link("Skip to the step", target=main)
        client.on_exception(self._unexpected)
        self._show()

    def go(self, step: str) -> None:
        """Show another step; the address remembers it."""
        self.step = step
        self.notice.say("")
        self._show()
        self.page.client.run_javascript(
            f"history.replaceState(null, '', '?step={step}'); scrollTo(0, 0); "
            "document.querySelector('main h1')?.focus({preventScroll: true})"
        )

    def _show(self) -> None:
        number = NAMES.index(self.step)
        self.steps.clear()
        with self.steps:
            for place, step in enumerate(STEPS):
                self._link(place, step, here=place == number)
        self.card.clear()
        self.page.forget_parts()
        with self.card:
            words("h1", STEPS[number].title, "step-title").props("tabindex=-1")
            if number > 0:
                before = NAMES[number - 1]
                self.page.refresh_on(lambda: decided(self.session, before), lambda: self._decided(before))
            STEPS[number].build(self.session, self.page)
            with ui.element("div").classes("step-ends"):
                if number > 0:
                    button = ui.button(f"Back: {STEPS[number - 1].title}", on_click=lambda: self.go(before))
                    labelled(button.props("outline no-caps"), test="back")
                if number + 1 < len(STEPS):
                    after = NAMES[number + 1]
                    button = ui.button(f"Next: {STEPS[number + 1].title}", on_click=lambda: self.go(after))
                    labelled(button.props("unelevated no-caps"), test="next")

    def _decided(self, step: str) -> None:
        found = decided(self.session, step)
        if found:
            words("p", " ".join(found), "decided").props("data-testid=decided")

    def _link(self, place: int, step: Step, here: bool) -> None:
        link = ui.element("button").classes("step-link").props("type=button")
        link.on("click", lambda: self.go(step.name))
        labelled(link, f"Step {place + 1}: {step.title}", f"step-{step.name.replace('_', '-')}")
        if here:
            link.props("aria-current=step")
        with link:
            words("span", place + 1, "number")
            words("span", step.title, "title")

    def _footer(self) -> None:
        """What left this machine, what was written, and who asked."""
        words("p", "Private: this page is served by your own machine, to your own machine.")
        words("p", "What left it: nothing. The studio opens no connection to any other machine.")
        self.page.refresh_on(lambda: tuple(self.session.written), self._written)
        asked = words("p", "", "quiet")

        def count() -> None:
            refused = sum(self.guard.refused.values())
            some = listed([f"{count} for the {why}" for why, count in sorted(self.guard.refused.items())])
            asked.set_text(
                f"Answered: {counted(self.guard.answered, 'request')}, all from this machine with the token. "
                f"Refused: {refused if refused else 'none'}{f' ({some})' if some else ''}."
            )

        count()
        ui.timer(5.0, count)

    def _written(self) -> None:
        written = [str(path) for path in self.session.written]
        words("p", f"Files written: {listed(written) if written else 'none'}.").props("data-testid=written")

    def _unexpected(self, error: Exception) -> None:
        """What no step dealt with is said at the top of the page."""
        text = one_line(error)
        if not isinstance(error, SfumatoError):
            text = f"This did not work, and it should have: {text} ({type(error).__name__}). Please report it."
        self.notice.say(text, "bad")
