"""docs/decisions.md: every decision has an id of its own and a date, and every id that is named somewhere exists."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "decisions.md"
ENTRY = re.compile(r"\* \*\*D(\d{3})\*\* \((\d{4}-\d{2}-\d{2})\) \S")
NAMED = re.compile(r"\bD(\d+)\b")
LINT_RULES = "noqa:"
"""A line with this names rules of the linter, whose ids look alike."""


def sections(text: str) -> list[list[str]]:
    """Return the entries of each section, without the lines that continue them."""
    return [[line for line in part.splitlines() if line.startswith("* ")] for part in text.split("\n## ")[1:]]


def faults(text: str) -> list[str]:
    """Return what is wrong with the entries of a page of decisions."""
    found: list[str] = []
    numbers: list[int] = []
    for entries in sections(text):
        matches = [ENTRY.match(entry) for entry in entries]
        found += [f"no id and date: {entry}" for entry, match in zip(entries, matches, strict=True) if match is None]
        own = [int(match[1]) for match in matches if match is not None]
        found += [f"D{right:03} behind D{left:03}" for left, right in pairwise(own) if right <= left]
        found += [f"no date: {match[2]}" for match in matches if match is not None and not is_date(match[2])]
        numbers += own
    found += [f"twice: D{number:03}" for number in sorted(set(numbers)) if numbers.count(number) > 1]
    gone = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    return found + [f"gone: D{number:03}; a decision that no longer holds stays and says so" for number in gone]


def is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def test_every_decision_has_an_id_of_its_own_and_a_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(sections(text)), "a section without decisions"
    assert faults(text) == []


def named_in(text: str) -> set[int]:
    lines = (line for line in text.splitlines() if LINT_RULES not in line)
    return {int(number) for line in lines for number in NAMED.findall(line)}


def test_every_decision_that_is_named_exists() -> None:
    known = {
        int(match[1])
        for entries in sections(PAGE.read_text(encoding="utf-8"))
        for match in map(ENTRY.match, entries)
        if match
    }
    files = [path for suffix in ("py", "pyi") for path in sorted((ROOT / "spyrec").rglob(f"*.{suffix}"))]
    files += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    unknown = {str(path.relative_to(ROOT)): named_in(path.read_text(encoding="utf-8")) - known for path in files}
    assert {path: numbers for path, numbers in unknown.items() if numbers} == {}


SOUND = """# Decisions

## First

* **D001** (2026-01-31) One.
* **D003** (2026-02-01) Three.

## Second

* **D002** (2026-01-31) Two.
"""


@pytest.mark.parametrize(
    ("written", "instead", "fault"),
    [
        ("**D003**", "**D001**", "D001 behind D001"),
        ("**D002**", "**D003**", "twice: D003"),
        ("**D002**", "**D004**", "gone: D002; a decision that no longer holds stays and says so"),
        ("**D001** (2026-01-31)", "**D004** (2026-01-31)", "D003 behind D004"),
        ("2026-02-01", "2026-02-31", "no date: 2026-02-31"),
        ("* **D002** (2026-01-31) Two.", "* Two.", "no id and date: * Two."),
    ],
)
def test_a_fault_is_seen(written: str, instead: str, fault: str) -> None:
    assert faults(SOUND) == []
    assert fault in faults(SOUND.replace(written, instead))


def test_ids_are_told_from_rules_of_the_linter() -> None:
    assert named_in("x = 1  # as D041 says\ny = 2  # noqa: D403\n") == {41}
