"""What depends on no input is folded, what depends on whole numbers alone goes to the prologue, and nothing changes."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.frontends.model_import.imported import finish
from spyrec.frontends.model_import.source_graph import SourceGraph, SourceInput, Weight
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate

_LENGTH, _WIDTH = 6, 8


def _weight(array: npt.NDArray[np.float32]) -> Weight:
    return Weight(DType(array.dtype.name), array.shape, lambda: array, array.tobytes())


def _rotary() -> tuple[SourceGraph, dict[str, Weight]]:
    """x times the cosines of position times frequency, plus a table of a range, times a weight that is turned."""
    builder = spyrec.GraphBuilder("rotary")
    x = builder.input("x", [_LENGTH, _WIDTH], "float32")
    position = builder.input("position", [_LENGTH], "int64")
    frequency = builder.input("frequency", [_WIDTH], "float32")
    weight = builder.input("weight", [_WIDTH, _WIDTH], "float32")
    column = builder.op("reshape", position, shape=[_LENGTH, 1])
    angle = builder.op("to", column, dtype="float32") * frequency
    numbers = builder.op("arange", end=_LENGTH * _WIDTH, dtype="float32")
    table = builder.op("sin", builder.op("reshape", numbers, shape=[_LENGTH, _WIDTH])) * 0.5
    turned = builder.op("transpose", weight, dim0=0, dim1=1)
    builder.output((x * builder.op("cos", angle) + table) @ turned)
    inputs = (
        SourceInput("x", "user", "x"),
        SourceInput("position", "user", "position"),
        SourceInput("frequency", "buffer", "frequency", "frequency"),
        SourceInput("weight", "parameter", "weight", "weight"),
    )
    random = np.random.default_rng(7)
    weights = {
        "frequency": _weight((1.0 / 10000 ** (np.arange(_WIDTH) / _WIDTH)).astype(np.float32)),
        "weight": _weight(random.standard_normal((_WIDTH, _WIDTH)).astype(np.float32)),
    }
    return SourceGraph(builder.build(), inputs, ()), weights


def test_tables_are_folded_and_positions_go_to_the_prologue() -> None:
    source, weights = _rotary()
    model = finish(source, weights, DType.FLOAT16)
    graph = model.graph
    assert graph.inputs == ("x", "position")
    assert [node.op for node in graph.nodes if node.on_host] == ["reshape", "to", "mul", "cos", "to"]
    assert sorted(node.op for node in graph.nodes if not node.on_host) == ["add", "matmul", "mul", "transpose"]
    (folded,) = cast("list[dict[str, str]]", model.report["folded"])
    table = np.sin(np.arange(_LENGTH * _WIDTH, dtype=np.float64)).reshape(_LENGTH, _WIDTH) * 0.5
    held = graph.constants[folded["name"]].array
    assert held is not None
    assert np.array_equal(held, table.astype(np.float16))


def test_the_device_computes_what_the_program_does() -> None:
    source, weights = _rotary()
    graph = finish(source, weights, DType.FLOAT16).in_memory()
    random = np.random.default_rng(1)
    x, position = random.standard_normal((_LENGTH, _WIDTH)), np.asarray([0, 3, 9, 100, 1000, 4000])
    result = spyrec.run(
        spyrec.compile(graph), {"x": x.astype(np.float16), "position": position}, spyrec.RunOptions(check=True)
    )
    assert all(report.ok for report in (result.check or {}).values())
    frequency, weight = (weights[name].read().astype(np.float64) for name in ("frequency", "weight"))
    table = np.sin(np.arange(_LENGTH * _WIDTH)).reshape(_LENGTH, _WIDTH) * 0.5
    wanted = (x * np.cos(position[:, None] * frequency) + table) @ weight.T
    (found,) = result.outputs.values()
    assert np.abs(found.astype(np.float64) - wanted).max() < 2**-7 * np.abs(wanted).max()


def test_equal_storage_is_stored_once() -> None:
    builder = spyrec.GraphBuilder("tied")
    x = builder.input("x", [4, 4], "float32")
    first, second = (builder.input(name, [4, 4], "float32") for name in ("first", "second"))
    builder.output(x @ first + x @ second)
    array = np.arange(16, dtype=np.float32).reshape(4, 4)
    inputs = (
        SourceInput("x", "user", "x"),
        SourceInput("first", "parameter", "first", "first"),
        SourceInput("second", "parameter", "second", "second"),
    )
    model = finish(
        SourceGraph(builder.build(), inputs, ()), {"first": _weight(array), "second": _weight(array)}, DType.FLOAT16
    )
    assert {stored.tensor for stored in model.weights.values()} == {"first"}
    graph = model.in_memory()
    assert graph.constants["first"].array is graph.constants["second"].array


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_casts_are_counted_and_finite_numbers_stay_finite(numbers: list[float]) -> None:
    array = np.asarray(numbers, np.float32)
    builder = spyrec.GraphBuilder("cast")
    x = builder.input("x", [len(numbers)], "float32")
    builder.output(x + builder.input("w", [len(numbers)], "float32"))
    inputs = (SourceInput("x", "user", "x"), SourceInput("w", "parameter", "w", "w"))
    model = finish(SourceGraph(builder.build(), inputs, ()), {"w": _weight(array)}, DType.FLOAT16)
    held = model.in_memory().constants["w"].array
    assert held is not None
    with np.errstate(over="ignore"):
        plain = array.astype(np.float16)
    assert np.isfinite(held).all()
    assert np.array_equal(held[np.isfinite(plain)], plain[np.isfinite(plain)])
    count = model.counts["w"]
    assert count.overflown == int((np.abs(array.astype(np.float64)) > 65504).sum())
    assert count.lost == int(((array != 0) & (plain == 0)).sum())


@given(
    st.lists(
        st.sampled_from(["cos", "neg", "abs", "square", "to_float", "add_position", "times_x", "add_table"]),
        min_size=1,
        max_size=7,
    )
)
def test_settling_keeps_every_number(steps: list[str]) -> None:
    """Whatever chain of steps: the settled graph, kept in its dtypes, is the source graph in float64."""
    builder = spyrec.GraphBuilder("chain")
    x = builder.input("x", [4, 3], "float32")
    position = builder.input("position", [4, 1], "int64")
    table = builder.input("table", [4, 3], "float32")
    value = position
    for step in steps:
        match step:
            case "to_float":
                value = builder.op("to", value, dtype="float32")
            case "add_position":
                value = value + position
            case "times_x":
                value = value * x
            case "add_table":
                value = value + table
            case "cos":
                value = builder.op("cos", builder.op("to", value, dtype="float32"))
            case _:
                value = builder.op(step, value)
    builder.output(value)
    array = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    inputs = (
        SourceInput("x", "user", "x"),
        SourceInput("position", "user", "position"),
        SourceInput("table", "buffer", "table", "table"),
    )
    graph = builder.build()
    model = finish(SourceGraph(graph, inputs, ()), {"table": _weight(array)}, None)
    arrays = {"x": array[::-1] * 3, "position": np.asarray([[0], [1], [5], [9]]), "table": array}
    wanted = evaluate(graph, arrays)
    found = evaluate(model.in_memory(), arrays)
    for name, other in zip(graph.outputs, model.graph.outputs, strict=True):
        np.testing.assert_allclose(
            found[other].astype(np.float64), wanted[name].astype(np.float64), rtol=2**-22, atol=0
        )
