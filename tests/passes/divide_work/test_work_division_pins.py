"""``work_division``: pinned slices are what the bundle has, or the compiler says why not."""

from __future__ import annotations

import math
from typing import cast

import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import Target
from spyrec.ir.kernel import Kernel
from spyrec.options import RunOptions
from spyrec.passes.base import PipelineOptions
from tests.support.graphs import JsonObject, after, graph_data, node, random_arrays, read, tensor

_DIMS = {"A": 64, "B": 128, "C": 192}


def _pinned(name: str, op: str, *inputs: str, pins: dict[str, int], **attributes: object) -> JsonObject:
    return {**node(name, op, *inputs, **attributes), "work_division": pins}


def _graph(written: JsonObject, *, names: bool, **more: object) -> JsonObject:
    """Return a graph of one node over a[A,B] and b[B,C]."""
    inputs = [tensor("a", 64, 128), tensor("b", 128, 192)]
    if names:
        inputs = [{**inputs[0], "shape": ["A", "B"]}, {**inputs[1], "shape": ["B", "C"]}]
        more["dims"] = _DIMS
    return graph_data(inputs, [written], ["y"], **more)


def _slices(kernel: Kernel, dim: int) -> int:
    """Return in how many slices a kernel cuts one of its iteration dims."""
    assert kernel.division is not None
    pairs = zip(kernel.placed.variables, kernel.division, strict=True)
    return math.prod(slices for variable, slices in pairs if variable.dim == dim)


_HONOURED: dict[str, tuple[JsonObject, dict[str, dict[int, int]]]] = {
    "pointwise": (_pinned("y", "neg", "a", pins={"A": 8, "B": 2}), {"y": {0: 8, 1: 2}}),
    "fewer cores than the planner would take": (_pinned("y", "neg", "a", pins={"A": 2}), {"y": {0: 2, 1: 1}}),
    "matmul": (_pinned("y", "matmul", "a", "b", pins={"A": 8, "B": 2}), {"y": {0: 8, 1: 1, 2: 2}}),
    "softmax": (
        _pinned("y", "softmax", "a", pins={"A": 4, "B": 2}, dim=-1),
        {name: {0: 4, 1: 2} for name in ("y.amax", "y.sub", "y.exp", "y.sum", "y")},
    ),
    "layer_norm": (
        _pinned("y", "layer_norm", "a", pins={"A": 16, "B": 2}, normalized_shape=[128]),
        {"y.exx2": {0: 16, 1: 2}, "y.layernormscale": {0: 16}, "y": {0: 16, 1: 2}},
    ),
}
_POSITIONS = {
    "matmul": {"A": "out.0", "C": "out.1", "B": "reduce.0"},
}


@pytest.mark.parametrize("names", [True, False], ids=["by name", "by position"])
@pytest.mark.parametrize("case", _HONOURED)
def test_every_operation_of_the_node_has_the_pinned_slices(case: str, names: bool) -> None:
    written, expected = _HONOURED[case]
    pins = cast("dict[str, int]", written["work_division"])
    if not names:
        positions = _POSITIONS.get(case, {"A": "out.0", "B": "out.1"})
        written = {**written, "work_division": {positions[name]: count for name, count in pins.items()}}
    data = _graph(written, names=names)
    kernels = {kernel.name: kernel for kernel in after("divide-work", read(data)).kernels}
    for name, slices in expected.items():
        assert {dim: _slices(kernels[name], dim) for dim in slices} == slices, name
    assert spyrec.run(spyrec.compile(data), random_arrays(data), RunOptions(check=True, sanitize="all")).is_ok


def test_a_pin_reaches_the_tiles_of_a_loop() -> None:
    loops = [{"dim": ["A"], "tiles": 4, "body": ["y"]}]
    data = _graph(_pinned("y", "neg", "a", pins={"A": 4, "B": 2}), names=True, loops=loops)
    (kernel,) = after("divide-work", read(data)).kernels
    assert (kernel.extents, kernel.division) == ((16, 128), (4, 2))


def test_what_is_not_pinned_stays_with_the_planner() -> None:
    nodes = [_pinned("x", "neg", "a", pins={"out.0": 2}), node("y", "exp", "x")]
    graph = after("divide-work", read(graph_data([tensor("a", 64, 128)], nodes, ["x", "y"])))
    assert [kernel.pinned for kernel in graph.kernels if kernel.reason is None] == [(2, 1), ()]


_REFUSED: dict[str, tuple[JsonObject, str, str]] = {
    "no whole sticks": (
        _pinned("y", "neg", "a", pins={"B": 4}),
        "",
        "4 slices do not divide the 128 elements of B (2 sticks of 64) evenly",
    ),
    "uneven": (_pinned("y", "neg", "a", pins={"A": 6}), "", "6 slices do not divide the 64 elements of A (64) evenly"),
    "more than the cores": (
        _pinned("y", "matmul", "a", "b", pins={"A": 16, "C": 3}),
        "",
        "48 slices (16 times 3) exceed the 32 cores",
    ),
    "a view": (_pinned("y", "squeeze", "a", pins={"A": 2}), "/A", "moves nothing"),
    "no reduced dim": (_pinned("y", "neg", "a", pins={"reduce.0": 2}), "/reduce.0", "neg folds no axes"),
    "one reduced dim": (
        _pinned("y", "matmul", "a", "b", pins={"reduce.1": 2}),
        "/reduce.1",
        "matmul folds 1 axes of its first operand",
    ),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_a_pin_that_cannot_be_honoured_is_refused_with_the_reason(case: str) -> None:
    written, place, reason = _REFUSED[case]
    nodes = [written] if case != "a view" else [written, node("z", "neg", "y")]
    data = {**_graph(written, names=True), "nodes": nodes, "outputs": [str(nodes[-1]["name"])]}
    with pytest.raises(SpyrecError) as caught:
        after("divide-work", read(data))
    (found,) = caught.value.diagnostics
    assert found.code == "SPY0412"
    assert reason in found.message
    assert found.location is not None
    assert found.location.pointer == f"/nodes/0/work_division{place}"
    assert found.hint


def test_a_pin_that_breaks_the_span_limit_is_refused() -> None:
    options = PipelineOptions(target=Target(span_limit_bytes=1 << 13))
    with pytest.raises(SpyrecError, match="more than 8192 bytes"):
        after("divide-work", read(_graph(_pinned("y", "neg", "a", pins={"A": 1}), names=True)), options)


def test_copies_that_pad_an_operand_of_the_node_divide_as_they_like() -> None:
    written = _pinned("y", "matmul", "a", "b", pins={"out.1": 2})
    data = graph_data([tensor("a", 64, 100), tensor("b", 100, 128)], [written], ["y"])
    graph = after("divide-work", read(data))
    assert {kernel.reason is not None: kernel.pinned for kernel in graph.kernels} == {True: (), False: (1, 2, 1)}
