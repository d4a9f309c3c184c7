"""The cost model's record of a SuperDSC, from its operands' addressing and footprints."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.bundle.superdsc_windows import slid_axes
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import Family
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import length, whole_sticks
from spyrec.emulator.operations.matmul import roles_of
from spyrec.emulator.resolve import POOL
from spyrec.emulator.rules.binding import Binding
from spyrec.emulator.timeline.shuffle_traffic import ring_bytes
from spyrec.emulator.timeline.traffic import Traffic
from spyrec.hardware.cost import (
    BatchOrder,
    Combination,
    OperandRead,
    OperandWalk,
    OperationClass,
    OperationRecord,
    Unit,
    WalkedDim,
    batch_order,
    pieces_of,
    strewn_batch,
    turns,
    walk_of,
)
from spyrec.hardware.target import PARTIAL_SUM_BYTES
from spyrec.hardware.work_slices import ring_hops


def record_of(setting: Setting, binding: Binding, traffic: Traffic) -> OperationRecord:
    """Return the record of one execution; ``traffic`` includes what was read at places that depend on data."""
    superdsc = setting.superdsc
    walks = [_walk_over(setting, position) for position in (*setting.inputs, setting.output)]
    operation_class = _class_of(setting, walks)
    is_matmul = operation_class is OperationClass.MATMUL
    roles = roles_of(setting) if is_matmul else None
    strewn = strewn_batch(walks, roles.rows, roles.batch) if roles else ()
    used = {*setting.inputs, setting.output}
    return OperationRecord(
        operation_class=operation_class,
        unit=Unit.PT if is_matmul else Unit.SFP,
        cores=setting.cores,
        core_points=math.prod(setting.extents.values()),
        core_rows=math.prod(setting.extents[dim] for dim in roles.rows) if roles else 0,
        element_bytes=max(superdsc.operands[t].word_length for t in (setting.inputs if is_matmul else used)),
        passes=device_operation(superdsc.op_func_name).vector_passes,
        flops=traffic.flops,
        result_elements=_result_elements(setting),
        read_bytes=traffic.hbm_read_bytes,
        core_read_bytes=traffic.hbm_core_read_bytes,
        write_bytes=traffic.hbm_write_bytes,
        shared_reads=_shared_reads(setting, binding),
        lx_read_bytes=_lx_bytes(setting, binding, setting.inputs),
        lx_write_bytes=_lx_bytes(setting, binding, (setting.output,)),
        combination=_combination(setting),
        batch_slices=math.prod(superdsc.work_slices[dim] for dim in roles.batch) if roles else 1,
        ring_bytes=ring_bytes(superdsc),
        core_columns=math.prod(setting.extents[dim] for dim in roles.columns) if roles else 1,
        column_slices=math.prod(superdsc.work_slices[dim] for dim in roles.columns) if roles else 1,
        batch_cuts=math.prod(superdsc.work_slices[dim] for dim in superdsc.work_slices if dim in strewn),
        walk=walk_of(walks, operation_class),
        pieces=1 if roles else _most_pieces(setting, walks),
        batch_order=batch_order(walks, strewn, is_shared=not roles.batch) if roles else BatchOrder(),
        reads_pool=any(binding.bases[position] == POOL for position in setting.inputs),
    )


def _walk_over(setting: Setting, position: int) -> OperandWalk:
    """Return the dims of an operand outside its sticks as all cores walk them."""
    superdsc, geometry = setting.superdsc, setting.geometries[position]
    if slid_axes(superdsc, position):
        return ()
    found: list[WalkedDim] = []
    for dim, extent in geometry.extents.items():
        elements = setting.extents[dim] * superdsc.work_slices[dim]
        count = -(-elements // geometry.stick_size) if dim == geometry.stick_dim else elements
        found.append(WalkedDim(dim, count, extent))
    return found


def _most_pieces(setting: Setting, walks: Sequence[OperandWalk]) -> int:
    operands = setting.superdsc.operands
    positions = (*setting.inputs, setting.output)
    return max(
        (
            pieces_of(walk)
            for position, walk in zip(positions, walks, strict=True)
            if operands[position].component is Component.HBM
        ),
        default=1,
    )


def writers_of(setting: Setting) -> tuple[int, ...]:
    """Return the cores that store results: all, or of those that combine the one with the last slices."""
    superdsc, reduced = setting.superdsc, split_reduced_dims(setting)
    return tuple(
        core
        for core, slices in zip(superdsc.core_ids, superdsc.core_work_slices)
        if all(slices[dim] == superdsc.work_slices[dim] - 1 for dim in reduced)
    )


def split_reduced_dims(setting: Setting) -> tuple[str, ...]:
    """Return the dims over which cores combine: split, and not in the output."""
    slices = setting.superdsc.work_slices
    return tuple(dim for dim in slices if slices[dim] > 1 and not setting.extends(setting.output, dim))


def _class_of(setting: Setting, walks: Sequence[OperandWalk]) -> OperationClass:
    family = device_operation(setting.superdsc.op_func_name).family
    match family:
        case Family.MATMUL:
            return OperationClass.MATMUL
        case Family.RESTICKIFY:
            return OperationClass.RESTICKIFY
        case Family.IDENTITY:
            if _is_partial(setting, setting.inputs[0]):
                return OperationClass.BROADCAST
            return OperationClass.TURN if turns(walks[0], walks[-1]) else OperationClass.COPY
        case Family.NORM_STATISTICS | Family.TOP:
            return OperationClass.REDUCTION
        case Family.WINDOW:
            return OperationClass.OUTER_REDUCTION
        case Family.REDUCTION:
            stick_dim = setting.geometries[setting.inputs[0]].stick_dim
            is_stick = stick_dim is not None and not setting.extends(setting.output, stick_dim)
            return OperationClass.REDUCTION if is_stick else OperationClass.OUTER_REDUCTION
        case _ if any(_is_partial(setting, position) for position in setting.inputs):
            return OperationClass.PARTIAL
        case _:
            return OperationClass.POINTWISE


def _is_partial(setting: Setting, position: int) -> bool:
    """Whether an operand is repeated along a dim of the result."""
    return any(
        extent > 1 and setting.extends(setting.output, dim) and not setting.extends(position, dim)
        for dim, extent in setting.superdsc.iteration.items()
    )


def _result_elements(setting: Setting) -> int:
    iteration = setting.superdsc.iteration
    return math.prod(extent for dim, extent in iteration.items() if setting.extends(setting.output, dim))


def _shared_reads(setting: Setting, binding: Binding) -> tuple[OperandRead, ...]:
    """Return the operands that several cores read; cores share one where they start at the same place."""
    found: list[OperandRead] = []
    for position in dict.fromkeys(setting.inputs):
        operand = setting.superdsc.operands[position]
        # which rows of a gather's table cores share depends on data
        if operand.component is not Component.HBM or operand.indirection is Indirection.VALUE:
            continue
        starts = len(set(binding.offsets[position].tolist()))  # one of each core, and np.unique imports masked arrays
        if starts < setting.cores:
            distinct_bytes = starts * length(whole_sticks(binding.runs[position]))
            found.append(OperandRead(distinct_bytes, setting.cores // starts))
    return tuple(found)


def _lx_bytes(setting: Setting, binding: Binding, positions: Sequence[int]) -> int:
    operands = setting.superdsc.operands
    return sum(length(binding.runs[t]) for t in dict.fromkeys(positions) if operands[t].component is Component.LX)


def _combination(setting: Setting) -> Combination:
    superdsc, dims = setting.superdsc, split_reduced_dims(setting)
    if not dims:
        return Combination()
    slices = math.prod(superdsc.work_slices[dim] for dim in dims)
    elements = _result_elements(setting) * slices // setting.cores
    return Combination(slices, _hops(setting, dims), elements * PARTIAL_SUM_BYTES)


def _hops(setting: Setting, dims: Sequence[str]) -> int:
    """Return the ring distance of cores that hold neighbouring slices."""
    superdsc = setting.superdsc
    order = tuple(superdsc.work_slices)
    slices = [tuple(of_core[dim] for dim in order) for of_core in superdsc.core_work_slices]
    return ring_hops(superdsc.core_ids, slices, [order.index(dim) for dim in dims])
