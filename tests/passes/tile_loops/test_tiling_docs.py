"""The Python examples of docs/coarse_tiling.md give what the page says; `tests/test_readme.py` runs its commands."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "coarse_tiling.md"


def test_every_example_of_the_page_is_true() -> None:
    failures, examples = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert examples >= 8
    assert failures == 0
