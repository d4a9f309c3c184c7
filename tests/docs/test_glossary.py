"""docs/glossary.md: its terms are in order, and what it says of the code is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "spyrec"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
][1:]
QUOTED = re.compile(r"`([^`]+)`")
ASKED_FOR = """
    bisect, bundle, capture, control block, correction, correction slot, corelet, DCI, device layout, facet, fold, HBM,
    job, LX, mask constant, opfunc, OpSpec, plan, program image, replay, restickify, staging, stick, stream, stride map,
    SuperDSC, tile contract, work division, bounds, gap, init, race, sanitizer, sync
"""


def test_terms_are_sorted_and_there_once() -> None:
    terms = [row[0].lower() for row in ROWS]
    assert terms == sorted(set(terms))
    assert {term.strip().lower() for term in ASKED_FOR.split(",")} <= set(terms)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_term_has_a_meaning_a_home_and_readers(row: list[str]) -> None:
    _, meaning, home, readers = row
    assert meaning.endswith((".", ")")), "a sentence"
    path, *names = QUOTED.findall(home)
    assert (PACKAGE / path).is_file()
    assert readers
    for reader in QUOTED.findall(readers):
        assert (PACKAGE / reader).is_dir() if reader.endswith("/") else (PACKAGE / reader).is_file(), reader
        assert reader != path, "that is where it is defined"
    words = set(re.findall(r"\w+", (PACKAGE / path).read_text(encoding="utf-8")))
    assert set(names) <= words, f"{path} defines no {names}"
