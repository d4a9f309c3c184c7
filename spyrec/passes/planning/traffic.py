"""What scheduled kernels will move through device memory, and how long that takes: exactly what the emulator counts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import OperationRecord, cost_of, total_uncertainty, uncertainty_of
from spyrec.hardware.plan_record import (
    LxFigures,
    PlanFigures,
    PlannedLoop,
    PlannedOperation,
    PlannedTensor,
    ResidentTensor,
)
from spyrec.hardware.target import Target, TargetProfile
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph
from spyrec.passes.lifetimes import lifetimes
from spyrec.passes.planning.kernel_space import OperandSpace
from spyrec.passes.planning.record import UndividedRecord, kernel_record, lx_flags, pooled, reads_pool, slices_by_dim


@dataclass(frozen=True, slots=True)
class KernelTraffic:
    """What one kernel does in a run, with the most rounds of its loops.

    ``record``: of one execution; where loops move windows of one buffer apart, its reads are the mean.  ``reads``:
    distinct bytes that all executions read of each buffer in device memory, and the sums over cores, by the first
    input that lies in it.  ``program``, ``place``: numbers of its program, and of the kernel in there.
    """

    kernel: Kernel
    program: int
    place: int
    record: OperationRecord
    reads: Reads
    executions: int
    simulated_us: float

    @property
    def hbm_read_bytes(self) -> int:
        """Distinct bytes read, execution by execution."""
        return sum(read for read, _ in self.reads.values())

    @property
    def hbm_core_read_bytes(self) -> int:
        """The same, summed over the cores that read each of them."""
        return sum(core_read for _, core_read in self.reads.values())

    @property
    def hbm_write_bytes(self) -> int:
        """Distinct bytes written, execution by execution."""
        return self.record.write_bytes * self.executions


def kernel_traffic(graph: KernelGraph, profile: TargetProfile) -> Iterator[KernelTraffic]:
    """Yield what each kernel of a graph with programs does, in the order of the plan."""
    pool = pooled(graph)
    for number, program in enumerate(graph.programs):
        in_lx = frozenset(program.lx_offsets)
        for place, kernel in enumerate(graph.kernels[program.first_kernel : program.end_kernel]):
            shared, flags = kernel_record(kernel), lx_flags(kernel, in_lx)
            division = kernel.division or (1,) * len(kernel.placed.variables)
            counts = tuple(graph.loops[loop].count for loop in kernel.loops)
            if reads_pool(kernel, pool, in_lx):
                shared = replace(shared, reads_pool=True)
            record, reads, time_us = _executed(shared, counts, division, flags, profile)
            yield KernelTraffic(kernel, number, place, record, reads, math.prod(counts), time_us)


@lru_cache(maxsize=1 << 14)
def _executed(
    shared: UndividedRecord,
    counts: tuple[int, ...],
    division: tuple[int, ...],
    in_lx: tuple[bool, ...],
    profile: TargetProfile,
) -> tuple[OperationRecord, Reads, float]:
    """Return the record of one of all rounds of a kernel, what all of them read, and their time."""
    reads = reads_of_rounds(shared, counts, division, in_lx)
    executions = math.prod(counts)
    record = replace(
        shared.under(division, in_lx),
        read_bytes=sum(read for read, _ in reads.values()) // executions,
        core_read_bytes=sum(core_read for _, core_read in reads.values()) // executions,
    )
    return record, reads, cost_of(record, profile).total_us * executions


def lower_bound_bytes(graph: KernelGraph) -> int:
    """Return the bytes that no plan undercuts that reads what it needs whole: semantics of the ratio of a plan.

    Inputs and constants that a kernel reads, read once, outputs written once, in whole sticks of their layouts.  An
    input that nothing reads never reaches the device and does not count; constants that passes made (numbers, zero rows
    of a padded contraction) do, mask values do not: they stand in the SuperDSC.  A model that reads a mere window of an
    input may stay below.
    """
    used = dict.fromkeys(use.buffer for kernel in graph.kernels for use in kernel.uses)
    wanted = (BufferRole.INPUT, BufferRole.CONSTANT, BufferRole.OUTPUT)
    return sum(graph.buffers[name].placed.size_bytes for name in used if graph.buffers[name].role in wanted)


def plan_figures(graph: KernelGraph, target: Target, profile: TargetProfile) -> PlanFigures:
    """Return all figures of a graph with programs, places and divisions."""
    found = list(kernel_traffic(graph, profile))
    residents = tuple(_residents(graph))
    operations = tuple(_operation(item, profile) for item in found)
    peak_bytes = max((item.offset_bytes + item.core_bytes for item in residents), default=0)
    return PlanFigures(
        lx=LxFigures(target.lx_usable_bytes, peak_bytes, graph.planner, residents),
        hbm_read_bytes=sum(item.hbm_read_bytes for item in found),
        hbm_write_bytes=sum(item.hbm_write_bytes for item in found),
        lower_bound_bytes=lower_bound_bytes(graph),
        flops=sum(item.record.flops * item.executions for item in found),
        simulated_us=sum(item.simulated_us for item in found),
        profile=profile.name,
        operations=operations,
        tensors=tuple(_tensors(graph, found)),
        loops=tuple(_loops(graph, found)),
        notes=graph.notes,
        simulated_us_uncertainty=total_uncertainty(
            (item.simulated_us, item.simulated_us_uncertainty) for item in operations
        ),
    )


def _operation(item: KernelTraffic, profile: TargetProfile) -> PlannedOperation:
    kernel, record = item.kernel, item.record
    return PlannedOperation(
        program=item.program,
        place=item.place,
        op=kernel.op_func,
        output=kernel.output.buffer,
        loops=kernel.loops,
        executions=item.executions,
        cores=record.cores,
        slices=slices_by_dim(kernel, kernel.division or ()),
        source_slices=slices_by_dim(kernel, kernel.owners[0].division) if kernel.owners else {},
        ring_bytes=record.ring_bytes * item.executions,
        hbm_read_bytes=item.hbm_read_bytes,
        hbm_write_bytes=item.hbm_write_bytes,
        hbm_core_read_bytes=item.hbm_core_read_bytes,
        flops=record.flops * item.executions,
        simulated_us=item.simulated_us,
        simulated_us_uncertainty=uncertainty_of(record, profile),
    )


def _tensors(graph: KernelGraph, found: list[KernelTraffic]) -> Iterator[PlannedTensor]:
    read: defaultdict[str, int] = defaultdict(int)
    written: defaultdict[str, int] = defaultdict(int)
    for item in found:
        kernel = item.kernel
        for place, (distinct_bytes, _) in item.reads.items():
            read[kernel.inputs[place].buffer] += distinct_bytes
        written[kernel.output.buffer] += item.hbm_write_bytes
    arguments = {name for program in graph.programs for name in program.arguments}
    resident = {name for program in graph.programs for name in program.lx_offsets}
    for name in dict.fromkeys(use.buffer for item in found for use in item.kernel.uses):
        buffer = graph.buffers[name]
        memory = "argument" if name in arguments else "lx" if name in resident else "pool"
        yield PlannedTensor(name, buffer.role.value, memory, buffer.placed.size_bytes, read[name], written[name])


def _loops(graph: KernelGraph, found: list[KernelTraffic]) -> Iterator[PlannedLoop]:
    for number in dict.fromkeys(loop for item in found for loop in item.kernel.loops):
        inside = [item for item in found if number in item.kernel.loops]
        loop = graph.loops[number]
        yield PlannedLoop(
            number=number,
            count=loop.count,
            dim=loop.dim,
            tile=loop.tile,
            hbm_read_bytes=sum(item.hbm_read_bytes for item in inside),
            hbm_write_bytes=sum(item.hbm_write_bytes for item in inside),
            simulated_us=sum(item.simulated_us for item in inside),
        )


def _residents(graph: KernelGraph) -> Iterator[ResidentTensor]:
    for number, program in enumerate(graph.programs):
        if not program.lx_offsets:
            continue
        kernels = graph.kernels[program.first_kernel : program.end_kernel]
        alive, sizes = lifetimes(kernels), _core_bytes(kernels)
        for name, offset in program.lx_offsets.items():
            yield ResidentTensor(name, number, offset, sizes[name], alive[name].first, alive[name].last)


def _core_bytes(kernels: tuple[Kernel, ...]) -> dict[str, int]:
    """Return the bytes that every core needs for its share of each tensor, by the operation that needs most."""
    sizes: dict[str, int] = {}
    for kernel in kernels:
        record = kernel_record(kernel)
        division = kernel.division or (1,) * len(kernel.placed.variables)
        for place, use in enumerate(kernel.uses):
            sizes[use.buffer] = max(sizes.get(use.buffer, 0), record.core_buffer_bytes(place, division))
    return sizes


Reads = Mapping[int, tuple[int, int]]
"""By the first input that lies in a buffer: distinct bytes read of it, and the sum over cores."""

Point = tuple[int, ...]
"""The round of each loop around a kernel, outermost first."""

MOST_SUMS = 1 << 17
"""Sums of distances that are made for one kernel ..."""

MOST_DISTANCES = 1 << 12
"""... and distances at which windows are compared; with more the reads are an upper bound."""


def reads_of_rounds(
    shared: UndividedRecord, counts: Sequence[int], division: tuple[int, ...], in_lx: Sequence[bool]
) -> Reads:
    """Return the reads of all executions together; ``counts``: rounds of the loops around the kernel.

    Where the rounds have too many distances between windows, it is an upper bound.
    """
    executions = math.prod(counts)
    if not _moves_apart(shared, in_lx):
        once = shared.reads(division, in_lx)
        return {first: (read * executions, core_read * executions) for first, (read, core_read) in once.items()}
    found = _rounds_by_distance(shared, counts, in_lx)
    if found is None:
        return _reads_apart(shared, division, in_lx, executions)
    total: Reads = {}
    for rounds, point in found.values():
        for first, (read, core_read) in shared.reads(division, in_lx, point).items():
            before = total.get(first, (0, 0))
            total[first] = before[0] + rounds * read, before[1] + rounds * core_read
    return total


def _rounds_by_distance(
    shared: UndividedRecord, counts: Sequence[int], in_lx: Sequence[bool]
) -> dict[tuple[int, ...], tuple[int, Point]] | None:
    """Return by distances, on which alone depends what windows share, the rounds that have them and one of these.

    Distances add up loop by loop.  ``None`` where they are too many to look at.
    """
    found: dict[tuple[int, ...], tuple[int, Point]] = {
        (0,) * len(_distances(shared, in_lx, (0,) * len(counts))): (1, ())
    }
    for place, count in enumerate(counts):
        unit = tuple(int(place == other) for other in range(len(counts)))
        step = _distances(shared, in_lx, unit)
        if not any(step):
            found = {key: (rounds * count, (*point, 0)) for key, (rounds, point) in found.items()}
            continue
        if len(found) * count > MOST_SUMS:
            return None
        merged: dict[tuple[int, ...], tuple[int, Point]] = {}
        for key, (rounds, point) in found.items():
            for times in range(count):
                moved = tuple(before + times * by for before, by in zip(key, step, strict=True))
                known, example = merged.get(moved, (0, (*point, times)))
                merged[moved] = known + rounds, example
        found = merged
    return found if len(found) <= MOST_DISTANCES else None


def _reads_apart(shared: UndividedRecord, division: tuple[int, ...], in_lx: Sequence[bool], executions: int) -> Reads:
    """Return what is read at most: as if the windows of one buffer never met."""
    total: Reads = {}
    for first, group in shared.groups(in_lx).items():
        alone = [shared.reads_of_operand(place, division) for place in group]
        total[first] = executions * sum(read for read, _ in alone), executions * sum(both for _, both in alone)
    return total


def _moves_apart(shared: UndividedRecord, in_lx: Sequence[bool]) -> bool:
    operands = shared.space.operands
    return any(len({operands[place].moves for place in group}) > 1 for group in shared.groups(in_lx).values())


def _distances(shared: UndividedRecord, in_lx: Sequence[bool], point: Sequence[int]) -> tuple[int, ...]:
    """Return how far operands of one buffer have moved relative to its first one, in sticks."""
    operands = shared.space.operands
    found: list[int] = []
    for group in shared.groups(in_lx).values():
        moved = [_moved_sticks(operands[place], point) for place in group]
        found += [item - moved[0] for item in moved]
    return tuple(found)


def _moved_sticks(operand: OperandSpace, point: Sequence[int]) -> int:
    extents = [side.extent for side in operand.box]
    strides = [math.prod(extents[place + 1 :]) for place in range(len(extents))]
    return sum(
        times * sum(step * stride for step, stride in zip(move, strides, strict=True))
        for times, move in zip(point, operand.moves)
    )
