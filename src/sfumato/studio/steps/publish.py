"""The step Publish: what is written, where and under which names; and what was read back of it."""

from __future__ import annotations

import shlex
from functools import partial

from nicegui import ui

from ...errors import InputError
from ...text import listed, shown
from ..parts import Page, Sentence, labelled, panel, words
from ..publication import ENDINGS, stem_of
from ..session import Session
from .check import show_verdict
from .ready import once_ready

#: The files that can be had, what they are for, and what is put after the name of the data.
_FILES = {
    "release file": ("the values with noise, the prior, the noise's covariance and the certificate, for readers", ""),
    "table": ("the published values alone, for spreadsheets", "_public"),
    "report": ("one page for the person who signs off the publication", ""),
}


def publish(session: Session, page: Page) -> None:
    """Build the step."""
    once_ready(session, page, lambda: _build(session, page))


def _build(session: Session, page: Page) -> None:
    with panel("Verdict"):
        page.progress_of(session.check, "Designing the noise and proving the promise")
        page.refresh_on(lambda: _standing(session), lambda: _verdict(session, page))
    with panel("What is written"):
        _Form(session, page)
    with panel("What was written"):
        page.refresh_on(lambda: (session.publish.value, session.unsaid), lambda: _written(session))


def _standing(session: Session) -> tuple[object, ...]:
    return session.check.value, session.audit.value, session.choices.accept, session.is_second_release


def _verdict(session: Session, page: Page) -> None:
    decided, checked = session.certificate, session.check.value
    if decided is None or checked is None:
        words("p", "Nothing was checked yet: a release is published with its certificate.")
        labelled(ui.button("Go to Check", on_click=lambda: page.go("check")).props("outline no-caps"), test="to-check")
        return
    show_verdict(decided, session.refusal)
    if session.is_second_release:
        Sentence(
            "A release was written in this studio before. Two of one secret can be averaged: publish one of them only, "
            "or count both in one ledger (step How much; sf.Ledger.record counts one that is there already).",
            "care",
        )
    if session.audit.value is None and checked.release is not None:
        words("p", "The release was not audited. The audit is in the step Check.", "quiet")


class _Form:
    """Names, ticks and the button."""

    def __init__(self, session: Session, page: Page) -> None:
        self.session = session
        words("p", f"Files are written to {session.folder}, when you say so and not before.")
        stem = stem_of(session.choices.data)
        self.ticks: dict[str, ui.checkbox] = {}
        self.names: dict[str, ui.input] = {}
        for what, (means, more) in _FILES.items():
            with ui.element("div").classes("file"):
                tick = ui.checkbox(f"{what.capitalize()}: {means}", value=True)
                self.ticks[what] = labelled(tick, test=f"write-{what.replace(' ', '-')}")
                tick.set_enabled(what != "release file")  # without it there is no publication
                name = ui.input(f"Name of the {what}", value=f"{stem}{more}{ENDINGS[what]}")
                self.names[what] = labelled(
                    name.props("outlined dense maxlength=200 spellcheck=false"), test=what.replace(" ", "-")
                )
        if session.choices.ledger is not None:
            words("p", f"The ledger {session.choices.ledger} gets an entry first: whatever happens then counts.")
        self.replace = ui.checkbox("Replace files that are there already", value=False)
        labelled(self.replace, test="replace")
        self.problem = Sentence()
        labelled(self.problem, test="publish-problem")
        self.button = ui.button("Publish", on_click=self._publish).props("unelevated no-caps")
        labelled(self.button, test="publish")
        for ticked in (*self.ticks.values(), self.replace):
            ticked.on_value_change(self._look)
        for named in self.names.values():
            named.on_value_change(self._look)
        page.follow(self.button, self._key, self._look)
        self.state = Sentence()  # no Cancel: a publication that has begun is finished
        page.follow(self.state, lambda: (session.publish.state, session.publish.error), self._tell)

    def _key(self) -> object:
        return *_standing(self.session), self.session.publish.state

    def _asked(self) -> tuple[tuple[str, str | None, str | None], bool]:
        """The names of the files, None for those that are not wanted; and whether old ones may be replaced."""
        table, page = (
            (self.names[what].value or "") if self.ticks[what].value else None for what in ("table", "report")
        )
        return (self.names["release file"].value or "", table, page), bool(self.replace.value)

    def _look(self) -> None:
        """Say at once what is wrong with the names, or why nothing can be published."""
        session = self.session
        refusal = session.refusal
        names, replace = self._asked()
        problem = ""
        if refusal and session.check.value is not None:
            problem = refusal
        elif session.publish.state not in ("running", "done"):
            try:
                session.places(*names, replace)
            except InputError as error:
                problem = str(error)
        self.problem.say(problem, "bad" if problem else "plain")
        self.button.set_enabled(not problem and session.check.value is not None and not session.publish.is_running)

    def _tell(self) -> None:
        job = self.session.publish
        if job.state == "failed":
            self.state.say(job.error, "bad")
        else:
            self.state.say("Writing the files, and certifying what was written …" if job.is_running else "")

    def _publish(self) -> None:
        names, replace = self._asked()
        with self.problem.catching():
            self.session.start_publish(*names, replace=replace)


def _written(session: Session) -> None:
    found = session.publish.value
    if found is None:
        words("p", "Nothing yet.", "quiet")
        return
    with labelled(ui.element("ul"), test="files-written"):
        for path in found.paths:
            with ui.element("li"):
                words("code", path)
                content = found.contents[path.name]
                save = ui.button(f"Download {shown(path.name)}", on_click=partial(_download, content, path.name))
                save.props("flat dense no-caps")
        if found.ledger is not None:
            words("li", f"an entry in the ledger {found.ledger}; keep it, and publish nothing beside it")
    if found.replaced:
        words("p", "The old release was replaced. Publish one of them only: two of one secret can be averaged.")
    name = shlex.quote(found.paths[0].name)
    words("p", "The release file was read back, and its certificate computed again from the file alone:")
    show_verdict(found.certificate)
    mine = session.certificate
    if mine is not None and session.unsaid:
        Sentence(
            f"The files do not say what only you were shown: {listed(session.unsaid)}. With it the verdict is "
            f'"{mine.verdict}"; tell whoever signs this off.',
            "care",
        )
    words("p", "What readers do with it: check it, and predict at inputs of their own.")
    words("pre", f"sfumato certify {name}", "program")
    words("pre", f"sfumato predict {name} NEW.csv", "program")
    kept = "" if found.ledger is None else "the ledger, "
    words("p", f"These files may be given away. Your data, {kept}the choices and what only you were shown stay here.")


def _download(content: bytes, name: str) -> None:
    ui.download.content(content, name)
