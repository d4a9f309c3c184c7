"""What the planner weighed before it decided, with its own figures, and what a few other divisions cost the model.

A compilation that is the bundle's own is asked again: passes name the ways that they had, the cost model prices them,
and for the operations that take longest the next best division is planned to its end.  How much is asked grows with
nothing but the size of the graph, so that the same bundle gives the same answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import cost_of
from spyrec.hardware.plan_record import Decision
from spyrec.hardware.target import TargetProfile
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.graph import Derived, Graph
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.ir.likeness import Answers
from spyrec.ir.parts import Staged
from spyrec.passes.assign_layouts import LayoutChoice, LayoutProblem, layout_problem
from spyrec.passes.base import PipelineOptions, Refused
from spyrec.passes.divide_work.division_candidates import Candidate, candidates
from spyrec.passes.driver import DriverOptions, PassRecord, place
from spyrec.passes.group_bundles import program_cuts
from spyrec.passes.planning.record import record_of
from spyrec.passes.planning.scratchpad_copies import PASS_NAME
from spyrec.passes.planning.traffic import kernel_traffic
from spyrec.passes.stages import run_stages
from spyrec.report.compiled import Compiled, MadeOf
from spyrec.report.model import Considered

ALONE = "the operation by itself, every operand in device memory"
COPIES = "bytes of copies and padding of the whole model, all other layouts chosen anew"
USES = "the operations that use it"
MODEL = "the whole model"
HANDED_ON = "programs from here on, and the bytes that they hand on"

_MOST_SHOWN = 6
"""Ways of one decision that are shown, the chosen one always."""

MOST_PLANS, _MOST_PLANNED_KERNELS = 12, 1200
"""Divisions whose plans are made, and kernels of these together."""

_MOST_LAYOUT_KERNELS = 4000
"""Kernels of all choices of layouts together that are priced."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """The ways of one decision, best first, and what its next best one costs the model more, where that was planned."""

    considered: tuple[Considered, ...]
    alternative: str | None = None
    saved_bytes: int = 0
    saved_us: float = 0.0


def shown(ways: Sequence[Considered]) -> tuple[Considered, ...]:
    """Return the best few of ways that are sorted, the chosen one among them; none where there was no choice."""
    if len(ways) < 2:
        return ()
    others = [item for item in ways if not item.is_chosen][: _MOST_SHOWN - 1]
    return tuple(item for item in ways if item.is_chosen or item in others)


def text_of(division: Sequence[int]) -> str:
    """Return a division as the planner's notes have it."""
    return "x".join(map(str, division)) or "1"


class DivisionsWeighed:
    """Divisions of kernels: the planner's candidates, and whole plans with the next best of the longest kernels."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._options = compiled.options
        self._laid_out = [_after(passes, "assign-layouts") for passes in compiled.passes]
        self._divided = [_after(passes, "divide-work") for passes in compiled.passes]
        self._known = [Answers() for _ in compiled.parts]
        self._kernels = _MOST_PLANNED_KERNELS

    def candidates(self, made: MadeOf) -> tuple[Kernel, tuple[Candidate, ...]] | None:
        """Return a kernel as it was divided, with its candidates; ``None`` of one that a later pass made."""
        graph = self._divided[made.part]
        found = None if graph is None else next((it for it in graph.kernels if it.name == made.kernel.name), None)
        if graph is None or found is None or found.division != made.kernel.division:
            return None
        return found, candidates(graph, found, self._options)

    def ways(self, made: MadeOf) -> tuple[Considered, ...]:
        """Return the divisions of a kernel: of all its executions, every operand in device memory."""
        known = self.candidates(made)
        if known is None:
            return ()
        kernel, found = known
        trips = self._compiled.parts[made.part].trips(kernel.loops)
        return shown(
            [
                Considered(
                    text_of(item.division),
                    item.cost_us * trips,
                    item.traffic_bytes * trips,
                    is_chosen=item.division == kernel.division,
                )
                for item in found
            ]
        )

    def planned(self, made: MadeOf) -> Weighed | None:
        """Return what the next best division costs the model more, with everything else planned anew around it."""
        known, laid_out = self.candidates(made), self._laid_out[made.part]
        if known is None or laid_out is None or made.kernel.pinned or not self._may_plan(laid_out):
            return None
        kernel, found = known
        slices = _by_dim(kernel, kernel.division)
        other = next((item.division for item in found if _by_dim(kernel, item.division) != slices), None)
        whole = next((item for item in laid_out.kernels if item.name == kernel.name), None)
        if other is None or whole is None or whole.extents != kernel.extents:
            return None
        pinned = replace(whole, pinned=_by_dim(kernel, other))
        kernels = tuple(pinned if item is whole else item for item in laid_out.kernels)
        options = replace(self._options, auto_tile=False)
        result = place(laid_out.with_kernels(kernels), options, DriverOptions(known=self._known[made.part]))
        if isinstance(result, Refused):
            return None
        moved, time_us = figures_of([result], options.profile)
        own_moved, own_us = figures_of([self._compiled.parts[made.part]], options.profile)
        return Weighed((), text_of(other), moved - own_moved, time_us - own_us)

    def _may_plan(self, laid_out: KernelGraph) -> bool:
        self._kernels -= len(laid_out.kernels)
        return self._kernels >= 0


def _by_dim(kernel: Kernel, division: Sequence[int] | None) -> tuple[int, ...]:
    """Return the slices of each iteration dim: a pin says no more."""
    found = [1] * len(kernel.extents)
    for variable, count in zip(kernel.placed.variables, division or (), strict=False):
        found[variable.dim] *= count
    return tuple(found)


def _after(passes: Sequence[PassRecord], name: str) -> KernelGraph | None:
    """Return the graph after a pass."""
    found = next((item.result for item in passes if item.name == name), None)
    return found if isinstance(found, KernelGraph) else None


def layouts_weighed(compiled: Compiled) -> dict[tuple[int, str], tuple[Considered, ...]]:
    """Return by part and buffer the layouts that it could have, all others chosen anew, with what that costs.

    Buffers that are copied come first: a large graph is not asked about all of them.
    """
    found: dict[tuple[int, str], tuple[Considered, ...]] = {}
    budget = _MOST_LAYOUT_KERNELS
    for part, passes in enumerate(compiled.passes):
        before, after = _after(passes, "tile-loops"), _after(passes, "assign-layouts")
        problem = None if before is None else layout_problem(before, compiled.options)
        choice = None if problem is None or isinstance(problem, Refused) else problem.solve()
        if before is None or after is None or choice is None or not isinstance(problem, LayoutProblem):
            continue
        copied = {use.buffer for kernel in after.kernels if kernel.reason is not None for use in kernel.uses}
        for name in sorted(problem.domains, key=lambda name: name not in copied):
            layouts = problem.domains[name]
            if len(layouts) < 2 or name not in after.buffers or budget < len(before.kernels):
                continue
            budget -= len(before.kernels) * (len(layouts) - 1)
            found[part, name] = shown(list(_layouts(problem, choice, name)))
    return found


def _layouts(problem: LayoutProblem, choice: LayoutChoice, name: str) -> Iterator[Considered]:
    chosen = choice.layouts[name]
    yield Considered(_layout_text(chosen), bytes_=choice.in_bytes.cost_bytes, is_chosen=True)
    others = [(problem.solve_with(name, layout), layout) for layout in problem.domains[name] if layout != chosen]
    priced = [(other.in_bytes.cost_bytes, _layout_text(layout)) for other, layout in others if other is not None]
    for cost_bytes, text in sorted(priced):
        yield Considered(text, bytes_=cost_bytes)
    for other, layout in others:
        if other is None:
            yield Considered(f"{_layout_text(layout)}: no operation could use it")


def _layout_text(layout: BufferLayout) -> str:
    along = "single elements" if layout.stick_dim is None else f"dim {layout.stick_dim}"
    return f"sticks of {along}, {list(layout.device.device_size)}"


def source_of_copy(compiled: Compiled, made: MadeOf) -> str:
    """Return the buffer that a chain of inserted copies begins with."""
    makers = {kernel.output.buffer: kernel for kernel in compiled.parts[made.part].kernels if kernel.reason is not None}
    name = made.kernel.inputs[0].buffer
    for _ in makers:
        if name not in makers:
            break
        name = makers[name].inputs[0].buffer
    return name


def places_weighed(compiled: Compiled) -> dict[tuple[Decision, str], list[tuple[Considered, ...]]]:
    """Return by decision and tensor what those who use it take and move as it lies, and as it does not."""
    found: defaultdict[tuple[Decision, str], list[tuple[Considered, ...]]] = defaultdict(list)
    for graph in compiled.parts:
        for program in graph.programs:
            pricer = _Pricer(graph, program, compiled.options)
            for name in program.lx_offsets:
                decision, subject, ways = pricer.ways(name)
                if decision is not None:
                    found[decision, subject].append(ways)
    return found


class _Pricer:
    """Prices uses of what lies in the scratchpads of one program."""

    def __init__(self, graph: KernelGraph, program: KernelProgram, options: PipelineOptions) -> None:
        self._graph = graph
        self._options = options
        self._in_lx = frozenset(program.lx_offsets)
        self._users: dict[str, list[Kernel]] = {}
        for kernel in graph.kernels[program.first_kernel : program.end_kernel]:
            for name in dict.fromkeys(use.buffer for use in kernel.uses):
                self._users.setdefault(name, []).append(kernel)

    def ways(self, name: str) -> tuple[Decision | None, str, tuple[Considered, ...]]:
        """Return how a tensor lies there, of which tensor it is, and both ways; no decision of what is shuffled."""
        users = self._users.get(name, [])
        if any(kernel.owners for kernel in users):
            return None, name, ()
        copies = [kernel for kernel in users if self._is_between(kernel, name)]
        others = [kernel for kernel in users if kernel not in copies]
        if not copies:
            decision, subject = Decision.RESIDENT, name
        elif copies[0].output.buffer == name:
            decision, subject = Decision.STAGED, copies[0].inputs[0].buffer
        else:
            decision, subject = Decision.DRAINED, copies[0].output.buffer
        there = self._figures(users, self._in_lx)
        memory = self._figures(others, self._in_lx - {name})
        return (
            decision,
            subject,
            (
                Considered("in the scratchpads", *there, is_chosen=True),
                Considered("in device memory", *memory),
            ),
        )

    def _is_between(self, kernel: Kernel, name: str) -> bool:
        """Whether a kernel is the copy between a twin in the scratchpads and its tensor."""
        origin = self._graph.buffers[name].origin
        is_twin = isinstance(origin, Derived) and origin.pass_name == PASS_NAME
        return is_twin and isinstance(kernel.origin, Derived) and kernel.origin.pass_name == PASS_NAME

    def _figures(self, kernels: Sequence[Kernel], in_lx: frozenset[str]) -> tuple[float, int]:
        time_us, moved = 0.0, 0
        for kernel in kernels:
            trips = self._graph.trips(kernel.loops)
            record = record_of(self._graph, kernel, in_lx)
            time_us += trips * cost_of(record, self._options.profile).total_us
            moved += trips * (record.read_bytes + record.write_bytes)
        return time_us, moved


def cuts_weighed(compiled: Compiled, made: MadeOf) -> tuple[Considered, ...]:
    """Return where the program of an operation could end, with the programs from it on and what they hand on.

    Copies to and from the scratchpads are not there yet when programs are cut.
    """
    options, graph = compiled.options, _after(compiled.passes[made.part], "group-bundles")
    place_of = compiled.parts[made.part].programs.index(made.program)
    if graph is None:
        return ()
    program = graph.programs[place_of]
    found = program_cuts(graph, options, program.first_kernel)
    ways = [
        Considered(
            f'behind "{graph.kernels[cut.end - 1].output.buffer}"',
            bytes_=cut.handed_on_bytes,
            programs=cut.programs,
            is_chosen=cut.end == program.end_kernel,
        )
        for cut in found
    ]
    return shown(ways)


def loops_weighed(compiled: Compiled) -> tuple[Considered, ...]:
    """Return what the model moves in the loops that its graph asks for, and without any."""
    count = sum(len(part.kernels) for part in compiled.parts)
    if not compiled.source.loops or count > _MOST_PLANNED_KERNELS:
        return ()
    plain = run_stages(replace(compiled.source, loops=()), replace(compiled.options, auto_tile=False), DriverOptions())
    parts = () if isinstance(plain, Graph) else plain.parts if isinstance(plain, Staged) else (plain,)
    profile = compiled.options.profile
    ways = [
        _whole(text, [part for part in own if isinstance(part, KernelGraph)], profile, is_chosen=is_chosen)
        for text, own, is_chosen in (("the loops of the graph", compiled.parts, True), ("no loops", parts, False))
    ]
    return shown(ways)


def _whole(text: str, parts: Sequence[KernelGraph], profile: TargetProfile, *, is_chosen: bool) -> Considered:
    moved, time_us = figures_of(parts, profile)
    return Considered(text, time_us, moved, is_chosen=is_chosen)


def figures_of(parts: Sequence[KernelGraph], profile: TargetProfile) -> tuple[int, float]:
    """Return the bytes of device memory that planned kernels move, and their simulated time."""
    items = [item for part in parts for item in kernel_traffic(part, profile)]
    return sum(it.hbm_read_bytes + it.hbm_write_bytes for it in items), sum(it.simulated_us for it in items)
