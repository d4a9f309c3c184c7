"""The examples of docs/layouts.md give what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "layouts.md"


def test_every_example_of_the_page_is_true() -> None:
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failures, examples = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert examples >= 12
    assert failures == 0
