"""Print which optional packages are absent and which files of the project therefore have to do without.

Only extras that something depends on are named: a file depends on an extra when it imports one of its packages.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
INSTALLED_BY_MAKE = "dev"
FOLDERS = ("spyrec", "tests", "examples", "benchmarks", "scripts")
MODULES = {"pillow": "PIL", "scikit-learn": "sklearn"}
"""Distribution -> module, where the name does not tell."""


def module_of(requirement: str) -> str:
    """Return the module that a distribution is imported as."""
    name = Requirement(requirement).name
    return MODULES.get(name, name.replace("-", "_"))


def imported_by(text: str) -> Iterator[str]:
    """Yield the top-level modules that a source imports, by statement or by ``import_module``."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (item.name.partition(".")[0] for item in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.partition(".")[0]
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name)), *_]):
                yield name.partition(".")[0]
            case _:
                continue


def users_of(modules: set[str]) -> list[str]:
    """Return the files of the project that import one of the modules, sorted."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    # parsing is slow, and few files have one of the names at all
    likely = {path: text for path, text in texts.items() if any(module in text for module in modules)}
    return sorted(path for path, text in likely.items() if modules.intersection(imported_by(text)))


def report(extra: str, requirements: list[str]) -> list[str]:
    """Return the lines to print of one extra: none where it is installed, or nothing depends on it."""
    absent = [requirement for requirement in requirements if find_spec(module_of(requirement)) is None]
    users = users_of({module_of(requirement) for requirement in absent}) if absent else []
    lacking = ", ".join(absent)
    return [
        f"absent extra '{extra}' ({lacking}): "
        + (f"{user} is not collected" if user.startswith("tests/") else f"{user} does without")
        for user in users
    ]


def main() -> int:
    """Read the extras of ``pyproject.toml`` and print what their absence costs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    for extra, requirements in sorted(extras.items()):
        for line in report(extra, requirements) if extra != INSTALLED_BY_MAKE else []:
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
