"""Diffs as a document shows them: unified, their hunks without line numbers, each found by the lines it keeps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^--- a/(.+)\n\+\+\+ b/\1\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of a file as they stand, and as they become."""

    file: str
    before: str
    after: str

    def apply(self, root: Path) -> None:
        """Change the one place in the file below ``root`` where the lines stand."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(f"\n{self.before}") == 1, f"{self.file}: the lines stand elsewhere than once:\n{self.before}"
        path.write_text(text.replace(f"\n{self.before}", f"\n{self.after}"), encoding="utf-8")


def hunks_of(document: str) -> list[Hunk]:
    """Return the hunks of all diffs that a Markdown text shows, in order."""
    found: list[Hunk] = []
    for block in _BLOCK.findall(document):
        head, *rest = _FILE.split(block)
        assert not head
        for file, body in zip(rest[::2], rest[1::2], strict=True):
            found.extend(_hunk(file, part) for part in body.split("@@\n")[1:])
    return found


def _hunk(file: str, text: str) -> Hunk:
    lines = text.splitlines(keepends=True)
    assert all(line[0] in " +-" for line in lines), text
    assert any(line[0] != "+" for line in lines), f"a hunk needs a line that stands there:\n{text}"
    before, after = ("".join(line[1:] for line in lines if line[0] in marks) for marks in (" -", " +"))
    return Hunk(file, before, after)
