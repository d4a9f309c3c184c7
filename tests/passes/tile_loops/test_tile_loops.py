"""tile-loops: what a graph's loops ask for, kernel by kernel, against loop-free meaning; and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.front import emit
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, run_pipeline
from spyrec.passes.pipelines import COMPILE
from tests.support.examples import examples
from tests.support.graphs import Arrays, JsonObject, after, graph_data, node, read, scheduled, tensor
from tests.support.kernel_interpreter import interpret
from tests.support.planned_runs import planned, sums_in_tiles
from tests.support.random_loops import looped_graph

_SEEDS = st.integers(0, 1 << 40)


def _device_graph(data: JsonObject) -> Graph:
    found = run_pipeline(read(data), PipelineOptions(), DriverOptions(stop_after="decompose"))
    assert isinstance(found, Graph)
    return found


def _without_loops(data: JsonObject) -> JsonObject:
    return {key: value for key, value in data.items() if key != "loops"}


@examples(25)
@given(_SEEDS)
def test_tiled_kernels_mean_what_untiled_ones_do(seed: int) -> None:
    """In float64, element by element, before and after layouts are chosen."""
    data, arrays = looped_graph(seed)
    wanted = interpret(after("form-kernels", read(data)), _device_graph(data), arrays)
    for name in ("tile-loops", "divide-work"):
        found = interpret(after(name, read(data)), _device_graph(data), arrays)
        for output, values in wanted.items():
            numbers = (np.asarray(item, np.float64) for item in (found[output], values))
            np.testing.assert_allclose(*numbers, rtol=1e-9, atol=1e-9, err_msg=f"{output} after {name}")


def _first_with(seed: int, *, loops: bool) -> tuple[JsonObject, Arrays]:
    """Return the first graph from a seed on of whose requested loops some are left, or none.

    More than half of the random requests come to nothing: a kernel stands in the loops whose dims it has, and a loop
    of one tile is none.  Forming kernels and tiling them says so in a tenth of the time of planning them.
    """
    for number in itertools.count(seed):
        data, arrays = looped_graph(number)
        if bool(after("tile-loops", read(data), PipelineOptions(auto_tile=False)).loops) is loops:
            return data, arrays
    raise AssertionError("seeds do not end")


@pytest.mark.parametrize("part", range(10))
@examples(9)
@given(seed=st.integers(0, 1 << 36))
def test_a_tiled_program_equals_the_untiled_one(part: int, seed: int) -> None:
    """Bit for bit where no sum is reordered, else within what ``--check`` allows; kept loops equal unrolled ones."""
    data, arrays = _first_with(seed * 1000 + part * 100, loops=True)
    graph = planned(data)
    assert graph.loops
    sums = sums_in_tiles(graph)
    tiled = spyrec.run(emit(graph, CompileOptions()), arrays, RunOptions(check=sums))
    assert tiled.is_ok
    if not sums:
        plain = spyrec.run(spyrec.compile(_without_loops(data)), arrays).outputs
        for name, values in plain.items():
            assert tiled.outputs[name].tobytes() == values.tobytes(), name
    if seed % 4 == 0:
        unrolled = spyrec.run(emit(graph, CompileOptions(loops="unroll")), arrays).outputs
        for name, values in unrolled.items():
            assert tiled.outputs[name].tobytes() == values.tobytes(), name


@examples(30)
@given(_SEEDS)
def test_a_program_whose_requested_loops_come_to_nothing_is_right(seed: int) -> None:
    data, arrays = _first_with(seed, loops=False)
    graph = planned(data)
    assert not graph.loops
    assert spyrec.run(emit(graph, CompileOptions()), arrays, RunOptions(check=True)).is_ok


@examples(8)
@given(_SEEDS)
def test_sanitizers_are_silent_on_tiled_programs_whatever_cores_and_layouts(seed: int) -> None:
    data, arrays = looped_graph(seed)
    for options in (CompileOptions(), CompileOptions(cores=5, fixed_io_layouts=True)):
        result = spyrec.run(spyrec.compile(data, options), arrays, RunOptions(numerics="f32", sanitize="all"))
        assert result.sanitizer == (), seed


def test_a_graph_without_loops_passes_through_unchanged() -> None:
    data = graph_data([tensor("a", 64, 128)], [node("y", "neg", "a")], ["y"])
    assert after("tile-loops", read(data)) == after("form-kernels", read(data))


def _add_mul(loops: object) -> JsonObject:
    data = graph_data(
        [{"name": name, "shape": ["A", "B"], "dtype": "float16"} for name in "abc"],
        [node("y", "add", "a", "b"), node("z", "mul", "y", "c")],
        ["z"],
        dims={"A": 1024, "B": 4096},
    )
    return {**data, "loops": loops}


def _nest(graph: KernelGraph) -> list[tuple[str, tuple[str, ...]]]:
    return [(kernel.name, tuple(str(graph.loops[loop]) for loop in kernel.loops)) for kernel in graph.kernels]


def test_nested_loops_hold_the_operations_together_and_the_intermediate_is_one_tile() -> None:
    graph = scheduled(_add_mul([{"dim": "A", "tiles": 2, "body": [{"dim": "B", "tiles": 4, "body": ["y", "z"]}]}]))
    loops = ("2 tiles of 512 along A", "4 tiles of 1024 along B")
    assert _nest(graph) == [("y", loops), ("z", loops)]
    assert graph.buffers["y"].type.shape == (512, 1024)
    assert graph.buffers["y"].home == (0, 1)


def test_the_number_of_a_level_over_several_dims_holds_for_each_of_them() -> None:
    graph = scheduled(_add_mul([{"dim": ["A", "B"], "tiles": 2, "body": ["y", "z"]}]))
    assert _nest(graph)[0][1] == ("2 tiles of 512 along A", "2 tiles of 2048 along B")


def test_an_operation_inside_an_outer_loop_only_shares_it_with_an_inner_one() -> None:
    graph = scheduled(_add_mul([{"dim": "A", "tiles": 2, "body": ["y", {"dim": "B", "tiles": 4, "body": ["z"]}]}]))
    assert [len(loops) for _, loops in _nest(graph)] == [1, 2]
    assert graph.kernels[0].loops == graph.kernels[1].loops[:1]


def test_what_does_not_divide_is_peeled_off() -> None:
    graph = scheduled(_add_mul([{"dim": "A", "tile_size": 300, "body": ["y", "z"]}]))
    assert _nest(graph) == [
        ("y", ("3 tiles of 300 along A",)),
        ("z", ("3 tiles of 300 along A",)),
        ("y.1", ()),
        ("z.1", ()),
    ]
    assert graph.kernels[2].extents == (124, 4096)


def test_tiles_of_a_stick_dim_are_whole_sticks() -> None:
    graph = scheduled(_add_mul([{"dim": "B", "tiles": 100, "body": ["y", "z"]}]))
    assert _nest(graph)[0][1] == ("64 tiles of 64 along B",)


def test_a_result_used_inside_and_outside_gets_a_tile_and_the_full_buffer() -> None:
    data = graph_data(
        [{"name": name, "shape": ["A", "B"], "dtype": "float16"} for name in "ab"],
        [node("y", "add", "a", "b"), node("z", "mul", "y", "b"), node("w", "exp", "y"), node("v", "add", "w", "z")],
        ["v"],
        dims={"A": 64, "B": 256},
    )
    graph = scheduled({**data, "loops": [{"dim": "A", "tiles": 4, "body": ["y", "z"]}]})
    assert graph.buffers["y.tile"].type.shape == (16, 256)
    assert graph.buffers["y"].type.shape == (64, 256)
    assert [kernel.name for kernel in graph.kernels if kernel.output.buffer == "y"] == ["y.full"]


def test_an_output_read_outside_of_its_loop_keeps_all_of_its_tiles() -> None:
    """A tile is no stand-in for the whole output, though both may get one layout."""
    data = graph_data(
        [{"name": "x", "shape": ["A", "B"], "dtype": "float32"}],
        [node("y", "neg", "x"), node("z", "add", "x", "y")],
        ["y", "z"],
        dims={"A": 64, "B": 64},
    )
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    bundle = spyrec.compile({**data, "loops": [{"dim": "A", "tile_size": 32, "body": ["y"]}]})
    result = spyrec.run(bundle, {"x": x}, RunOptions(sanitize="all"))
    assert result.sanitizer == ()
    np.testing.assert_array_equal(result.outputs["y"], -x)


def test_a_tile_of_what_a_pin_puts_into_sticks_is_whole_sticks() -> None:
    data = graph_data(
        [{"name": "x", "shape": ["A", "B"], "dtype": "float16", "layout": {"dim_order": [1, 0]}}],
        [node("y", "neg", "x")],
        ["y"],
        dims={"A": 130, "B": 4},
    )
    graph = scheduled({**data, "loops": [{"dim": "A", "tiles": 5, "body": ["y"]}]})
    assert str(graph.loops[0]) == "2 tiles of 64 along A"


def test_loops_in_loops_over_one_dim_are_read_in_no_time() -> None:
    level: object = {"dim": "A", "tiles": 2, "body": ["y"]}
    for _ in range(45):
        level = {"dim": "A", "tiles": 1, "body": [level]}
    data = graph_data(
        [{"name": "x", "shape": ["A", 64], "dtype": "float16"}], [node("y", "neg", "x")], ["y"], dims={"A": 64}
    )
    assert len(scheduled({**data, "loops": [level]}).loops) == 1


def test_a_broadcast_operand_does_not_move() -> None:
    data = graph_data(
        [tensor("b", 256), {"name": "a", "shape": ["A", "B"], "dtype": "float16"}],
        [node("y", "add", "a", "b")],
        ["y"],
        dims={"A": 64, "B": 256},
    )
    (kernel,) = scheduled({**data, "loops": [{"dim": "A", "tiles": 4, "body": ["y"]}]}).kernels
    assert kernel.inputs[0].steps == ((16, 0),)
    assert kernel.inputs[1].steps == ()


def _chain(loops: object) -> JsonObject:
    nodes = [node("p", "neg", "a"), node("q", "exp", "p"), node("r", "add", "q", "p")]
    data = graph_data([{"name": "a", "shape": ["A", 64], "dtype": "float16"}], nodes, ["r"], dims={"A": 64})
    return {**data, "loops": loops}


REFUSED: list[tuple[str, str, JsonObject]] = [
    (
        "SPY0420",
        "/loops/0/body/0",
        _chain([{"dim": "A", "tiles": 4, "body": [{"dim": "A", "tiles": 20, "body": ["p", "q", "r"]}]}]),
    ),
    ("SPY0424", "/nodes/2", _chain([{"dim": "A", "tiles": 4, "body": ["p", "r"]}])),
    ("SPY0134", "/loops/0/tiles", _chain([{"dim": "A", "tiles": 65, "body": ["p"]}])),
    (
        "SPY0134",
        "/loops/0",
        {**_chain([{"dim": "C", "tiles": 2, "body": ["p", "q"]}]), "dims": {"A": 64, "C": 4}},
    ),
    (
        "SPY0421",
        "/nodes/0",
        {
            **graph_data(
                [{"name": name, "shape": ["S", 64], "dtype": "float16"} for name in "qkv"],
                [node("o", "scaled_dot_product_attention", "q", "k", "v")],
                ["o"],
                dims={"S": 128},
            ),
            "loops": [{"dim": "S", "tiles": 2, "body": ["o"]}],
        },
    ),
]


@pytest.mark.parametrize(("code", "place", "data"), REFUSED, ids=[f"{code}{place}" for code, place, _ in REFUSED])
def test_a_request_that_cannot_be_met_is_refused_with_its_place(code: str, place: str, data: JsonObject) -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(data)
    found = caught.value.diagnostics[0]
    assert (found.code, found.location and found.location.pointer) == (code, place)
    assert found.hint


def test_the_pass_stands_between_kernels_and_layouts() -> None:
    names = [item.name for item in COMPILE]
    assert names.index("form-kernels") < names.index("tile-loops") < names.index("assign-layouts")
