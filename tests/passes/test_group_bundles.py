from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, KernelProgram
from spyrec.passes.base import NO_PLANNER, PipelineOptions
from tests.support.examples import examples
from tests.support.graphs import after, graph_data, node, only_diagnostic, read, scheduled, tensor
from tests.support.random_graphs import random_graph

_IN_THE_POOL = PipelineOptions(lx_planner=NO_PLANNER)
"""Intermediates lie in device memory."""


def _used(kernels: Sequence[Kernel]) -> set[str]:
    return {use.buffer for kernel in kernels for use in kernel.uses}


def _is_legal(graph: KernelGraph, first: int, end: int) -> bool:
    """Whether kernels ``first`` to ``end`` may be one program: 6 arguments, or 5 and a pool."""
    inside, outside = graph.kernels[first:end], (*graph.kernels[:first], *graph.kernels[end:])
    used, elsewhere = _used(inside), _used(outside)
    arguments = {name for name in used if name in elsewhere or graph.buffers[name].role is not BufferRole.INTERMEDIATE}
    return len(arguments) <= (6 if arguments == used else 5)


def _fewest(graph: KernelGraph) -> int:
    """Return the fewest programs over every way to cut the kernels."""
    count = len(graph.kernels)
    for cuts in range(count):
        for inner in itertools.combinations(range(1, count), cuts):
            places = (0, *inner, count)
            if all(_is_legal(graph, first, end) for first, end in itertools.pairwise(places)):
                return cuts + 1
    raise AssertionError("a single kernel always fits")


def _assert_program(graph: KernelGraph, program: KernelProgram) -> None:
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    assert len(program.arguments) == len(set(program.arguments))
    assert len(program.arguments) <= (5 if program.pool_bytes else 6)
    assert _used(kernels) == set(program.arguments) | set(program.pool_offsets) | set(program.lx_offsets)
    assert not set(program.arguments) & set(program.pool_offsets)
    outside = _used([kernel for kernel in graph.kernels if kernel not in kernels])
    for name in program.pool_offsets:
        assert graph.buffers[name].role is BufferRole.INTERMEDIATE
        assert name not in outside, "what another program uses is an argument"
    for position in range(len(kernels)):
        _assert_disjoint(graph, program, _alive(kernels, position) & set(program.pool_offsets))


def _alive(kernels: Sequence[Kernel], position: int) -> set[str]:
    """Return what is used before or at a position, and at it or after."""
    return _used(kernels[: position + 1]) & _used(kernels[position:])


def _assert_disjoint(graph: KernelGraph, program: KernelProgram, names: set[str]) -> None:
    spans = sorted(
        (program.pool_offsets[name], program.pool_offsets[name] + graph.buffers[name].placed.size_bytes)
        for name in names
    )
    assert all(begin % 128 == 0 and end <= program.pool_bytes for begin, end in spans)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


@examples(60)
@given(st.integers(0, 1 << 30), st.integers(1, 14))
def test_programs_keep_the_limits_and_their_pools_apart(seed: int, steps: int) -> None:
    graph = after("assign-addresses", read(random_graph(seed, steps)[0]))
    ends = [(program.first_kernel, program.end_kernel) for program in graph.programs]
    assert [first for first, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == len(graph.kernels)
    for program in graph.programs:
        _assert_program(graph, program)
    grouped = after("group-bundles", read(random_graph(seed, steps)[0]))  # copies to LX come later, and take no pool
    if len(grouped.kernels) <= 11:
        assert len(graph.programs) == _fewest(grouped)


def _chain_of_sums(count: int) -> KernelGraph:
    """((x0 + x1) + x2) + ..: every kernel brings one more input."""
    nodes = [node("s1", "add", "x0", "x1"), *(node(f"s{i}", "add", f"s{i - 1}", f"x{i}") for i in range(2, count))]
    return scheduled(graph_data([tensor(f"x{i}", 64) for i in range(count)], nodes, [f"s{count - 1}"]))


def test_as_many_inputs_as_fit_share_a_program() -> None:
    def arguments(count: int) -> list[int]:
        return [len(program.arguments) for program in _chain_of_sums(count).programs]

    assert arguments(2) == [3]
    assert arguments(4) == [5]
    assert len(arguments(5)) == 2, "6 tensors are too many beside a pool"
    assert max(arguments(11)) <= 5


def test_six_arguments_fit_where_nothing_stays_inside() -> None:
    data = graph_data(
        [tensor(name, 64) for name in "abc"],
        [node("x", "neg", "a"), node("y", "neg", "b"), node("z", "neg", "c")],
        ["x", "y", "z"],
    )
    (program,) = scheduled(data).programs
    assert len(program.arguments) == 6
    assert program.pool_bytes == 0


def test_intermediates_that_never_meet_share_the_pool() -> None:
    nodes = [node("n1", "neg", "x"), *(node(f"n{i}", "neg", f"n{i - 1}") for i in range(2, 9))]
    (program,) = scheduled(graph_data([tensor("x", 64, 64)], nodes, ["n8"]), _IN_THE_POOL).programs
    assert len(program.pool_offsets) == 7
    assert program.pool_bytes == 2 * 64 * 64 * 2


def _refusal(data: dict[str, object]) -> tuple[str, str | None, str]:
    with pytest.raises(SpyrecError) as caught:
        scheduled(data, _IN_THE_POOL)
    found = only_diagnostic(caught.value)
    return found.code, None if found.location is None else found.location.pointer, found.message


def test_a_tensor_larger_than_a_segment_is_refused() -> None:
    nodes = [
        node("r", "slice", "x", dim=0, start=0, end=64),
        node("s", "slice", "r", dim=1, start=0, end=64),
        node("y", "neg", "s"),
    ]
    code, pointer, message = _refusal(graph_data([tensor("x", 1 << 17, (1 << 16) + 64)], nodes, ["y"]))
    assert (code, pointer) == ("SPY0401", "/inputs/0")
    assert str(2 * (1 << 17) * ((1 << 16) + 64)) in message


def test_a_pool_larger_than_a_segment_is_refused() -> None:
    nodes = [
        *(node(name, op, "x") for name, op in (("u", "neg"), ("v", "exp"), ("w", "abs"))),
        node("a", "add", "u", "v"),
        node("y", "add", "a", "w"),
    ]
    code, pointer, _ = _refusal(graph_data([tensor("x", 3 << 16, 1 << 14)], nodes, ["y"]))
    assert (code, pointer) == ("SPY0401", "/nodes/0")
