"""What sfumato says when it is used wrongly or cannot keep its word."""

from __future__ import annotations


class SfumatoError(Exception):
    """Base of every error that sfumato raises on purpose."""


class InputError(SfumatoError, ValueError):
    """An argument is wrong; the message names it, its value and the remedy."""


class GuaranteeError(SfumatoError):
    """The certificate does not hold, or has no proof where one was asked for; nothing was released or written."""


class BudgetError(SfumatoError):
    """Earlier releases have used up what may be revealed about a region."""


class FormatError(SfumatoError):
    """A file is damaged, truncated, of another version, or not a sfumato file."""


class FitWarning(UserWarning):
    """A fit ended on a bound or did not converge; its result may be poor."""


class GuaranteeWarning(UserWarning):
    """The promise is kept, but it is narrower than a reader might think."""


class FindingWarning(GuaranteeWarning):
    """A finding that makes a certificate's verdict worse; whoever shows the certificate need not show it again."""
