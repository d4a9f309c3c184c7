"""Tile contracts in bundles: compiled ones survive the directory, and hostile ones are refused where they lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.image_table import ImageTables
from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import TileContract
from spyrec.diagnostics import SpyrecError
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import Mode
from tests.support.graphs import JsonObject, graph_data, node, tensor
from tests.support.launch_builders import tensor as launch_tensor

MATMUL = graph_data([tensor("a", 128, 64), tensor("b", 64, 64)], [node("c", "matmul", "a", "b")], ["c"])
TWO_OUTPUTS = graph_data(
    [tensor(f"x{number}", 2, 64) for number in range(9)],
    [node("y", "cat", *(f"x{number}" for number in range(9)), dim=0)],
    ["y"],
)


def contract_of(bundle: Bundle) -> TileContract:
    (contract,) = bundle.manifest.tile_contracts.values()
    return contract


def test_a_compiled_matmul_is_launched_on_four_times_its_rows() -> None:
    contract = contract_of(spyrec.compile(MATMUL))
    assert [(loop.name, loop.tile) for loop in contract.loops] == [("a.0", 128), ("b.1", 64)]
    tensors = [launch_tensor((512, 64)), launch_tensor((64, 64)), launch_tensor((512, 64))]
    plan = explain_launch(contract, tensors)
    assert plan.total_iterations == 4
    assert [item.mode for item in plan.body.arguments] == [Mode.SLAB, Mode.FIXED, Mode.SLAB]


def test_contracts_survive_the_directory(tmp_path: Path) -> None:
    for number, graph in enumerate((MATMUL, TWO_OUTPUTS)):
        bundle = spyrec.compile(graph)
        bundle.save(tmp_path / str(number))
        loaded = Bundle.load(tmp_path / str(number))
        assert loaded.manifest.tile_contracts == bundle.manifest.tile_contracts
        assert loaded.manifest.tile_contracts.keys() == {step.program for step in loaded.manifest.plan}


def test_roles_are_those_that_arguments_have_for_one_program() -> None:
    contracts = list(spyrec.compile(TWO_OUTPUTS).manifest.tile_contracts.values())
    roles = [{item.name: item.role for item in contract.arguments} for contract in contracts]
    assert [item["y"] for item in roles] == [Role.OUTPUT, *[Role.INOUT] * (len(roles) - 1)]
    assert len(roles) > 1


def test_baked_programs_need_no_correction() -> None:
    baked = spyrec.compile(MATMUL, spyrec.CompileOptions(symbolic_args=False))
    assert not contract_of(baked).needs_correction
    assert contract_of(spyrec.compile(MATMUL)).needs_correction


def test_symbolic_strides_make_words_for_arguments_that_follow_a_loop() -> None:
    wide = graph_data(
        [tensor("a", 128, 128), tensor("b", 128, 64), tensor("r", 1, 1)],
        [node("m", "matmul", "a", "b"), node("c", "mul", "m", "r")],
        ["c"],
    )
    bundle = spyrec.compile(wide, spyrec.CompileOptions(symbolic_strides=True))
    contract = contract_of(bundle)
    takes = {item.name: item.takes_strides for item in contract.arguments}
    assert takes == {"a": True, "b": True, "r": False, "c": True}
    (step,) = bundle.manifest.plan
    words = [word.to_json() for word in ImageTables(bundle.manifest).of(bundle.programs[0], step).words]
    assert sum("stick_stride" in json.dumps(word) for word in words) == 6  # device dims but the stick, of a, b and c
    shapes = {"a": (512, 128), "b": (128, 64), "r": (1, 1), "c": (512, 64)}
    plan = explain_launch(contract, [launch_tensor(shapes[item.name]) for item in contract.arguments])
    modes = {item.name: plan.body.arguments[place].mode for place, item in enumerate(contract.arguments)}
    assert modes["a"] is Mode.STRIDED


def test_strides_without_corrections_are_refused() -> None:
    with pytest.raises(SpyrecError, match="SPY0440"):
        spyrec.compile(MATMUL, spyrec.CompileOptions(symbolic_args=False, symbolic_strides=True))


def _of_dot(manifest: JsonObject) -> JsonObject:
    programs = cast("JsonObject", cast("JsonObject", manifest["tile_contract"])["programs"])
    return cast("JsonObject", programs["."])


def _first_argument(manifest: JsonObject) -> JsonObject:
    return cast("list[JsonObject]", _of_dot(manifest)["arguments"])[0]


def _first_loop(manifest: JsonObject) -> JsonObject:
    return cast("list[JsonObject]", _of_dot(manifest)["loops"])[0]


DAMAGES: dict[str, tuple[str, Callable[[JsonObject], object]]] = {
    "another program": ("SPY0611", lambda manifest: _of_dot(manifest).update(program="kernels/0")),
    "a program that is not in the plan": (
        "SPY0611",
        lambda manifest: cast("JsonObject", cast("JsonObject", manifest["tile_contract"])["programs"]).update(
            {"kernels/7": _of_dot(manifest)}
        ),
    ),
    "arguments in another order": (
        "SPY0611",
        lambda manifest: cast("list[JsonObject]", _of_dot(manifest)["arguments"]).reverse(),
    ),
    "a larger tile": ("SPY0963", lambda manifest: _first_loop(manifest).update(tile=256)),
    "another shape": ("SPY0963", lambda manifest: _first_argument(manifest).update(shape=[64, 64])),
    "another role": ("SPY0611", lambda manifest: _first_argument(manifest).update(role="output")),
    "another dtype": ("SPY0611", lambda manifest: _first_argument(manifest).update(dtype="bfloat16")),
    "another layout": ("SPY0307", lambda manifest: _first_argument(manifest).update(device_size=[2, 64, 64])),
    "an unknown key": ("SPY0610", lambda manifest: _of_dot(manifest).update(colour="red")),
    "a tile that is no number": ("SPY0610", lambda manifest: _first_loop(manifest).update(tile="128")),
    "too many dims": ("SPY0610", lambda manifest: _first_argument(manifest).update(shape=[1] * 40)),
    "a list of programs": ("SPY0610", lambda manifest: manifest.update(tile_contract={"programs": []})),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_hostile_contract_is_refused_where_it_lies(name: str, tmp_path: Path) -> None:
    code, damage = DAMAGES[name]
    spyrec.compile(MATMUL).save(tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = cast("JsonObject", json.loads(path.read_text()))
    damage(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(SpyrecError) as caught:
        Bundle.load(tmp_path / "out")
    assert code in {item.code for item in caught.value.diagnostics}, caught.value
    for item in caught.value.diagnostics:
        assert item.location is not None
        assert "/tile_contract" in str(item.location.pointer)
        assert item.hint


def test_a_bundle_without_contracts_is_read_as_before(tmp_path: Path) -> None:
    spyrec.compile(MATMUL).save(tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = cast("JsonObject", json.loads(path.read_text()))
    path.write_text(json.dumps({**manifest, "tile_contract": None}))
    assert Bundle.load(tmp_path / "out").manifest.tile_contracts == {}
