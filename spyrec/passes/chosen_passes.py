"""Passes that somebody chose, over a graph or over the text of one: what ``spyrec opt`` runs.

A text says what passes have established of its graph; that is held against the graph before a pass relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spyrec.diagnostics import Location, refuse
from spyrec.diagnostics.codes import CODES
from spyrec.ir.graph import Graph, location_of
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.text import read_ir
from spyrec.ir.text.read_graph import FAULTS
from spyrec.ir.text.tokens import BROKEN
from spyrec.passes.base import Facet, PipelineOptions, Refused
from spyrec.passes.driver import DriverOptions, Stage, run_pass
from spyrec.passes.pass_options import ChosenPass, pass_named
from spyrec.passes.pipelines import COMPILE, DEVICE_GRAPH, FORM, AnyPass
from spyrec.passes.verify_kernels import verify_kernels

Shown = Callable[[str, Stage], None]
"""Takes the name of a pass and the graph that it is given."""


def read_stage(text: str | bytes, file: str | None = None) -> Stage:
    """Return the graph that a text says, verified.

    Errors: those of :func:`read_ir`, SPY0181 where the graph is not what the text says has been established, the code
    of the rule (SPY0430 to SPY0446) where it breaks one that every graph keeps.
    """
    found = read_ir(text, file)
    place = Location(file, None, 1, 1)
    names = {facet.name.lower(): facet for facet in Facet}
    for word in found.has:
        if word not in names:
            raise refuse(BROKEN, f'nothing is called "{word[:80]}" that passes establish', place)
    stage = Stage(found.graph, frozenset(names[word] for word in found.has), found.source)
    problem = _contradiction(stage)
    if problem is not None:
        raise refuse(BROKEN, problem, place)
    breach = _breach(stage.graph)
    if breach is not None:
        code, fact = breach
        raise refuse(code, fact, _place_of(stage.graph, fact, file), hint="correct the text, or print it again")
    return stage


def _place_of(graph: Graph | KernelGraph, fact: str, file: str | None) -> Location:
    """Return the place of the kernel that a breach of a rule begins with, the file where there is none of that name."""
    if isinstance(graph, KernelGraph):
        for kernel in graph.kernels:
            if fact.startswith(f"{kernel.name} "):
                return location_of(kernel.origin)
    return Location(file)


def _contradiction(stage: Stage) -> str | None:
    """Return which facet a graph lacks that its text says it has, or the other way round."""
    graph = stage.graph
    holds = {Facet.KERNELS: isinstance(graph, KernelGraph)}
    if isinstance(graph, KernelGraph):
        holds[Facet.LAYOUT] = all(buffer.layout is not None for buffer in graph.buffers.values())
        holds[Facet.DIVISION] = all(kernel.division is not None for kernel in graph.kernels)
        last = graph.programs[-1].end_kernel if graph.programs else 0
        holds[Facet.PROGRAMS] = last == len(graph.kernels)
    for facet, is_so in holds.items():
        is_certain = bool(graph.kernels) if isinstance(graph, KernelGraph) else True
        if is_certain and is_so != (facet in stage.established):
            said = "has" if facet in stage.established else "does not have"
            return f"the text says that the graph {said} {facet.name.lower()} ({facet.value}), which is not so"
    return None


def _breach(graph: Graph | KernelGraph) -> tuple[str, str] | None:
    """Return code and fact of the first rule of kernels that a graph breaks; nodes were verified as they were read."""
    if isinstance(graph, Graph):
        return None
    try:
        found = verify_kernels(graph)
    except FAULTS as fault:
        return BROKEN, f"the kernels contradict each other ({type(fault).__name__})"
    if not found:
        return None
    code, _, fact = found[0].partition(" ")
    return (code, fact) if code in CODES else (BROKEN, found[0])  # not every rule has a code of its own


def run_chosen(
    stage: Stage, chosen: Sequence[ChosenPass], options: PipelineOptions, driver: DriverOptions, before: Shown
) -> Stage:
    """Run passes one after the other; ``before`` is called before each, ``driver.observe`` after it.

    Errors: SPY0416 a pass that needs what has not been established, those of the passes.
    """
    for item in chosen:
        _require_ready(item.item, stage)
        before(item.item.name, stage)
        made = run_pass(item.item, stage, item.options(options), driver)
        if isinstance(made, Refused):
            raise made.error
        if driver.observe is not None:
            driver.observe(made)
        stage = made.stage
    return stage


def _require_ready(item: AnyPass, stage: Stage) -> None:
    missing = [facet for facet in Facet if facet in item.requires - stage.established]
    if missing:
        lacking = " and ".join(facet.name.lower() for facet in missing)
        givers = [other.name for other in COMPILE if not other.establishes.isdisjoint(missing)]
        raise refuse("SPY0416", f"{item.name} requires {lacking}", hint=f"run {', '.join(givers)} first")
    if isinstance(stage.graph, KernelGraph) and item in FORM:
        fact = f"{item.name} takes a graph of nodes, and these are kernels"
        raise refuse("SPY0416", fact, hint="begin with a graph of an earlier stage")
    if item not in DEVICE_GRAPH and item.establishes <= stage.established:  # those change nothing the second time
        raise refuse("SPY0416", f"{item.name} has run already", hint="begin with a graph of an earlier stage")


def passes_left(stage: Stage, stop_after: str | None) -> list[ChosenPass]:
    """Return the passes of the pipeline that have not run, up to the one named.  Errors: SPY0413, SPY0416."""
    left = [item for item in COMPILE if not item.establishes <= stage.established]
    if stop_after is None:
        return [ChosenPass(item) for item in left]
    last = pass_named(stop_after)
    if last not in left:
        raise refuse("SPY0416", f"{last.name} has run already", hint="begin with a graph of an earlier stage")
    return [ChosenPass(item) for item in left[: left.index(last) + 1]]
