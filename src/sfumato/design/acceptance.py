"""What the owner found on the data joins the certificate, and what the owner accepts is marked there.

Findings of a rehearsal are made with secret values. Only their code, their severity and a sentence without numbers go
into a certificate, which is published.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..promise import (
    ONE_BY_ONE,
    Design,
    Finding,
    accepting,
    asked_acceptance,
    check_accepted,
    in_order,
    told_to_readers,
)
from ..proof import Certificate


@dataclass(frozen=True)
class Acceptance:
    """The ``findings`` that an owner brings along, and the ``codes`` of those that are accepted."""

    findings: tuple[Finding, ...] = ()
    codes: tuple[str, ...] = ()

    @classmethod
    def asked(cls, findings: Any, accept: Any) -> Acceptance:
        """``findings`` and ``accept`` as they were given, checked before any long work."""
        found = (findings,) if isinstance(findings, Finding) else findings
        if not isinstance(found, (tuple, list)) or not all(isinstance(one, Finding) for one in found):
            raise InputError(f"findings is {str(findings)[:60]!r}; give sf.Findings, such as those of sf.rehearse.")
        return cls(tuple(found), asked_acceptance(accept))

    def joins(self, certificate: Certificate, design: Design) -> Certificate:
        """The certificate as it may be published: with what the owner found, and what the owner accepts."""
        # only the values can show that an output is the slope of another one
        later = {ONE_BY_ONE} if design.inputs.outputs.numbered else set()
        check_accepted(self.codes, (*certificate.findings, *self.findings), later)
        return certificate.with_findings(*told_to_readers(self.findings)).accepting(self.codes)

    def in_full(self, certificate: Certificate) -> tuple[Finding, ...]:
        """All findings in words that are the owner's alone."""
        return self.accepts(in_order((*certificate.findings, *self.findings)))

    def accepts(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings, with those marked that are accepted."""
        return accepting(findings, self.codes)
