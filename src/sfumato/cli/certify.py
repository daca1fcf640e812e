"""The command ``sfumato certify``: the promise of a release, checked again from its file alone."""

from __future__ import annotations

from typing import Annotated

from ..errors import InputError
from .command import exit_by
from .options import Json, ReleaseFile, option
from .printing import as_json, show_certificate
from .releases import open_release

CERTIFY_EXAMPLES = (
    "sfumato certify orbit.sfumato",
    "sfumato certify orbit.sfumato --json",
    "sfumato certify people.sfumato --dp-range 50000",
)


def certify(
    release_file: ReleaseFile,
    dp_range: Annotated[
        float | None,
        option("NUMBER", "Say it as differential privacy too, for records that differ by at most this much."),
    ] = None,
    delta: Annotated[float | None, option("NUMBER", "The δ of --dp-range (default: 1e-6).")] = None,
    json: Json = False,
) -> None:
    """Compute the certificate again from the file alone; exit code 1 if it says: do not publish."""
    if delta is not None and dp_range is None:
        raise InputError("--delta belongs to --dp-range, the largest difference between two records; give it too.")
    release = open_release(release_file)
    certificate = release.certify(progress=not json)
    loss = None if dp_range is None else certificate.dp(dp_range, *([] if delta is None else [delta]))
    if json:
        found = {"release": release_file, "holds": certificate.holds, "unsafe": release.unsafe}
        if loss is not None:
            words = {"range": dp_range, "delta": loss.delta, "epsilon": loss.epsilon, "mu": loss.mu, "text": loss.text}
            found["differential_privacy"] = words
        as_json({**found, "certificate": certificate.as_dict()})
    else:
        more = [] if loss is None else [("differential privacy", str(loss))]
        show_certificate(certificate, f"{release_file}, computed again", more)
    exit_by(certificate.verdict)
