"""The command ``sfumato certify``: the certificate again, from the file alone."""

from __future__ import annotations

import typer

from .command import DO_NOT_PUBLISH
from .files import open_release
from .options import Json, ReleaseFile
from .printing import as_json, show_certificate

CERTIFY_EXAMPLES = ("sfumato certify orbit.sfumato", "sfumato certify orbit.sfumato --json")


def certify(release_file: ReleaseFile, json: Json = False) -> None:
    """Compute the certificate again from the file alone; exit code 1 if it does not hold."""
    release = open_release(release_file)
    certificate = release.certify(progress=not json)
    if json:
        found = {"release": release_file, "holds": certificate.holds, "unsafe": release.unsafe}
        as_json({**found, "certificate": certificate.as_dict()})
    else:
        show_certificate(certificate, f"{release_file}, computed again")
        if release.unsafe:
            typer.echo("UNSAFE: the noise came from a known seed, so anyone can take it off.")
    if not certificate.holds:
        raise typer.Exit(DO_NOT_PUBLISH)
