"""What can be kept and repeated: the choices as a small file, as a Python program and as a command."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from ..errors import FormatError, InputError
from ..text import one_line
from .choices import MOST_CHARACTERS
from .parts import Page, drop_area, labelled, words
from .session import Session


def keeping(session: Session, page: Page, go: Callable[[str], None]) -> None:
    """A button in the header with a menu of all of it."""
    opening = _Opening(session, page, go)
    with labelled(ui.button("Save and repeat").props("outline no-caps dense"), test="keep").classes("keep"), ui.menu():
        labelled(ui.menu_item("Save choices", lambda: _save(session, page)), test="save-choices")
        labelled(ui.menu_item("Open choices", opening.dialog.open), test="open-choices")


def _save(session: Session, page: Page) -> None:
    """The choices go to the browser's downloads, from memory: nothing is written here."""
    page.client.download(session.choices.to_json().encode(), "choices.sfumato.json", "application/json")


class _Opening:
    """A dialog that asks for a file of choices."""

    def __init__(self, session: Session, page: Page, go: Callable[[str], None]) -> None:
        self.session, self.go = session, go
        with ui.dialog() as self.dialog, ui.card().classes("dialog"):
            words("h2", "Open choices")
            words("p", "A file that was saved here. It has no data in it: they are opened again, or have to be open.")
            self.told = page.sentence()
            drop_area("or drop it here.", "Choose a file", MOST_CHARACTERS, self._take, "choices")
            ui.button("Close", on_click=self.dialog.close).props("outline no-caps")

    async def _take(self, name: str, content: bytes) -> None:
        try:
            self.session.open_choices(content.decode("utf-8"))
        except UnicodeDecodeError:
            self.told.say(f"{name} is no file of choices; save one in the studio.", "bad")
        except (InputError, FormatError) as error:
            self.told.say(one_line(error), "bad")
        else:
            self.dialog.close()
            self.go("data")
