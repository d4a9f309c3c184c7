"""Launches whose tiles end inside of a stick, or leave elements over: out of place, and over their own operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.runtime import ExecutionPlan, SpyreTensor, launch_kernel
from tests.support.graphs import JsonObject, graph_data, node, tensor

Numbers = npt.NDArray[np.float64]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """What is computed of ``x`` and ``y``; numbers are small integers, so that every format has the exact result."""

    nodes: tuple[JsonObject, ...]
    exact: Callable[[Numbers, Numbers], Numbers]
    y_shape: Callable[[Shape], Shape] = lambda shape: shape


PROGRAMS: Mapping[str, Program] = {
    "pointwise": Program((node("t", "mul", "x", "y"), node("o", "add", "t", "x")), lambda x, y: x * y + x),
    "bias": Program((node("o", "add", "x", "y"),), lambda x, y: x + y, lambda shape: shape[-1:]),
    "matmul": Program((node("o", "matmul", "y", "x"),), lambda x, y: y @ x, lambda shape: (*shape[:-2], 3, shape[-2])),
    "largest": Program(
        (node("t", "add", "x", "y"), node("o", "amax", "t", dim=[0], keepdim=True)),
        lambda x, y: (x + y).max(0, keepdims=True),
    ),
}


def launched(
    name: str, tile: Shape, whole: Shape, dtype: str = "float16", *, in_place: bool = False, strides: bool = False
) -> SpyrecError | None:
    """Launch a program in tiles and hold what it gives against NumPy; return why it is refused, where it is."""
    program = PROGRAMS[name]
    data = graph_data(
        [tensor("x", *tile, dtype=dtype), tensor("y", *program.y_shape(tile), dtype=dtype)], program.nodes, ["o"]
    )
    bundle = spyrec.compile(data, spyrec.CompileOptions(cores=4, fixed_io_layouts=True, symbolic_strides=strides))
    rng = np.random.default_rng(len(whole))
    x, y = (rng.integers(-2, 3, shape).astype(dtype) for shape in (whole, program.y_shape(whole)))
    wanted = program.exact(x.astype(np.float64), y.astype(np.float64))
    refused: SpyrecError | None = None
    with spyrec.open_device(cores=4) as device:
        plan = ExecutionPlan(bundle)
        plan.load(device.default_stream)
        tensors = [SpyreTensor.to_device(device, x), SpyreTensor.to_device(device, y)]
        tensors.append(tensors[0] if in_place else SpyreTensor.empty(device, wanted.shape, dtype))
        device.synchronize()
        try:
            launch_kernel(device.default_stream, plan, tensors)
        except SpyrecError as error:
            refused = error.with_traceback(None)
            assert device.pending == 0
        found = tensors[2].to_host()
        for item in dict.fromkeys(tensors):
            item.free()
        plan.unload(device)
    if refused is None:
        np.testing.assert_array_equal(found.astype(np.float64), wanted)
    return refused


@pytest.mark.parametrize(
    ("name", "tile", "whole"),
    [
        ("pointwise", (3, 5), (3, 10)),
        ("pointwise", (3, 5), (6, 200)),
        ("pointwise", (70,), (140,)),
        ("pointwise", (2, 70), (4, 70)),
        ("pointwise", (2, 128), (5, 150)),
        ("pointwise", (2, 3), (2, 3 * 64 + 1)),
        ("bias", (2, 70), (4, 210)),
        ("matmul", (64, 70), (64, 333)),
        ("largest", (5, 70), (5, 140)),
        ("largest", (5, 3, 2), (5, 6, 70)),
        ("pointwise", (1, 64), (4, 64)),
        ("pointwise", (1, 1, 64), (3, 2, 128)),
        ("pointwise", (1, 70), (3, 200)),
        ("bias", (1, 128), (3, 256)),
        ("matmul", (1, 64, 64), (3, 64, 64)),
        ("largest", (5, 1, 64), (5, 4, 64)),
    ],
)
@pytest.mark.parametrize("strides", [False, True])
def test_tiles_that_end_inside_of_a_stick_are_launched(name: str, tile: Shape, whole: Shape, strides: bool) -> None:
    assert launched(name, tile, whole, strides=strides) is None


def test_a_row_is_compiled_and_rows_are_launched() -> None:
    """One token through a matrix and a norm: the batch of one element is a loop of its own."""
    nodes = [node("h", "matmul", "x", "w"), node("o", "softmax", "h", dim=1)]
    data = graph_data([tensor("x", 1, 64), tensor("w", 64, 128)], nodes, ["o"])
    bundle = spyrec.compile(data, spyrec.CompileOptions(cores=4))
    assert [(loop.name, loop.tile) for loop in bundle.manifest.tile_contracts["."].loops] == [("x.0", 1)]
    rng = np.random.default_rng(0)
    inputs = {"x": rng.standard_normal((5, 64)).astype(np.float16), "w": rng.standard_normal((64, 128)) * 0.1}
    inputs["w"] = inputs["w"].astype(np.float16)
    result = spyrec.run(bundle, inputs, spyrec.RunOptions(check=True))
    assert result.is_ok
    assert result.outputs["o"].shape == (5, 128)
    rows = [spyrec.run(bundle, {**inputs, "x": inputs["x"][row : row + 1]}).outputs["o"] for row in range(5)]
    np.testing.assert_array_equal(result.outputs["o"], np.concatenate(rows))


def test_a_run_finds_the_layout_for_tiles_of_one_lane() -> None:
    bundle = spyrec.compile(graph_data([tensor("x", 2, 1)], [node("o", "abs", "x")], ["o"]))
    x = np.arange(-3, 3).reshape(2, 3).astype(np.float16)
    np.testing.assert_array_equal(spyrec.run(bundle, {"x": x}).outputs["o"], np.abs(x))


@pytest.mark.parametrize(
    ("tile", "whole"),
    [((64, 128), (150, 128)), ((5, 70), (13, 200)), ((3, 5, 64), (7, 12, 170)), ((2, 64), (3, 64)), ((128,), (192,))],
)
@pytest.mark.parametrize("strides", [False, True])
def test_a_launch_over_its_own_operand_does_nothing_twice(tile: Shape, whole: Shape, strides: bool) -> None:
    assert launched("pointwise", tile, whole, in_place=True, strides=strides) is None


@settings(max_examples=25)
@given(st.data())
def test_any_launch_is_right_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(PROGRAMS)))
    rank = data.draw(st.integers(2 if name == "matmul" else 1, 3))
    tile = (*(data.draw(st.sampled_from([1, 2, 3, 5, 64])) for _ in range(rank - 1)),)
    tile = (*tile, data.draw(st.sampled_from([1, 2, 5, 64, 70, 128])))
    whole = tuple(data.draw(st.integers(size, 3 * size)) for size in tile)
    kept = {"matmul": rank - 2, "largest": 0}.get(name)
    whole = tuple(tile[dim] if dim == kept else size for dim, size in enumerate(whole))
    refused = launched(
        name,
        tile,
        whole,
        data.draw(st.sampled_from(["float16", "float32"])) if name != "matmul" else "float16",
        in_place=name in {"pointwise", "bias"} and data.draw(st.booleans()),
        strides=data.draw(st.booleans()),
    )
    assert refused is None or refused.diagnostics[0].code in {f"SPY0{number}" for number in range(950, 963)}
