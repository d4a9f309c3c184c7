"""A TOML text, and where in it the value of a JSON pointer begins: at its key, or at the head of its table.

The standard library reads TOML and says nothing of places.  This looks for heads and keys line by line, outside of
strings over several lines; what stands inside a value is placed at the value's key.
"""

from __future__ import annotations

import re

from spyrec.diagnostics.source_text import SourceText

_HEAD = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
_WORD = r'(?:[A-Za-z0-9_-]+|"[^"]*"|\'[^\']*\')'
_KEY = re.compile(rf"\s*({_WORD}(?:\s*\.\s*{_WORD})*)\s*=")
_WORDS = re.compile(_WORD)
_LONG_STRING = re.compile(r'"""|\'\'\'')


class TomlText(SourceText):
    """A TOML text that knows the line and column (1-based, in characters) of each key and table."""

    __slots__ = ("_places",)

    def __init__(self, text: str, file: str | None = None) -> None:
        super().__init__(text, file)
        self._places: dict[str, tuple[int, int]] | None = None

    def position(self, pointer: str, *, of_key: bool = False) -> tuple[int, int]:  # noqa: ARG002 -- all are keys
        """Return (line, column) of the key at ``pointer``, or of its deepest ancestor that has one."""
        if self._places is None:
            self._places = key_places(self.text)
        while pointer and pointer not in self._places:
            pointer = pointer.rpartition("/")[0]
        return self._places.get(pointer, (1, 1))


def key_places(text: str) -> dict[str, tuple[int, int]]:
    """Return line and column of each key and table of a text, by JSON pointer."""
    found: dict[str, tuple[int, int]] = {}
    counts: dict[str, int] = {}
    table, is_inside = "", False
    for number, line in enumerate(text.split("\n"), 1):
        was_inside = is_inside
        is_inside ^= len(_LONG_STRING.findall(line)) % 2 == 1
        if was_inside:
            continue
        column = len(line) - len(line.lstrip()) + 1
        head, key = _HEAD.match(line), _KEY.match(line)
        if head is not None:
            table = _path("", head[2], counts)
            if head[1] == "[[":
                found.setdefault(table, (number, column))
                counts[table] = counts.get(table, -1) + 1
                table = f"{table}/{counts[table]}"
            found.setdefault(table, (number, column))
        elif key is not None:
            found.setdefault(_path(table, key[1], {}), (number, column))
    return found


def _path(table: str, dotted: str, counts: dict[str, int]) -> str:
    """Return the pointer of a dotted key; below an array of tables it is that of the last one."""
    words = [word.strip("\"'").replace("~", "~0").replace("/", "~1") for word in _WORDS.findall(dotted)]
    path = table
    for place, word in enumerate(words):
        path = f"{path}/{word}"
        if place < len(words) - 1 and path in counts:
            path = f"{path}/{counts[path]}"
    return path
