"""The one cost model: bytes, flops and time of one SuperDSC execution, from a plain record of it.

The planner fills the record from a kernel, the emulator from a SuperDSC; both then get the same time.  All figures are
parameters (:class:`spyrec.hardware.target.TargetProfile`).  Times are simulated: a model's, not a device's.

One execution is, on every core: fetch the operands, compute, combine partial sums over the ring, store.  A share
``overlap`` of it runs pipelined, memory and compute at once; the rest runs one after the other.  Memory is one
resource that all cores share.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.hardware.target import (
    FP8_MATMUL_SPEEDUP,
    PT_ROWS,
    RING_CORES,
    STICK_BYTES,
    MatmulTerms,
    ReductionRate,
    StreamTerms,
    TargetProfile,
)


class OperationClass(Enum):
    """What the rates depend on."""

    POINTWISE = "pointwise"
    PARTIAL = "pointwise with an operand that does not fill the result"
    COPY = "copy"
    TURN = "copy that turns dims outside the sticks"
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
class WalkedDim:
    """One dim of an operand outside its sticks: its name, positions that an operation walks, and what memory holds."""

    name: Hashable
    count: int
    extent: int


OperandWalk = Sequence[WalkedDim]
"""The dims of one operand outside its sticks, innermost in memory first."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How an operation goes through memory, all cores together.

    ``rows``: sticks that follow each other along the innermost dim of its largest operand; ``columns``: how often it
    comes to such rows.  ``written_rows``: those of the result where its innermost dim is another, else ``rows``.
    """

    rows: int = 1
    columns: int = 1
    written_rows: int = 1


def walk_of(operands: Sequence[OperandWalk], operation_class: OperationClass) -> Walk:
    """Return the walk of an operation whose output stands last; a matmul has none."""
    if operation_class is OperationClass.MATMUL:
        return Walk()
    counts = [[dim.count for dim in operand if dim.count > 1] for operand in operands]
    sticks = [math.prod(own) for own in counts]
    largest = counts[sticks.index(max(sticks))]
    rows = largest[0] if largest else 1
    written = counts[-1][0] if operation_class is OperationClass.TURN else rows
    return Walk(rows, max(sticks) // rows, written)


def turns(source: OperandWalk, result: OperandWalk) -> bool:
    """Whether a result is written along another dim than its source is read along, sticks apart."""
    first, last = (next((dim.name for dim in operand if dim.count > 1), None) for operand in (source, result))
    return first is not None and last is not None and first != last


def pieces_of(operand: OperandWalk) -> int:
    """Return the stretches of neighbouring sticks that a walk over an operand has."""
    for place, dim in enumerate(operand):
        if dim.count < dim.extent:
            return math.prod(outer.count for outer in operand[place + 1 :])
    return 1


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """Batches of a product's operands and result that lie between neighbouring rows or columns of sticks; 1: none do.

    ``has_shared_right``: the second operand is the same for all batches.
    """

    left: int = 1
    right: int = 1
    result: int = 1
    has_shared_right: bool = False


def strewn_batch(
    walks: Sequence[OperandWalk], rows: Collection[Hashable], batch: Collection[Hashable]
) -> Collection[Hashable]:
    """Return the dims that are a matmul's batches in memory: its batch, or rows that lie between rows of its left."""
    of_rows = [dim.name for dim in walks[0] if dim.count > 1 and dim.name in rows]
    return batch or of_rows[: len(of_rows) - 1][:1]


def batch_order(walks: Sequence[OperandWalk], dims: Collection[Hashable], *, is_shared: bool) -> BatchOrder:
    """Return the order of a matmul's batches; ``dims``: those of :func:`strewn_batch`."""
    if not dims:
        return BatchOrder()
    left, right, result = (_interleaved(walk, dims) for walk in walks)
    return BatchOrder(left, right, result, has_shared_right=is_shared)


def _interleaved(operand: OperandWalk, batch: Collection[Hashable]) -> int:
    """Return how many batches lie between neighbours of one batch."""
    found = 1
    for dim in operand:
        if dim.count == 1:
            continue
        if dim.name not in batch:
            return found
        found *= dim.count
    return 1


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One execution of one SuperDSC.

    ``core_points``: iteration points of one core (multiply-adds of a matmul); ``core_rows``: of those, matmul rows.
    ``element_bytes``: of the widest operand.  ``passes``: results that the vector unit makes per point.
    ``result_elements``: of the whole operation.  ``read_bytes``: distinct bytes of device memory that any core reads;
    ``core_read_bytes``: summed over cores; ``shared_reads``: the same by operand.  ``lx_*``: bytes of one core.
    ``pieces``: stretches of neighbouring sticks, of the operand in device memory that has most.
    ``core_columns``: columns of a matmul's result on one core.  ``column_slices``, ``batch_slices``: cores' slices of
    its columns and batch dims; ``batch_cuts``: of what :class:`BatchOrder` calls batches.  ``ring_bytes``: what a core
    gets from others, each byte as often as there are links on its way; of the core where that is most.
    ``reads_pool``: whether it reads what an operation before it left in device memory.
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
    batch_cuts: int = 1
    ring_bytes: int = 0
    core_columns: int = 1
    column_slices: int = 1
    walk: Walk = Walk()
    pieces: int = 1
    batch_order: BatchOrder = BatchOrder()
    reads_pool: bool = False

    @property
    def writing_cores(self) -> int:
        """Cores that store results: of those that combine, the last one."""
        return self.cores // self.combination.slices


@dataclass(frozen=True, slots=True)
class OperationWork:
    """What one execution asks of the machine, as the timeline takes it.

    ``read_load``, ``write_load``: bytes on the shared memory, all cores together, what contention and turnaround cost
    included; they pass at ``memory_rate`` in all and ``core_memory_rate`` per core.  ``compute_us``, ``ring_us``: every
    core's.  ``start_us``: before anything moves.
    """

    read_load: float
    write_load: float
    memory_rate: float
    core_memory_rate: float
    compute_us: float
    ring_us: float
    start_us: float
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
    turned = 0.0 if own_rate is not None else _turnaround(record, profile)
    rate = float(profile.memory_bytes_per_us) if own_rate is None else min(own_rate, profile.memory_bytes_per_us)
    read_load = record.read_bytes + _contention_bytes(record, profile)
    write_load = (
        record.write_bytes + turned * min(record.read_bytes, record.write_bytes) + _result_bytes(record, profile)
    )
    if profile.contends_whole:
        whole = max((_dearness(item, profile) for item in record.shared_reads), default=1.0)
        read_load, write_load = read_load * whole, write_load * whole
    # the planner's power of the batch slices stretches the whole execution
    stretch = float(record.batch_slices**profile.batch_exponent)
    loads = stretch * _way(record, profile)
    return OperationWork(
        read_load=read_load * loads,
        write_load=write_load * loads,
        memory_rate=rate * _share_of_rate(record, profile),
        core_memory_rate=float(profile.core_memory_bytes_per_us),
        compute_us=_compute_us(record, profile) * stretch,
        ring_us=_ring_us(record, profile) * stretch,
        start_us=_start_us(record, profile),
        overlap=_overlap(record, profile),
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
    total_us = work.start_us + memory_us + work.compute_us - work.overlap * shorter + work.ring_us
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
    ``uncertainty``: as :func:`uncertainty_of`.
    """

    unit: Unit
    utilisation: float
    flops_per_byte: float | None
    ridge: float
    limit: str
    uncertainty: float | None = None


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
        uncertainty=uncertainty_of(record, profile),
    )


def uncertainty_of(record: OperationRecord, profile: TargetProfile) -> float | None:
    """Return the share of its time by which nine of ten measured operations of a class were off at most, if known.

    Of a class of which too few were measured it is the largest of the others.
    """
    known = dict(profile.uncertainty)
    return known.get(record.operation_class.value, max(known.values(), default=None))


def total_uncertainty(parts: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the uncertainty of a sum of times, given with theirs: as if all were off the same way.

    Times without one, of classes that nobody measured, take the largest of the others; ``None`` where there is none.
    """
    times = [*parts]
    known = [share for _, share in times if share is not None]
    total_us = sum([time_us for time_us, _ in times])
    if not known or not total_us:
        return None
    largest = max(known)
    return round(sum([time_us * (largest if share is None else share) for time_us, share in times]) / total_us, 4)


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
    if fit.half_bytes_per_us is not None:
        rate = min(rate, fit.half_bytes_per_us * max(1.0, record.cores / _HALF_THE_CORES))
    if record.cores <= _HALF_THE_CORES and record.walk.rows == _RESONANT_ROWS * record.cores:
        rate /= 1.0 + fit.half_resonance
    # a number of cores between two that were measured has the share of the smaller one
    shares = (share for cores, share in fit.share_by_cores if cores <= max(record.cores, 1))
    return rate * max(shares, default=1.0)


_HALF_THE_CORES = RING_CORES // 2

_RESONANT_ROWS = 256
"""Rows of a core, 32 KiB of neighbouring sticks, at which folds of half of the cores or fewer are slower."""


def _turnaround(record: OperationRecord, profile: TargetProfile) -> float:
    """Return the bytes' worth of time per byte of the smaller of reads and writes, for turning the bus around."""
    terms = profile.streams
    if terms is None:
        return profile.turnaround_bytes
    match record.operation_class:
        case OperationClass.PARTIAL:
            return terms.partial_turnaround
        case OperationClass.COPY:
            doublings = min(terms.most_pieces, max(0.0, math.log2(record.pieces) - 2.0))
            return terms.copy_turnaround + terms.piece * doublings
        case OperationClass.TURN:
            return terms.turn_turnaround
        case OperationClass.MATMUL:
            return terms.matmul_turnaround
        case _:
            return profile.turnaround_bytes


def _way(record: OperationRecord, profile: TargetProfile) -> float:
    """Return how much longer than its bytes the way of an operation through memory takes."""
    terms, moved = profile.streams, record.read_bytes + record.write_bytes
    if terms is None or not moved:
        return 1.0
    doublings = max(0.0, math.log2(moved / _MEBIBYTE))
    longer = 1.0
    match record.operation_class:
        case OperationClass.PARTIAL:
            longer += terms.partial_doubling * doublings + _short_run(record.walk, terms)
            longer += terms.square * _squareness(record.walk)
        case OperationClass.POINTWISE | OperationClass.COPY:
            longer += terms.doubling * doublings + _short_run(record.walk, terms)
        case OperationClass.TURN:
            narrow = max(0.0, 3.0 - math.log2(record.walk.written_rows))
            longer += terms.turn_doubling * doublings + terms.narrow_turn * narrow
        case _:
            pass
    if record.reads_pool and record.operation_class in _ELEMENTWISE:
        longer *= 1.0 + terms.again + terms.again_short / max(_SHORTEST_RUN_OF_A_CHAIN, _run(record.walk))
    return longer


_MEBIBYTE = 1 << 20

_ELEMENTWISE = (OperationClass.POINTWISE, OperationClass.PARTIAL)

_SHORTEST_RUN = 2.0
"""Sticks in a row of the shortest walk that was measured."""

_SHORTEST_RUN_OF_A_CHAIN = 16.0
"""The same where one operation reads what another wrote."""


def _run(walk: Walk) -> float:
    """Return the sticks that one core would read in a row if the longer of rows and columns were divided."""
    return walk.rows / RING_CORES if walk.rows >= walk.columns else walk.rows * walk.columns / RING_CORES


def _short_run(walk: Walk, terms: StreamTerms) -> float:
    # with fewer sticks than cores no core has two of them
    return 0.0 if walk.rows * walk.columns <= RING_CORES else terms.short_run / max(_SHORTEST_RUN, _run(walk)) ** 2


def _squareness(walk: Walk) -> float:
    """Return 1 where there are as many rows as columns of sticks, less with more rows, nothing with half of them."""
    ratio = math.log2(walk.rows / walk.columns)
    return max(0.0, 1.0 - ratio / 4.0 if ratio >= 0.0 else 1.0 + ratio)


def _share_of_rate(record: OperationRecord, profile: TargetProfile) -> float:
    terms = profile.streams
    if terms is None or record.operation_class is OperationClass.REDUCTION:
        return 1.0
    beyond_half = max(0.0, record.cores / _HALF_THE_CORES - 1.0)
    return min(1.0, terms.half_share + (1.0 - terms.half_share) * beyond_half)


def _start_us(record: OperationRecord, profile: TargetProfile) -> float:
    if record.operation_class is OperationClass.MATMUL:
        return 0.0 if profile.matmul is None else float(profile.matmul.start_us)
    return 0.0 if profile.streams is None else float(profile.streams.start_us)


def _overlap(record: OperationRecord, profile: TargetProfile) -> float:
    """Return the share over which memory and compute run at once: all of a fold that has a rate of its own."""
    if record.operation_class is OperationClass.REDUCTION and profile.reduction is not None:
        return float(profile.overlap) if profile.reduction.vector_bytes_per_us is None else 1.0
    return float(profile.overlap)


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
        rate = _vector_rate(record, profile)
        return max(lx_us, record.core_points * record.passes * record.element_bytes / rate)
    # of the rows that fill the array, one pass of it at the least
    fill = min(1.0, max(record.core_rows, PT_ROWS) / profile.rows_for_peak)
    exponent = 0.5 if profile.matmul is None else profile.matmul.fill_exponent
    arithmetic_us = record.core_points / (_macs_per_us(record.element_bytes, profile) * fill**exponent)
    if profile.matmul is not None:
        arithmetic_us *= _division_cost(record, profile.matmul)
        arithmetic_us *= _order_cost(record.batch_order, record.batch_cuts, profile.matmul)
    return max(lx_us, arithmetic_us) + profile.underfill_us * math.log2(1.0 / fill)


def _vector_rate(record: OperationRecord, profile: TargetProfile) -> float:
    fold = profile.reduction
    if record.operation_class is OperationClass.REDUCTION and fold is not None and fold.vector_bytes_per_us is not None:
        return fold.vector_bytes_per_us
    return profile.vector_bytes_per_us


_TILE_ELEMENTS = 1 << 16
"""Elements of a result tile that one core keeps beside its operands."""

_COHORT = 8
"""Cores that an operand reaches at once."""


def _tile_doublings(record: OperationRecord) -> float:
    """Return the doublings by which a core's part of a matmul's result, all its batches, exceeds what it keeps."""
    elements = record.result_elements * record.combination.slices / record.cores
    return max(0.0, math.log2(max(1.0, elements) / _TILE_ELEMENTS))


def _division_cost(record: OperationRecord, terms: MatmulTerms) -> float:
    """Return by what factor the way a matmul is divided among the cores slows its arithmetic down."""
    rows, columns = matmul_grid(record)
    wide = record.core_rows if rows > columns else record.core_columns
    doublings = _tile_doublings(record)
    beyond = max(0.0, max(rows, columns) / _COHORT - 1.0)
    width = min(1.0, max(0.0, wide / 64.0 - 2.0))
    factor = 1.0 + beyond * (terms.cohort * min(1.0, doublings / 2.0) + terms.wide_cohort * width * min(1.0, doublings))
    if record.combination.slices > 1:
        factor *= terms.depth_split
    if record.batch_cuts > 1:
        factor *= terms.batch_split
    elif record.batch_order.right > 1 and not record.batch_order.has_shared_right:
        factor *= 1.0 + terms.strewn_rows * max(0.0, rows / _COHORT - 1.0)
    sticks, rest = divmod(record.core_columns, STICK_BYTES // max(1, record.element_bytes))
    return factor * terms.six_sticks if sticks in (6, 12) and not rest else factor


def matmul_grid(record: OperationRecord) -> tuple[int, int]:
    """Return the slices of a matmul's rows and columns."""
    of_both = max(1, record.cores // (record.combination.slices * record.batch_cuts))
    return of_both // record.column_slices, record.column_slices


def order_us(order: BatchOrder, macs: int, element_bytes: int, cores: int, profile: TargetProfile) -> float:
    """Return the time that batches between the rows of a product's operands cost, where the array works as it can."""
    if profile.matmul is None:
        return 0.0
    return macs / (cores * _macs_per_us(element_bytes, profile)) * (_order_cost(order, 1, profile.matmul) - 1.0)


def _order_cost(order: BatchOrder, cuts: int, terms: MatmulTerms) -> float:
    """Return by what factor batches that lie between the rows of an operand slow the arithmetic down."""
    if order.has_shared_right:
        few = 0.5 if order.left <= _FEW_BATCHES else 1.0
        return 1.0 + terms.shared_left_order * (few if order.left > 1 else 0.0)
    return 1.0 + terms.left_order * _batches(order.left, cuts) + terms.right_order * _batches(order.right, cuts)


_FEW_BATCHES = 4
"""Batches between two rows from which on their order costs in full; beside a shared operand that is beyond them."""


def _batches(interleaved_batches: int, cuts: int = 1) -> float:
    """Return the share of the full cost; cores that have a part of the batches only come as far as with all."""
    if interleaved_batches == 1:
        return 0.0
    return min(1.0, math.log2(interleaved_batches * cuts) / math.log2(_FEW_BATCHES))


def _result_bytes(record: OperationRecord, profile: TargetProfile) -> float:
    """Return the bytes of a matmul's result that pass more than once, or as if they did."""
    terms = profile.matmul
    if terms is None or record.operation_class is not OperationClass.MATMUL:
        return 0.0
    area = record.core_rows * record.core_columns
    depth = record.core_points / max(1, area)
    spilled = min(terms.most_spill, terms.spill * _tile_doublings(record)) * min(1.0, depth / 512.0)
    order = record.batch_order
    strewn = terms.shared_result_order if order.has_shared_right else terms.result_order
    return record.write_bytes * (spilled + strewn * _batches(order.result))


def _ring_us(record: OperationRecord, profile: TargetProfile) -> float:
    """Return the time to combine partial results: each slice passes its own on; the links between carry ``hops``.

    What a shuffle moves passes link by link too.
    """
    combination = record.combination
    steps = combination.slices - 1
    passed = steps * combination.core_result_bytes * combination.hops / profile.ring_bytes_per_us
    moved = record.ring_bytes / profile.ring_bytes_per_us
    return passed + moved + steps * record.result_elements * profile.partial_sum_us
