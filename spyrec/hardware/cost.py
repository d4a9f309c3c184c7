"""The one cost model: bytes, flops and time of one SuperDSC execution, from a plain record of it.

The planner fills the record from a kernel, the emulator from a SuperDSC; both then get the same time.  All figures are
parameters (:class:`spyrec.hardware.target.TargetProfile`).  Times are simulated: a model's, not a device's.

One execution is, on every core: fetch the operands, compute, combine partial sums over the ring, store.  A share
``overlap`` of it runs pipelined, memory and compute at once; the rest runs one after the other.  Memory is one
resource that all cores share.
"""

from __future__ import annotations

import math
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.hardware.target import FP8_MATMUL_SPEEDUP, PT_ROWS, ReductionRate, TargetProfile


class OperationClass(Enum):
    """What the rates depend on."""

    POINTWISE = "pointwise"
    BROADCAST = "broadcast"
    RESTICKIFY = "restickify"
    REDUCTION = "reduction"
    OUTER_REDUCTION = "outer reduction"
    MATMUL = "matmul"


class Unit(Enum):
    """The unit of a core that computes: the PE array, or the vector unit."""

    PT = "pt"
    SFP = "sfp"


@dataclass(frozen=True, slots=True)
class OperandRead:
    """One operand read from device memory: its distinct bytes, and the cores that read each of them."""

    distinct_bytes: int
    sharing_cores: int


@dataclass(frozen=True, slots=True)
class Combination:
    """How cores combine partial results: ``slices`` of the reduced dims (1: not at all), ring distance of neighbours.

    ``core_result_bytes``: partial results that one core passes on.
    """

    slices: int = 1
    hops: int = 1
    core_result_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One execution of one SuperDSC.

    ``core_points``: iteration points of one core (multiply-adds of a matmul); ``core_rows``: of those, matmul rows.
    ``element_bytes``: of the widest operand.  ``passes``: results that the vector unit makes per point.
    ``result_elements``: of the whole operation.  ``read_bytes``: distinct bytes of device memory that any core reads;
    ``core_read_bytes``: summed over cores; ``shared_reads``: the same by operand.  ``lx_*``: bytes of one core.
    ``batch_slices``: cores' slices of a matmul's batch dims.  ``ring_bytes``: what a core gets from others, each byte
    as often as there are links on its way; of the core where that is most.
    """

    operation_class: OperationClass
    unit: Unit
    cores: int
    core_points: int
    core_rows: int
    element_bytes: int
    passes: int
    flops: int
    result_elements: int
    read_bytes: int
    core_read_bytes: int
    write_bytes: int
    shared_reads: tuple[OperandRead, ...] = ()
    lx_read_bytes: int = 0
    lx_write_bytes: int = 0
    combination: Combination = Combination()
    batch_slices: int = 1
    ring_bytes: int = 0

    @property
    def writing_cores(self) -> int:
        """Cores that store results: of those that combine, the last one."""
        return self.cores // self.combination.slices


@dataclass(frozen=True, slots=True)
class OperationWork:
    """What one execution asks of the machine, as the timeline takes it.

    ``read_load``, ``write_load``: bytes on the shared memory, all cores together, what contention and turnaround cost
    included; they pass at ``memory_rate`` in all and ``core_memory_rate`` per core.  ``compute_us``, ``ring_us``: every
    core's.
    """

    read_load: float
    write_load: float
    memory_rate: float
    core_memory_rate: float
    compute_us: float
    ring_us: float
    overlap: float


@dataclass(frozen=True, slots=True)
class OperationCost:
    """The simulated time of one execution and its parts, in microseconds."""

    memory_us: float
    compute_us: float
    ring_us: float
    total_us: float


def work_of(record: OperationRecord, profile: TargetProfile) -> OperationWork:
    """Return what one execution asks of a machine with these parameters."""
    own_rate = _own_rate(record, profile)
    turnaround = 0.0 if own_rate is not None else profile.turnaround_bytes * min(record.read_bytes, record.write_bytes)
    rate = float(profile.memory_bytes_per_us) if own_rate is None else min(own_rate, profile.memory_bytes_per_us)
    read_load = record.read_bytes + _contention_bytes(record, profile)
    write_load = record.write_bytes + turnaround
    if profile.contends_whole:
        whole = max((_dearness(item, profile) for item in record.shared_reads), default=1.0)
        read_load, write_load = read_load * whole, write_load * whole
    # the planner's power of the batch slices stretches the whole execution
    stretch = float(record.batch_slices**profile.batch_exponent)
    return OperationWork(
        read_load=read_load * stretch,
        write_load=write_load * stretch,
        memory_rate=rate,
        core_memory_rate=float(profile.core_memory_bytes_per_us),
        compute_us=_compute_us(record, profile) * stretch,
        ring_us=_ring_us(record, profile) * stretch,
        overlap=float(profile.overlap),
    )


def cost_of(record: OperationRecord, profile: TargetProfile) -> OperationCost:
    """Return the time of one execution in closed form: what the timeline gives where all cores do the same.

    Where cores combine and the pipelined share is neither none nor bounded by compute, writing cores are busier than
    others and the closed form may exceed the timeline.
    """
    work = work_of(record, profile)
    reading = min(work.memory_rate, work.core_memory_rate * record.cores)
    writing = min(work.memory_rate, work.core_memory_rate * record.writing_cores)
    memory_us = work.read_load / reading + work.write_load / writing
    shorter = min(memory_us, work.compute_us)
    total_us = memory_us + work.compute_us - work.overlap * shorter + work.ring_us
    return OperationCost(memory_us, work.compute_us, work.ring_us, total_us)


def peak_flops_per_us(unit: Unit, element_bytes: int, cores: int, profile: TargetProfile) -> float:
    """Return the most flops per microsecond of ``cores`` cores on one unit."""
    if unit is Unit.PT:
        return cores * 2 * _macs_per_us(element_bytes, profile)
    return cores * profile.vector_bytes_per_us / element_bytes


@dataclass(frozen=True, slots=True)
class Roofline:
    """Where an operation stands under the roof of the whole target.

    ``utilisation``: of the peak of its unit on all cores, 0 to 1.  ``flops_per_byte``: over distinct bytes of device
    memory, ``None`` without any.  ``ridge``: the flops per byte from which compute, not memory, is the roof.
    ``limit``: the part that takes longest, ``memory``, ``compute`` or ``ring``.
    """

    unit: Unit
    utilisation: float
    flops_per_byte: float | None
    ridge: float
    limit: str


def roofline_of(record: OperationRecord, profile: TargetProfile, simulated_us: float, target_cores: int) -> Roofline:
    """Return where an execution that takes ``simulated_us`` stands on a target of ``target_cores`` cores."""
    peak = peak_flops_per_us(record.unit, record.element_bytes, target_cores, profile)
    moved_bytes = record.read_bytes + record.write_bytes
    cost = cost_of(record, profile)
    parts = {"memory": cost.memory_us, "compute": cost.compute_us, "ring": cost.ring_us}
    return Roofline(
        unit=record.unit,
        utilisation=record.flops / (peak * simulated_us) if simulated_us > 0.0 else 0.0,
        flops_per_byte=record.flops / moved_bytes if moved_bytes else None,
        ridge=peak / profile.memory_bytes_per_us,
        limit=max(parts, key=lambda name: parts[name]),
    )


def _macs_per_us(element_bytes: int, profile: TargetProfile) -> float:
    return profile.matmul_macs_per_us * (FP8_MATMUL_SPEEDUP if element_bytes == 1 else 1.0)


def _own_rate(record: OperationRecord, profile: TargetProfile) -> float | None:
    """Return the memory rate measured for one class of operations, turnaround included, if there is one."""
    match record.operation_class:
        case OperationClass.RESTICKIFY:
            return profile.restickify_bytes_per_us
        case OperationClass.BROADCAST:
            return profile.broadcast_bytes_per_us
        case OperationClass.OUTER_REDUCTION:
            return profile.outer_reduction_bytes_per_us
        case OperationClass.REDUCTION if profile.reduction is not None:
            return _reduction_rate(record, profile.reduction, float(profile.memory_bytes_per_us))
        case _:
            return None


def _reduction_rate(record: OperationRecord, fit: ReductionRate, limit: float) -> float:
    rate = min(limit, fit.floor + fit.span * math.exp(-record.result_elements / fit.decay_rows))
    # a number of cores between two that were measured has the share of the smaller one
    return rate * max(share for cores, share in fit.share_by_cores if cores <= max(record.cores, 1))


def _dearness(operand: OperandRead, profile: TargetProfile) -> float:
    return max(1.0, operand.sharing_cores / profile.broadcast_cores)


def _contention_bytes(record: OperationRecord, profile: TargetProfile) -> float:
    """Return the bytes' worth of time that operands cost for being read by more cores than a broadcast serves."""
    if profile.contends_whole:
        return 0.0
    return sum(item.distinct_bytes * (_dearness(item, profile) - 1.0) for item in record.shared_reads)


def _compute_us(record: OperationRecord, profile: TargetProfile) -> float:
    lx_us = max(
        record.lx_read_bytes / profile.lx_read_bytes_per_us, record.lx_write_bytes / profile.lx_write_bytes_per_us
    )
    if record.unit is Unit.SFP:
        return max(lx_us, record.core_points * record.passes * record.element_bytes / profile.vector_bytes_per_us)
    # of the rows that fill the array, one pass of it at the least
    fill = min(1.0, max(record.core_rows, PT_ROWS) / profile.rows_for_peak)
    arithmetic_us = record.core_points / (_macs_per_us(record.element_bytes, profile) * math.sqrt(fill))
    return max(lx_us, arithmetic_us) + profile.underfill_us * math.log2(1.0 / fill)


def _ring_us(record: OperationRecord, profile: TargetProfile) -> float:
    """Return the time to combine partial results: each slice passes its own on; the links between carry ``hops``.

    What a shuffle moves passes link by link too.
    """
    combination = record.combination
    steps = combination.slices - 1
    passed = steps * combination.core_result_bytes * combination.hops / profile.ring_bytes_per_us
    moved = record.ring_bytes / profile.ring_bytes_per_us
    return passed + moved + steps * record.result_elements * profile.partial_sum_us
