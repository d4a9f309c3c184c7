"""The examples of docs/tiled_launch.md give what the page says, and its JSON table has the keys of the form."""

from __future__ import annotations

import doctest
from pathlib import Path

from spyrec.bundle.manifest_json import TILE_CONTRACT

PAGE = Path(__file__).parents[3] / "docs" / "tiled_launch.md"


def test_every_example_of_the_page_is_true() -> None:
    failures, examples = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert examples >= 12
    assert failures == 0


def test_the_page_names_every_key_of_a_contract() -> None:
    rows = {line.split("`")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")}
    assert set(TILE_CONTRACT.keys) <= rows
