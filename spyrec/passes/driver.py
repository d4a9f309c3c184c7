"""Runs the pipeline: checks its order first, verifies after every pass, times and prints on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.plan_record import Decision
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.likeness import Answers
from spyrec.ir.text import print_ir
from spyrec.ir.verify import verify
from spyrec.passes.base import Facet, Lack, PassContext, PipelineOptions, Refused, TileGroup
from spyrec.passes.divide_work.pins import name_pinned_dims
from spyrec.passes.pipelines import AUTO_TILE, COMPILE, FORM, LAY_OUT, PLACE, PLAN, AnyPass
from spyrec.passes.planning.traffic import kernel_traffic
from spyrec.passes.tile_loops.symbolic import refuse_unsteady_shapes
from spyrec.passes.verify_kernels import verify_kernels
from spyrec.progress import counted

_MOST_SPARE_ARGUMENTS = 3
"""Arguments that loops leave free for copies at most: with more, two operations could hardly share one."""

_MOST_NODES_TRIED_AGAIN = 300
"""In a larger graph a way to tile that brings a loop over the argument limit is given up at once."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A graph between two passes, what passes have established of it, and the graph that all of them began with."""

    graph: Graph | KernelGraph
    established: frozenset[Facet]
    source: Graph

    def text(self, base: Path | None = None) -> str:
        """Return it as text; ``base``: the directory that files of constants are named in."""
        has = tuple(facet.name.lower() for facet in Facet if facet in self.established)
        return print_ir(self.graph, has, base, None if self.source is self.graph else self.source)


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass did: its name, seconds, the lines it reported, and the graph after it with what holds of that."""

    name: str
    seconds: float
    report: tuple[str, ...]
    stage: Stage

    @property
    def result(self) -> Graph | KernelGraph:
        """The graph after the pass."""
        return self.stage.graph


@dataclass(frozen=True, slots=True)
class PassCrash:
    """A pass that ended in an error of its own, or made what no graph may be: what it was given, and the error."""

    name: str
    options: PipelineOptions
    before: Stage
    error: Exception


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """``stop_after``: the last pass to run; ``observe`` is called after every pass, ``crashed`` where one crashes.

    ``known``: what passes found out that holds of whatever graph; plans of one graph share it.
    """

    stop_after: str | None = None
    observe: Callable[[PassRecord], None] | None = field(default=None, compare=False)
    known: Answers = field(default_factory=Answers, compare=False)
    crashed: Callable[[PassCrash], None] | None = field(default=None, compare=False)

    def recording(self, records: list[PassRecord]) -> DriverOptions:
        """Return what keeps passes for later, if somebody observes them at all."""
        observe = None if self.observe is None else records.append
        return DriverOptions(observe=observe, known=self.known, crashed=self.crashed)

    def show(self, records: Iterable[PassRecord]) -> None:
        """Let passes be observed that ran before."""
        if self.observe is not None:
            for record in records:
                self.observe(record)


def compile_graph(graph: Graph, options: PipelineOptions, driver: DriverOptions | None = None) -> KernelGraph:
    """Return the scheduled kernels of a graph.

    Errors: SPY03xx and SPY04xx from the passes.
    """
    result = run_pipeline(graph, options, driver or DriverOptions())
    assert isinstance(result, KernelGraph), "the pipeline was stopped before the kernels were there"
    return result


def run_pipeline(graph: Graph, options: PipelineOptions, driver: DriverOptions) -> Graph | KernelGraph:
    """Run the passes up to ``stop_after``; errors as :func:`compile_graph`, SPY0413 for an unknown pass name."""
    result = plan_graph(graph, options, driver)
    if isinstance(result, Refused):
        raise result.error
    return result


def plan_graph(
    graph: Graph, options: PipelineOptions, driver: DriverOptions | None = None
) -> Graph | KernelGraph | Refused:
    """Run the passes up to ``stop_after``, for a caller who has an answer where there is no plan.

    The kernels that come out have ``graph`` as their source, whatever names the passes needed.  Errors: SPY0413 for an
    unknown pass name, and whatever is wrong with the graph itself.
    """
    result = _staged(name_pinned_dims(graph), options, driver or DriverOptions())
    return replace(result, source=graph) if isinstance(result, KernelGraph) else result


def _staged(graph: Graph, options: PipelineOptions, driver: DriverOptions) -> Graph | KernelGraph | Refused:
    """Run the stages over a graph whose pins are all by name: form kernels, then plan them.

    Passes are observed as they run; of a search, when it is over, those that made the plan.
    """
    refuse_unsteady_shapes(graph)
    names = [item.name for item in COMPILE]
    if driver.stop_after is not None and driver.stop_after not in names:
        raise refuse("SPY0413", f'there is no pass "{driver.stop_after}"', hint="one of " + ", ".join(names))
    check_order(COMPILE)
    if driver.stop_after in {item.name for item in FORM}:
        return _run_passes(FORM, graph, options, driver)
    forming: list[PassRecord] = []
    quiet = DriverOptions(observe=forming.append, crashed=driver.crashed)
    formed = _run_passes(FORM, graph, options, quiet if options.auto_tile else driver)
    assert isinstance(formed, KernelGraph), "forming ends in kernels"
    if not options.auto_tile:
        return _planned(formed, options, driver)
    planner = _Planner(formed, options, driver)
    tiled = AUTO_TILE.run(formed, options, planner.plan)
    if isinstance(tiled, Refused):
        return tiled
    driver.show(forming)
    if driver.stop_after is not None:
        return _planned(formed, replace(options, tile_groups=tiled.groups), driver)
    driver.show(planner.records.get(tiled.groups, ()))
    return tiled.planned.with_notes(*tiled.notes)


class _Planner:
    """Plans formed kernels with groups of them in loops; ``records``: what the passes did, by groups."""

    def __init__(self, formed: KernelGraph, options: PipelineOptions, driver: DriverOptions) -> None:
        self.formed = formed
        self.records: dict[tuple[TileGroup, ...], list[PassRecord]] = {}
        self._known = Answers(driver.known.kept)
        self._options = options
        self._driver = driver

    def plan(self, groups: tuple[TileGroup, ...]) -> KernelGraph | Refused:
        """Return a plan, or what it lacks."""
        source = self.formed.source
        assert source is not None, "the driver hands the source graph on"
        observe = None if self._driver.observe is None else self.records.setdefault(groups, []).append
        is_large = bool(groups) and len(source.nodes) > _MOST_NODES_TRIED_AGAIN
        most_spare = 0 if is_large else _MOST_SPARE_ARGUMENTS
        chosen = replace(self._options, tile_groups=groups)
        driver = DriverOptions(observe=observe, known=self._known, crashed=self._driver.crashed)
        return _planned(self.formed, chosen, driver, most_spare)


def _planned(
    formed: KernelGraph, options: PipelineOptions, driver: DriverOptions, most_spare: int = _MOST_SPARE_ARGUMENTS
) -> KernelGraph | Refused:
    """Plan kernels; again with fewer operations a loop where copies for layouts bring one over the argument limit."""
    for spare in range(most_spare):
        planned = _planned_once(formed, replace(options, spare_arguments=spare), driver)
        if isinstance(planned, KernelGraph) or planned.lack is not Lack.ARGUMENTS:
            return planned
    return _planned_once(formed, replace(options, spare_arguments=most_spare), driver)


def _planned_once(formed: KernelGraph, options: PipelineOptions, driver: DriverOptions) -> KernelGraph | Refused:
    """Plan kernels: loops and layouts, then cores, programs and places."""
    if driver.stop_after is not None:
        return _run_over_kernels(PLAN, formed, options, driver)
    seen: list[PassRecord] = []
    laid_out = _run_over_kernels(LAY_OUT, formed, options, driver.recording(seen))
    planned = laid_out
    if isinstance(laid_out, KernelGraph):
        planned = place(laid_out, options, driver.recording(seen))
    driver.show(seen)
    return planned


def place(laid_out: KernelGraph, options: PipelineOptions, driver: DriverOptions) -> KernelGraph | Refused:
    """Give kernels that have layouts cores, programs and places; again without counting on LX where it lacks room.

    The quicker plan stays, and its passes are observed.
    """
    placed: list[PassRecord] = []
    planned = _run_over_kernels(PLACE, laid_out, options, driver.recording(placed))
    if isinstance(planned, KernelGraph) and _is_short_of_room(planned):
        others: list[PassRecord] = []
        plain_options = replace(options, counts_on_lx=False)
        plain = _run_over_kernels(PLACE, laid_out, plain_options, driver.recording(others))
        if isinstance(plain, KernelGraph) and _simulated_us(plain, options) < _simulated_us(planned, options):
            planned, placed = plain, others
    driver.show(placed)
    return planned


def _run_over_kernels(
    passes: Sequence[AnyPass], kernels: KernelGraph, options: PipelineOptions, driver: DriverOptions
) -> KernelGraph | Refused:
    result = _run_passes(passes, kernels, options, driver)
    assert not isinstance(result, Graph), "planning ends in kernels"
    return result


def _is_short_of_room(planned: KernelGraph) -> bool:
    """Whether a plan whose divisions count on tensors in LX lacks some of them, or had to leave others out of it."""
    lying = {note.subject for note in planned.notes if note.decision in (Decision.SHUFFLED, Decision.RESIDENT)}
    is_spilled = any(note.decision is Decision.SPILLED for note in planned.notes)
    return not planned.expects_in_lx <= (frozenset() if is_spilled else lying)


def _simulated_us(planned: KernelGraph, options: PipelineOptions) -> float:
    return sum(item.simulated_us for item in kernel_traffic(planned, options.profile))


def _run_passes(
    passes: Sequence[AnyPass], graph: Graph | KernelGraph, options: PipelineOptions, driver: DriverOptions
) -> Graph | KernelGraph | Refused:
    """Run passes up to ``stop_after``, or to the first that refuses."""
    source = graph if isinstance(graph, Graph) else graph.source
    assert source is not None, "the driver hands the source graph on"
    stage = Stage(graph, _established_before(passes[0]), source)
    for item in counted(passes, "passes", len(passes)):
        record = run_pass(item, stage, options, driver)
        if isinstance(record, Refused):
            return record
        stage = record.stage
        if driver.observe is not None:
            driver.observe(record)
        if item.name == driver.stop_after:
            break
    return stage.graph


def run_pass(item: AnyPass, stage: Stage, options: PipelineOptions, driver: DriverOptions) -> PassRecord | Refused:
    """Run one pass, and verify what it makes."""
    context = PassContext(options, [], driver.known)
    start = time.perf_counter()
    try:
        result = _run(item, stage.graph, context)
        seconds = time.perf_counter() - start
        if isinstance(result, Refused):
            return result
        made = _from(result, stage.source)
        _verify(item.name, made, stage.graph)
    except (SpyrecError, MemoryError):
        raise
    except Exception as error:
        if driver.crashed is not None:
            driver.crashed(PassCrash(item.name, options, stage, error))
        raise
    reached = Stage(made, stage.established | item.establishes, stage.source)
    return PassRecord(item.name, seconds, tuple(context.report), reached)


def _established_before(first: AnyPass) -> frozenset[Facet]:
    """Return what holds where the pipeline comes to a pass."""
    before = COMPILE[: COMPILE.index(first)]
    return frozenset(facet for item in before for facet in item.establishes)


def _from(result: Graph | KernelGraph, source: Graph | None) -> Graph | KernelGraph:
    """Return what a pass made, kernels with the graph that they were made from."""
    is_known = isinstance(result, Graph) or result.source is source
    return result if is_known else replace(result, source=source)


def check_order(passes: tuple[AnyPass, ...]) -> None:
    """Assert that every facet a pass requires was established before it, without running anything."""
    established: set[Facet] = set()
    for item in passes:
        missing = item.requires - established
        assert not missing, f"SPY0435 {item.name} requires {sorted(facet.name for facet in missing)}"
        established |= item.establishes


def _run(item: AnyPass, graph: Graph | KernelGraph, context: PassContext) -> Graph | KernelGraph | Refused:
    result: Graph | KernelGraph | Refused = item.run(graph, context)  # pyright: ignore[reportArgumentType] -- check_order's promise
    return result


def _verify(name: str, graph: Graph | KernelGraph, before: Graph | KernelGraph) -> None:
    """Assert that a graph keeps the rules; ``before``, from which a pass made it, does."""
    if isinstance(graph, Graph):
        problems = [problem.render() for problem in verify(graph, before if isinstance(before, Graph) else None)]
    else:
        problems = verify_kernels(graph, before if isinstance(before, KernelGraph) else None)
    assert not problems, f"after {name}: " + "; ".join(problems)
