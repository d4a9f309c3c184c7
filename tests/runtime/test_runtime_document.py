"""The examples of docs/runtime.md that say so run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "runtime.md"
EXAMPLES = re.findall(r"```python\n(# runs as it stands\n.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_examples() -> None:
    assert EXAMPLES, "a loop over none of them would find nothing wrong"


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_as_it_stands(number: int) -> None:
    exec(compile(EXAMPLES[number], f"docs/runtime.md, example {number}", "exec"), {})
