"""The examples of docs/graph_builder.md give what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "graph_builder.md"


def test_every_example_of_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failures, examples = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert examples >= 30
    assert failures == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model"], "the page saves one graph"
