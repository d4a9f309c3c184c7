"""docs/sweep.md: its file is read, its columns and statuses are those there are, its commands start a cluster."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from spyrec.cli import main
from spyrec.diagnostics import Location
from spyrec.options import CompileOptions
from spyrec.sweep.cases import combinations
from spyrec.sweep.rows import COLUMNS, MEASURED, STATUSES
from spyrec.sweep.settings import Grid, read_settings, sweep_schema

import_module("distributed")  # the file is not collected without it

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
GRAPH = {
    "format": "spyrec.graph/1",
    "name": "small",
    "inputs": [{"name": "x", "shape": [4, 64], "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"],
}


def block(language: str, begin: str) -> str:
    return next(found for found in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if found.startswith(begin))


def first_cells(title: str) -> list[str]:
    """Return the words in code of the first column of the table behind a heading."""
    lines = PAGE.partition(f"| {title} |")[2].split("\n\n")[0].splitlines()[2:]
    return [line.split("`")[1] for line in lines]


def test_the_file_of_the_page_is_read_and_obeys_the_schema(tmp_path: Path) -> None:
    text = block("toml", 'format = "spyrec.sweep/1"')
    (tmp_path / "SWEEP.toml").write_text(text)
    found = read_settings(tmp_path / "SWEEP.toml")
    assert len(found.graphs) == 3
    assert len(combinations(found, Location("SWEEP.toml"))) == 2 * 2 * 2 * 2 + 2 * 2 * 2
    validator: Any = Draft202012Validator(json.loads(sweep_schema()))
    validator.validate(tomllib.loads(text))
    assert not validator.is_valid(tomllib.loads(text.replace("cores", "coers")))
    assert json.loads((ROOT / "schemas" / "sweep.schema.json").read_text()) == json.loads(sweep_schema())


def test_the_keys_of_the_grid_are_options_of_a_compile_and_are_all_told() -> None:
    own = {name for name in Grid.__dataclass_fields__ if name not in ("dims", "tiles")}
    assert own <= set(CompileOptions.__dataclass_fields__)
    told = PAGE.partition("The keys of `[grid]`")[2].partition("Options that no graph")[0]
    assert set(re.findall(r"`(\w+)`", told)) == own | {"dims", "tiles"}


def test_the_columns_and_statuses_of_the_page_are_those_there_are() -> None:
    assert sorted(first_cells("column")) == sorted(COLUMNS)
    assert first_cells("column")[-5:] == list(MEASURED)
    assert first_cells("status") == list(STATUSES)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_the_commands_of_the_page_start_a_cluster_and_sweep_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("spyrec.sweep.clusters._CONNECT_SECONDS", 60.0)
    monkeypatch.chdir(tmp_path)
    Path("SWEEP.toml").write_text('format = "spyrec.sweep/1"\n[[graphs]]\nfiles = ["*.json"]\n')
    Path("graph.json").write_text(json.dumps(GRAPH))
    lines = block("sh", "dask scheduler --host").replace("8786", str(free_port)).splitlines()
    *parts, sweep = map(shlex.split, lines)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with ExitStack() as ended:
        for program, part, *arguments in parts:
            assert program == "dask"
            command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments, "--no-dashboard"]
            process = subprocess.Popen(command, stdout=-3, stderr=-3, env=environment)
            ended.callback(process.wait)
            ended.callback(process.terminate)
        assert sweep[0] == "spyrec"
        assert main(sweep[1:]) == 0
    assert "sweep: 1 case: 1 ok" in capsys.readouterr().out


def tables() -> dict[str, list[list[str]]]:
    """Return the tables of the page's last part by the first cell of their heads."""
    found: dict[str, list[list[str]]] = {}
    for part in PAGE.partition("## What a case costs")[2].split("\n\n"):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
        if lines:
            found[lines[0][0]] = lines[2:]
    return found


def test_the_twelve_models_of_the_page_add_up() -> None:
    rows = tables()["model"]
    assert len(rows) == 12
    for _, calls, cases, *statuses in rows:
        assert int(cases) == sum(map(int, statuses))
        assert int(calls) >= int(cases)


def test_the_measured_overhead_is_below_the_aim_where_workers_are_no_more_than_cores() -> None:
    figures = {int(row[0]): float(row[1]) for row in tables()["workers"]}
    assert set(figures) == {1, 2, 4}
    assert max(figures[1], figures[2]) < 5.0
