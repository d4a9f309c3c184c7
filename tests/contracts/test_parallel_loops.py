"""The parallel loops of programs: what a loop promises holds, standard graphs have theirs, impostors have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
import pytest

from spyrec.contracts.program_loops import ProgramLoop, ProgramLoops, program_loops
from spyrec.contracts.unit_dims import unit_loops
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.passes.device_graph import device_graph
from tests.support.graphs import JsonObject, after, graph_data, node, read, scheduled, tensor
from tests.support.parallel_loops import broken_promise, graph_axes, tiled_like_whole
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph


def promises_broken(data: JsonObject, seed: int) -> list[str]:
    graph, device = scheduled(data), device_graph(read(data))
    broken = (broken_promise(graph, device, *item, seed) for item in enumerate(program_loops(graph)))
    return [fact for fact in broken if fact is not None]


@pytest.mark.parametrize("decade", range(10))
def test_elements_along_a_loop_of_a_random_graph_are_computed_by_themselves(decade: int) -> None:
    for seed in range(10 * decade, 10 * decade + 10):
        assert promises_broken(random_graph(seed, steps=4 + seed % 5)[0], seed) == [], seed


@pytest.mark.parametrize("decade", range(4))
def test_loops_inside_of_a_program_change_nothing_of_that(decade: int) -> None:
    for seed in range(10 * decade, 10 * decade + 10):
        assert promises_broken(looped_graph(seed)[0], seed) == [], seed


@pytest.mark.parametrize(
    ("result", "fact"),
    [
        (node("y", "softmax", "x", dim=1), "neighbours"),
        (node("y", "add", "x", "c"), "order"),
    ],
)
def test_the_oracle_sees_a_loop_that_is_none(result: JsonObject, fact: str) -> None:
    numbers = np.arange(64).reshape(1, 64) % 7
    constants = [{"name": "c", "shape": [1, 64], "dtype": "float16", "value": numbers.tolist()}]
    data = graph_data([tensor("x", 128, 64)], [result], ["y"], constants=constants)
    graph = scheduled(data)
    claim = ProgramLoops((ProgramLoop("x.1", 64, {"y": 1, "x": 1}, 64),), False, True, frozenset("y"), frozenset())
    assert fact in str(broken_promise(graph, device_graph(read(data)), 0, claim, 0))


class Sizes:
    """Extents by letter: the tile's, or a multiple along some."""

    def __init__(self, **times: int) -> None:
        self._times = times

    def __call__(self, letter: str) -> int:
        extents = {"B": 2, "H": 3, "S": 64, "T": 128, "D": 64, "M": 128, "N": 64, "K": 96}
        return extents[letter] * self._times.get(letter, 1)

    def shape(self, letters: str) -> list[int]:
        return [self(letter) for letter in letters]


def _graph(sizes: Sizes, inputs: Mapping[str, str], nodes: list[JsonObject], *outputs: str) -> JsonObject:
    tensors = [{"name": name, "shape": list(letters), "dtype": "float16"} for name, letters in inputs.items()]
    dims = {letter: sizes(letter) for letter in sorted({letter for letters in inputs.values() for letter in letters})}
    return graph_data(cast("list[JsonObject]", tensors), nodes, list(outputs) or [str(nodes[-1]["name"])], dims=dims)


def _pointwise(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "MN", "b": "MN"}, [node("c", "add", "a", "b"), node("d", "gelu", "c")])


def _broadcast(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "MN", "b": "N", "c": "BMN"}, [node("d", "mul", "a", "b"), node("e", "add", "d", "c")])


def _softmax(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "BMN"}, [node("c", "softmax", "a", dim=2)])


def _softmax_of_columns(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "MN"}, [node("c", "softmax", "a", dim=0)])


def _layer_norm(sizes: Sizes) -> JsonObject:
    nodes = [node("c", "layer_norm", "a", "w", "b", normalized_shape=[sizes("N")])]
    return _graph(sizes, {"a": "BMN", "w": "N", "b": "N"}, nodes)


def _rms_norm(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "BMN", "w": "N"}, [node("c", "rms_norm", "a", "w", normalized_shape=[sizes("N")])])


def _matmul(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "MK", "b": "KN"}, [node("c", "matmul", "a", "b")])


def _batched_matmul(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "BMK", "b": "BKN"}, [node("c", "matmul", "a", "b")])


def _linear(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"a": "BMK", "w": "NK", "b": "N"}, [node("c", "linear", "a", "w", "b")])


def _mlp(sizes: Sizes) -> JsonObject:
    nodes = [
        node("h", "matmul", "x", "u"),
        node("g", "gelu", "h"),
        node("o", "matmul", "g", "w"),
        node("y", "add", "o", "x"),
    ]
    return _graph(sizes, {"x": "MN", "u": "NK", "w": "KN"}, nodes)


def _attention(sizes: Sizes) -> JsonObject:
    inputs = {"q": "BHSD", "k": "BHTD", "v": "BHTD"}
    return _graph(sizes, inputs, [node("o", "scaled_dot_product_attention", "q", "k", "v")])


def _causal_attention(sizes: Sizes) -> JsonObject:
    inputs = {"q": "BHSD", "k": "BHTD", "v": "BHTD"}
    return _graph(sizes, inputs, [node("o", "scaled_dot_product_attention", "q", "k", "v", is_causal=True)])


def _self_attention(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"x": "BHSD"}, [node("o", "scaled_dot_product_attention", "x", "x", "x")])


def _flattened(sizes: Sizes) -> JsonObject:
    nodes = [
        node("f", "reshape", "x", shape=[sizes("B") * sizes("M"), sizes("K")]),
        node("m", "matmul", "f", "w"),
        node("u", "reshape", "m", shape=sizes.shape("BMN")),
        node("y", "add", "u", "r"),
    ]
    return _graph(sizes, {"x": "BMK", "w": "KN", "r": "BMN"}, nodes)


def _transposed(sizes: Sizes) -> JsonObject:
    return _graph(sizes, {"x": "MN", "y": "NM"}, [node("t", "t", "x"), node("z", "add", "t", "y")])


def _decoder_block(sizes: Sizes) -> JsonObject:
    heads = ["B", "S", sizes("H"), 64]
    hidden = 64 * sizes("H")
    split = [
        item
        for name in "qkv"
        for item in (
            node(f"{name}p", "linear", "n", f"w{name}"),
            node(f"{name}s", "reshape", f"{name}p", shape=heads),
            node(f"{name}h", "transpose", f"{name}s", dim0=1, dim1=2),
        )
    ]
    nodes = [
        node("n", "rms_norm", "x", "g", normalized_shape=[hidden]),
        *split,
        node("o", "scaled_dot_product_attention", "qh", "kh", "vh"),
        node("ot", "transpose", "o", dim0=1, dim1=2),
        node("of", "reshape", "ot", shape=["B", "S", hidden]),
        node("op", "linear", "of", "wo"),
        node("r", "add", "op", "x"),
        node("n2", "rms_norm", "r", "g2", normalized_shape=[hidden]),
        node("u", "linear", "n2", "wu"),
        node("a", "silu", "u"),
        node("d", "linear", "a", "wd"),
        node("y", "add", "d", "r"),
    ]
    weights = {name: [hidden, hidden] for name in ("wq", "wk", "wv", "wo")} | {"wu": [256, hidden], "wd": [hidden, 256]}
    inputs: list[JsonObject] = [
        {"name": "x", "shape": ["B", "S", hidden], "dtype": "float16"},
        *(tensor(name, *shape) for name, shape in weights.items()),
        tensor("g", hidden),
        tensor("g2", hidden),
    ]
    return graph_data(inputs, nodes, ["y"], dims={"B": sizes("B"), "S": sizes("S")})


STANDARD: Mapping[Callable[[Sizes], JsonObject], str] = {
    _pointwise: "MN",
    _broadcast: "BMN",
    _softmax: "BM",
    _softmax_of_columns: "N",
    _layer_norm: "BM",
    _rms_norm: "BM",
    _matmul: "MN",
    _batched_matmul: "BMN",
    _linear: "BMN",
    _mlp: "M",
    _attention: "BHS",
    _causal_attention: "BH",
    _self_attention: "BH",
    _flattened: "BMN",
    _transposed: "MN",
    _decoder_block: "B",
}
"""Graphs with dims named by letters, and the dims that are loops of all of their programs."""


@pytest.mark.parametrize("make", STANDARD)
def test_standard_graphs_have_the_loops_that_one_expects(make: Callable[[Sizes], JsonObject]) -> None:
    graph = scheduled(make(Sizes()))
    axes = graph_axes(graph, program_loops(graph))
    expected = set(STANDARD[make])
    assert {name for name in axes if not name.startswith("D")} == expected


@pytest.mark.parametrize("make", STANDARD)
def test_a_graph_run_tile_by_tile_gives_what_it_gives_at_once(make: Callable[[Sizes], JsonObject]) -> None:
    data = make(Sizes())
    graph = scheduled(data)
    axes = graph_axes(graph, program_loops(graph))
    for name in STANDARD[make]:
        assert tiled_like_whole(data, make(Sizes(**{name: 3})), axes, {name: 3}), name
    times = dict.fromkeys(STANDARD[make], 2)
    assert tiled_like_whole(data, make(Sizes(**times)), axes, times)


def test_tensors_between_programs_follow_loops_of_one_name() -> None:
    graph = scheduled(_decoder_block(Sizes()))
    found = program_loops(graph)
    assert len(graph.programs) > 2
    assert all([loop.name for loop in item.loops].count("B") == 1 for item in found)
    between = {name for program in graph.programs for name in program.arguments if name not in graph.inputs}
    followers = {name for item in found for loop in item.loops if loop.name == "B" for name in loop.dims}
    assert {name for name in between if graph.buffers[name].constant is None} <= followers


def names_of(data: JsonObject) -> list[list[str]]:
    return [[loop.name for loop in item.loops] for item in program_loops(scheduled(data))]


def test_unnamed_dims_are_named_after_the_first_tensor_that_has_them() -> None:
    data = graph_data([tensor("a", 128, 64), tensor("b", 64, 64)], [node("c", "matmul", "a", "b")], ["c"])
    assert names_of(data) == [["a.0", "b.1"]]


def test_two_loops_of_one_dim_have_two_names() -> None:
    """Scores of a tensor with itself, its copies made by another program: rows and columns are loops of their own."""
    dims: JsonObject = {"dims": {"S": 64}}
    inputs: list[JsonObject] = [{"name": name, "shape": ["S", 64], "dtype": "float16"} for name in "ab"]
    data = graph_data(inputs, [node("t", "t", "b"), node("c", "matmul", "a", "t")], ["c"], **dims)
    (names,) = names_of(data)
    assert len(set(names)) == 2
    assert all(name.startswith("S") for name in names)


def single(x: JsonObject, *nodes: JsonObject, others: tuple[JsonObject, ...] = (), **more: object) -> JsonObject:
    return graph_data([x, *others], nodes, [str(nodes[-1]["name"])], **more)


X = tensor("x", 128, 64)
IMPOSTORS: Mapping[str, tuple[JsonObject, set[int]]] = {
    "a sum's own dim": (single(X, node("y", "sum", "x", dim=[0])), {0}),
    "a mean's own dim": (single(X, node("y", "mean", "x", dim=[1], keepdim=True)), {1}),
    "the dim that a cat joins": (single(X, node("y", "cat", "x", "x", dim=0)), {0}),
    "the dim that a slice cuts": (single(X, node("y", "slice", "x", dim=0, start=64, end=128, step=1)), {0}),
    "a selected dim": (single(X, node("y", "select", "x", dim=0, index=3)), {0}),
    "a repeated dim": (single(X, node("y", "repeat", "x", repeats=[2, 1])), {0}),
    "rows and columns of one square": (
        single(tensor("x", 64, 64), node("t", "t", "x"), node("y", "mul", "t", "x")),
        {0, 1},
    ),
    "the product of a matrix with itself": (single(tensor("x", 64, 64), node("y", "matmul", "x", "x")), {0, 1}),
    "a dim that a reshape cuts elsewhere": (single(X, node("y", "reshape", "x", shape=[64, 128])), {0, 1}),
    "one of two independent outputs": (
        graph_data([X, tensor("z", 64, 64)], [node("y", "abs", "x"), node("w", "abs", "z")], ["y", "w"]),
        {0, 1},
    ),
    "a dim whose extent each run chooses": (
        single(
            {"name": "x", "shape": ["S", 64], "dtype": "float16"},
            node("y", "abs", "x"),
            dims={"S": {"min": 1, "max": 128, "multiple_of": 1}},
        ),
        {0},
    ),
}


@pytest.mark.parametrize("name", IMPOSTORS)
def test_what_looks_like_a_loop_and_is_none_is_none(name: str) -> None:
    data, dims = IMPOSTORS[name]
    assert not {loop.dims.get("x") for item in program_loops(scheduled(data)) for loop in item.loops} & dims


def test_columns_that_end_inside_of_a_stick_are_covered_in_whole_sticks() -> None:
    (found,) = program_loops(scheduled(single(tensor("x", 128, 70), node("y", "abs", "x"))))
    assert [(loop.tile, loop.covered) for loop in found.loops] == [(128, 128), (70, 128)]


@pytest.mark.parametrize(
    "data",
    [
        single(tensor("x", 64, 70), node("t", "t", "x"), node("y", "clone", "t")),
        single(tensor("x", 64, 5), node("y", "to", "x", dtype="float32")),
    ],
    ids=["rows of the result", "sticks of another size"],
)
def test_columns_that_end_inside_of_a_stick_are_no_loop_where_others_have_them(data: JsonObject) -> None:
    (found,) = program_loops(scheduled(data, PipelineOptions(fixed_io_layouts=True)))
    assert [loop.dims["x"] for loop in found.loops] == [0]


def test_a_constant_tells_its_places_apart() -> None:
    numbers = np.arange(128 * 64).reshape(128, 64) % 7
    data = single(
        X,
        node("y", "add", "x", "c"),
        constants=[{"name": "c", "shape": [128, 64], "dtype": "float16", "value": numbers.tolist()}],
    )
    assert names_of(data) == [[]]
    one = np.ones((1, 64)).tolist()
    data = single(
        X, node("y", "add", "x", "c"), constants=[{"name": "c", "shape": [1, 64], "dtype": "float16", "value": one}]
    )
    assert names_of(data) == [["x.0"]]


def only(data: JsonObject) -> ProgramLoops:
    (found,) = program_loops(scheduled(data))
    return found


def test_pointwise_programs_are_known() -> None:
    assert only(_pointwise(Sizes())).is_pointwise
    assert only(single(tensor("x", 3, 70), node("y", "abs", "x"))).is_pointwise
    for make in (_broadcast, _softmax, _transposed, _matmul):
        assert not only(make(Sizes())).is_pointwise
    square = single(tensor("x", 64, 64), node("t", "t", "x"), node("y", "clone", "t"))
    assert not only(square).is_pointwise


def _kept(graph: KernelGraph) -> list[frozenset[str]]:
    return [item.kept for item in program_loops(graph)]


def test_a_tensor_that_two_programs_write_holds_something_when_the_second_begins() -> None:
    pieces = [tensor(f"x{number}", 2, 64) for number in range(9)]
    data = graph_data(pieces, [node("y", "cat", *(f"x{number}" for number in range(9)), dim=0)], ["y"])
    first, *others = _kept(scheduled(data))
    assert not first
    assert all(kept == {"y"} for kept in others)
    assert others


UNITS: Mapping[str, tuple[JsonObject, list[dict[str, int]]]] = {
    "a row": (single(tensor("x", 1, 64), node("y", "abs", "x")), [{"x": 0, "y": 0}]),
    "a row beside a row": (
        single(tensor("x", 1, 64), node("y", "add", "x", "z"), others=(tensor("z", 1, 64),)),
        [{"x": 0, "z": 0, "y": 0}],
    ),
    "a row of a product": (
        single(tensor("x", 1, 64), node("y", "matmul", "x", "w"), others=(tensor("w", 64, 1),)),
        [{"x": 0, "y": 0}, {"w": 1, "y": 1}],
    ),
    "a row that is spread over others": (
        single(tensor("x", 1, 64), node("y", "add", "x", "z"), others=(tensor("z", 3, 64),)),
        [],
    ),
    "a sum's own dim": (single(tensor("x", 1, 64), node("y", "sum", "x", dim=[0])), []),
    "rows that are joined": (
        single(tensor("x", 1, 64), node("y", "cat", "x", "z", dim=0), others=(tensor("z", 1, 64),)),
        [],
    ),
    "scores among themselves": (
        single(tensor("x", 1, 64), node("t", "t", "x"), node("y", "matmul", "x", "t")),
        [],
    ),
    "parts as many as its elements": (
        single(tensor("x", 1, 64), node("part", "unbind", "x") | {"outputs": ["part"]}, node("y", "relu", "part")),
        [],
    ),
    "a reshape that states the size": (single(tensor("x", 1, 64), node("y", "reshape", "x", shape=[1, 64])), []),
}


@pytest.mark.parametrize("name", UNITS)
def test_dims_of_one_element_are_loops_where_the_graph_at_larger_extents_has_them(name: str) -> None:
    data, wanted = UNITS[name]
    graph = scheduled(data)
    units = unit_loops(graph, lambda source: after("form-kernels", source))
    assert [dict(loop) for loop in units.loops] == wanted
    (found,) = program_loops(graph, units)
    assert [dict(loop.dims) for loop in found.loops if loop.tile == 1] == wanted


def test_a_block_compiled_for_a_batch_of_one_has_the_batch_as_a_loop_of_every_program() -> None:
    class One(Sizes):
        def __call__(self, letter: str) -> int:
            return 1 if letter == "B" else super().__call__(letter)

    graph, two = scheduled(_decoder_block(One())), scheduled(_decoder_block(Sizes()))
    units = unit_loops(graph, lambda source: after("form-kernels", source))
    found = [[loop.name for loop in item.loops] for item in program_loops(graph, units)]
    assert found == [[loop.name for loop in item.loops] for item in program_loops(two)]
