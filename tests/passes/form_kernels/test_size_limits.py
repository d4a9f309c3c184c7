"""What walks over sizes walks over few of them, and what no plan can hold is refused before any is made."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.passes.planning.divisions import divisors
from spyrec.passes.planning.kernel_space import Side
from spyrec.passes.planning.overlap import Box, union_sticks
from tests.support.cpu_limit import cpu_seconds
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, only_diagnostic, random_arrays, tensor
from tests.support.planned_runs import small_target

_SECONDS = 5


def _refused(data: JsonObject, folder: Path) -> tuple[str, str | None, int | None]:
    path = folder / "graph.json"
    path.write_text(json.dumps(data, indent=1))
    with cpu_seconds(_SECONDS), pytest.raises(SpyrecError) as caught:
        spyrec.compile(path)
    found = only_diagnostic(caught.value)
    place = None if found.location is None else found.location.resolved()
    return found.code, None if place is None else place.pointer, None if place is None else place.line


@pytest.mark.parametrize("extents", [(10**12,), (2**40 + 15,), (10**18,), (10**6, 10**6)])
def test_an_input_that_no_segment_holds_is_refused_at_once(extents: tuple[int, ...], tmp_path: Path) -> None:
    data = graph_data([tensor("x", *extents)], [node("y", "relu", "x")], ["y"])
    code, pointer, line = _refused(data, tmp_path)
    assert (code, pointer) == ("SPY0401", "/inputs/0")
    assert line is not None


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ([node("y", "full", size=[10**18], fill_value=1.0)], "SPY0401"),
        ([node("f", "full", size=[10**18], fill_value=1.0), node("y", "add", "x", "f")], "SPY0401"),
        ([node("y", "expand", "x", size=[10**15])], "SPY0401"),
        ([node("y", "repeat", "x", repeats=[10**15])], "SPY0401"),
        ([node("f", "expand", "x", size=[10**15]), node("e", "exp", "f"), node("y", "sum", "e")], "SPY0441"),
        ([node("f", "expand", "x", size=[10**15]), node("y", "sum", "f")], "SPY0442"),
    ],
    ids=["full", "read", "expand", "repeat", "intermediate", "walk"],
)
def test_what_a_node_makes_too_large_is_refused_at_the_node(nodes: list[JsonObject], code: str, tmp_path: Path) -> None:
    found, pointer, line = _refused(graph_data([tensor("x", 1)], nodes, ["y"]), tmp_path)
    assert (found, line is not None) == (code, True)
    assert pointer is not None
    assert pointer.startswith("/nodes/")


def test_intermediates_of_a_decomposition_that_cannot_be_counted_are_refused(tmp_path: Path) -> None:
    attention = node("y", "scaled_dot_product_attention", "x", "x", "x")
    found = _refused(graph_data([tensor("x", 1 << 32, 1)], [attention], ["y"]), tmp_path)
    assert found[:2] == ("SPY0441", "/nodes/0")


@pytest.mark.parametrize("extent", [SEGMENT_BYTES // 2, SEGMENT_BYTES // 2 - 1, 4_000_000_007])
def test_what_a_segment_just_holds_is_compiled(extent: int) -> None:
    with cpu_seconds(_SECONDS):
        bundle = spyrec.compile(graph_data([tensor("x", extent)], [node("y", "relu", "x")], ["y"]))
    for argument in bundle.manifest.arguments:
        assert extent <= math.prod(argument.device_size) <= SEGMENT_BYTES // 2


@given(st.integers(0, 3000))
def test_divisors_are_those_that_divide(number: int) -> None:
    assert list(divisors(number)) == [count for count in range(1, number + 1) if number % count == 0]


@pytest.mark.parametrize("number", [2**40 - 87, 1048573 * 1048571, 2**40])
def test_divisors_of_the_largest_extents_are_found_soon(number: int) -> None:
    with cpu_seconds(_SECONDS):
        found = divisors(number)
    assert found[-1] == number
    assert all(one * other == number for one, other in zip(found, reversed(found)))


@st.composite
def _boxes(draw: st.DrawFn) -> list[Box]:
    """Boxes in one buffer of 36 or 48 sticks, cut in one way or in several."""
    size = draw(st.sampled_from([36, 48]))
    ways = {36: [(36,), (6, 6), (4, 9), (2, 18), (3, 3, 4), (1, 36)], 48: [(48,), (6, 8), (4, 12), (2, 4, 6), (48, 1)]}
    common = draw(st.sampled_from(ways[size]))
    boxes: list[Box] = []
    for _ in range(draw(st.integers(1, 4))):
        sides: list[Side] = []
        for extent in draw(st.sampled_from([common, common, draw(st.sampled_from(ways[size]))])):
            first = draw(st.integers(0, extent - 1))
            sides.append(Side(extent, first, draw(st.integers(1, extent - first)), None))
        boxes.append(tuple(sides))
    return boxes


@examples(200)
@given(boxes=_boxes())
def test_the_union_of_boxes_is_that_of_their_sticks(boxes: list[Box]) -> None:
    touched: set[int] = set()
    for box in boxes:
        grid = np.zeros((), np.int64)
        for side in box:
            grid = grid[..., None] * side.extent + np.arange(side.first, side.first + side.count)
        touched.update(grid.reshape(-1).tolist())
    assert union_sticks(boxes) == len(touched)


@pytest.mark.parametrize("rows", [1 << 20, 1 << 26])
def test_windows_of_a_large_buffer_are_compared_as_boxes(rows: int) -> None:
    cut = [node(name, "slice", "x", dim=0, start=start, end=rows - 1 + start) for name, start in (("a", 0), ("b", 1))]
    with cpu_seconds(_SECONDS):
        bundle = spyrec.compile(graph_data([tensor("x", rows, 64)], [*cut, node("y", "add", "a", "b")], ["y"]))
    # sums read both windows where they are: nothing is copied
    assert {item.op_func_name for program in bundle.programs for item in program.superdscs.values()} == {"add"}


@pytest.mark.parametrize("extent", [256, 8192])
def test_rounds_in_which_windows_move_apart_are_not_walked_one_by_one(extent: int) -> None:
    data = graph_data(
        [{"name": "x", "shape": ["A", "B", 64], "dtype": "float16"}],
        [node("t", "transpose", "x", dim0=0, dim1=1), node("v", "add", "x", "t"), node("y", "mul", "v", "t")],
        ["y"],
        dims={"A": extent, "B": extent},
        loops=[{"dim": "A", "tile_size": 1, "body": [{"dim": "B", "tile_size": 1, "body": ["v", "y"]}]}],
    )
    with cpu_seconds(_SECONDS):
        bundle = spyrec.compile(data)
    figures = bundle.manifest.figures
    assert figures is not None
    # the sum reads two sticks in every round, one on the diagonal, and the product one: the sum itself stays in LX
    rounds = extent * extent
    exact = 128 * (3 * rounds - extent)
    # too many rounds to compare the windows in each: the figure is what they read where they never meet
    assert figures.hbm_read_bytes == (exact if extent == 256 else 128 * 3 * rounds)


@pytest.mark.parametrize("usable_sticks", [1, 4, 16])
def test_a_number_written_out_before_a_loop_is_the_same_in_every_round(usable_sticks: int) -> None:
    nodes = [
        node("a", "full", size=[1777, 128], fill_value=0.5),
        node("t", "transpose", "a", dim0=0, dim1=1),
        node("y", "sum", "t", dim=[0]),
        node("z", "add", "y", "x"),
        node("l", "layer_norm", "a", normalized_shape=[128]),
    ]
    data = graph_data([tensor("x", 1777)], nodes, ["z", "l"])
    bundle = spyrec.compile(data, CompileOptions(target=small_target(usable_sticks)))
    assert spyrec.run(bundle, random_arrays(data), RunOptions(check=True, sanitize="all")).is_ok
