"""The recorder of behaviour uses the public front alone, says the same twice, and sees a planted change."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spyrec
from scripts.behaviour.cases import cases
from scripts.behaviour.facts import Arrays
from scripts.record_behaviour import Records, differences, observed, read, written

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = {"spyrec", "spyrec.runtime", "spyrec.exec", "spyrec.cli"}
SEED = "random/7"


def imported(path: Path, seen: set[Path]) -> set[str]:
    """Return the modules of spyrec that a file imports, by itself or through other files of the project."""
    if path in seen or not path.exists():
        return set()
    seen.add(path)
    found: set[str] = set()
    for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in item.names] if isinstance(item, ast.Import) else []
        names += [item.module] if isinstance(item, ast.ImportFrom) and item.module is not None else []
        for name in names:
            if name.partition(".")[0] == "spyrec":
                found.add(name)
            else:
                found |= imported(ROOT / f"{name.replace('.', '/')}.py", seen)
    return found


def test_the_recorder_runs_on_any_inside() -> None:
    seen: set[Path] = set()
    found = imported(ROOT / "scripts" / "record_behaviour.py", seen)
    assert found == PUBLIC
    assert ROOT / "tests" / "support" / "random_loops.py" in seen


def test_a_case_is_recorded_the_same_twice_and_a_file_keeps_it(tmp_path: Path) -> None:
    case = dict(cases(10))[SEED]
    records = {SEED: observed(case)}
    assert {"input", "bundle.superdsc", "run.outputs", "run.simulated_us", "watched.findings"} <= records[SEED].keys()
    (tmp_path / "record.json").write_text(written(records), encoding="utf-8")
    assert list(differences(read(tmp_path / "record.json"), {SEED: observed(case)})) == []


def test_one_bit_of_an_output_and_one_statistic_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case = dict(cases(10))[SEED]
    before = {SEED: observed(case)}
    run = spyrec.run

    def wrong(bundle: spyrec.Bundle, inputs: Arrays, options: spyrec.RunOptions) -> spyrec.RunResult:
        result = run(bundle, inputs, options)
        outputs = {name: array.copy() for name, array in result.outputs.items()}
        next(iter(outputs.values())).view(np.uint8).reshape(-1)[0] ^= 1
        total = replace(result.stats.total, flops=result.stats.total.flops + 1)
        return replace(result, outputs=outputs, stats=replace(result.stats, total=total))

    monkeypatch.setattr(spyrec, "run", wrong)
    found = {line.split(": ")[1] for line in differences(before, {SEED: observed(case)})}
    assert found == {"run.outputs", "run.flops", "watched.outputs", "watched.flops"}


def test_another_program_is_told_from_another_behaviour() -> None:
    before: Records = {"a": {"input": "1", "run.flops": 1}, "b": {"input": "1"}}
    after: Records = {"a": {"input": "2", "run.flops": 2}, "c": {"input": "1"}}
    found = sorted(differences(before, after))
    assert found == ["a: the program is another one, nothing of it is compared", "b: is gone", "c: is new"]
