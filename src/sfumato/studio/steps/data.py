"""The step *Data*: a table is opened, and its columns are told what they are for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from nicegui import events, ui
from nicegui.element import Element

from ...data import SEPARATORS
from ...errors import InputError, SfumatoError
from ...text import counted, listed, number_text, one_line, shown
from ..demos import DEMOS
from ..guard import LARGEST_BODY
from ..parts import Page, Sentence, drop_area, labelled, panel, words

if TYPE_CHECKING:
    from ...data import ColumnFacts
    from ..session import Session

#: Of a wide table so many columns are shown at once, and of a long one so many rows.
MOST_COLUMNS, FIRST_ROWS = 40, 5

#: Letters of a value in the first rows; longer texts end in "…".
LONGEST_CELL = 40

USES = {"input": "Input", "output": "Output", "": "Not used"}

#: How text may be read, where the file does not decide it.
BETWEEN = {"": "found out"} | {word: word for word in SEPARATORS.values()}
MARKS = {"": "found out", ".": "point: 1.5", ",": "comma: 1,5"}
ENCODINGS = {"": "found out", "utf-8": "utf-8", "cp1252": "cp1252", "utf-16": "utf-16"}


def data(session: Session, page: Page) -> None:
    """Build the step's card."""
    with panel("Open a table"):
        _openers(session)
    page.refresh_on(lambda: (session.table, session.columns), lambda: _Columns(session, page).build())


def _openers(session: Session) -> None:
    told = Sentence()

    async def opened(name: str, work: Callable[[], None], about: str = "") -> None:
        told.say(f"Reading {name} …")
        try:
            await asyncio.to_thread(work)
        except SfumatoError as error:
            told.say(one_line(error), "bad")
        else:
            told.say(f"{name} is open: {counted(_rows(session), 'row')}. {about}".strip(), "good")

    async def uploaded(name: str, content: bytes) -> None:
        await opened(name, lambda: session.open_upload(name, content))

    text = "or drop it here: .csv, .tsv or .txt (also .gz), or .parquet, up to 200 MB. It stays in memory."
    drop_area(text, "Choose a file", LARGEST_BODY, uploaded, "upload")
    with ui.element("div").classes("controls"):
        for name, demo in DEMOS.items():
            start = partial(opened, name, partial(session.open_demo, name), demo.about)
            button = ui.button(demo.title, on_click=start)
            labelled(button.props("outline no-caps"), test=f"demo-{name}")
    words("p", "One table, one output column. Several outputs: sfumato protect --help.", "quiet")


def _rows(session: Session) -> int:
    return 0 if session.table is None else len(session.table.frame)


class _Columns:
    """The columns of the table that is open, what each is for, and what is missing in them."""

    def __init__(self, session: Session, page: Page) -> None:
        self.session, self.page = session, page
        self.wanted = ""

    def build(self) -> None:
        """Build the panels; nothing where no table is open."""
        table = self.session.table
        if table is None:
            return
        name = self.session.choices.data or "The table"
        with panel("What the columns are for"):
            words(
                "p", f"{name}: {counted(_rows(self.session), 'row')}, {counted(len(self.session.columns), 'column')}."
            )
            words(
                "p",
                "Inputs are published as they are. The output is what is protected: its values go out with noise where "
                "that is needed. Columns that are not used are not published.",
            )
            Sentence(table.names_in_doubt, "care")
            self.told = Sentence()
            if len(self.session.columns) > MOST_COLUMNS:
                find = ui.input("Find a column", on_change=lambda event: self._find(event.value)).props(
                    "outlined dense"
                )
                labelled(find, test="find-column")
            self.list = _scrolling("The columns")
            self._list()
            self.page.refresh_on(self._standing_key, self._standing)
        if table.form is not None:
            self.page.refresh_on(lambda: self._is_doubtful(), self._reading)
        self._first_rows()

    # ---------------------------------------------------------------------------------- what columns are for

    def _find(self, wanted: str) -> None:
        self.wanted = wanted.strip().casefold()
        self._list()

    def _list(self) -> None:
        self.list.clear()
        used = {*self.session.choices.inputs, self.session.choices.output}
        found = [one for one in self.session.columns if self.wanted in one.name.casefold()]
        found.sort(key=lambda one: one.name not in used)
        with self.list, ui.element("table").classes("facts"):
            if len(found) > MOST_COLUMNS:
                words("caption", f"{MOST_COLUMNS} of {counted(len(found), 'column')}; find others by name.")
            heads = ("Column", "Used as", "Type", "Unit", "Missing", "Least", "Largest")
            _row("th", heads, numbers=(4, 5, 6))
            for one in found[:MOST_COLUMNS]:
                self._column(one)
        with self.list:
            for one in found[:MOST_COLUMNS]:
                if one.note:
                    words("p", f"{one.name}: {one.note}", "quiet")

    def _column(self, one: ColumnFacts) -> None:
        with ui.element("tr"):
            words("th", one.name).props("scope=row")
            with ui.element("td"):
                label = shown(f"What {one.name} is used as")
                use = ui.select(USES, label=label, value=self._use(one.name)).props("outlined dense options-dense")
                labelled(use.classes("use"), test="use")
                use.props["data-column"] = shown(one.name)
            use.on_value_change(lambda event, name=one.name: self._choose(name, event.value))
            self.page.shows(use, lambda: self._use(one.name))
            words("td", one.kind)
            words("td", one.unit or "–")
            words("td", f"{one.missing:,}" if one.missing else "none", "number")
            for said in one.values_in_words:
                words("td", said, "" if one.kind == "text" else "number").props("colspan=2" * (one.kind == "text"))

    def _use(self, name: str) -> str:
        choices = self.session.choices
        return "output" if name == choices.output else "input" if name in choices.inputs else ""

    def _choose(self, name: str, use: str) -> None:
        if use == self._use(name):
            return
        choices = self.session.choices
        order = [one.name for one in self.session.columns]
        inputs = tuple(
            one for one in order if (one in choices.inputs and one != name) or (one == name and use == "input")
        )
        output = name if use == "output" else "" if choices.output == name else choices.output
        try:
            self.session.choose(inputs=inputs, output=output)
            self.told.say("")
        except InputError as error:
            if not choices.regions:
                self.told.say(one_line(error), "bad")
                return
            self.session.choose(inputs=inputs, output=output, regions=(), insiders=None)
            self.told.say("What was sensitive was said with other columns; say it again in step 3.", "care")

    # -------------------------------------------------------------------------------------- how they stand

    def _standing_key(self) -> tuple[object, ...]:
        choices = self.session.choices
        return choices.inputs, choices.output, choices.drop_missing, self.session.trouble

    def _standing(self) -> None:
        """Whether the columns can be used together; and what happens to rows with missing values."""
        session, chosen = self.session, self._chosen()
        absent = self._missing_rows(chosen)
        if absent:
            rows = _rows(session)
            empty = [one.name for one in session.columns if one.name in chosen and one.missing]
            words("p", f"{counted(absent, 'row')} of {rows:,} miss a value in {listed(empty, 5)}.")
            keep = ui.radio(
                {False: "Refuse them: I mend the file.", True: f"Leave them out: {rows - absent:,} rows stay."},
                value=session.choices.drop_missing,
                on_change=lambda event: session.choose(drop_missing=bool(event.value)),
            )
            labelled(keep, "Rows with missing values", "drop-missing")
        if not session.trouble:
            inputs, output = listed(session.choices.inputs, 6), session.choices.output
            Sentence(f"{counted(session.rows, 'row')} take part. Inputs: {inputs}. Output: {output}.", "good")
        elif not absent or session.choices.drop_missing:
            Sentence(session.trouble, "care")

    def _chosen(self) -> list[str]:
        choices = self.session.choices
        return [*choices.inputs, choices.output] if choices.inputs and choices.output else []

    def _missing_rows(self, chosen: list[str]) -> int:
        table = self.session.table
        known = [one.name for one in self.session.columns if one.missing and one.name in chosen]
        return 0 if table is None or not known else int(table.frame[known].isna().any(axis=1).sum())

    # ----------------------------------------------------------------------------------- how text was read

    def _is_doubtful(self) -> bool:
        """Whether how the text was read may not be how it was meant, or was changed already."""
        choices = self.session.choices
        changed = any(one is not None for one in (choices.sep, choices.decimal, choices.encoding))
        return changed or len(self.session.columns) == 1 or any(one.doubt for one in self.session.columns)

    def _reading(self) -> None:
        table = self.session.table
        if table is None or not self._is_doubtful():
            return
        with panel("How the text was read"):
            words("p", f"With {table.form}." if table.form is not None else "")
            for one in self.session.columns:
                if one.doubt:
                    Sentence(f"{one.name}: {one.doubt}", "care")
            told = Sentence()
            with ui.element("div").classes("controls"):
                for name, label, options in (
                    ("sep", "Between columns", BETWEEN),
                    ("decimal", "Decimal mark", MARKS),
                    ("encoding", "Encoding", ENCODINGS),
                ):
                    self._way_to_read(name, label, options, told)

    def _way_to_read(self, name: str, label: str, options: dict[str, str], told: Sentence) -> None:
        now = getattr(self.session.choices, name) or ""

        def change(event: events.ValueChangeEventArguments[str]) -> None:
            with told.catching():
                self.session.choose(**{name: event.value or None})

        options = options if now in options else {**options, now: shown(now)}
        way = ui.select(options, label=label, value=now, on_change=change).props("outlined dense")
        labelled(way.classes("way"), test=f"read-{name}")

    # ------------------------------------------------------------------------------------------ first rows

    def _first_rows(self) -> None:
        table = self.session.table
        if table is None:
            return
        names = [one.name for one in self.session.columns[:MOST_COLUMNS]]
        first = table.frame.iloc[:FIRST_ROWS, : len(names)]
        title = f"The first {counted(len(first), 'row')}" if len(first) > 1 else "The only row"
        numbers = tuple(place for place, one in enumerate(self.session.columns[: len(names)]) if one.kind == "numbers")
        with panel(title), _scrolling(title), ui.element("table").classes("facts"):
            _row("th", names, numbers)
            for values in first.itertuples(index=False, name=None):
                _row("td", [_cell(value) for value in values], numbers)


def _scrolling(label: str) -> Element:
    """A box that scrolls sideways, by keyboard too."""
    found: Element = labelled(ui.element("div").classes("scrolls").props("tabindex=0 role=region"), label)
    return found


def _row(tag: str, cells: list[str] | tuple[str, ...], numbers: tuple[int, ...]) -> None:
    with ui.element("tr"):
        for place, cell in enumerate(cells):
            one = words(tag, cell, "number" if place in numbers else "")
            if tag == "th":
                one.props("scope=col")


def _cell(value: object) -> str:
    text = "" if value is None or value != value else number_text(value) if isinstance(value, float) else str(value)
    text = text.removesuffix(" 00:00:00")
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
