"""What lies in the cores' scratchpads, operation by operation: the facts of ``inspect-layout BUNDLE --lx``.

All of it stands in the SuperDSCs and in ``bundle.mlir``; the manifest only gives tensors their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.dsc_actions import computing
from spyrec.bundle.program import Constant, For, Program, SdscExecute, Statement
from spyrec.bundle.superdsc import Component, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.geometry import describe
from spyrec.emulator.moved_pieces import geometry_of, pieces_of, sides_of
from spyrec.emulator.rules.schedules import check_file
from spyrec.hardware.plan_record import PlanFigures, ResidentTensor
from spyrec.hardware.target import Target


@dataclass(frozen=True, slots=True)
class LoopSpan:
    """A loop over the operations from ``first`` to ``last``; ``rounds`` is ``None`` where each run gives them."""

    name: str
    rounds: int | None
    first: int
    last: int
    depth: int


@dataclass(frozen=True, slots=True)
class LxStep:
    """One operation: its file, its function, how many loops are around it, the bytes of LX that it reads and writes."""

    file: str
    op: str
    depth: int
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LxRegion:
    """Bytes ``[first, past)`` that hold one tensor's share from operation ``begin`` to operation ``end``."""

    name: str
    first: int
    past: int
    begin: int
    end: int
    uses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LxMap:
    """The scratchpads of cores that all do the same in one program."""

    program: str
    cores: tuple[int, ...]
    usable_bytes: int
    steps: tuple[LxStep, ...]
    loops: tuple[LoopSpan, ...]
    regions: tuple[LxRegion, ...]

    @property
    def peak_bytes(self) -> int:
        """The highest byte in use, plus one."""
        return max((region.past for region in self.regions), default=0)


def lx_maps(bundle: BundleContent) -> list[LxMap]:
    """Return a map per program and group of cores, for the groups that have anything in their scratchpads.

    Errors: SPY0711 to SPY0723 for a SuperDSC that breaks a rule of its own: it says nothing that could be drawn.
    """
    return lx_maps_of(bundle.programs, bundle.manifest.figures)


def lx_maps_of(programs: Sequence[DeviceProgram], figures: PlanFigures | None) -> list[LxMap]:
    """Return the maps of programs in the order of a plan, whose names ``figures`` tell; errors as :func:`lx_maps`."""
    problems = [
        problem
        for program in programs
        for name, superdsc in program.superdscs.items()
        for problem in check_file(program.path(name), superdsc, Target())
    ]
    if problems:
        raise SpyrecError(problems)
    usable = Target().lx_usable_bytes if figures is None else figures.lx.usable_bytes
    maps: list[LxMap] = []
    for number, program in enumerate(programs):
        calls, loops = _calls(program.program)
        named = _named(figures, number, len(calls))
        for cores, steps in _groups(calls, program.superdscs):
            regions = tuple(_regions(steps, loops, named))
            if regions:
                maps.append(LxMap(program.directory, cores, usable, tuple(steps), tuple(loops), regions))
    return maps


def _named(figures: PlanFigures | None, program: int, calls: int) -> tuple[ResidentTensor, ...]:
    """Return the plan's tensors, none where its operations are not those of the program: loops were unrolled."""
    if figures is None or sum(item.program == program for item in figures.operations) != calls:
        return ()
    return tuple(item for item in figures.lx.residents if item.program == program)


def _calls(program: Program) -> tuple[list[tuple[str, int]], list[LoopSpan]]:
    """Return the file and the loop depth of every operation in order, and the loops, outer ones first."""
    numbers = {item.result: item.value for item in program.body if isinstance(item, Constant)}
    calls: list[tuple[str, int]] = []
    loops: list[LoopSpan] = []
    _walk(program.body, numbers, 0, calls, loops)
    return calls, loops


def _walk(
    body: Sequence[Statement],
    numbers: Mapping[str, int],
    depth: int,
    calls: list[tuple[str, int]],
    loops: list[LoopSpan],
) -> None:
    for item in body:
        if isinstance(item, SdscExecute):
            calls.append((item.sdsc_filename, depth))
        elif isinstance(item, For):
            place, first = len(loops), len(calls)
            loops.append(LoopSpan(item.induction, _rounds(item, numbers), first, first, depth))
            _walk(item.body, numbers, depth + 1, calls, loops)
            loops[place] = replace(loops[place], last=len(calls) - 1)


def _rounds(loop: For, numbers: Mapping[str, int]) -> int | None:
    found = [numbers.get(name) for name in (loop.lower, loop.upper, loop.step)]
    lower, upper, step = found
    return None if lower is None or upper is None or not step else len(range(lower, upper, step))


def _groups(
    calls: Sequence[tuple[str, int]], superdscs: Mapping[str, SuperDsc]
) -> Iterator[tuple[tuple[int, ...], list[LxStep]]]:
    """Yield the cores whose scratchpads hold the same at the same places all the time, with what they do."""
    accesses = {file: _accesses(superdsc) for file, superdsc in superdscs.items()}
    cohorts: dict[tuple[tuple[_Access, ...], ...], list[int]] = {}
    for core in sorted({core for item in superdscs.values() for core in item.every_core}):
        key = tuple(accesses[file].get(core, ()) for file, _ in calls)
        cohorts.setdefault(key, []).append(core)
    for key, cores in cohorts.items():
        steps = [
            LxStep(
                file=file,
                op=superdscs[file].op_func_name,
                depth=depth,
                reads=tuple((item.first, item.past) for item in found if not item.is_store),
                writes=tuple((item.first, item.past) for item in found if item.is_store),
            )
            for (file, depth), found in zip(calls, key, strict=True)
        ]
        yield tuple(cores), steps


@dataclass(frozen=True, slots=True)
class _Access:
    first: int
    past: int
    is_store: bool


def _accesses(superdsc: SuperDsc) -> dict[int, tuple[_Access, ...]]:
    """Return by core what an operation reads and writes of LX."""
    found: dict[int, list[_Access]] = {core: [] for core in superdsc.every_core}
    for part in computing(superdsc):
        output = part.compute.outputs[0]
        for position in dict.fromkeys((*part.compute.inputs, output)):
            operand = part.operands[position]
            if operand.component is Component.LX:
                size_bytes = describe(part, operand, None).buffer_bytes
                for core, start in zip(part.core_ids, operand.start_addresses, strict=True):
                    found[core].append(_Access(start, start + size_bytes, position == output))
    for data_dsc in () if superdsc.schedule is None else superdsc.schedule.data_dscs:
        count = len(list(data_dsc.source.placed))
        placed = zip(sides_of(data_dsc), pieces_of(data_dsc), strict=True)
        for number, (side, (piece, place)) in enumerate(placed):
            if place.core is not None:
                past = place.start + geometry_of(side, piece).buffer_bytes
                found[place.core].append(_Access(place.start, past, number >= count))
    return {core: tuple(dict.fromkeys(items)) for core, items in found.items()}


@dataclass(slots=True)
class _Open:
    first: int
    past: int
    begin: int
    uses: list[int] = field(default_factory=list[int])


def _regions(steps: Sequence[LxStep], loops: Sequence[LoopSpan], named: Sequence[ResidentTensor]) -> Iterator[LxRegion]:
    """Yield what lies in LX: from the operation that writes it to the last one that reads it.

    What is read in a loop that it was not written in has to stay until the loop ends.
    """
    current: list[_Open] = []
    done: list[_Open] = []
    for place, step in enumerate(steps):
        for first, past in step.reads:
            for item in current:
                if item.first < past and first < item.past:
                    item.uses.append(place)
        for first, past in step.writes:
            kept = [item for item in current if place in item.uses and (item.first, item.past) == (first, past)]
            if kept and _is_update(kept[0], place, named):
                continue
            done += [item for item in current if item.first < past and first < item.past]
            current = [item for item in current if item.past <= first or past <= item.first]
            current.append(_Open(first, past, place, [place]))
    for item in sorted((*done, *current), key=lambda item: (item.begin, item.first)):
        uses = tuple(dict.fromkeys(item.uses))
        name = _name(item.first, item.begin, named) or f"result of {steps[item.begin].file}"
        yield LxRegion(name, item.first, item.past, item.begin, _end(item.begin, uses[-1], loops), uses)


def _is_update(held: _Open, place: int, named: Sequence[ResidentTensor]) -> bool:
    """Whether an operation that stores into what it reads updates it, as far as the plan does not say otherwise."""
    return _name(held.first, held.begin, named) == _name(held.first, place, named)


def _name(first: int, place: int, named: Sequence[ResidentTensor]) -> str | None:
    """Return the plan's name of what lies at an offset after an operation: that of the tensor that came last."""
    found = [item for item in named if item.offset_bytes == first and item.first <= place <= item.last]
    return max(found, key=lambda item: item.first).name if found else None


def _end(begin: int, last: int, loops: Sequence[LoopSpan]) -> int:
    return max([last, *(loop.last for loop in loops if begin < loop.first <= last <= loop.last)])
