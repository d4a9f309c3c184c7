"""Branches of ``spyrec`` that a campaign has taken, as coverage.py counts them: exits of lines that have several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

Arc = tuple[int, int]


class Branches:
    """What was taken of the branches of a package's files, which are parsed when their first arc comes."""

    def __init__(self, package: Path) -> None:
        self._package = package
        self._files: dict[str, _File] = {}
        self.taken = 0
        """Branches that were taken until now."""

    @cached_property
    def total(self) -> int:
        """Branches that there are in all files of the package."""
        return sum(len(_File(path).branches) for path in sorted(self._package.rglob("*.py")))

    def add(self, arcs: Mapping[str, Sequence[Sequence[int]]]) -> None:
        """Take note of arcs, by file below the package."""
        for name, found in arcs.items():
            path = self._package / name
            if name not in self._files:
                if not path.is_file():  # a worker's file that is not here
                    continue
                self._files[name] = _File(path)
            self.taken += self._files[name].take([(begin, end) for begin, end in found])


class _File:
    """The branches of a file, and those that were taken."""

    def __init__(self, path: Path) -> None:
        parser: Any = import_module("coverage.parser").PythonParser(text=path.read_text(encoding="utf-8"))
        parser.parse_source()
        exits = cast("dict[int, int]", parser.exit_counts())
        self._parser = parser
        self.branches = {(begin, end) for begin, end in cast("set[Arc]", parser.arcs()) if exits.get(begin, 0) > 1}
        self._taken: set[Arc] = set()

    def take(self, arcs: list[Arc]) -> int:
        """Return how many branches are new."""
        found = cast("set[Arc]", set(self._parser.translate_arcs(arcs))) & self.branches - self._taken
        self._taken |= found
        return len(found)
