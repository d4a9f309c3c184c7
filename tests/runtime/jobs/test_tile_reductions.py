"""Launches that tile what a program sums up: the parts are joined by compiled programs, in float32."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.tile_contract import Combine, LoopKind, TileContract
from spyrec.compare.check import check_tiled
from spyrec.diagnostics import SpyrecError
from spyrec.runtime import ExecutionPlan, SpyreTensor, launch_kernel
from spyrec.runtime.errors import ShapeMismatch
from tests.support.graphs import Arrays, JsonObject, graph_data, node, tensor

OPTIONS = spyrec.CompileOptions(cores=4, fixed_io_layouts=True, tile_reductions=True)


def reducing(op: str, dim: int, dtype: str = "float16") -> JsonObject:
    nodes = [node("t", "abs", "x"), node("y", op, "t", dim=[dim])]
    return graph_data([tensor("x", 64, 128, dtype=dtype)], nodes, ["y"])


MATMUL = graph_data([tensor("a", 64, 64), tensor("b", 64, 64)], [node("y", "matmul", "a", "b")], ["y"])


def contract_of(bundle: Bundle) -> TileContract:
    return bundle.manifest.tile_contracts["."]


def launched(bundle: Bundle, inputs: Arrays, shape: tuple[int, ...], dtype: str = "float16") -> Arrays:
    """Return the output of one launch of larger tensors."""
    with spyrec.open_device(cores=4) as device:
        plan = ExecutionPlan(bundle)
        assert plan.signature is not None
        tensors = [
            SpyreTensor.to_device(device, inputs[item.name])
            if item.name in inputs
            else SpyreTensor.empty(device, shape, dtype)
            for item in plan.signature
        ]
        plan.load(device.default_stream)
        try:
            launch_kernel(device.default_stream, plan, tensors)
            return {"y": tensors[-1].to_host()}
        finally:
            for item in tensors:
                item.free()
            plan.unload(device)


def small_integers(*shape: int, dtype: str = "float16") -> Arrays:
    """Numbers whose sums are exact in every format."""
    return {"x": np.random.default_rng(5).integers(-1, 2, shape).astype(dtype)}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("op", ["sum", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1])
def test_parts_of_a_reduction_are_joined(op: str, dim: int, dtype: str) -> None:
    bundle = spyrec.compile(reducing(op, dim, dtype), OPTIONS)
    (loop,) = [loop for loop in contract_of(bundle).loops if loop.kind is LoopKind.REDUCTION]
    assert loop.combine is {"sum": Combine.SUM, "amax": Combine.MAX, "amin": Combine.MIN}[op]
    inputs = small_integers(192, 256, dtype=dtype)
    wanted = getattr(np, op)(np.abs(inputs["x"].astype(np.float64)), axis=dim)
    found = launched(bundle, inputs, wanted.shape, dtype)["y"]
    np.testing.assert_array_equal(found.astype(np.float64), wanted)


def test_a_matmul_is_tiled_along_all_three_dims() -> None:
    bundle = spyrec.compile(MATMUL, OPTIONS)
    assert [loop.kind.value for loop in contract_of(bundle).loops] == ["parallel", "parallel", "reduction"]
    rng = np.random.default_rng(2)
    inputs: Arrays = {
        "a": rng.integers(-1, 2, (128, 192)).astype(np.float16),
        "b": rng.integers(-1, 2, (192, 128)).astype(np.float16),
    }
    wanted = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    np.testing.assert_array_equal(launched(bundle, inputs, (128, 128))["y"].astype(np.float64), wanted)


def test_the_sum_of_parts_is_rounded_once() -> None:
    """A part of 1024 and sixteen of 1: 1024 + 1 is 1024 in the device's half, float32 keeps every one of them."""
    bundle = spyrec.compile(reducing("sum", 0), OPTIONS)
    numbers = np.zeros((64 * 17, 128), np.float16)
    numbers[0, :], numbers[64::64, :] = 1024, 1
    np.testing.assert_array_equal(launched(bundle, {"x": numbers}, (128,))["y"], np.full(128, 1040, np.float16))
    around = contract_of(bundle).reduction
    assert around is not None
    assert [item.dtype.value for item in around.accumulators] == ["float32"]


@pytest.mark.parametrize("trips", [2, 3, 16])
@pytest.mark.parametrize("form", ["product", "sum"])
def test_the_check_knows_that_parts_are_stored_before_they_are_joined(form: str, trips: int) -> None:
    """Parts of about 100 whose sum is about 1: what rounding them loses is no error, and ten times it is one."""
    rng = np.random.default_rng(trips)
    parts = np.resize([100.0, -100.0], trips) + np.arange(trips) % 2
    rows = np.repeat(parts / 64, 64) + rng.uniform(-0.25, 0.25, 64 * trips)
    inputs: Arrays = {"a": np.tile(rows.astype(np.float16), (64, 1)), "b": np.ones((64 * trips, 64), np.float16)}
    if form == "sum":
        inputs = {"x": np.ascontiguousarray(np.tile(rows.astype(np.float16)[:, None], (1, 128)))}
    bundle = spyrec.compile(MATMUL if form == "product" else reducing("sum", 0), OPTIONS)
    run = spyrec.run(bundle, inputs, spyrec.RunOptions(check=True))
    assert run.check is not None
    ((name, report),) = run.check.items()
    assert report.ok, report.worst
    wrong = run.outputs[name].copy()
    wrong.reshape(-1)[5] += np.float16(10 * trips * 2.0**-3)
    assert check_tiled(bundle, inputs, {name: wrong})[name].failed_elements == 1


def test_the_programs_survive_the_directory_and_a_run_of_the_tile_itself(tmp_path: Path) -> None:
    for name, data in (("largest", reducing("amax", 0)), ("product", MATMUL)):
        bundle = spyrec.compile(data, OPTIONS)
        bundle.save(tmp_path / name)
        loaded = Bundle.load(tmp_path / name)
        assert loaded.manifest.tile_contracts == bundle.manifest.tile_contracts
        assert loaded.manifest.tile_steps == bundle.manifest.tile_steps
    loaded = Bundle.load(tmp_path / "product")
    assert [item.directory for item in loaded.programs] == [
        ".", "tiles/main/init", "tiles/main/combine", "tiles/main/publish",
    ]  # fmt: skip
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((64, 64)).astype(np.float16) for name in "ab"}
    assert spyrec.run(loaded, inputs, spyrec.RunOptions(check=True)).is_ok


def test_without_the_option_there_are_no_reductions_and_larger_sums_are_refused() -> None:
    bundle = spyrec.compile(MATMUL, spyrec.CompileOptions(cores=4, fixed_io_layouts=True))
    assert all(loop.kind is LoopKind.PARALLEL for loop in contract_of(bundle).loops)
    assert not bundle.manifest.tile_steps
    inputs: Arrays = {"a": np.zeros((64, 128), np.float16), "b": np.zeros((128, 64), np.float16)}
    with pytest.raises(ShapeMismatch):
        launched(bundle, inputs, (64, 64))


A, B, X = tensor("a", 64, 64), tensor("b", 64, 64), tensor("x", 64, 128)
_KEPT_SUM = node("s", "sum", "x", dim=[0], keepdim=True)


@pytest.mark.parametrize(
    "data",
    [
        reducing("mean", 0),
        graph_data([X], [node("y", "softmax", "x", dim=0)], ["y"]),
        graph_data([A, B], [node("m", "matmul", "a", "b"), node("y", "relu", "m")], ["y"]),
        graph_data([X], [_KEPT_SUM, node("y", "mul", "x", "s")], ["y"]),
        graph_data([A], [node("y", "matmul", "a", "a")], ["y"]),
    ],
)
def test_what_parts_do_not_make_up_has_no_reduction_loop(data: JsonObject) -> None:
    bundle = spyrec.compile(data, OPTIONS)
    contracts = bundle.manifest.tile_contracts.values()
    assert all(loop.kind is LoopKind.PARALLEL for contract in contracts for loop in contract.loops)


def _accumulator(found: JsonObject) -> JsonObject:
    contract = cast("JsonObject", cast("JsonObject", found["programs"])["."])
    return cast("list[JsonObject]", cast("JsonObject", contract["reduction"])["accumulators"])[0]


DAMAGES: Mapping[str, tuple[str, Callable[[JsonObject], object]]] = {
    "a program without step": ("SPY0611", lambda found: cast("list[JsonObject]", found["steps"]).pop()),
    "a step outside of the bundle": (
        "SPY0611",
        lambda found: cast("list[JsonObject]", found["steps"])[0].update(program="../outside"),
    ),
    "an accumulator of another shape": (
        "SPY0963",
        lambda found: _accumulator(found).update(
            shape=[32, 64], host_strides=[64, 1], device_size=[2, 32, 32], stride_map=[32, 64, 1]
        ),
    ),
    "an identity that is a text": (
        "SPY0610",
        lambda found: cast("list[JsonObject]", cast("JsonObject", cast("JsonObject", found["programs"])["."])["loops"])[
            2
        ].update(identity="nan"),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_contract_with_programs_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    code, damage = DAMAGES[name]
    spyrec.compile(MATMUL, OPTIONS).save(tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = cast("JsonObject", json.loads(path.read_text()))
    damage(cast("JsonObject", manifest["tile_contract"]))
    path.write_text(json.dumps(manifest))
    with pytest.raises(SpyrecError) as caught:
        Bundle.load(tmp_path / "out")
    assert {item.code for item in caught.value.diagnostics} == {code}, caught.value
