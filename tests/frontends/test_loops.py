"""Loops of the builder: the forms of the coarse-tiling design, and what each wrong loop is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from spyrec import Diagnostic, Graph, GraphBuilder, SpyrecError
from spyrec.frontends.dim import Dim
from spyrec.frontends.loop_groups import LoopForm
from spyrec.frontends.value import Value
from spyrec.ir.graph import LoopRequest
from spyrec.ir.reader import read_graph_data
from spyrec.ir.writer import graph_to_json

Json = Any


class Small:
    """y = a + b and z = y * c over A = 1024 and B = 4096, as in the coarse-tiling design."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("add_mul")
        self.A, self.B = self.builder.dim("A", 1024), self.builder.dim("B", 4096)
        self.a, self.b, self.c = (self.builder.input(name, (self.A, self.B)) for name in "abc")

    def body(self) -> Value:
        y = self.builder.add(self.a, self.b, name="y")
        return self.builder.mul(y, self.c, name="z")

    def loops(self) -> Json:
        """Return the loops as JSON, which read back as the same loops."""
        self.builder.output(self.builder.op("neg", self.a, name="other"))
        graph = self.builder.build()
        assert read_graph_data(graph_to_json(graph)) == graph
        return self.builder.to_json().get("loops")


def level(dim: str | list[str], body: Sequence[Json], **count: int) -> Json:
    return {"dim": dim, **count, "body": list(body)}


def test_flat_group() -> None:
    small = Small()
    with small.builder.loop(A=2):
        small.body()
    assert small.loops() == [level("A", ["y", "z"], tiles=2)]


def test_several_dims_at_one_level() -> None:
    small = Small()
    with small.builder.loop(A=2, B=2):
        small.body()
    assert small.loops() == [level(["A", "B"], ["y", "z"], tiles=2)]


def test_nested_groups() -> None:
    small = Small()
    with small.builder.loop(A=2), small.builder.loop(B=4):
        small.body()
    assert small.loops() == [level("A", [level("B", ["y", "z"], tiles=4)], tiles=2)]


def test_different_numbers_at_one_level_are_a_nest_with_the_first_dim_outermost() -> None:
    small = Small()
    with small.builder.loop(A=2, B=4):
        small.body()
    assert small.loops() == [level("A", [level("B", ["y", "z"], tiles=4)], tiles=2)]
    mixed = Small()
    with mixed.builder.loop(B=4, tile_size={"A": 64}):
        mixed.body()
    assert mixed.loops() == [level("B", [level("A", ["y", "z"], tile_size=64)], tiles=4)]


def test_dims_may_be_given_as_such_and_sizes_in_elements() -> None:
    small = Small()
    with small.builder.loop({small.A: 2}), small.builder.loop(tile_size={small.B: 1024}):
        small.body()
    assert small.loops() == [level("A", [level("B", ["y", "z"], tile_size=1024)], tiles=2)]


def test_a_shared_outer_loop_keeps_its_ops_and_inner_loops_in_the_order_of_the_calls() -> None:
    small = Small()
    builder = small.builder
    with builder.loop(A=2):
        y = builder.add(small.a, small.b, name="y")
        with builder.loop(B=4):
            z = builder.mul(y, small.c, name="z")
        w = builder.neg(z, name="w")
        with builder.loop(B=2):
            builder.exp(w, name="v")
    after = builder.abs(small.a, name="after")
    with builder.loop(B=8):
        builder.neg(after, name="last")
    first = [ "y", level("B", ["z"], tiles=4), "w", level("B", ["v"], tiles=2)]  # fmt: skip
    assert small.loops() == [level("A", first, tiles=2), level("B", ["last"], tiles=8)]


def test_a_symbolic_dim_is_tiled_by_size() -> None:
    builder = GraphBuilder()
    rows = builder.dim("S", max=4096, multiple_of=64)
    x = builder.input("x", (rows, 128))
    assert x.shape == (4096, 128)
    with builder.loop(tile_size={rows: 64}):
        builder.output(builder.neg(x))
    (loop,) = builder.build().loops
    assert (loop.dims, loop.tiles, loop.tile_size) == (("S",), None, 64)


GROUPS: list[tuple[Callable[[Graph], Sequence[LoopForm]], Json]] = [
    (lambda graph: [(["y", "z"], 2)], [level("A", ["y", "z"], tiles=2)]),
    (lambda graph: [(["y", "z"], 2, [0, 1])], [level(["A", "B"], ["y", "z"], tiles=2)]),
    (lambda graph: [(["y", "z"], 2, ["B"])], [level("B", ["y", "z"], tiles=2)]),
    (
        lambda graph: [(list(graph.nodes[:2]), [(2, [0]), (4, [1])])],
        [level("A", [level("B", ["y", "z"], tiles=4)], tiles=2)],
    ),
    (
        lambda graph: [(["y"], [(2, ["A"]), (4, ["A", "B"])])],
        [level("A", [level(["A", "B"], ["y"], tiles=4)], tiles=2)],
    ),
    (lambda graph: [level("A", [level("B", ["y"], tiles=4), "z"], tile_size=64)], None),
    (lambda graph: [LoopRequest(("B",), 4, None, ("y", "z"))], [level("B", ["y", "z"], tiles=4)]),
    (lambda graph: [], None),
]


@pytest.mark.parametrize(("function", "wanted"), GROUPS)
def test_a_function_computes_the_loops(function: Callable[[Graph], Sequence[LoopForm]], wanted: Json) -> None:
    small = Small()
    small.body()
    small.builder.loops_from(function)
    found = small.loops()
    assert found == (wanted if wanted is not None else list(function(small.builder.build())) or None)


def test_a_function_sees_nodes_dims_and_the_loops_written_and_what_it_returns_holds() -> None:
    small = Small()
    with small.builder.loop(A=2):
        z = small.body()
    seen: list[Graph] = []

    def wide(graph: Graph) -> Sequence[LoopForm]:
        seen.append(graph)
        names = [node.name for node in graph.nodes if "B" in graph.values[node.outputs[0]].dims and node.op == "mul"]
        return [*graph.loops, (names, 4, ["B"])] if not graph.loops else [(names, 4, ["B"]), ([z], 1)][:1]

    small.builder.loops_from(wide)
    assert small.loops() == [level("B", ["z"], tiles=4)]
    assert seen[0].loops[0].body == ("y", "z")


def test_values_stand_for_the_nodes_that_make_them() -> None:
    small = Small()
    z = small.body()
    small.builder.loops_from(lambda graph: [([z], 4, [small.B])])
    assert small.loops() == [level("B", ["z"], tiles=4)]


# --- mistakes ---


def refused(work: Callable[[Small], object]) -> Diagnostic:
    with pytest.raises(SpyrecError) as caught:
        work(Small())
    return caught.value.diagnostics[0]


def entering(tiles: Mapping[str, int] | None = None, **counts: Json) -> Callable[[Small], object]:
    def work(small: Small) -> None:
        with small.builder.loop(tiles or {}, **counts):
            raise AssertionError("the loop is refused before its body runs")

    return work


def function_returning(found: Json) -> Callable[[Small], object]:
    def work(small: Small) -> None:
        small.body()
        small.builder.loops_from(lambda graph: found)
        small.loops()

    return work


def loop_without_its_dim(small: Small) -> None:
    small.builder.dim("C", 64)
    with small.builder.loop(C=2):
        small.body()


def empty_loop(small: Small) -> None:
    with small.builder.loop(A=2):
        pass


def loop_over_two_axes_of_one_value(small: Small) -> None:
    square = small.builder.input("square", (small.A, small.A))
    with small.builder.loop(A=2):
        small.builder.neg(square)


def function_over_a_dim_that_no_op_has(small: Small) -> None:
    small.builder.dim("C", 64)
    function_returning([level("C", ["y"], tiles=2)])(small)


def function_over_a_nameless_axis(small: Small) -> None:
    small.builder.exp(small.builder.input("plain", (64, 64)), name="plain_exp")
    function_returning([(["plain_exp"], 2)])(small)


def function_with_an_input(small: Small) -> None:
    function_returning([([small.a], 2)])(small)


@pytest.mark.parametrize("group", [(["yy"], 2), (["yy"], 2, ["A"]), (["yy"], [(2, ["A"]), (4, ["B"])])])
def test_an_unknown_node_in_a_group_is_named_with_what_may_be_meant(group: Json) -> None:
    found = refused(function_returning([group]))
    assert (found.code, found.hint) == ("SPY0116", 'did you mean "y"?')
    assert found.message == '"yy" in a loop body is no node of the graph'


MISTAKES: list[tuple[Callable[[Small], object], str, str]] = [
    (entering(a=2), "SPY0134", 'loop dim "a" is not declared'),
    (entering(), "SPY0134", "names no dim"),
    (entering(A=0), "SPY0124", "a loop has 1 tile or more, of 1 element or more, not 0"),
    (entering(A=2.5), "SPY0110", "2.5 is not an integer"),
    (entering(A="x"), "SPY0110", '"x" is not an integer'),
    (entering(A=True), "SPY0110", "True is not an integer"),
    (entering(A=1025), "SPY0134", "tiles 1025 is more than the 1024 elements of A"),
    (entering(A=1025, B=1025), "SPY0134", "tiles 1025 is more than the 1024 elements of A"),
    (entering(tile_size={"A": 1025}), "SPY0134", "tile_size 1025 is more than the 1024 elements of A"),
    (entering(A=2, tile_size={"A": 4}), "SPY0134", 'dim "A" stands twice'),
    (entering({"A": 2}, A=2), "SPY0134", 'dim "A" stands twice'),
    (loop_without_its_dim, "SPY0134", 'no op in the loop has the dim "C": "y", "z"'),
    (empty_loop, "SPY0134", "the loop over A has no op in it"),
    (loop_over_two_axes_of_one_value, "SPY0134", 'dim "A" names two axes of "square"'),
    (function_returning([level("A", ["y", level("B", [], tiles=2)], tiles=2)]), "SPY0110", '"body" is an empty list'),
    (function_returning(None), "SPY0110", "returned None"),
    (function_returning([3]), "SPY0110", "3 is no loop"),
    (function_returning([("y", 2)]), "SPY0110", "is no loop"),
    (function_returning([(["y"], [3])]), "SPY0110", "3 is no pair"),
    (function_returning([([], 2)]), "SPY0134", "no ops"),
    (function_returning([(["y"], 2, ["C"])]), "SPY0134", 'loop dim "C" is not in "dims"'),
    (function_returning([(["nowhere"], 2, ["A"])]), "SPY0116", '"nowhere" in a loop body is no node'),
    (function_returning([level("A", ["y"], tiles=2), level("B", ["y"], tiles=2)]), "SPY0134", '"y" stands twice'),
    (function_returning([level("A", ["y"], tiles=2, tile_size=3)]), "SPY0134", "both tiles and tile_size"),
    (function_returning([{"dim": "A", "tiles": 2}]), "SPY0112", 'key "body" is missing'),
    (function_returning([(["y"], 2, [7])]), "SPY0134", 'axis 7 of "y" has no name'),
    (function_over_a_dim_that_no_op_has, "SPY0134", 'no op in the loop has the dim "C": "y"'),
    (function_over_a_nameless_axis, "SPY0134", 'axis 0 of "plain_exp" has no name'),
    (function_with_an_input, "SPY0116", '"a" in a loop body is no result of a node'),
]


@pytest.mark.parametrize(("work", "code", "message"), MISTAKES)
def test_a_wrong_loop_is_refused_at_its_line(work: Callable[[Small], object], code: str, message: str) -> None:
    found = refused(work)
    assert found.code == code
    assert message in found.message
    assert found.advice
    assert found.location is not None
    assert found.location.file == __file__
    assert found.location.line


def test_a_symbolic_dim_has_no_number_of_tiles() -> None:
    def work(small: Small) -> None:
        small.builder.dim("S", max=512)
        small.builder.loop(S=2)

    assert 'dim "S" is symbolic' in refused(work).message


def test_loops_are_left_in_the_opposite_order_of_entering_them() -> None:
    small = Small()
    outer, inner = small.builder.loop(A=2), small.builder.loop(B=4)
    outer.__enter__()
    inner.__enter__()
    small.body()
    with pytest.raises(SpyrecError, match=r"SPY0144.*loop over A is around an open loop"):
        outer.__exit__(None, None, None)
    with pytest.raises(SpyrecError, match=r"SPY0144.*loop over B is still open"):
        small.builder.build()
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    with pytest.raises(SpyrecError, match=r"SPY0144.*loop over A is not open"):
        outer.__exit__(None, None, None)
    assert small.loops() == [level("A", [level("B", ["y", "z"], tiles=4)], tiles=2)]


def test_a_loop_that_an_exception_leaves_is_dropped_and_its_ops_stay() -> None:
    small = Small()
    with small.builder.loop(A=2):
        with suppress(KeyError), small.builder.loop(B=4):
            small.body()
            raise KeyError
        small.builder.neg(small.a, name="w")
    with pytest.raises(SpyrecError), small.builder.loop(A=4):
        small.builder.op("add", small.a, "nonsense")
    assert small.loops() == [level("A", ["y", "z", "w"], tiles=2)]


def test_one_scope_may_be_entered_again() -> None:
    small = Small()
    scope = small.builder.loop(A=2)
    with scope:
        y = small.builder.add(small.a, small.b, name="y")
    with scope:
        small.builder.neg(y, name="z")
    assert small.loops() == [level("A", ["y"], tiles=2), level("A", ["z"], tiles=2)]


def test_a_loop_knows_where_it_was_written() -> None:
    small = Small()
    with small.builder.loop(A=2):
        small.body()
    small.builder.output(small.a)
    (loop,) = small.builder.build().loops
    assert str(loop.origin).startswith(f"{__file__}:")
    assert Dim("A", 1024) == small.A
