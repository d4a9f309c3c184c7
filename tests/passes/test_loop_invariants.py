"""The rules of loops: each is kept by what the passes make, and a planted violation is named by the rule's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spyrec.diagnostics.codes import CODES
from spyrec.ir.kernel import Kernel, KernelGraph, Loop
from spyrec.passes.base import NO_PLANNER, Facet, PipelineOptions
from spyrec.passes.driver import check_order
from spyrec.passes.pipelines import ASSIGN_LAYOUTS, COMPILE, DIVIDE_WORK, PLACE_SCRATCHPAD, TILE_LOOPS
from spyrec.passes.verify_kernels import verify_kernels
from tests.support.graphs import node, scheduled
from tests.support.tiling_cases import loop, looped

_LAST = -1


def _graph() -> KernelGraph:
    """Two kernels inside two loops, one in a loop of its own, one outside; ``y`` is a tile."""
    nodes = [
        node("y", "add", "a", "b"),
        node("z", "mul", "y", "b"),
        node("w", "neg", "z"),
        node("v", "exp", "w"),
    ]
    loops = [loop("A", loop("B", "y", "z", tiles=4), tiles=2), loop("A", "w", tiles=4)]
    dims = {"A": 64, "B": 256}
    plain = PipelineOptions(lx_planner=NO_PLANNER)  # no copies among the kernels that the tests name by number
    return scheduled(looped(dims, {"a": "AB", "b": "AB"}, nodes, loops), plain)


def _with_kernel(graph: KernelGraph, place: int, change: Callable[[Kernel], Kernel]) -> KernelGraph:
    kernels = list(graph.kernels)
    kernels[place] = change(kernels[place])
    return graph.with_kernels(tuple(kernels))


def _with_steps(graph: KernelGraph, place: int, *steps: tuple[int, int]) -> KernelGraph:
    """Return the graph in which the output of one kernel moves otherwise."""
    return _with_kernel(graph, place, lambda kernel: replace(kernel, output=replace(kernel.output, steps=steps)))


def _standing_output(graph: KernelGraph) -> KernelGraph:
    """Every round writes the first tile."""
    return _with_kernel(graph, 1, lambda kernel: replace(kernel, output=replace(kernel.output, steps=())))


def _scattered(graph: KernelGraph) -> KernelGraph:
    """A kernel of the first nest stands behind the second."""
    first, second, third, fourth = graph.kernels
    return graph.with_kernels((first, second, third, second, fourth))


def _in_two_programs(graph: KernelGraph) -> KernelGraph:
    (program,) = graph.programs
    parts = (replace(program, end_kernel=1), replace(program, first_kernel=1))
    return replace(graph, programs=parts)


def _two_nestings(graph: KernelGraph) -> KernelGraph:
    return _with_kernel(graph, 1, lambda kernel: replace(kernel, loops=kernel.loops[::-1]))


def _without_count(graph: KernelGraph) -> KernelGraph:
    return replace(graph, loops={number: item for number, item in graph.loops.items() if number})


def _over_another_dim(graph: KernelGraph) -> KernelGraph:
    return replace(graph, loops={**graph.loops, 0: replace(graph.loops[0], dim="B")})


def _tiled_outside(graph: KernelGraph) -> KernelGraph:
    return _with_kernel(graph, _LAST, lambda kernel: replace(kernel, tiled=((0,),)))


def _not_tiled_inside(graph: KernelGraph) -> KernelGraph:
    return _with_kernel(graph, 0, lambda kernel: replace(kernel, tiled=kernel.tiled[:1]))


def _steps_outside(graph: KernelGraph) -> KernelGraph:
    return _with_steps(graph, _LAST, (1, 0))


def _steps_of_one_loop(graph: KernelGraph) -> KernelGraph:
    return _with_steps(graph, 1, (32, 0))


def _tile_read_in_another_loop(graph: KernelGraph) -> KernelGraph:
    return replace(graph, buffers={**graph.buffers, "z": replace(graph.buffers["z"], home=(0, 1))})


def _moving_tile(graph: KernelGraph) -> KernelGraph:
    return _with_steps(graph, 0, (0, 0), (0, 64))


def _too_many_rounds(graph: KernelGraph) -> KernelGraph:
    return replace(graph, loops={**graph.loops, 2: Loop(5, "A", 16)})


def _backwards(graph: KernelGraph) -> KernelGraph:
    return _with_steps(graph, 1, (-32, 0), (0, 64))


VIOLATIONS: list[tuple[str, Callable[[KernelGraph], KernelGraph]]] = [
    ("SPY0430", _scattered),
    ("SPY0430", _in_two_programs),
    ("SPY0431", _two_nestings),
    ("SPY0431", _without_count),
    ("SPY0431", _over_another_dim),
    ("SPY0432", _tiled_outside),
    ("SPY0432", _not_tiled_inside),
    ("SPY0432", _steps_outside),
    ("SPY0432", _steps_of_one_loop),
    ("SPY0433", _tile_read_in_another_loop),
    ("SPY0434", _moving_tile),
    ("SPY0436", _too_many_rounds),
    ("SPY0436", _backwards),
    ("SPY0437", _standing_output),
]


def test_what_the_passes_make_keeps_the_rules() -> None:
    graph = _graph()
    assert [kernel.loops for kernel in graph.kernels] == [(0, 1), (0, 1), (2,), ()]
    assert graph.buffers["y"].home == (0, 1)
    assert verify_kernels(graph) == []


@pytest.mark.parametrize(("code", "plant"), VIOLATIONS, ids=[plant.__name__ for _, plant in VIOLATIONS])
def test_a_planted_violation_is_named_by_the_code_of_its_rule(
    code: str, plant: Callable[[KernelGraph], KernelGraph]
) -> None:
    graph = _graph()
    planted = plant(graph)
    problems = verify_kernels(planted)
    assert code in {problem.split()[0] for problem in problems}, problems
    assert verify_kernels(planted, graph) == problems, "what a pass changed is looked at"


def test_passes_out_of_order_are_refused_before_anything_runs() -> None:
    assert Facet.LOOPS in TILE_LOOPS.establishes
    for later in (ASSIGN_LAYOUTS, DIVIDE_WORK, PLACE_SCRATCHPAD):
        others = [item for item in COMPILE if item is not TILE_LOOPS]
        others.insert(others.index(later) + 1, TILE_LOOPS)
        with pytest.raises(AssertionError, match="SPY0435"):
            check_order(tuple(others))


def test_every_rule_has_its_row() -> None:
    assert {f"SPY043{digit}" for digit in range(7)} <= set(CODES)
