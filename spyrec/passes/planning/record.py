"""The cost model's record of a kernel under a division: what the emulator will make of its SuperDSC, field by field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.device_ops import IDENTITY, device_operation
from spyrec.hardware.cost import (
    BatchOrder,
    Combination,
    OperandRead,
    OperandWalk,
    OperationClass,
    OperationRecord,
    Unit,
    Walk,
    WalkedDim,
    batch_order,
    cost_of,
    pieces_of,
    strewn_batch,
    turns,
    walk_of,
)
from spyrec.hardware.target import PARTIAL_SUM_BYTES, STICK_BYTES, TargetProfile
from spyrec.hardware.work_slices import ring_hops, slices_of_cores
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, Owners
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash
from spyrec.passes.planning.kernel_space import KernelSpace, OperandSpace, kernel_space
from spyrec.passes.planning.overlap import Box, core_box, union_sticks
from spyrec.passes.planning.shares import moved_ring_bytes, share_of_owners


def record_of(
    graph: KernelGraph, kernel: Kernel, in_lx: frozenset[str], division: tuple[int, ...] | None = None
) -> OperationRecord:
    """Return the record of one execution of a kernel that has a form.

    ``in_lx``: buffers that lie in the cores' scratchpads; all others lie in device memory.  ``division``: slices per
    variable of the form, even and along sticks whole ones; the kernel's own where ``None``.
    """
    chosen = division or kernel.division or (1,) * len(kernel.placed.variables)
    record = kernel_record(kernel).under(chosen, lx_flags(kernel, in_lx))
    return replace(record, reads_pool=reads_pool(kernel, pooled(graph), in_lx))


def pooled(graph: KernelGraph) -> frozenset[str]:
    """Return the intermediates that lie in a program's pool unless in LX; none before programs are known."""
    outside = {name for program in graph.programs for name in program.arguments}
    return frozenset(
        use.buffer
        for program in graph.programs
        for kernel in graph.kernels[program.first_kernel : program.end_kernel]
        for use in kernel.uses
        if use.buffer not in outside and graph.buffers[use.buffer].role is BufferRole.INTERMEDIATE
    )


def lx_flags(kernel: Kernel, in_lx: AbstractSet[str]) -> tuple[bool, ...]:
    """Return of every operand, the output last, whether its buffer is one of ``in_lx``."""
    return tuple(use.buffer in in_lx for use in kernel.uses)


def slices_by_dim(kernel: Kernel, division: tuple[int, ...]) -> dict[str, int]:
    """Return the slices of each divided dim by its name; a dim without one goes by its place in the iteration."""
    found: dict[str, int] = {}
    for variable, slices in zip(kernel.placed.variables, division, strict=False):
        name = kernel.dims[variable.dim] if variable.dim < len(kernel.dims) else None
        if slices > 1:
            shown = name or f"d{variable.dim}"
            found[shown] = found.get(shown, 1) * slices
    return found


def kernel_record(kernel: Kernel) -> UndividedRecord:
    """Return what a kernel's records have in common; for a caller that asks for many divisions of one kernel."""
    names = [use.buffer for use in kernel.uses]
    aliases = tuple(names.index(name) for name in names)
    reduces = kernel.rule is Rule.REDUCTION or (kernel.rule is Rule.STATISTICS and bool(kernel.reduced))
    record = _kernel_record(kernel.placed, kernel.rule, kernel.op_func, reduces, aliases)
    return _shuffling(record, kernel.placed, kernel.owners) if kernel.owners else record


def reads_pool(kernel: Kernel, pool: AbstractSet[str], in_lx: AbstractSet[str]) -> bool:
    """Whether a kernel reads a buffer of a program's pool that does not lie in the scratchpads."""
    return any(use.buffer in pool and use.buffer not in in_lx for use in kernel.inputs)


def simulated_us(
    kernel: Kernel, in_lx: AbstractSet[str], profile: TargetProfile, pool: AbstractSet[str] = frozenset()
) -> float:
    """Return the simulated time of one execution of a divided kernel, with some of its buffers in the scratchpads.

    ``pool``: those that lie in a program's pool where they do not lie in the scratchpads.
    """
    record = kernel_record(kernel)
    if reads_pool(kernel, pool, in_lx):
        record = replace(record, reads_pool=True)
    return _simulated_us(record, kernel.division or (), lx_flags(kernel, in_lx), profile)


@lru_cache(maxsize=1 << 14)
def _simulated_us(
    record: UndividedRecord, division: tuple[int, ...], in_lx: tuple[bool, ...], profile: TargetProfile
) -> float:
    return cost_of(record.under(division, in_lx), profile).total_us


@remembers_hash
@dataclass(frozen=True, slots=True)
class UndividedRecord(RemembersHash):
    """The fields of a kernel's records that no division changes, and how the others follow from one.

    ``operands``: inputs, then the output.  ``aliases``: by operand the first one with the same buffer.  ``rows``,
    ``columns``, ``batch``: variables of a matmul's rows, columns and batches.  ``row_points``, ``column_points``: its
    rows and columns, of all cores together.  ``ring_bytes``: what a shuffle moves, whose owners are given.
    ``pieces``: by operand.  ``strewn``: variables of batches in memory.
    """

    space: KernelSpace
    operation_class: OperationClass
    element_bytes: int
    passes: int
    flops: int
    result_elements: int
    row_points: int
    rows: tuple[int, ...]
    batch: tuple[int, ...]
    aliases: tuple[int, ...]
    columns: tuple[int, ...]
    strewn: tuple[int, ...]
    column_points: int
    walk: Walk
    pieces: tuple[int, ...]
    batch_order: BatchOrder
    ring_bytes: int = 0
    reads_pool: bool = False

    def under(self, division: tuple[int, ...], in_lx: Sequence[bool]) -> OperationRecord:
        """Return the record under a division; ``in_lx`` says of every operand whether it lies in the scratchpads."""
        space, operands = self.space, self.space.operands
        assert all(extent % slices == 0 for extent, slices in zip(space.extents, division, strict=True)), division
        cores = math.prod(division)
        sharing = self._sharing(division)
        lx = [operand.element_bytes * shares // cores for operand, shares in zip(operands, sharing, strict=True)]
        in_memory = [place for place in range(len(operands) - 1) if not in_lx[place]]
        reads = self._reads(division, in_lx, (), sharing).values()
        return OperationRecord(
            operation_class=self.operation_class,
            unit=Unit.PT if self.operation_class is OperationClass.MATMUL else Unit.SFP,
            cores=cores,
            core_points=space.executed_points // cores,
            core_rows=self.row_points // _slices(self.rows, division),
            element_bytes=self.element_bytes,
            passes=self.passes,
            flops=self.flops,
            result_elements=self.result_elements,
            read_bytes=sum([distinct_bytes for distinct_bytes, _ in reads]),
            core_read_bytes=sum([core_bytes for _, core_bytes in reads]),
            write_bytes=0 if in_lx[-1] else operands[-1].stick_bytes,
            shared_reads=tuple(
                OperandRead(operands[place].shared_bytes(division), sharing[place])
                for place in in_memory
                if sharing[place] > 1
            ),
            lx_read_bytes=sum(size for size, resides in zip(lx[:-1], in_lx, strict=False) if resides),
            lx_write_bytes=lx[-1] if in_lx[-1] else 0,
            combination=self._combination(division, cores),
            batch_slices=_slices(self.batch, division),
            ring_bytes=self.ring_bytes,
            core_columns=self.column_points // _slices(self.columns, division),
            column_slices=_slices(self.columns, division),
            batch_cuts=_slices(self.strewn, division),
            walk=self.walk,
            pieces=max([count for count, resides in zip(self.pieces, in_lx) if not resides], default=1),
            batch_order=self.batch_order,
            reads_pool=self.reads_pool,
        )

    def reads(
        self, division: tuple[int, ...], in_lx: Sequence[bool], point: tuple[int, ...] = ()
    ) -> dict[int, tuple[int, int]]:
        """Return the bytes read of each buffer in device memory: distinct ones, and the sum over cores.

        The key is the place of the first operand that lies in the buffer.  ``point``: the round of each loop around the
        kernel; the first one where it is empty.
        """
        return self._reads(division, in_lx, point, self._sharing(division))

    def _reads(
        self, division: tuple[int, ...], in_lx: Sequence[bool], point: tuple[int, ...], sharing: Sequence[int]
    ) -> dict[int, tuple[int, int]]:
        operands = self.space.operands
        found: dict[int, tuple[int, int]] = {}
        for alias, group in self.groups(in_lx).items():
            first = operands[alias]
            boxes = [operands[place].box_at(point) for place in group]
            if len(group) == 1 or all(box == boxes[0] for box in boxes):
                found[alias] = first.stick_bytes, first.core_bytes(division, sharing[alias])
            else:
                sticks, core_sticks = _overlapping(tuple(boxes), division)
                found[alias] = sticks * STICK_BYTES, core_sticks * STICK_BYTES
        return found

    def reads_of_operand(self, place: int, division: tuple[int, ...]) -> tuple[int, int]:
        """Return the bytes that one input alone reads of its buffer: distinct ones, and the sum over cores."""
        operand = self.space.operands[place]
        return operand.stick_bytes, operand.core_bytes(division, self._sharing(division)[place])

    def groups(self, in_lx: Sequence[bool]) -> dict[int, list[int]]:
        """Return the inputs that lie in each buffer in device memory, by the first of them."""
        places: dict[int, list[int]] = {}
        for place, alias in enumerate(self.aliases[:-1]):
            if not in_lx[place]:
                places.setdefault(alias, []).append(place)
        return places

    def core_buffer_bytes(self, place: int, division: tuple[int, ...]) -> int:
        """Return the bytes of one core's share of an operand's buffer, what its window leaves out included."""
        box = self.space.operands[place].box
        cuts = (1 if side.variable is None else division[side.variable] for side in box)
        return STICK_BYTES * math.prod(side.extent // slices for side, slices in zip(box, cuts, strict=True))

    def _sharing(self, division: tuple[int, ...]) -> list[int]:
        """Return by operand how many cores have the same share of it."""
        cores = math.prod(division)
        return [cores // _slices(operand.variables, division) for operand in self.space.operands]

    def _combination(self, division: tuple[int, ...], cores: int) -> Combination:
        output = self.space.operands[-1]
        reduced = tuple(index for index, slices in enumerate(division) if slices > 1 and index not in output.variables)
        if not reduced:
            return Combination()
        slices = _slices(reduced, division)
        elements = self.result_elements * slices // cores
        contracts = self.operation_class is OperationClass.MATMUL
        hops = _hops(division, self.space.added_before, reduced, contracts=contracts)
        return Combination(slices, hops, elements * PARTIAL_SUM_BYTES)


@lru_cache(maxsize=4096)
def _shuffling(record: UndividedRecord, form: KernelForm, owners: tuple[Owners, ...]) -> UndividedRecord:
    """Return the record of a kernel with what it moves over the ring between the owners of its operands."""
    source, target = (share_of_owners(form, position, own) for position, own in enumerate(owners))
    assert source is not None, owners
    assert target is not None, owners
    return replace(record, ring_bytes=moved_ring_bytes(source, target))


@lru_cache(maxsize=4096)
def _kernel_record(
    form: KernelForm, rule: Rule, op_func: str, reduces: bool, aliases: tuple[int, ...]
) -> UndividedRecord:
    space = kernel_space(form, rule, op_func, reduces=reduces)
    operands = space.operands
    output = operands[-1]
    is_matmul = rule is Rule.CONTRACTION
    widths = [operand.word_bytes for operand in (operands[:-1] if is_matmul else operands)]
    rows, columns, batch = _matmul_roles(operands) if is_matmul else ((), (), ())
    walks = [_walk_over(operand) for operand in operands]
    operation_class = _class_of(space, walks, rule, op_func, reduces=reduces)
    strewn = strewn_batch(walks, rows, batch) if is_matmul else ()
    lane = space.lane if space.lane_operands[-1] else 1
    return UndividedRecord(
        space=space,
        operation_class=operation_class,
        element_bytes=max(widths),
        passes=device_operation(op_func).vector_passes,
        flops=device_operation(op_func).flops * space.points,
        result_elements=math.prod(space.extents[index] for index in output.variables) * lane,
        row_points=math.prod(space.executed[index] for index in rows) if is_matmul else 0,
        rows=rows,
        batch=batch,
        aliases=aliases,
        columns=columns,
        strewn=tuple(index for index in range(len(space.extents)) if index in strewn),
        column_points=space.executed_lane * math.prod(space.executed[index] for index in columns) if is_matmul else 1,
        walk=walk_of(walks, operation_class),
        pieces=(1,) * len(operands) if is_matmul else tuple(map(pieces_of, walks)),
        batch_order=batch_order(walks, strewn, is_shared=not batch) if is_matmul else BatchOrder(),
    )


def _walk_over(operand: OperandSpace) -> OperandWalk:
    if operand.slid:
        return ()
    return [WalkedDim(side.variable, side.count, side.extent) for side in reversed(operand.box)]


@lru_cache(maxsize=4096)
def _overlapping(boxes: tuple[Box, ...], division: tuple[int, ...]) -> tuple[int, int]:
    """Return the sticks of several windows of one buffer: distinct ones, and summed over the cores."""
    slices = slices_of_cores(division, contracts=False)
    by_core = (union_sticks([core_box(box, division, own) for box in boxes]) for own in slices)
    return union_sticks(boxes), sum(by_core)


@lru_cache(maxsize=4096)
def _hops(division: tuple[int, ...], added: int, reduced: tuple[int, ...], *, contracts: bool) -> int:
    slices = slices_of_cores((1,) * added + division, contracts=contracts)
    return ring_hops(range(len(slices)), slices, [added + index for index in reduced])


def _slices(variables: Sequence[int], division: Sequence[int]) -> int:
    return math.prod([division[index] for index in variables])


def _matmul_roles(
    operands: Sequence[OperandSpace],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the variables of the rows, which the second operand lacks, of the columns and of the batches."""
    left, right, result = (frozenset(operand.variables) for operand in operands)
    roles = (left & result) - right, (right & result) - left, left & right & result
    rows, columns, batch = (tuple(sorted(role)) for role in roles)
    return rows, columns, batch


def _class_of(
    space: KernelSpace, walks: Sequence[OperandWalk], rule: Rule, op_func: str, *, reduces: bool
) -> OperationClass:
    source, output = space.operands[0], space.operands[-1]
    match rule:
        case Rule.CONTRACTION:
            return OperationClass.MATMUL
        case Rule.RESTICKIFY:
            return OperationClass.RESTICKIFY
        case Rule.WINDOW:
            return OperationClass.OUTER_REDUCTION
        case Rule.STATISTICS if reduces:
            return OperationClass.REDUCTION
        case Rule.REDUCTION:
            is_stick = source.has_lane and not output.has_lane
            return OperationClass.REDUCTION if is_stick else OperationClass.OUTER_REDUCTION
        case _ if op_func == IDENTITY:
            if _is_partial(space, 0):
                return OperationClass.BROADCAST
            return OperationClass.TURN if turns(walks[0], walks[-1]) else OperationClass.COPY
        case _ if any(_is_partial(space, place) for place in range(len(space.operands) - 1)):
            return OperationClass.PARTIAL
        case _:
            return OperationClass.POINTWISE


def _is_partial(space: KernelSpace, place: int) -> bool:
    """Whether an operand is repeated along a dim of the result."""
    operand, output = space.operands[place], space.operands[-1]
    fills_lanes = space.lane > 1 and space.lane_operands[-1] and not space.lane_operands[place]
    return fills_lanes or any(index not in operand.variables for index in output.variables)
