"""``spyrec explain``: every code has its text, and every example provokes the code it stands for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.codes import CODES
from spyrec.diagnostics.examples import EXAMPLES, ExampleKind
from spyrec.diagnostics.explanations import docs_page, explanation

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    ExampleKind.GRAPH: ["compile", "graph.json", "-o", "bundle"],
    ExampleKind.OPSPECS: ["codegen", "opspecs.json", "-o", "bundle"],
    ExampleKind.PROGRAM: ["check", "bundle.mlir"],
}


@pytest.mark.parametrize("code", [code for code in EXAMPLES if EXAMPLES[code].kind in COMMANDS])
def test_the_command_that_an_example_names_refuses_it_with_its_code(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = EXAMPLES[code]
    command = COMMANDS[example.kind]
    Path(command[1]).write_text(example.text, encoding="utf-8")
    assert main(["--diagnostics=json", *command]) == 1
    assert [json.loads(line)["code"] for line in capsys.readouterr().err.splitlines()] == [code]


@pytest.mark.parametrize("code", [code for code in EXAMPLES if EXAMPLES[code].kind is ExampleKind.PYTHON])
def test_the_lines_of_an_example_raise_its_code(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpyrecError) as caught:
        exec(EXAMPLES[code].text, {})
    assert [item.code for item in caught.value.diagnostics] == [code]


def test_examples_are_of_codes_that_there_are() -> None:
    assert set(EXAMPLES) <= set(CODES)
    assert len(EXAMPLES) > 100


@pytest.mark.parametrize("written", ["SPY0213", "spy0213", "0213", "213"])
def test_a_code_is_explained_however_it_is_written(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", written, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    row = CODES["SPY0213"]
    (record,) = found["codes"]
    assert found["format"] == "spyrec.explain/1"
    assert (record["code"], record["family"]) == ("SPY0213", "shapes and dtypes")
    assert (record["title"], record["fact"], record["what_to_do"]) == (row.title, row.explanation, row.hint)
    assert record["example"] == {"kind": "graph", "text": EXAMPLES["SPY0213"].text}


def test_the_text_says_all_that_the_table_says() -> None:
    for code, row in CODES.items():
        shown = explanation(code)
        words = " ".join(shown.split())
        assert shown.startswith(f"{code}: {row.title}\n")
        assert " ".join(row.explanation.split()) in words
        assert " ".join((row.hint or "").split()) in words
        assert all(line.strip() in shown for line in (EXAMPLES[code].text.splitlines() if code in EXAMPLES else ()))


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
    page = docs_page()
    assert [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")] == sorted(CODES)
    assert (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8") == page
