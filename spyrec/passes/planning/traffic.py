"""What scheduled kernels will move through device memory, and how long that takes: exactly what the emulator counts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spyrec.hardware.cost import OperationRecord, cost_of
from spyrec.hardware.target import Profile, Target
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph
from spyrec.passes.lifetimes import lifetimes
from spyrec.passes.planning.moving_reads import Reads, reads_of_rounds
from spyrec.passes.planning.record import kernel_record, lx_flags
from spyrec.plan_record import LxFigures, PlanFigures, PlannedLoop, PlannedOperation, PlannedTensor, ResidentTensor


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


def kernel_traffic(graph: KernelGraph, profile: Profile) -> Iterator[KernelTraffic]:
    """Yield what each kernel of a graph with programs does, in the order of the plan."""
    for number, program in enumerate(graph.programs):
        in_lx = frozenset(program.lx_offsets)
        for place, kernel in enumerate(graph.kernels[program.first_kernel : program.end_kernel]):
            shared, flags = kernel_record(kernel), lx_flags(kernel, in_lx)
            division = kernel.division or (1,) * len(kernel.placed.variables)
            counts = [graph.loops[loop].count for loop in kernel.loops]
            reads = reads_of_rounds(shared, counts, division, flags)
            executions = math.prod(counts)
            record = replace(
                shared.under(division, flags),
                read_bytes=sum(read for read, _ in reads.values()) // executions,
                core_read_bytes=sum(core_read for _, core_read in reads.values()) // executions,
            )
            time_us = cost_of(record, profile).total_us * executions
            yield KernelTraffic(kernel, number, place, record, reads, executions, time_us)


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


def plan_figures(graph: KernelGraph, target: Target, profile: Profile) -> PlanFigures:
    """Return all figures of a graph with programs, places and divisions."""
    found = list(kernel_traffic(graph, profile))
    residents = tuple(_residents(graph))
    peak_bytes = max((item.offset_bytes + item.core_bytes for item in residents), default=0)
    return PlanFigures(
        lx=LxFigures(target.lx_usable_bytes, peak_bytes, graph.planner, residents),
        hbm_read_bytes=sum(item.hbm_read_bytes for item in found),
        hbm_write_bytes=sum(item.hbm_write_bytes for item in found),
        lower_bound_bytes=lower_bound_bytes(graph),
        flops=sum(item.record.flops * item.executions for item in found),
        simulated_us=sum(item.simulated_us for item in found),
        profile=profile.name,
        operations=tuple(_operation(item) for item in found),
        tensors=tuple(_tensors(graph, found)),
        loops=tuple(_loops(graph, found)),
        notes=graph.notes,
    )


def _operation(item: KernelTraffic) -> PlannedOperation:
    kernel, record = item.kernel, item.record
    return PlannedOperation(
        program=item.program,
        place=item.place,
        op=kernel.op_func,
        output=kernel.output.buffer,
        loops=kernel.loops,
        executions=item.executions,
        cores=record.cores,
        slices=_slices(kernel),
        hbm_read_bytes=item.hbm_read_bytes,
        hbm_write_bytes=item.hbm_write_bytes,
        hbm_core_read_bytes=item.hbm_core_read_bytes,
        flops=record.flops * item.executions,
        simulated_us=item.simulated_us,
    )


def _slices(kernel: Kernel) -> dict[str, int]:
    """Return the slices of each divided dim by its name; a dim without one goes by its place in the iteration."""
    found: dict[str, int] = {}
    for variable, slices in zip(kernel.placed.variables, kernel.division or (), strict=False):
        name = kernel.dims[variable.dim] if variable.dim < len(kernel.dims) else None
        if slices > 1:
            shown = name or f"d{variable.dim}"
            found[shown] = found.get(shown, 1) * slices
    return found


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
