"""What sfumato says when it is used wrongly or cannot keep its word."""

from __future__ import annotations

from .text import shown, shown_lines


class _Said(Exception):  # noqa: N818
    """A message of one line or several: whatever a name in it holds, it makes no line of its own."""

    def __init__(self, *lines: object) -> None:
        super().__init__(*map(shown, lines))

    def __str__(self) -> str:
        return shown_lines(self.args)


class SfumatoError(_Said):
    """Base of every error that sfumato raises on purpose."""


class InputError(SfumatoError, ValueError):
    """An argument is wrong; the message names it, its value and the remedy."""


class GuaranteeError(SfumatoError):
    """The certificate does not hold, or has no proof where one was asked for; nothing was released or written."""


class BudgetError(SfumatoError):
    """Earlier releases have used up what may be revealed about a region."""


class FormatError(SfumatoError):
    """A file is damaged, truncated, of another version, or not a sfumato file."""


class ResourceError(SfumatoError, OSError):
    """A disk or a cluster gave out. Nothing is wrong with what was asked, and what was there before stays."""


class FitWarning(_Said, UserWarning):
    """A fit ended on a bound or did not converge; its result may be poor."""


class LongWorkWarning(_Said, UserWarning):
    """What was asked for is expected to take long; it has not begun, and can be interrupted."""


class GuaranteeWarning(_Said, UserWarning):
    """The promise is kept, but it is narrower than a reader might think."""


class FindingWarning(GuaranteeWarning):
    """A finding that makes a certificate's verdict worse; whoever shows the certificate need not show it again."""
