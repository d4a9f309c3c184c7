"""The place in a file of what is said about it, found when it is printed: the text is read once more.

Most readers hand the text on with a place (:class:`~spyrec.diagnostics.Location`).  What looks at a whole program
knows a file, and a field of a SuperDSC or a name of ``bundle.mlir``.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, cast

from spyrec.diagnostics import Diagnostic, Location
from spyrec.diagnostics.source_text import SourceText
from spyrec.diagnostics.toml_text import TomlText

if TYPE_CHECKING:
    from spyrec.diagnostics.json_reading import JsonValue
    from spyrec.runtime.findings import RuleDiagnostic

_MOST_BYTES = 1 << 26

_NAMED = re.compile(r'"([%#][\w.]+)"|"([\w./-]+\.json)"')
_FIELD = re.compile(r"(\w+)|\[(\d+)\]")


def with_source(found: Diagnostic) -> Diagnostic:
    """Return a diagnostic whose place has the text of its file, and a line, as far as both are to be had."""
    place = found.location
    if place is None or place.file is None or place.source is not None:
        return found
    source = _source(place.file)
    if source is None:
        return found
    exact = _exact(found, place, source)
    return found if exact is None else replace(found, location=exact)


def _exact(found: Diagnostic, place: Location, source: SourceText) -> Location | None:
    if place.line is not None or place.pointer is not None:
        return replace(place, source=source)
    if place.file is not None and place.file.endswith(".mlir"):
        return _in_program(found, place, source)
    pointer = _pointer(_field_of(found), source)
    return None if pointer is None else replace(place, pointer=pointer, source=source)


def _source(file: str) -> SourceText | None:
    path = Path(file)
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            return None
        return _text(path, file, (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size))
    except (OSError, ValueError):  # it was there when the verb read it: the message goes without its line
        return None


@lru_cache(maxsize=4)
def _text(path: Path, file: str, state: tuple[int, ...]) -> SourceText:  # noqa: ARG001 -- a file of another state is read
    text = path.read_text(encoding="utf-8")
    return TomlText(text, file) if path.suffix == ".toml" else SourceText(text, file)


def _in_program(found: Diagnostic, place: Location, source: SourceText) -> Location | None:
    """Return the place of the first name that the message quotes: its use where there is one, else its definition."""
    named = _NAMED.search(found.message)
    if named is None:
        return None
    name = re.escape(named[1] or named[2])
    places = [re.search(rf"{name}(?![\w.]| =)", source.text), re.search(rf"{name}(?![\w.])", source.text)]
    first = next((item for item in places if item is not None), None)
    if first is None:
        return None
    line, column = source.line_and_column(first.start())
    return replace(place, line=line, column=column, source=source)


def _field_of(found: Diagnostic) -> str | None:
    findings = sys.modules.get("spyrec.runtime.findings")
    if findings is None or not isinstance(found, findings.RuleDiagnostic):
        return None
    return cast("RuleDiagnostic", found).place.field


def _pointer(fields: str | None, source: SourceText) -> str | None:
    """Return the pointer of the first of some fields (``scheduleTree_[1].x_, N_``) that a SuperDSC has."""
    if fields is None:
        return None
    root = _root(source)
    if not isinstance(root, dict) or len(root) != 1:
        return None
    (name,) = root
    places = [f"/{name}"]
    found = _member(root, f"/{name}/dscs_/0")
    if isinstance(found, dict) and len(found) == 1:
        places.insert(0, f"/{name}/dscs_/0/{next(iter(found))}")
    for field in fields.split(", "):
        tail = "".join(f"/{word or number}" for word, number in _FIELD.findall(field))
        for place in places:
            if tail and _member(root, place + tail) is not None:
                return place + tail
    return None


@lru_cache(maxsize=4)
def _root(source: SourceText) -> JsonValue:
    from spyrec.diagnostics.json_reading import load_json

    return load_json(source.text, source.file)[0]


def _member(value: JsonValue, pointer: str) -> JsonValue:
    for token in pointer.split("/")[1:]:
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value
