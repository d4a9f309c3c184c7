"""Finite numbers stay finite in 16 bits, wherever a program has them, and infinities stay infinite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spyrec
from spyrec.frontends.model_import.imported import finish
from spyrec.frontends.model_import.source_graph import SourceGraph, SourceInput
from spyrec.frontends.value import Value
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph
from spyrec.ir.numbers import decode

_LEAST = -3.4028234663852886e38
_LARGEST = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38}


def _imported(build: spyrec.GraphBuilder, dtype: DType) -> Graph:
    graph = build.build()
    inputs = tuple(SourceInput(name, "user", name) for name in graph.inputs)
    return finish(SourceGraph(graph, inputs, ()), {}, dtype).in_memory()


def _wide(case: str, build: spyrec.GraphBuilder, x: Value) -> Value:
    match case:
        case "full":
            return build.op("maximum", x, build.op("full", size=[2, 3], fill_value=_LEAST, dtype="float32"))
        case "masked_fill":
            return build.op("masked_fill", x, build.op("gt", x, 0.0), _LEAST)
        case "pad":
            return build.op("pad", x, pad=[0, 1], value=_LEAST)
        case "clamp":
            return build.op("clamp", x, min=_LEAST, max=-_LEAST)
        case "comparison":
            return build.op("where", build.op("lt", x, _LEAST / 2), x, x + 1.0)
        case _:
            return x + _LEAST


@pytest.mark.parametrize("case", ["full", "masked_fill", "pad", "clamp", "comparison", "sum"])
@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_numbers_of_a_program_stay_finite(case: str, dtype: DType) -> None:
    build = spyrec.GraphBuilder("wide")
    build.output(_wide(case, build, build.input("x", [2, 3], "float32")))
    graph = _imported(build, dtype)
    numbers = np.asarray([[-2, -1, 0], [1, 2, 3]], np.float32)
    given = numbers.astype(np.float16) if dtype is DType.FLOAT16 else (numbers.view(np.uint32) >> 16).astype(np.uint16)
    assert graph.type_of(graph.outputs[0]).dtype is dtype
    result = spyrec.run(spyrec.compile(graph), {"x": given}, spyrec.RunOptions(check=True))
    assert all(report.ok for report in (result.check or {}).values())


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("number", [_LEAST, -np.inf])
def test_a_mask_of_the_prologue_keeps_its_kind_of_number(dtype: DType, number: float) -> None:
    build = spyrec.GraphBuilder("mask")
    mask = build.input("mask", [1, 4], "int64")
    zeros = build.op("to", mask, dtype="float32") * 0.0
    bias = build.op("masked_fill", zeros, build.op("eq", mask, 0), number)
    build.output(build.input("x", [2, 4], "float32") + bias)
    graph = _imported(build, dtype)
    (held,) = [name for name in graph.nodes[-1].inputs if isinstance(name, str) and name != "x"]
    mask_given = {"x": np.zeros((2, 4), dtype.carrier), "mask": np.asarray([[1, 0, 1, 0]])}
    prologue = replace(graph, nodes=graph.nodes[:-1], outputs=(held,))
    assert all(node.on_host for node in prologue.nodes)
    found = decode(evaluate(prologue, mask_given)[held], dtype)
    wanted = number if np.isinf(number) else -_LARGEST[dtype]
    assert np.array_equal(found, [[0, wanted, 0, wanted]])


@pytest.mark.parametrize("op", ["mul", "rsub", "div"])
@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_whole_numbers_of_the_device_beside_a_float_become_the_dtype_asked_for(op: str, dtype: DType) -> None:
    """An index that the device finds, times a number, is float32 by itself: the sum behind it has two dtypes."""
    build = spyrec.GraphBuilder("mixed")
    x = build.input("x", [2, 64], "float32")
    scaled = build.op(op, build.op("argmax", x, dim=-1), 0.5)
    build.output(build.op("add", build.op("select", x, dim=1, index=0), scaled))
    build.output(scaled)
    graph = _imported(build, dtype)
    assert {graph.type_of(name).dtype for name in graph.outputs} == {dtype}
    numbers = np.sin(np.arange(128, dtype=np.float32)).reshape(2, 64)
    given = numbers.astype(np.float16) if dtype is DType.FLOAT16 else (numbers.view(np.uint32) >> 16).astype(np.uint16)
    result = spyrec.run(spyrec.compile(graph), {"x": given}, spyrec.RunOptions(check=True))
    assert all(report.ok for report in (result.check or {}).values())
    index = decode(given, dtype).argmax(-1)
    wanted = {"mul": index * 0.5, "rsub": 0.5 - index, "div": index / 0.5}[op]
    found = decode(result.outputs[graph.outputs[1]], dtype).astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=2**-7)
