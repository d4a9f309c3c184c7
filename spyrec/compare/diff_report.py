"""What two bundles differ in, as text and as a ``spyrec.diff/1`` object: words first, then places, then counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import orjson

from spyrec.compare.bundle_diff import BundleDiff
from spyrec.compare.changes import change_lines


def report_lines(found: BundleDiff, *, is_stat: bool = False, most: int | None = None) -> Iterator[str]:
    """Yield the lines of a report; ``most``: places that are named at most, ``None`` for all."""
    if not found.differs:
        yield "no differences in meaning" if found.is_semantic else "no differences"
        return
    yield from _stat_of_words(found) if is_stat else _words(found)
    if found.is_semantic:
        yield _counted(len(found.changes), "change") + " in meaning"
        return
    if not is_stat:
        shown = found.differences if most is None else found.differences[:most]
        yield from (str(item) for item in shown)
    counts = files_of(found)
    yield from (f"{count:6d}  {file}" for file, count in counts.items())
    total = len(found.differences)
    hidden = "" if most is None or is_stat or total <= most else f", the first {most} shown"
    yield f"{_counted(total, 'difference')} in {_counted(len(counts), 'file')}{hidden}"


def _words(found: BundleDiff) -> Iterator[str]:
    yield from change_lines(found.changes)
    if found.untold is not None:
        yield f"what changed cannot be told in words: {found.untold}"
    elif not found.changes:
        yield "the same in meaning: names, numbers of files and repeated fields differ"
    if not found.is_semantic:
        yield ""


def _stat_of_words(found: BundleDiff) -> Iterator[str]:
    for topic, count in _topics(found).items():
        yield f"{count:6d}  {topic}"


def _topics(found: BundleDiff) -> dict[str, int]:
    return dict(Counter(item.topic.value for item in found.changes))


def files_of(found: BundleDiff) -> dict[str, int]:
    """Return the number of places per file."""
    return dict(sorted(Counter(item.file for item in found.differences).items()))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s'[: count != 1]}"


def to_json_text(found: BundleDiff, *, is_stat: bool = False) -> str:
    """Return :func:`to_json` as text, in two spaces for each level, other characters than ASCII escaped."""
    content = to_json(found, is_stat=is_stat)
    with suppress(orjson.JSONEncodeError):  # half a surrogate pair in the name of a file
        text = orjson.dumps(content, option=orjson.OPT_INDENT_2)
        if text.isascii() and b"\x7f" not in text:
            return text.decode()  # a million places: in a tenth of the time, and the same bytes
    return json.dumps(content, indent=2)


def to_json(found: BundleDiff, *, is_stat: bool = False) -> dict[str, object]:
    """Return the object; ``is_stat``: without the single changes and places."""
    result: dict[str, object] = {
        "format": "spyrec.diff/1",
        "equal": not found.differs,
        "semantic": found.is_semantic,
        "topics": _topics(found),
    }
    if not found.is_semantic:
        result["files"] = files_of(found)
    if found.untold is not None:
        result["untold"] = found.untold
    if not is_stat:
        result["changes"] = [item.to_json() for item in found.changes]
        if not found.is_semantic:
            result["differences"] = [item.to_json() for item in found.differences]
    return result
