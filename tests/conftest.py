"""How often properties are tried, and which test files need a package that is not there.

``--hypothesis-profile tenfold`` tries fresh examples, ten times as many.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import settings

settings.register_profile("tenfold", max_examples=1000, derandomize=False)
# what CI tries is what was tried here: new examples are for the larger profile
settings.register_profile("same", derandomize=True, database=None)
settings.load_profile("same")

NEEDS = {"conformance/test_torch.py": "torch"}
"""Test file -> the package of an extra that it cannot do without."""

collect_ignore = [file for file, package in NEEDS.items() if find_spec(package) is None]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out: nothing is skipped in silence."""
    for file in collect_ignore:
        terminalreporter.write_line(f"not collected: tests/{file}, which needs {NEEDS[file]} (an extra of that name)")
