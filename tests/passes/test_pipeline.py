"""Order, verification and printing of the passes, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import spyrec.passes
from spyrec.diagnostics import SpyrecError
from spyrec.ir.access import Access
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph, Use
from spyrec.ir.text import print_ir
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, PassRecord, check_order, compile_graph, run_pipeline
from spyrec.passes.pipelines import AUTO_TILE, COMPILE, AnyPass, Search
from spyrec.passes.verify_kernels import verify_kernels
from tests.support.graphs import graph_data, node, read, scheduled, tensor


def _small() -> dict[str, object]:
    return graph_data(
        [tensor("a", 64, 130), tensor("b", 130, 64)],
        [node("t", "t", "b"), node("u", "add", "a", "t"), node("y", "sum", "u", dim=[1], keepdim=False)],
        ["y"],
    )


def test_every_facet_has_to_be_there_before_it_is_required() -> None:
    check_order(COMPILE)
    for position, item in enumerate(COMPILE):
        if any(facet in later.requires for facet in item.establishes for later in COMPILE[position + 1 :]):
            with pytest.raises(AssertionError, match="requires"):
                check_order((*COMPILE[:position], *COMPILE[position + 1 :]))
    with pytest.raises(AssertionError, match="requires"):
        check_order(COMPILE[::-1])


def test_the_driver_shows_every_pass_and_stops_where_it_is_told() -> None:
    graph = read(_small())
    seen: list[PassRecord] = []
    for item in COMPILE:
        seen.clear()
        result = run_pipeline(graph, PipelineOptions(), DriverOptions(item.name, seen.append))
        assert [record.name for record in seen] == [each.name for each in COMPILE[: COMPILE.index(item) + 1]]
        assert seen[-1].result == result
        assert isinstance(result, Graph) == (item.name in ("canonicalize", "decompose", "mask-folds"))
        assert print_ir(result)
    assert isinstance(seen[-1].result, KernelGraph)
    assert seen[-1].result.source is graph
    layouts = next(record for record in seen if record.name == "assign-layouts")
    assert any("(optimal)" in line for line in layouts.report)


def test_the_same_graph_gives_the_same_kernels() -> None:
    assert print_ir(scheduled(_small())) == print_ir(scheduled(_small()))


def test_kernels_are_printed_as_loop_nests() -> None:
    data = graph_data(
        [tensor("a", 64, 192), tensor("b", 192, 64)],
        [
            node("s", "slice", "a", dim=1, start=64, end=192, step=1),
            node("r", "reshape", "s", shape=[64, 2, 64]),
            node("t", "t", "b"),
            node("u", "slice", "t", dim=1, start=0, end=128),
            node("v", "reshape", "u", shape=[64, 2, 64]),
            node("y", "add", "r", "v"),
        ],
        ["y"],
    )
    text = print_ir(scheduled(data), ("layout",))
    assert text == (
        "kernels small has layout {\n"
        "  input a: float16[64,192] layout [3, 64, 64] of [h1/64, h0, h1]\n"
        "  input b: float16[192,64] layout [3, 64, 64] of [h0/64, h1, h0]\n"
        "  output y: float16[64,2,64] layout [2, 1, 64, 64] of [h1, h2/64, h0, h2] @y\n"
        "  for [i0<64, i1<2, i2<64] y[i0, i1, i2] = "
        "add(a[i0, 64*i1 + i2 + 64], b[64*i1 + i2, i0]) on 32x1x1 cores @y\n"
        "  program of kernels 0..0(a, b, y) pool 0 bytes {\n"
        "  }\n"
        "  outputs y = y\n"
        "  place a = [i0<64, i1<192] a[i0, i1]\n"
        "  place b = [i0<192, i1<64] b[i0, i1]\n"
        "  place s = [i0<64, i1<128] a[i0, i1 + 64]\n"
        "  place r = [i0<64, i1<2, i2<64] a[i0, 64*i1 + i2 + 64]\n"
        "  place t = [i0<64, i1<192] b[i1, i0]\n"
        "  place u = [i0<64, i1<128] b[i1, i0]\n"
        "  place v = [i0<64, i1<2, i2<64] b[64*i1 + i2, i0]\n"
        "  place y = [i0<64, i1<2, i2<64] y[i0, i1, i2]\n"
        "  cost 0 at least 0\n"
        '  planner "best-fit" "1"\n'
        "  source graph small {\n"
        "    input a: float16[64,192]\n"
        "    input b: float16[192,64]\n"
        "    s: float16[64,128] = slice(a, dim=1, start=64, end=192)\n"
        "    r: float16[64,2,64] = reshape(s, shape=[64, 2, 64])\n"
        "    t: float16[64,192] = t(b)\n"
        "    u: float16[64,128] = slice(t, dim=1, start=0, end=128)\n"
        "    v: float16[64,2,64] = reshape(u, shape=[64, 2, 64])\n"
        "    y: float16[64,2,64] = add(r, v)\n"
        "    return y\n"
        "  }\n"
        "}\n"
    )


def test_a_reshape_of_a_merged_dim_prints_its_digits() -> None:
    data = graph_data([tensor("a", 4, 64)], [node("r", "reshape", "a", shape=[256]), node("y", "neg", "r")], ["y"])
    assert "y[i0] = neg(a[i0//64, i0%64])" in print_ir(scheduled(data))


_Breaker = Callable[[KernelGraph], KernelGraph]


def _with_first(graph: KernelGraph, **changes: object) -> KernelGraph:
    first = replace(graph.kernels[0], **changes)  # pyright: ignore[reportArgumentType] -- wrong on purpose
    return graph.with_kernels((first, *graph.kernels[1:]))


_BREAKERS: dict[str, tuple[_Breaker, str]] = {
    "a buffer nobody has": (
        lambda graph: _with_first(graph, output=Use("nowhere", graph.kernels[0].output.access)),
        "is no buffer",
    ),
    "extents that differ": (lambda graph: _with_first(graph, extents=(3,)), "iterates"),
    "a read before the write": (lambda graph: graph.with_kernels(graph.kernels[::-1]), "before a kernel has written"),
    "an output nobody writes": (lambda graph: graph.with_kernels(graph.kernels[:1]), "never written"),
    "a division of other variables": (lambda graph: _with_first(graph, division=(1, 1, 1, 1)), "is divided along 4"),
    "an access that leaves the buffer": (
        lambda graph: _with_first(
            graph, output=Use(graph.kernels[0].output.buffer, Access.identity(graph.kernels[0].extents[::-1]))
        ),
        "iterates",
    ),
}


@pytest.mark.parametrize("name", _BREAKERS)
def test_the_verifier_sees(name: str) -> None:
    breaker, text = _BREAKERS[name]
    graph = scheduled(_small())
    assert verify_kernels(graph) == []
    broken = breaker(graph)
    problems = verify_kernels(broken)
    assert any(text in problem for problem in problems), problems
    assert verify_kernels(broken, graph) == problems, "what a pass changed is looked at"


def _refusals(data: dict[str, object]) -> list[tuple[str, str | None]]:
    with pytest.raises(SpyrecError) as caught:
        compile_graph(read(data), PipelineOptions())
    assert all(item.hint for item in caught.value.diagnostics)
    return [(item.code, item.location and item.location.pointer) for item in caught.value.diagnostics]


def test_pins_that_cannot_be_honoured_are_refused_with_their_places_and_all_at_once() -> None:
    data = graph_data(
        [tensor("a", 64, 128)],
        [{**node(name, "neg", "a"), "work_division": {"out.0": 3}} for name in "yz"],
        ["y", "z"],
    )
    assert _refusals(data) == [
        ("SPY0412", "/nodes/0/work_division"),
        ("SPY0412", "/nodes/1/work_division"),
    ]


def test_a_pass_that_does_not_exist_is_refused_with_the_names_of_those_that_do() -> None:
    with pytest.raises(SpyrecError) as caught:
        run_pipeline(read(_small()), PipelineOptions(), DriverOptions(stop_after="fuse"))
    (found,) = caught.value.diagnostics
    assert found.code == "SPY0413"
    assert found.hint
    assert all(item.name in found.hint for item in COMPILE)


def test_more_dims_than_a_superdsc_has_labels_for_are_refused() -> None:
    for rank in (8, 9, 10):
        data = graph_data(
            [tensor("a", 1 << rank), tensor("b", 1 << rank)],
            [
                node("r", "reshape", "a", shape=[2] * rank),
                node("p", "permute", "r", dims=list(range(rank))[::-1]),
                node("s", "reshape", "b", shape=[2] * rank),
                node("u", "add", "p", "s"),
                node("y", "reshape", "u", shape=[1 << rank]),
            ],
            ["y"],
        )
        assert _refusals(data) == [("SPY0350", "/nodes/3")]


def test_a_tensor_of_seven_dims_does_not_cross_the_border() -> None:
    seven = (2,) * 7
    data = graph_data([tensor("a", *seven)], [node("y", "reshape", "a", shape=[128])], ["y"])
    assert _refusals(data) == [("SPY0303", "/inputs/0")]
    data = graph_data([tensor("a", 128)], [node("y", "reshape", "a", shape=list(seven))], ["y"])
    assert _refusals(data) == [("SPY0303", "/nodes/0")]


@pytest.mark.parametrize("item", [*COMPILE, AUTO_TILE], ids=lambda item: item.name)
def test_a_pass_stands_in_the_file_or_folder_that_has_its_name(item: AnyPass | Search) -> None:
    assert item.run.__module__ == "spyrec.passes." + item.name.replace("-", "_")


def test_every_folder_is_that_of_a_pass_or_serves_several() -> None:
    folders = {path.parent.name for path in Path(spyrec.passes.__file__).parent.glob("*/__init__.py")}
    assert folders - {item.name.replace("-", "_") for item in COMPILE} == {"planning", "solvers"}
