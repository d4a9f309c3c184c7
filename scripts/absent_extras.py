"""Print which optional packages are absent, and which tests are therefore not collected."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
INSTALLED_BY_MAKE = "dev"


def is_installed(requirement: str) -> bool:
    """True where the distribution that the requirement names is installed, in whatever version."""
    try:
        version(Requirement(requirement).name)
    except PackageNotFoundError:
        return False
    return True


def main() -> int:
    """Read the extras of ``pyproject.toml``; print one line per extra that lacks a package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    for extra, requirements in sorted(extras.items()):
        absent = [requirement for requirement in requirements if not is_installed(requirement)]
        if absent and extra != INSTALLED_BY_MAKE:
            print(f"absent extra '{extra}' ({', '.join(absent)}): what needs it is not collected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
