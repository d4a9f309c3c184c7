"""Values that a run gives to a bundle: read from the manifest's plan, from the table beside a foreign bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.manifest import TripCount
from spyrec.bundle.manifest_json import read_manifest, write_manifest
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.diagnostics import SpyrecError
from tests.emulator.loop_programs import LoopProgram, Member, Tile
from tests.support.runs import ready

ROWS = 6
TILES = (Tile(0, (0,), frozenset({0})), Tile(1, (0,), frozenset({0})))
MADE = LoopProgram(2, (ROWS,), ((0, ROWS, 1),), (Member("neg", TILES, 0),), 2, value_loop=0)


def foreign(directory: Path, values: Mapping[str, int] | None) -> Bundle:
    (directory / "bundle.mlir").write_text(print_program(MADE.program()))
    (directory / "sdsc_0.json").write_bytes(to_bytes(MADE.superdsc(MADE.members[0])))
    arguments = [
        {"name": name, "arg_index": i, "role": role, "device_size": [ROWS, 2, 64], "device_dtype": "SEN169_FP16"}
        for i, (name, role) in enumerate((("x", "input"), ("y", "output")))
    ]
    table = {"format": "spyrec.args/1", "arguments": arguments, **({} if values is None else {"values": values})}
    (directory / "args.json").write_text(json.dumps(table))
    return load_foreign(directory, directory / "args.json")


def executions(bundle: Bundle, values: Mapping[str, int]) -> int:
    with ready(bundle) as run:
        record = run.prepared.run({"x": np.ones((ROWS, 2, 64), np.float32)}, values=values)
    (launch,) = record.launches
    return launch.operations[0].executions


def test_the_table_of_a_foreign_bundle_gives_its_values(tmp_path: Path) -> None:
    bundle = foreign(tmp_path, {"S_value": 4})
    assert executions(bundle, {}) == 4
    assert executions(bundle, {"S_value": 2}) == 2


@pytest.mark.parametrize("values", [None, {"S_value": 3, "T_value": 3}])
def test_a_table_that_leaves_a_value_open_or_gives_one_too_many_is_refused(
    tmp_path: Path, values: Mapping[str, int] | None
) -> None:
    with pytest.raises(SpyrecError) as refused:
        foreign(tmp_path, values)
    assert {item.code for item in refused.value.diagnostics} == {"SPY0634"}


def counted(tmp_path: Path, max_elements: int) -> Bundle:
    """The bundle as a compiler would describe it: its loop counts tiles of 64 elements."""
    bundle = foreign(tmp_path, {"S_value": 1})
    (step,) = bundle.manifest.plan
    plan = (replace(step, values={}, trip_counts={"S_value": TripCount("S", 64, max_elements)}),)
    return replace(bundle, manifest=replace(bundle.manifest, plan=plan))


def test_the_plan_says_how_large_a_value_may_be(tmp_path: Path) -> None:
    bundle = counted(tmp_path, 5 * 64 - 10)
    assert executions(bundle, {"S_value": 5}) == 5
    assert executions(bundle, {}) == 5, "the largest of a dim that no tensor has"
    for values in ({"S_value": 6}, {"S_value": 1, "T_value": 1}):
        with pytest.raises(SpyrecError) as refused:
            executions(bundle, values)
        assert {item.code for item in refused.value.diagnostics} == {"SPY0708"}


def test_a_plan_whose_largest_value_leaves_the_argument_is_refused_at_load(tmp_path: Path) -> None:
    with pytest.raises(SpyrecError) as refused, ready(counted(tmp_path, 64 * ROWS + 1)):
        pass
    assert {item.code for item in refused.value.diagnostics} == {"SPY0716"}


def test_trip_counts_go_through_the_manifest_and_are_absent_without_values(tmp_path: Path) -> None:
    manifest = counted(tmp_path, 4096).manifest
    text = write_manifest(manifest, {})
    stated = {"S_value": {"dim": "S", "tile_size": 64, "max": 4096}}
    assert json.loads(text)["plan"][0]["trip_counts"] == stated
    assert read_manifest(text, "manifest.json")[0].plan == manifest.plan
    bare = replace(manifest, plan=(replace(manifest.plan[0], trip_counts={}),))
    assert "trip_counts" not in json.loads(write_manifest(bare, {}))["plan"][0]


def test_a_program_with_a_value_parameter_is_printed_and_parsed() -> None:
    program = MADE.program()
    assert parse_program(print_program(program)) == program
