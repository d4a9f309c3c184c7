"""``spyrec explain``: every code has its text and, where there is one, its example (``test_error_cases.py``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.error_cases import codes, example_of
from spyrec.cli import main
from spyrec.diagnostics.codes import CODES
from spyrec.diagnostics.explanations import docs_page, explanation

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("written", ["SPY0213", "spy0213", "0213", "213"])
def test_a_code_is_explained_however_it_is_written(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", written, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    row = CODES["SPY0213"]
    (record,) = found["codes"]
    assert found["format"] == "spyrec.explain/1"
    assert (record["code"], record["family"]) == ("SPY0213", "shapes and dtypes")
    assert (record["title"], record["fact"], record["what_to_do"]) == (row.title, row.explanation, row.hint)
    assert record["example"] == example_of("SPY0213").to_json()
    assert record["example"]["commands"] == ["spyrec compile graph.json -o bundle"]
    assert list(record["example"]["files"]) == ["graph.json"]


def test_the_text_says_all_that_the_table_says() -> None:
    examples = {code: example_of(code) for code in codes()}
    for code, row in CODES.items():
        shown = explanation(code, examples.get(code))
        words = " ".join(shown.split())
        assert shown.startswith(f"{code}: {row.title}\n")
        assert " ".join(row.explanation.split()) in words
        assert " ".join((row.hint or "").split()) in words
        if code in examples:
            assert all(line in shown for line in examples[code].printed.splitlines())
            assert all(name in shown for name, _ in examples[code].files)


def test_a_long_file_of_an_example_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "SPY0664"]) == 0
    printed = capsys.readouterr().out
    assert "  bundle/sdsc_0.json:\n    (" in printed
    assert len(printed.splitlines()) < 100


def test_alone_it_lists_every_code_once_below_its_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == sorted(CODES)
    assert len([line for line in lines if line and not line.startswith("  ")]) == 10


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("SPY0214x", "did you mean SPY0214"),
        ("SPY0245", "did you mean SPY0233 or SPY0234 or SPY0235"),
        ("overlap", "SPY0309"),
        ("nothing like it", "spyrec explain lists all codes"),
    ],
)
def test_a_wrong_code_is_a_usage_error_that_names_near_ones(
    written: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", written]) == 2
    assert hint in capsys.readouterr().err


def test_the_page_has_a_section_for_every_code() -> None:
    page = docs_page({code: example_of(code) for code in codes()})
    assert [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")] == sorted(CODES)
    assert (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8") == page
