"""A JSON text, and where in it a JSON pointer points.

Reading is done by the standard library's C scanner; our own scanner runs only when something must be located.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from dataclasses import field

from spyrec.dataclass import dataclass

MAX_NESTING = 100
"""Deepest nesting of arrays and objects that is read; readers may recurse over what they are given."""

_TOKEN = re.compile(r'[ \t\n\r]*(?:("(?:[^"\\]|\\.)*")|([{}\[\]:,])|([^\s{}\[\]:,"]+))', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class SourceText:
    """A JSON text that knows the line and column (1-based, in characters) of each value.

    The index over the text is built as far as the questions need it.  Text that is no JSON is indexed up to the place
    where it stops being JSON.
    """

    __slots__ = ("_line_starts", "_scan", "file", "text")

    def __init__(self, text: str, file: str | None = None) -> None:
        self.text = text
        self.file = file
        self._scan = Scan()
        self._line_starts: list[int] | None = None

    def position(self, pointer: str, *, of_key: bool = False) -> tuple[int, int]:
        """Return (line, column) of the value at ``pointer``, or of its deepest ancestor that exists.

        ``of_key``: of the key that the value stands behind, where it is a member of an object.
        """
        index = self._scan.offsets
        if pointer not in index:
            self._scan.run(self.text, pointer)
        while pointer and pointer not in index:
            pointer = pointer.rpartition("/")[0]
        keys = self._scan.key_offsets if of_key else {}
        return self.line_and_column(keys.get(pointer, index.get(pointer, 0)))

    def line_at(self, line: int) -> str:
        """Return the text of a line, counted from 1, without its end."""
        self.line_and_column(0)
        starts = self._line_starts
        assert starts is not None
        end = starts[line] - 1 if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return (line, column) of the character at ``offset``."""
        if self._line_starts is None:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


@dataclass(slots=True)
class _Level:
    """An open array or object of the scanner: its pointer, and the member that comes next."""

    pointer: str
    is_object: bool
    next_item: int = 0
    key: str | None = None
    keys: set[str] = field(default_factory=set[str])

    def member(self) -> str:
        token = str(self.next_item) if self.key is None else self.key.replace("~", "~0").replace("/", "~1")
        return f"{self.pointer}/{token}"


@dataclass(slots=True)
class TextFinding:
    """Something JSON allows and we do not: code, fact, pointer, character offset."""

    code: str
    message: str
    pointer: str
    offset: int


@dataclass(slots=True)
class Scan:
    """What a scan of a text found so far: offsets of each value and each key by pointer, the first thing to refuse."""

    offsets: dict[str, int] = field(default_factory=dict[str, int])
    key_offsets: dict[str, int] = field(default_factory=dict[str, int])
    finding: TextFinding | None = None
    stack: list[_Level] = field(default_factory=list[_Level])
    offset: int = 0

    def run(self, text: str, pointer: str | None = None) -> None:
        """Go on until the value at ``pointer`` is found, else to the end; lenient, it stops where nothing matches.

        The second place of a key that stands twice is found by a scan to the end only.
        """
        while pointer not in self.offsets and len(self.stack) <= MAX_NESTING:
            match = _TOKEN.match(text, self.offset)
            if match is None or not self.take(match):
                break

    def take(self, match: re.Match[str]) -> bool:
        """Note a token; return whether a JSON text may go on after it."""
        string, mark, literal = match.groups()
        level = self.stack[-1] if self.stack else None
        begin = match.start(match.lastindex or 0)
        if string is not None:
            self.string(string, begin, is_key=level is not None and level.is_object and level.key is None)
        elif literal is not None:
            self.literal(literal, begin)
        elif mark in "{[":
            self.open(begin, is_object=mark == "{")
        elif level is None:
            return False
        elif mark in "}]":
            self.stack.pop()
        elif mark == ",":
            level.key = None
            level.next_item += 1
        self.offset = match.end()
        return True

    def note(self, finding: TextFinding) -> None:
        """Keep the first thing to refuse."""
        if self.finding is None:
            self.finding = finding

    def begin_value(self, offset: int) -> str:
        """Note where the next value begins; return its pointer."""
        pointer = self.stack[-1].member() if self.stack else ""
        self.offsets[pointer] = offset
        return pointer

    def open(self, offset: int, *, is_object: bool) -> None:
        """Take an opening bracket."""
        pointer = self.begin_value(offset)
        self.stack.append(_Level(pointer, is_object))
        if len(self.stack) > MAX_NESTING:
            self.note(TextFinding("SPY0104", f"more than {MAX_NESTING} nested arrays and objects", pointer, offset))

    def string(self, text: str, offset: int, *, is_key: bool) -> None:
        """Take a string: a key, or a value."""
        value = _decode_string(text)
        level = self.stack[-1] if self.stack else None
        if is_key and level is not None:
            level.key = value
            if value in level.keys:
                self.note(TextFinding("SPY0102", f'key "{value}" stands twice in one object', level.member(), offset))
            level.keys.add(value)
            self.key_offsets[level.member()] = offset
        pointer = level.member() if level is not None else ""
        if _SURROGATE.search(value):
            self.note(TextFinding("SPY0101", "a string holds half of a surrogate pair", pointer, offset))
        if not is_key:
            self.begin_value(offset)

    def literal(self, text: str, offset: int) -> None:
        """Take a number, a truth value or null."""
        pointer = self.begin_value(offset)
        if _is_non_finite(text):
            shown = text if len(text) <= 40 else f"{text[:20]}... ({len(text)} characters)"
            self.note(TextFinding("SPY0103", f"number {shown} is not finite in float64", pointer, offset))


def _decode_string(text: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]


def _is_non_finite(literal: str) -> bool:
    if literal in {"true", "false", "null"}:
        return False
    try:
        return not math.isfinite(float(literal))
    except ValueError:
        return False


def scan(text: str) -> Scan:
    """Walk all tokens of ``text``."""
    found = Scan()
    found.run(text)
    return found
