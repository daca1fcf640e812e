"""Print the lowest versions that pyproject.toml allows, as constraints for pip; tools of the tests have none."""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement

TOOLS = ("test", "docs")


def lowest_versions() -> dict[str, str]:
    """The lowest version of each package that sfumato, with its extras, is used with."""
    found: dict[str, str] = {}
    for one in map(Requirement, requires("sfumato") or ()):
        if one.marker is not None and any(f'extra == "{tool}"' in str(one.marker) for tool in TOOLS):
            continue
        bounds = [bound.version for bound in one.specifier if bound.operator == ">="]
        found[one.name] = bounds[0]
    return found


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lowest_versions().items()))
