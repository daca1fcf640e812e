"""Manifests as older versions of the file format had them."""

from __future__ import annotations

from typing import Any

#: What version 7 added, to the manifest and to its certificate.
SINCE_7 = {"protects", "insiders", "designed_for"}
CERTIFIED_SINCE_7 = {
    "protects", "records", "raw_records", "record_noise", "record_ratio", "record_learnt", "record_sensitivity",
    "insider_ratio", "insider_group",
}  # fmt: skip

#: What version 9 added to the certificate.
CERTIFIED_SINCE_9 = {"objective", "explained", "explained_upper", "suppressed"}


def as_version_8(manifest: dict[str, Any]) -> dict[str, Any]:
    """``manifest`` before anything but the least noise could be asked for."""
    certificate = {key: value for key, value in manifest["certificate"].items() if key not in CERTIFIED_SINCE_9}
    return manifest | {"certificate": certificate}


def as_version_6(manifest: dict[str, Any]) -> dict[str, Any]:
    """``manifest`` before anything was said about records and insiders."""
    older = as_version_8(manifest)
    certificate = {key: value for key, value in older["certificate"].items() if key not in CERTIFIED_SINCE_7}
    return {key: value for key, value in older.items() if key not in SINCE_7} | {"certificate": certificate}


def as_version_5(manifest: dict[str, Any]) -> dict[str, Any]:
    """``manifest`` before regions were proved."""
    older = as_version_6(manifest)
    certificate = {k: v for k, v in older["certificate"].items() if k not in ("evidence", "proved_share")}
    return {key: value for key, value in older.items() if key != "promised"} | {"certificate": certificate}
