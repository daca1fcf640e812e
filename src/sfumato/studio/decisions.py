"""What each step has decided, in sentences: the next step begins with them."""

from __future__ import annotations

from ..text import counted, listed, number_text
from .session import Session

_PROTECTS = {
    "both": "the function and each record there",
    "function": "the function there, and no single record",
    "records": "each record there, and not the function",
}


def decided(session: Session, step: str) -> list[str]:
    """The sentences of ``step``; none where it has decided nothing yet."""
    if session.trouble:
        return []
    return _SENTENCES[step](session)


def _data(session: Session) -> list[str]:
    choices = session.choices
    name = f"{choices.data}: " if choices.data else ""
    return [
        f"{name}{counted(session.rows, 'row')}.",
        f"Inputs: {listed(choices.inputs, 6)}.",
        f"Output: {choices.output}.",
    ]


def _model(session: Session) -> list[str]:
    prior, tried, choices = session.fit.value, session.rehearsal.value, session.choices
    if prior is None:
        return [f"Kernel {choices.kernel}, mean {choices.mean}; the prior is not fitted yet."]
    words = str(prior)
    return [f"{words[:1].upper()}{words[1:]}.", "It was not rehearsed yet." if tried is None else tried.sentence()]


def _sensitive(session: Session) -> list[str]:
    choices, region = session.choices, session.region
    if region is None:
        return ["No region is chosen yet."]
    where = region.in_words(session.inputs.names)
    inside = f"{int(session.inside.sum()):,} of {counted(session.rows, 'row')} inside."
    found = [f"Sensitive: {where}; {inside}", f"Protected: {_PROTECTS[choices.protects]}."]
    if choices.insiders is not None:
        who = "any one row" if choices.insiders == "rows" else f"all rows of one {choices.insiders}"
        found.append(f"From insiders too, who hold {who}.")
    return found


def _how_much(session: Session) -> list[str]:
    value = session.choices.value
    found = [f"Readers keep a standard deviation of at least {number_text(value)} (the floor)."]
    if session.choices.level == "alpha":
        found = [f"Readers may learn at most {100 * value:.3g} % of the prior variance (α = {number_text(value)})."]
    if session.choices.objective == "predictions":
        found.append("The noise leaves readers the best predictions outside.")
    return found


def _check(session: Session) -> list[str]:
    certificate = session.certificate
    if certificate is None:
        return ["Nothing was checked yet."]
    return [f"{certificate.verdict_in_words}.", f"What that rests on: {certificate.evidence_in_words}."]


_SENTENCES = {"data": _data, "model": _model, "sensitive": _sensitive, "how_much": _how_much, "check": _check}
