"""What comes along beside the code: inside the package in an installation, beside it in a checkout.

``setup.py`` reads this file too, to know what it puts into a wheel: there is one list, and no second copy of a file.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
INSTALLED_IN = "_published"
"""Folder of the package that holds what comes along in an installation, in the folders of a checkout."""

EXAMPLES, SCHEMAS, ERROR_CASES = "examples", "schemas", "tests/cases/errors"
SCHEMA_SUFFIX = ".schema.json"

_MADE = frozenset({"golden", "bundle", "__pycache__"})
"""Folders that hold what a program makes; a golden bundle serves the tests alone."""

_MADE_SUFFIXES = (".trace.json", ".pyc")


def published_files(folder: Path) -> list[Path]:
    """Return the files below a folder that are handed out, relative to it, sorted."""
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in found if not any(_is_made(part) for part in path.parts)]


def _is_made(part: str) -> bool:
    return part.startswith(".") or part in _MADE or part.endswith(_MADE_SUFFIXES)


def published_folder(kind: str) -> Path:
    """Return the folder of what is named above.  Errors: SPY0148 it did not come along."""
    installed, checkout = PACKAGE / INSTALLED_IN / kind, PACKAGE.parent
    if installed.is_dir():
        return installed
    # a folder of that name beside an installed package is another package's
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    from spyrec.diagnostics import refuse

    raise refuse("SPY0148", f"this installation of spyrec has no {kind}: {installed} is missing")
