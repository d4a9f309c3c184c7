"""The example of docs/execution_contract.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "execution_contract.md"


def test_the_example_runs_as_it_stands() -> None:
    (example,) = re.findall(
        r"```python\n(# runs as it stands\n.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL
    )
    exec(compile(example, "docs/execution_contract.md", "exec"), {})
