"""The step Check: the certificate with its evidence, what was found and what to do about it, and the audit.

Everything is told in the words of the report, from the same facts; the verdict is that of all findings together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nicegui import background_tasks, run, ui
from nicegui.element import Element

from ...evaluate import AUDIT_HEADER
from ...files import OWNER_ONLY
from ...promise import ACCEPTABLE, Finding
from ...proof import Certificate
from ...show import Facts, Picture, RecordFacts, public_pictures
from ...text import shown
from ..parts import VERDICTS, Page, Sentence, as_address, labelled, panel, table, words
from ..remedies import remedy
from ..session import Session
from .ready import once_ready


def check(session: Session, page: Page) -> None:
    """Build the step."""
    once_ready(session, page, lambda: _build(session, page))


def _build(session: Session, page: Page) -> None:
    if session.check.state == "idle":
        session.start_check()

    def found() -> object:
        return session.check.value, session.audit.value, session.choices.accept

    with panel("Verdict"):
        page.progress_of(session.check, "Designing the noise and proving the promise")
        again = ui.button("Check again", on_click=session.start_check).props("outline no-caps")
        labelled(again, test="check")
        page.follow(again, lambda: session.check.state, lambda: again.set_visibility(not session.check.is_running))
        page.refresh_on(found, lambda: _verdict(session))
    with panel("What was found"):
        page.refresh_on(found, lambda: _findings(session))
    with panel("The certificate"):
        page.refresh_on(lambda: session.check.value, lambda: _certificate(session))
    with panel("The audit"):
        _audit(session, page)


def show_verdict(certificate: Certificate, why: str = "") -> None:
    """The verdict in large, what it says, and its reason."""
    with labelled(ui.element("div").classes(f"verdict {VERDICTS[certificate.verdict]}"), test="verdict"):
        words("p", certificate.verdict.capitalize(), "large").props("role=status")
        words("p", f"{certificate.verdict_in_words}.")
    if why:
        words("p", why)


def _verdict(session: Session) -> None:
    decided = session.certificate
    checked = session.check.value
    if decided is None or checked is None:
        return
    facts = None if checked.release is None else Facts(replace(checked.release, certificate=decided))
    show_verdict(decided, session.refusal or ("" if facts is None else facts.why))
    if facts is not None:
        for text in (facts.promise, facts.not_promised):
            words("p", text) if text else None
        words("p", f"About whom: {facts.about_whom}")
        words("p", f"To whom: {facts.against_whom}")
        words("p", f"What that rests on: {decided.evidence_in_words}.")
    if checked.rehearsal is not None:
        words("p", checked.rehearsal.sentence())


def _findings(session: Session) -> None:
    """All findings, the worst first, with what to do; those that stop can be accepted where that is allowed."""
    decided, checked = session.certificate, session.check.value
    if decided is None or checked is None:
        words("p", "Nothing was checked yet.", "quiet")
        _accepted_in_vain(session, ())
        return
    told = () if checked.release is None else checked.release.certificate.findings
    public = {one.text for one in told}
    with ui.element("ul").classes("findings"):
        for one in decided.findings:
            with ui.element("li").classes(f"finding {'medium' if one.label == 'accepted' else one.severity}"):
                with ui.element("h3"):
                    words("span", one.label, "chip")
                    words("span", one.title)
                words("p", one.text)
                if remedy(one):
                    words("p", f"What to do: {remedy(one)}")
                if checked.release is not None and one.text not in public:
                    words("p", "Only you see this; it is not in the file.", "quiet")
                if one.severity == "high" and one.code in ACCEPTABLE:
                    _acceptance(session, one)
    _accepted_in_vain(session, decided.findings)


def _acceptance(session: Session, one: Finding) -> None:
    """What accepting a finding means, with a box to tick."""
    means = f"I accept this ({one.code}): {ACCEPTABLE[one.code]}. I know of it and publish all the same."
    _box(session, means, one.code, one.accepted)


def _accepted_in_vain(session: Session, findings: Sequence[Finding]) -> None:
    """Codes that were accepted before and are not found now: they can be taken back."""
    for code in session.choices.accept:
        if code not in [one.code for one in findings if one.severity == "high"]:
            _box(session, f"Accepted before, and not found now: {code}. Take the tick away to check again.", code, True)


def _box(session: Session, text: str, code: str, ticked: bool) -> None:
    def ticks(is_ticked: bool) -> None:
        others = tuple(one for one in session.choices.accept if one != code)
        session.choose(accept=(*others, code) if is_ticked else others)
        if session.check.state == "idle":
            session.start_check()

    box = ui.checkbox(shown(text), value=ticked, on_change=lambda event: ticks(bool(event.value)))
    labelled(box, test=f"accept-{code}")


def _certificate(session: Session) -> None:
    checked = session.check.value
    if checked is None:
        words("p", "There is none yet.", "quiet")
        return
    if checked.release is None:  # nothing goes out, so there are no facts about what does
        table("The fields of the certificate", ("Field", "Value"), checked.certificate.rows())
        return
    facts = Facts(replace(checked.release, certificate=checked.certificate))
    header = ("Field", "Value", "What it means")
    table("The fields of the certificate and what they mean", header, facts.certificate_rows)
    records = RecordFacts(facts)
    if records.rows:
        table("What goes out of the records in the region", ("", "Value", "What it means"), records.rows)
    else:
        words("p", records.none)
    with ui.element("div") as box:
        words("p", "Drawing what readers can and cannot learn …", "quiet")
    background_tasks.create(_draw(box, facts))


async def _draw(box: Element, facts: Facts) -> None:
    """The pictures of the report, drawn behind."""
    made = await run.io_bound(public_pictures, facts)
    if box.is_deleted:
        return
    box.clear()
    with box:
        for picture in made or ():
            with ui.element("figure"):
                image = ui.element("img").classes("picture")
                image.props["src"], image.props["alt"] = _as_image(picture), shown(picture.alt)
                words("figcaption", picture.caption, "quiet")


def _as_image(picture: Picture) -> str:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{picture.view_box}">{picture.svg}</svg>'
    return as_address("svg+xml", svg.encode())


def _audit(session: Session, page: Page) -> None:
    words("p", "All attacks that are known are tried on the release, and compared with the truth that only you have.")
    start = ui.button("Audit the release", on_click=session.start_audit).props("outline no-caps")
    labelled(start, test="audit")

    def can_start() -> bool:
        checked = session.check.value
        return checked is not None and checked.release is not None and not session.audit.is_running

    page.follow(start, can_start, lambda: start.set_enabled(can_start()))
    page.progress_of(session.audit, "Auditing")

    def show() -> None:
        audit = session.audit.value
        if audit is None:
            return
        words("p", OWNER_ONLY, "quiet")
        Sentence(audit.sentence, "good" if audit.holds and not audit.below else "care" if audit.holds else "bad")
        names = tuple(name.capitalize() for name in AUDIT_HEADER)
        caption = f"Errors at {audit.judged} sensitive inputs, in multiples of the floor; below 1 is below the floor"
        table(caption, names, audit.rows())
        for text in () if audit.records is None else audit.records.words:
            words("p", text)
        with ui.expansion("Who got below the floor, what to do, and what was not tried"):
            for one in audit.outcomes:
                if one.below:
                    words("p", f"{one.name}: {one.words}")
            for left in audit.skipped:
                words("p", f"Not tried: {left.name}, because {left.why}")

    page.refresh_on(lambda: session.audit.value, show)
