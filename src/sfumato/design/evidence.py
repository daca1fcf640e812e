"""What a promise may rest on: the best that is found, or nothing less than a proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..errors import GuaranteeError
from ..proof import Certificate, Examination
from ..release import why_not

AskedEvidence = Literal["best", "proved"]


def as_asked(
    evidence: AskedEvidence, certificate: Certificate, insist: Callable[[], Examination], say: Callable[[str], None]
) -> Certificate:
    """``certificate``; where nothing but a proof was asked for and it has none, one that was insisted on.

    Raises ``GuaranteeError`` where there is no proof.
    """
    if evidence == "best" or certificate.evidence == "proved":
        return certificate
    if not certificate.holds:
        raise GuaranteeError(why_not(certificate))
    say("insisting on a proof")
    certificate = insist().certificate()
    if certificate.evidence == "proved":
        return certificate
    said = " ".join(str(one) for one in certificate.findings if one.code == "searched")
    raise GuaranteeError(
        f'nothing was designed: evidence is "proved", and the promise is not. {said} Or use evidence="best", and say '
        "with the release that its promise is searched."
    )
