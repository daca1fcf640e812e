"""What all steps of the page are made of: parts that follow the session, sentences, progress with Cancel.

A ``Page`` is one open browser tab over the session. Whatever is shown is text: names from data go through
``text.shown`` and never become markup, properties or scripts.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nicegui import Client, events, ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from ..errors import SfumatoError
from ..promise import Verdict
from ..text import one_line, shown
from .charts import Chart
from .guard import LARGEST_BODY, TOO_LARGE

if TYPE_CHECKING:
    from .jobs import Job
    from .session import Session

#: What a sentence is: plain, good news, something to take care of, or something that is wrong.
Kind = Literal["plain", "good", "care", "bad"]

#: Signs beside the colours, so that nobody needs to tell colours apart.
_SIGNS: dict[Kind, str] = {"plain": "", "good": "✓", "care": "!", "bad": "✕"}

#: How a verdict is marked besides its words.
VERDICTS: dict[Verdict, Kind] = {"publish": "good", "publish with care": "care", "do not publish": "bad"}

#: Seconds between two looks at what has changed: work behind the page may report far more often.
EVERY = 0.08


def words(tag: str, text: object, classes: str = "") -> TextElement:
    """An HTML element with a text in it, which is shown as it is and never read as markup."""
    return TextElement(tag=tag, text=shown(text)).classes(classes)


class Sentence(Element):
    """A sentence that screen readers say when it changes; it takes no room while there is nothing to say."""

    def __init__(self, text: str = "", kind: Kind = "plain") -> None:
        super().__init__("div")
        with self:
            self._sign = words("span", "", "sign").props('aria-hidden="true"')
            self._words = words("span", "")
        self.say(text, kind)

    def say(self, text: str, kind: Kind = "plain") -> None:
        """Show ``text``; nothing hides the sentence."""
        self.classes(replace=f"sentence {kind}" if text else "sentence silent")
        self.props(f"role={'alert' if kind == 'bad' else 'status'}")
        self._sign.set_text(_SIGNS[kind])
        self._words.set_text(shown(text))

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Say what goes wrong inside, and be silent where nothing does."""
        try:
            self.say("")
            yield
        except SfumatoError as error:
            self.say(one_line(error), "bad")


def labelled(element: Any, label: str = "", test: str = "") -> Any:
    """``element`` with a name for screen readers and one for tests; set as values, so that any text is harmless."""
    if label:
        element.props["aria-label"] = shown(label)
    if test:
        element.props["data-testid"] = test
    return element


def entry(
    page: Page, label: str, now: Callable[[], str], take: Callable[[str], None], test: str, hint: str = ""
) -> None:
    """A line to write in, which shows what is chosen ``now``; ``take`` gets the text when it is complete, if it is new.

    It stays where it is when something is chosen: nobody loses what they are writing.
    """
    taken = now()
    line = labelled(ui.input(label, value=taken).props("outlined dense"), test=test)

    def taking() -> None:
        nonlocal taken
        text = str(line.value or "").strip()
        if text != taken:
            taken = text
            take(text)

    def show() -> None:
        nonlocal taken
        if now() != taken:
            taken = now()
            line.set_value(taken)

    page.follow(line, now, show)
    when_complete(line, taking)
    if hint:
        line.props["hint"] = shown(hint)


def when_complete(field: Element, take: Callable[[], None]) -> None:
    """Call ``take`` with Enter, and when ``field`` is left, not while somebody writes in it.

    A browser says that a line has changed before it says what was pressed next; Quasar's "blur" may come after that.
    """

    def complete() -> None:
        if isinstance(field, ui.number):
            field.sanitize()
        take()

    field.on("change", complete, args=[])
    field.on("keydown.enter", complete, args=[])


def drop_area(text: str, button: str, largest: int, take: Callable[[str, bytes], Awaitable[None]], test: str) -> None:
    """A place to drop a file on, and a button that asks for one; ``take`` gets its name and what is in it."""
    told = Sentence()

    async def uploaded(event: events.UploadEventArguments) -> None:
        told.say("")
        name, content = event.file.name, await event.file.read()
        area.reset()
        await take(name, content)

    area = ui.upload(on_upload=uploaded, max_file_size=largest, auto_upload=True).classes("drop").props("flat")
    area.on_rejected(lambda: told.say(TOO_LARGE if largest == LARGEST_BODY else "This file is too large.", "bad"))
    area.on("failed", lambda: told.say("The file did not arrive. Try again.", "bad"), args=[])
    labelled(area, text, test)
    with area.add_slot("header"), ui.element("div").classes("drop-words"):
        choose = ui.button(button).props("unelevated no-caps")
        choose.on("click", js_handler=f"() => getElement({area.id}).$refs.qRef.pickFiles()")
        labelled(choose, test=f"{test}-choose")
        with ui.element("span").classes("hidden-input"):
            ui.element("q-uploader-add-trigger")
        words("span", text)


class Picture(Element):
    """A chart, named for screen readers by its sentence, and below it what must be told."""

    def __init__(self, chart: Chart, test: str = "chart") -> None:
        super().__init__("div")
        with self.classes("drawing"):
            self._frame = labelled(ui.element("div").classes("chart").props("role=img"), test=test)
            with self._frame:
                self.plot = ui.plotly(chart.figure)
            self._note = words("p", "", "quiet")
        self.show(chart)

    def show(self, chart: Chart) -> None:
        """Draw another chart at this place."""
        if self.plot.figure is not chart.figure:
            self.plot.update_figure(chart.figure)
        labelled(self._frame, chart.label)
        self._note.set_text(shown(chart.note))
        self._note.set_visibility(bool(chart.note))


def as_address(kind: str, content: bytes) -> str:
    """An address that holds a picture itself; a browser runs nothing in it."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


@contextmanager
def panel(title: str) -> Iterator[Element]:
    """A part of a step with a heading."""
    with ui.element("section").classes("panel") as box:
        words("h2", title)
        yield box


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str] = ()) -> None:
    """A table of texts; the first of a row says what it is about. ``marks`` are names of the rows for tests."""
    with ui.element("div").classes("scrolls"), ui.element("table").classes("facts words"):
        words("caption", caption)
        if any(header):
            with ui.element("thead"), ui.element("tr"):
                for name in header:
                    words("th", name).props("scope=col")
        with ui.element("tbody"):
            for place, (first, *others) in enumerate(rows):
                with labelled(ui.element("tr"), test=marks[place] if marks else ""):
                    words("th", first).props("scope=row")
                    for cell in others:
                        words("td", cell)


@dataclass
class _Part:
    """Something on the page that looks at its key, and brings itself up to date where the key has changed."""

    box: Element
    key: Callable[[], Any]
    update: Callable[[], object]
    seen: Any


class Page:
    """One open browser tab: it follows the session until the tab is gone."""

    def __init__(self, session: Session, client: Client) -> None:
        self.session = session
        self.client = client
        self.go: Callable[[str], None] = lambda step: None
        self._parts: list[_Part] = []
        self._loop = asyncio.get_running_loop()
        self._looked, self._waiting = 0.0, False
        unsubscribe = session.subscribe(self._from_any_thread)
        client.on_delete(unsubscribe)

    def refresh_on(self, key: Callable[[], Any], render: Callable[[], None]) -> Element:
        """A part of the page that ``render`` fills now, and again whenever ``key()`` has become another value.

        Nothing that somebody may be typing in should lie in it, unless its key changes with what was typed only.
        """
        box = ui.element("div").classes("part")

        def update() -> None:
            box.clear()
            with box:
                render()

        self.follow(box, key, update)
        return box

    def follow(self, box: Element, key: Callable[[], Any], update: Callable[[], object]) -> None:
        """Call ``update`` now, and whenever ``key()`` has changed, for as long as ``box`` is on the page."""
        part = _Part(box, key, update, None)
        self._parts.append(part)
        self._bring_up(part, key())

    def shows(self, field: Any, now: Callable[[], Any]) -> None:
        """``field`` shows what is chosen ``now``, whoever chose it."""
        self.follow(field, now, lambda: field.set_value(now()))

    def progress_of(self, job: Job[Any], what: str) -> Element:
        """A line while ``job`` runs: ``what``, its stage, how much is done, Cancel; then what went wrong, if it did."""
        with ui.element("div").classes("progress") as box:
            with ui.element("div").classes("progress-line") as line:
                text = ui.label()
                bar = labelled(ui.linear_progress(show_value=False, size="8px"), what)
                cancel = ui.button("Cancel", on_click=lambda: job.cancel()).props("flat dense no-caps")
                labelled(cancel, f"Cancel: {what}", "cancel")
            outcome = Sentence()

        def update() -> None:
            running = job.state == "running"
            line.set_visibility(running)
            share = job.share
            done = "" if share is None else f" ({100 * share:.0f} %)"
            text.set_text(shown(f"{what}: {job.stage}{done}" if job.stage else f"{what} …"))
            bar.props["indeterminate"] = share is None
            bar.set_value(0.0 if share is None else round(share, 3))
            if job.state == "failed":
                outcome.say(job.error, "bad")
            else:
                outcome.say("Cancelled." if job.state == "cancelled" else "")

        self.follow(box, lambda: (job.state, job.stage, job.share, job.error), update)
        return box

    def forget_parts(self) -> None:
        """Drop the parts that are no longer on the page."""
        self._parts = [part for part in self._parts if not part.box.is_deleted]

    def _from_any_thread(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has stopped
            self._loop.call_soon_threadsafe(self._soon)

    def _soon(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.call_later(max(0.0, self._looked + EVERY - time.monotonic()), self.look)

    def look(self) -> None:
        """Bring all parts whose key has changed up to date."""
        self._waiting, self._looked = False, time.monotonic()
        if self.client.is_deleted:
            self._parts.clear()
            return
        self.forget_parts()
        for part in list(self._parts):
            if part.box.is_deleted:  # a part around it was filled anew just now
                continue
            key = part.key()
            if not _same(key, part.seen):
                self._bring_up(part, key)

    def _bring_up(self, part: _Part, key: Any) -> None:
        part.seen = key
        try:
            with part.box:
                part.update()
        except Exception as error:
            if not isinstance(error, SfumatoError):
                logging.getLogger("sfumato").exception("a part of the page could not be shown")
            part.box.clear()
            with part.box:
                Sentence(one_line(error), "bad")


def _same(a: Any, b: Any) -> bool:
    """Whether two keys are the same; values that hold arrays are the same only if they are one object."""
    try:
        return bool(a == b)
    except ValueError:
        return False
