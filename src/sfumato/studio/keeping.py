"""What can be kept and repeated: the choices as a small file, as a Python program and as a command."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import events, ui

from ..errors import InputError
from ..text import one_line, shown_lines
from .choices import MOST_CHARACTERS, Choices
from .parts import Page, Sentence, drop_area, labelled, words
from .programs import as_command, as_python, no_command
from .session import Session

#: Selects the program and copies it. A browser that does not allow that leaves it selected.
_COPY = """() => {
  getSelection().selectAllChildren(getHtmlElement(NUMBER));
  let done = false;
  try { done = document.execCommand("copy"); } catch (refused) { done = false; }
  emit(done);
}"""


def keeping(session: Session, page: Page) -> None:
    """A button in the header with a menu of all of it."""
    opening, program = _Opening(session, page), _Program(session)
    with labelled(ui.button("Save and repeat").props("outline no-caps"), test="keep").classes("keep"), ui.menu():
        labelled(ui.menu_item("Copy as Python", program.python), test="copy-python")
        labelled(ui.menu_item("Copy as command", program.command), test="copy-command")
        labelled(ui.menu_item("Save choices", lambda: _save(session, page)), test="save-choices")
        labelled(ui.menu_item("Open choices", opening.dialog.open), test="open-choices")


def _save(session: Session, page: Page) -> None:
    """The choices go to the browser's downloads, from memory: nothing is written here."""
    page.client.download(session.choices.to_json().encode(), "choices.sfumato.json", "application/json")


class _Program:
    """A dialog with a program that makes the same design, to be copied."""

    def __init__(self, session: Session) -> None:
        self.session = session
        with ui.dialog() as self.dialog, ui.card().classes("dialog"):
            self.title = words("h2", "")
            self.told = Sentence()
            self.text = labelled(words("pre", "", "program").props("tabindex=0"), "The program", "program")
            with ui.element("div").classes("controls"):
                self.copy = labelled(ui.button("Copy").props("unelevated no-caps"), test="copy")
                self.copy.on("click", self._copied, js_handler=_COPY.replace("NUMBER", str(self.text.id)))
                ui.button("Close", on_click=self.dialog.close).props("outline no-caps")

    def python(self) -> None:
        """Show the choices as Python."""
        outside = self.session.region is None or self.session.excluded is not None
        self._show("Copy as Python", lambda choices: as_python(choices, fitted_outside=outside))

    def command(self) -> None:
        """Show the choices as a command."""
        self._show("Copy as command", lambda choices: as_command(choices) or "")

    def _show(self, title: str, write: Callable[[Choices], str]) -> None:
        self.title.set_text(title)
        text, choices = "", self.session.choices
        try:
            text = write(choices)
            self.told.say("" if text else no_command(choices), "care")
        except InputError as error:
            self.told.say(one_line(error), "care")
        self.text.set_text(shown_lines(text.split("\n")))  # changes nothing: programs have no unseen character
        self.text.set_visibility(bool(text))
        self.copy.set_visibility(bool(text))
        self.dialog.open()

    def _copied(self, event: events.GenericEventArguments) -> None:
        done = event.args is True
        self.told.say(
            "Copied." if done else "The text is selected: press Ctrl+C to copy it.", "good" if done else "plain"
        )


class _Opening:
    """A dialog that asks for a file of choices."""

    def __init__(self, session: Session, page: Page) -> None:
        self.session, self.page = session, page
        with ui.dialog() as self.dialog, ui.card().classes("dialog"):
            words("h2", "Open choices")
            words("p", "A file that was saved here. It has no data in it: they are opened again, or have to be open.")
            self.told = Sentence()
            drop_area("or drop it here.", "Choose a file", MOST_CHARACTERS, self._take, "choices")
            ui.button("Close", on_click=self.dialog.close).props("outline no-caps")

    async def _take(self, name: str, content: bytes) -> None:
        with self.told.catching():
            self.session.open_choices(Choices.from_json(content))
            self.dialog.close()
            self.page.go("data")
