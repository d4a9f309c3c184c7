"""The page of what models call: its sums agree, its ops are known, and the benchmark writes it in this form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.model_ops.run import Status
from spyrec.sweep.model_calls.cases import Case
from spyrec.sweep.model_calls.signatures import bind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "model_calls.md"
STATUSES = [status.value for status in Status]

Table = dict[str, dict[str, float]]


def tables(text: str) -> dict[str, Table]:
    """Return the tables of numbers by heading, each by the name in its first column."""
    found: dict[str, Table] = {}
    for section in text.split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        rows = [line.strip("|").split("|") for line in body.splitlines() if line.startswith("| ")]
        titles = [title.strip() for title in rows[0]]
        if "cases" in titles:
            found[heading] = {
                row[0].strip(): {title: float(cell) for title, cell in zip(titles[1:], row[1:])} for row in rows[1:]
            }
    return found


def reasons(text: str) -> list[list[str]]:
    body = text.partition("\n## What is not right\n")[2]
    return [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("| `")]


def assert_sums_agree(text: str) -> None:
    by_model, by_op = (tables(text)[heading] for heading in ("By model", "By op"))
    total = by_model.pop("all")
    for row in (total, *by_model.values(), *by_op.values()):
        assert sum(row[status] for status in STATUSES) == row["cases"] <= row["calls"]
        assert 0 <= row["right % of calls"] <= 100
    for column in ("cases", "calls", *STATUSES):
        assert sum(row[column] for row in by_op.values()) == total[column]
    assert sum(row["calls"] for row in by_model.values()) == total["calls"]
    assert sum(row["cases"] for row in by_model.values()) >= total["cases"]
    why = reasons(text)
    assert sum(int(calls) for _, calls, _ in why) >= total["wrong"] + total["refused"] + total["crashed"]
    assert {op.strip("`") for op, _, _ in why} == {
        op for op, row in by_op.items() if row["wrong"] + row["refused"] + row["crashed"]
    }


def test_the_sums_of_the_page_agree_and_every_reason_is_told() -> None:
    assert_sums_agree(PAGE.read_text(encoding="utf-8"))


def test_the_ops_of_the_page_are_those_that_the_benchmark_knows() -> None:
    for name in tables(PAGE.read_text(encoding="utf-8"))["By op"]:
        assert bind(Case(f"torch.{name}", (), ())) == {}


def test_the_benchmark_writes_such_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = {"shape": [2, 3], "dtype": "float16"}
    calls = [("exp", {"a": 3, "b": 1}), ("neg", {"b": 2}), ("nonzero", {"a": 7})]
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"op": f"torch.{op}", "inputs": [x], "models": models} for op, models in calls]))
    assert benchmarks.main(["model_ops", str(path), "--markdown"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("3 entries of the lists are 3 distinct calls.\n")
    assert_sums_agree(text)
    assert tables(text)["By model"]["b"]["right % of calls"] == 100
    assert reasons(text)[0][:2] == ["`nonzero`", "7"]
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith(("## ", "| model", "| op |"))] == [
        line for line in text.splitlines() if line.startswith(("## ", "| model", "| op |"))
    ]
