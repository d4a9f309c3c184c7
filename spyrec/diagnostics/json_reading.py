"""Strict JSON reading, and where in the text a JSON pointer points.

Reading is done by the standard library's C scanner; our own scanner runs only when something must be located.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from spyrec.diagnostics.diagnostic import Location, refuse
from spyrec.diagnostics.source_text import MAX_NESTING, SourceText, scan

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None
"""What a JSON text holds."""

MAX_TEXT_BYTES = 1 << 28
"""Longest text that is read: 256 MiB. Numbers in bulk belong into safetensors or npy files."""

_MAYBE_OVERFLOW = re.compile(r"[0-9](?:[0-9]{199}|[eE]\+?[0-9]{3})")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


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


def _is_suspicious(text: str) -> bool:
    """Whether a text may hold what the C scanner takes and we refuse: numbers are looked at outside of strings.

    Half of all lists of hashes hold an ``e`` between digits.
    """
    if _MAYBE_SURROGATE.search(text):
        return True
    return bool(_MAYBE_OVERFLOW.search(text)) and bool(_MAYBE_OVERFLOW.search(_STRING.sub('""', text)))


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
    finding = scan(source.text).finding
    assert finding is not None, fallback
    line, column = source.line_and_column(finding.offset)
    raise refuse(finding.code, finding.message, Location(source.file, finding.pointer, line, column, source))


_TRAILING = re.compile(r",\s*([\]}])")


def _what_is_wrong(text: str, error: json.JSONDecodeError) -> str:
    """Return what the library says of a text, in words for who wrote it where it speaks of its own trade."""
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark"
    if not text.strip():
        return "the text is empty"
    before = len(text[: error.pos].rstrip()) - 1
    for place in (before, error.pos):  # newer versions of the library point at the comma itself
        comma = _TRAILING.match(text, place)
        if comma is not None:
            return f'a comma stands before "{comma[1]}"'
    return f"{error.msg[:1].lower()}{error.msg[1:]}"


def load_json(text: str | bytes, file: str | None = None) -> tuple[JsonValue, SourceText]:
    """Read a JSON text strictly; return what it holds and the text for locating diagnostics.

    Errors: SPY0101 no JSON or no UTF-8, SPY0102 a key twice in one object, SPY0103 NaN, Infinity or a literal that
    overflows float64, SPY0104 nesting or length beyond the limits; each with line and column.
    """
    decoded = _decode_text(text, file)
    source = SourceText(decoded, file)
    if _is_suspicious(decoded):
        finding = scan(decoded).finding
        if finding is not None:
            _refuse_finding(source, "the scan is deterministic")
    try:
        data: JsonValue = json.loads(decoded, object_pairs_hook=_object, parse_constant=_constant)
    except (_SuspiciousError, RecursionError) as error:
        _refuse_finding(source, repr(error))
    except json.JSONDecodeError as error:
        fact = f"not JSON: {_what_is_wrong(decoded, error)}"
        raise refuse("SPY0101", fact, Location(file, None, error.lineno, error.colno, source)) from None
    if isinstance(data, dict | list) and _is_too_deep(data):
        _refuse_finding(source, "too deep for one counter only")
    return data, source
