"""What formats look like, kept as files in ``tests/cases/reports``: ``pytest --update-goldens`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spyrec.report.exports import dot, mermaid, model_explorer, text
from spyrec.report.formats import FORMATS, renderer
from spyrec.report.model import Report
from tests.support.reports import random_report

CASES = Path(__file__).parents[2] / "cases" / "reports"

SMALL = random_report(873)
"""Two programs, a loop, modules, a run and another bundle."""


def _terminal(report: Report) -> str:
    return "".join(f"{line}\n" for line in text.text_lines(report, 60, draws=True))


FILES: dict[str, Callable[[Report], str]] = {
    "small.dot": dot.render,
    "small.mmd": mermaid.render,
    "small.txt": text.render,
    "small.terminal.txt": _terminal,
    "small.error.json": model_explorer.render_error,
}


@pytest.mark.parametrize("name", FILES)
def test_a_format_looks_as_it_is_kept(name: str, request: pytest.FixtureRequest) -> None:
    written = FILES[name](SMALL)
    path = CASES / name
    if request.config.getoption("--update-goldens"):
        path.write_text(written, encoding="utf-8")
        return
    assert written == path.read_text(encoding="utf-8"), "if this is meant: pytest --update-goldens"


def test_every_kept_file_is_made() -> None:
    assert {path.name for path in CASES.iterdir()} == FILES.keys()


@pytest.mark.parametrize("name", sorted(name for name, place in FORMATS.items() if ".exports." in place))
def test_every_format_says_in_its_first_bytes_whose_file_it_is_and_is_the_same_twice(name: str) -> None:
    render = renderer(name)
    written = render(SMALL)
    head = written.encode()[:256]
    assert b"spyrec.trace/1" in head if name == "perfetto" else b"spyrec.report/1" in head
    assert written.endswith("\n") or name == "perfetto"
    assert render(random_report(873)) == written
