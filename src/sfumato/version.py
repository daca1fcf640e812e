"""The version of this package: written into reports and streamed releases, read by the build."""

from __future__ import annotations

__version__ = "0.1.0"
