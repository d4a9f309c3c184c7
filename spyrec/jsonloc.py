"""Strict JSON reading, and where in the text a JSON pointer points.

Reading is done by the standard library's C scanner; our own scanner runs only when something must be located.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NoReturn

from spyrec.diagnostics import Location, refuse

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None
"""What a JSON text holds."""

MAX_NESTING = 100
"""Deepest nesting of arrays and objects that is read; readers may recurse over what they are given."""

MAX_TEXT_BYTES = 1 << 28
"""Longest text that is read: 256 MiB. Numbers in bulk belong into safetensors or npy files."""

_TOKEN = re.compile(r'[ \t\n\r]*(?:("(?:[^"\\]|\\.)*")|([{}\[\]:,])|([^\s{}\[\]:,"]+))', re.DOTALL)
_MAYBE_OVERFLOW = re.compile(r"[0-9]{200}|[0-9][eE]\+?[0-9]{3}")
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class SourceText:
    """A JSON text that knows the line and column (1-based, in characters) of each value.

    The index over the text is built on the first question, once.  Text that is no JSON is indexed up to the place
    where it stops being JSON.
    """

    __slots__ = ("_index", "_line_starts", "file", "text")

    def __init__(self, text: str, file: str | None = None) -> None:
        self.text = text
        self.file = file
        self._index: dict[str, int] | None = None
        self._line_starts: list[int] | None = None

    def position(self, pointer: str) -> tuple[int, int]:
        """Return (line, column) of the value at ``pointer``, or of its deepest ancestor that exists."""
        if self._index is None:
            self._index = _scan(self.text).offsets
        while pointer and pointer not in self._index:
            pointer = pointer.rpartition("/")[0]
        return self.line_and_column(self._index.get(pointer, 0))

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
class _Finding:
    """Something JSON allows and we do not: code, fact, pointer, character offset."""

    code: str
    message: str
    pointer: str
    offset: int


@dataclass(slots=True)
class _Scan:
    """What one scan of a text found: the offset of each value by pointer, and the first thing to refuse."""

    offsets: dict[str, int] = field(default_factory=dict[str, int])
    finding: _Finding | None = None
    stack: list[_Level] = field(default_factory=list[_Level])

    def note(self, finding: _Finding) -> None:
        if self.finding is None:
            self.finding = finding

    def begin_value(self, offset: int) -> str:
        pointer = self.stack[-1].member() if self.stack else ""
        self.offsets[pointer] = offset
        return pointer

    def open(self, offset: int, *, is_object: bool) -> None:
        pointer = self.begin_value(offset)
        self.stack.append(_Level(pointer, is_object))
        if len(self.stack) > MAX_NESTING:
            self.note(_Finding("SPY0104", f"more than {MAX_NESTING} nested arrays and objects", pointer, offset))

    def string(self, text: str, offset: int, *, is_key: bool) -> None:
        value = _decode_string(text)
        level = self.stack[-1] if self.stack else None
        if is_key and level is not None:
            level.key = value
            if value in level.keys:
                self.note(_Finding("SPY0102", f'key "{value}" stands twice in one object', level.member(), offset))
            level.keys.add(value)
        pointer = level.member() if level is not None else ""
        if _SURROGATE.search(value):
            self.note(_Finding("SPY0101", "a string holds half of a surrogate pair", pointer, offset))
        if not is_key:
            self.begin_value(offset)

    def literal(self, text: str, offset: int) -> None:
        pointer = self.begin_value(offset)
        if _is_non_finite(text):
            shown = text if len(text) <= 40 else f"{text[:20]}... ({len(text)} characters)"
            self.note(_Finding("SPY0103", f"number {shown} is not finite in float64", pointer, offset))


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


def _scan(text: str) -> _Scan:
    """Walk the tokens of ``text`` and record where values begin; lenient, it stops where nothing matches."""
    scan = _Scan()
    offset = 0
    while len(scan.stack) <= MAX_NESTING and (match := _TOKEN.match(text, offset)) is not None:
        string, mark, literal = match.groups()
        level = scan.stack[-1] if scan.stack else None
        begin = match.start(match.lastindex or 0)
        offset = match.end()
        if string is not None:
            scan.string(string, begin, is_key=level is not None and level.is_object and level.key is None)
        elif literal is not None:
            scan.literal(literal, begin)
        elif mark in "{[":
            scan.open(begin, is_object=mark == "{")
        elif level is None:
            break
        elif mark in "}]":
            scan.stack.pop()
        elif mark == ",":
            level.key = None
            level.next_item += 1
    return scan


class _SuspiciousError(Exception):
    """The C scanner met something that our own scanner has to look at."""


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _SuspiciousError
    return members


def _constant(_: str) -> NoReturn:
    raise _SuspiciousError


def _is_too_deep(data: JsonValue) -> bool:
    level = [data]
    for _ in range(MAX_NESTING):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _decode_text(text: str | bytes, file: str | None) -> str:
    if len(text) > MAX_TEXT_BYTES:
        raise refuse("SPY0104", f"the text has {len(text)} bytes, more than {MAX_TEXT_BYTES}", Location(file))
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        source = SourceText(text[: error.start].decode("utf-8"), file)
        line, column = source.line_and_column(len(source.text))
        fact = f"byte 0x{text[error.start]:02x} at offset {error.start} is not UTF-8"
        raise refuse("SPY0101", fact, Location(file, None, line, column)) from None


def _refuse_finding(source: SourceText, fallback: str) -> NoReturn:
    finding = _scan(source.text).finding
    assert finding is not None, fallback
    line, column = source.line_and_column(finding.offset)
    raise refuse(finding.code, finding.message, Location(source.file, finding.pointer, line, column))


def load_json(text: str | bytes, file: str | None = None) -> tuple[JsonValue, SourceText]:
    """Read a JSON text strictly; return what it holds and the text for locating diagnostics.

    Errors: SPY0101 no JSON or no UTF-8, SPY0102 a key twice in one object, SPY0103 NaN, Infinity or a literal that
    overflows float64, SPY0104 nesting or length beyond the limits; each with line and column.
    """
    decoded = _decode_text(text, file)
    source = SourceText(decoded, file)
    if _MAYBE_OVERFLOW.search(decoded) or _MAYBE_SURROGATE.search(decoded):
        finding = _scan(decoded).finding
        if finding is not None:
            _refuse_finding(source, "the scan is deterministic")
    try:
        data: JsonValue = json.loads(decoded, object_pairs_hook=_object, parse_constant=_constant)
    except (_SuspiciousError, RecursionError) as error:
        _refuse_finding(source, repr(error))
    except json.JSONDecodeError as error:
        fact = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise refuse("SPY0101", fact, Location(file, None, error.lineno, error.colno)) from None
    if isinstance(data, dict | list) and _is_too_deep(data):
        _refuse_finding(source, "too deep for one counter only")
    return data, source
