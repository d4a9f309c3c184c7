"""The codes as records, as text and as a page: what ``spyrec explain`` prints and ``docs/diagnostics.md`` holds."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import groupby

from spyrec.diagnostics.codes import CODES
from spyrec.diagnostics.examples import PROMPT, Example

_FAMILIES = {
    "01": "reading files",
    "02": "shapes and dtypes",
    "03": "layouts and conversion tables",
    "04": "scheduling and memory",
    "05": "code generation",
    "06": "bundles",
    "07": "running",
    "08": "checking and comparing",
    "09": "memory, streams and launches",
    "99": "mistakes of spyrec itself",
}
"""First two digits of a code -> the stage that raises it."""

_WRITTEN = re.compile(r"(?:SPY)?([0-9]{1,4})", re.ASCII | re.IGNORECASE)
_LONGEST = 40
_COLUMNS = 60
_MOST_LINES = 60
"""Lines of a file of an example that are shown."""


def family(code: str) -> str:
    """Return the stage that raises a code: ``shapes and dtypes``."""
    return _FAMILIES[code[3:5]]


def code_named(text: str) -> str | None:
    """Return the code that somebody wrote: ``SPY0213``, ``spy213`` or ``0213``; ``None`` where there is none such."""
    found = _WRITTEN.fullmatch(text.strip())
    code = "" if found is None else f"SPY{found[1]:>04}"
    return code if code in CODES else None


def near_codes(text: str) -> list[str]:
    """Return up to three codes that a wrong one is closest to: by their digits, else by words of their titles."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is not None:
        number = int(found[1])
        return sorted(sorted(CODES, key=lambda code: (abs(int(code[3:]) - number), code))[:3])
    close = get_close_matches(text.upper()[:_LONGEST], CODES, n=3)
    words = text.casefold()[:_LONGEST]
    return close or [code for code, row in CODES.items() if words in row.title.casefold()][:3]


def record(code: str, example: Example | None = None) -> dict[str, object]:
    """Return all that is said of a code, as JSON data."""
    row = CODES[code]
    return {
        "code": code,
        "family": family(code),
        "title": row.title,
        "fact": row.explanation,
        "what_to_do": row.hint,
        "rule": row.rule,
        "example": None if example is None else example.to_json(),
    }


def explanation(code: str, example: Example | None = None) -> str:
    """Return what ``spyrec explain CODE`` prints."""
    row = CODES[code]
    lines = [f"{code}: {row.title}", f"  {family(code)}", "", *_wrapped(row.explanation)]
    if row.rule is not None:
        lines += ["", f"  rule of the executor: {row.rule}"]
    if row.hint is not None:
        lines += ["", "  what to do", *_wrapped(row.hint, "    ")]
    if example is not None:
        lines += ["", "  example", *_shown(example)]
    return "\n".join(lines)


def _shown(example: Example) -> list[str]:
    """Return the lines of an example; of a long file only how long it is."""
    lines: list[str] = []
    for name, content in example.files:
        text = content.splitlines()
        shown = [f"    {line}".rstrip() for line in text]
        lines += ["", f"  {name}:", *(shown if len(text) <= _MOST_LINES else [f"    ({len(text)} lines)"])]
    printed = [line for command in example.commands for line in (f"{PROMPT}{command}").splitlines()]
    return [*lines, "", *(f"  {line}".rstrip() for line in [*printed, *example.printed.splitlines()])]


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    lines = textwrap.wrap(text, _COLUMNS - len(indent), break_long_words=False, break_on_hyphens=False)
    return [indent + line for line in lines]


def listing() -> str:
    """Return what ``spyrec explain`` prints: all codes with their titles, by stage."""
    lines: list[str] = []
    for stage, codes in groupby(sorted(CODES), key=family):
        lines += [*([""] if lines else []), stage, *(f"  {code}  {CODES[code].title}" for code in codes)]
    return "\n".join(lines)


def docs_page(examples: Mapping[str, Example]) -> str:
    """Return ``docs/diagnostics.md``; ``examples`` by code."""
    lines = [
        "# Diagnostic codes",
        "",
        f"Generated from the tables of codes by `make cases`. There are {len(CODES)}. `spyrec explain CODE` prints",
        f"one with its example, `spyrec explain` lists them. {len(examples)} have an example, which provokes it: a",
        "file of [tests/cases/errors](../tests/cases/errors). `make test` runs them; what they print is shown here.",
    ]
    for stage, codes in groupby(sorted(CODES), key=family):
        lines += ["", f"## {stage.capitalize()}"]
        for code in codes:
            lines += ["", *_section(code, examples.get(code))]
    return "\n".join(lines) + "\n"


def _section(code: str, example: Example | None) -> list[str]:
    row = CODES[code]
    lines = [f"### {code}", "", f"*{_escaped(row.title)}.* {_escaped(row.explanation)}"]
    if row.rule is not None:
        lines += ["", f"Rule of the executor: {row.rule}."]
    if row.hint is not None:
        lines += ["", f"What to do: {_escaped(row.hint)}."]
    if example is not None:
        printed = [f"{PROMPT}{example.commands[-1]}", *example.printed.splitlines()]
        lines += ["", f"[Example](../tests/cases/errors/{code}.txt):", "", "```text", *printed, "```"]
    return lines


def _escaped(text: str) -> str:
    """Return text in which Markdown sees no markup but code in backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)
