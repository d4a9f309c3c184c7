"""Runs the pipeline: checks its order first, verifies after every pass, times and prints on request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from spyrec.diagnostics import DiagnosticSink, SpyrecError, refuse
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.verify import verify
from spyrec.passes.auto_tile import auto_tile
from spyrec.passes.base import Facet, PassContext, PipelineOptions
from spyrec.passes.pipelines import COMPILE, FORM_KERNELS, TILE_LOOPS, AnyPass
from spyrec.passes.planning.pinned_dims import name_pinned_dims
from spyrec.passes.print_kernels import print_kernels
from spyrec.passes.tiling.axes import TileGroup
from spyrec.passes.tiling.symbolic import refuse_unsteady_shapes
from spyrec.passes.verify_kernels import verify_kernels

_MOST_SPARE_ARGUMENTS = 3
"""Arguments that loops leave free for copies at most: with more, two operations could hardly share one."""

_MOST_NODES_TRIED_AGAIN = 300
"""In a larger graph a way to tile that brings a loop over the argument limit is given up at once."""


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass did: its name, seconds, the lines it reported and the graph after it."""

    name: str
    seconds: float
    report: tuple[str, ...]
    result: Graph | KernelGraph


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """``stop_after``: the last pass to run; ``observe`` is called after every pass."""

    stop_after: str | None = None
    observe: Callable[[PassRecord], None] | None = field(default=None, compare=False)


def compile_graph(graph: Graph, options: PipelineOptions, driver: DriverOptions | None = None) -> KernelGraph:
    """Return the scheduled kernels of a graph.

    Errors: SPY03xx and SPY04xx from the passes.
    """
    result = run_pipeline(graph, options, driver or DriverOptions())
    assert isinstance(result, KernelGraph), "the pipeline was stopped before the kernels were there"
    return result


def run_pipeline(graph: Graph, options: PipelineOptions, driver: DriverOptions) -> Graph | KernelGraph:
    """Run the passes up to ``stop_after``; errors as :func:`compile_graph`, SPY0413 for an unknown pass name.

    Where tensors do not fit the scratchpads, passes are run again with loops (``auto_tile``).  The kernels that come
    out have ``graph`` as their source, whatever names the passes needed.
    """
    result = _run_pipeline(name_pinned_dims(graph), options, driver)
    return replace(result, source=graph) if isinstance(result, KernelGraph) else result


def _run_pipeline(graph: Graph, options: PipelineOptions, driver: DriverOptions) -> Graph | KernelGraph:
    """Run the passes over a graph whose pins are all by name."""
    refuse_unsteady_shapes(graph)
    records: dict[tuple[TileGroup, ...], list[PassRecord]] = {}

    def plan(groups: tuple[TileGroup, ...]) -> KernelGraph:
        observe = None if driver.observe is None else records.setdefault(groups, []).append
        is_large = bool(groups) and len(graph.nodes) > _MOST_NODES_TRIED_AGAIN
        most_spare = 0 if is_large else _MOST_SPARE_ARGUMENTS
        chosen = replace(options, tile_groups=groups)
        planned = _planned(graph, chosen, DriverOptions(observe=observe), most_spare)
        assert isinstance(planned, KernelGraph)
        return planned

    def form() -> KernelGraph:
        formed = _run_passes(graph, options, DriverOptions(stop_after=FORM_KERNELS.name))
        assert isinstance(formed, KernelGraph)
        return formed

    is_before_loops = driver.stop_after in {item.name for item in COMPILE[: COMPILE.index(TILE_LOOPS)]}
    if is_before_loops or not options.auto_tile:
        return _planned(graph, options, driver)
    tiled = auto_tile(graph, form, options, plan)
    if driver.stop_after is not None:
        return _planned(graph, replace(options, tile_groups=tiled.groups), driver)
    for record in records.get(tiled.groups, ()):
        assert driver.observe is not None
        driver.observe(record)
    return tiled.planned.with_notes(*tiled.notes)


def _planned(
    graph: Graph, options: PipelineOptions, driver: DriverOptions, most_spare: int = _MOST_SPARE_ARGUMENTS
) -> Graph | KernelGraph:
    """Run the passes; again with fewer operations a loop where copies for layouts bring one over the argument limit."""
    for spare in range(most_spare):
        try:
            return _run_passes(graph, replace(options, spare_arguments=spare), driver)
        except SpyrecError as error:
            if error.diagnostics[0].code != "SPY0422":
                raise
    return _run_passes(graph, replace(options, spare_arguments=most_spare), driver)


def _run_passes(graph: Graph, options: PipelineOptions, driver: DriverOptions) -> Graph | KernelGraph:
    names = [item.name for item in COMPILE]
    if driver.stop_after is not None and driver.stop_after not in names:
        raise refuse("SPY0413", f'there is no pass "{driver.stop_after}"', hint="one of " + ", ".join(names))
    check_order(COMPILE)
    current: Graph | KernelGraph = graph
    for item in COMPILE:
        context = PassContext(options, DiagnosticSink(), [])
        start = time.perf_counter()
        current = _run(item, current, context)
        seconds = time.perf_counter() - start
        if isinstance(current, KernelGraph):
            current = replace(current, source=graph)
        _verify(item.name, current)
        if driver.observe is not None:
            driver.observe(PassRecord(item.name, seconds, tuple(context.report), current))
        if item.name == driver.stop_after:
            break
    return current


def check_order(passes: tuple[AnyPass, ...]) -> None:
    """Assert that every facet a pass requires was established before it, without running anything."""
    established: set[Facet] = set()
    for item in passes:
        missing = item.requires - established
        assert not missing, f"SPY0435 {item.name} requires {sorted(facet.name for facet in missing)}"
        established |= item.establishes


def _run(item: AnyPass, graph: Graph | KernelGraph, context: PassContext) -> Graph | KernelGraph:
    result: Graph | KernelGraph = item.run(graph, context)  # pyright: ignore[reportArgumentType] -- check_order's promise
    return result


def _verify(name: str, graph: Graph | KernelGraph) -> None:
    problems = [problem.render() for problem in verify(graph)] if isinstance(graph, Graph) else verify_kernels(graph)
    assert not problems, f"after {name}: " + "; ".join(problems)


def print_graph(graph: Graph | KernelGraph) -> str:
    """Return the text that ``--print-after`` shows."""
    if isinstance(graph, KernelGraph):
        return print_kernels(graph)
    from spyrec.ir.printer import print_graph as print_nodes

    return print_nodes(graph)
