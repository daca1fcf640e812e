"""The command ``sfumato certify``: the promise of a release, checked again from its file alone."""

from __future__ import annotations

from .command import exit_by
from .options import Json, ReleaseFile
from .printing import as_json, show_certificate
from .releases import open_release

CERTIFY_EXAMPLES = ("sfumato certify orbit.sfumato", "sfumato certify orbit.sfumato --json")


def certify(release_file: ReleaseFile, json: Json = False) -> None:
    """Compute the certificate again from the file alone; exit code 1 if it says: do not publish."""
    release = open_release(release_file)
    certificate = release.certify(progress=not json)
    if json:
        found = {"release": release_file, "holds": certificate.holds, "unsafe": release.unsafe}
        as_json({**found, "certificate": certificate.as_dict()})
    else:
        show_certificate(certificate, f"{release_file}, computed again")
    exit_by(certificate.verdict)
