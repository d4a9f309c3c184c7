"""What the operations compute: each element by itself, or moved as it is; what folds is in ``folds``."""

from __future__ import annotations

import numpy as np

from spyrec.device_ops import TOP_PLACES, device_operation
from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.device_ops.record import Family
from spyrec.emulator.reference.execution import DefinedExecution, mask_value, masked
from spyrec.emulator.reference.folds import DOUBLE, matmul, reduce_dims, slide
from spyrec.emulator.reference.memory import FLOATS, Integers


def perform(execution: DefinedExecution) -> None:
    """Execute one SuperDSC.  The outer name of a reduction only says that no output has one element per stick."""
    name = execution.superdsc.op_func_name
    match device_operation(name).family:
        case Family.IDENTITY | Family.RESTICKIFY | Family.CAST | Family.PACK:
            _copy(execution)
        case Family.SHUFFLE:
            _shuffle(execution)
        case Family.UNARY:
            _one_input(execution)
        case Family.POINTWISE:
            _pointwise(execution)
        case Family.REDUCTION | Family.NORM_STATISTICS:
            reduce_dims(execution)
        case Family.NORM_SCALE:
            _norm_scale(execution)
        case Family.MATMUL:
            matmul(execution)
        case Family.WINDOW:
            slide(execution)
        case Family.TOP:
            _top(execution, is_index=name == TOP_PLACES)


def _one_input(execution: DefinedExecution) -> None:
    """The function of the value and of the operation's constants, in float64, rounded once.

    An element that a mask hides, which only exp has, counts as the mask's number.
    """
    function = device_operation(execution.superdsc.op_func_name).unary
    assert function is not None
    for core in execution.cores:
        hidden = masked(execution, core, list(execution.box))
        elements = np.where(hidden, mask_value(execution), execution.values(execution.inputs[0], core))
        values = elements.astype(np.float64)
        execution.store_rounded(core, function(values, execution.constants))


SINGLE = ArrayAlgebra(np.float32)
"""Formulas in float32: every step is rounded to that."""


def _pointwise(execution: DefinedExecution) -> None:
    """The formula in float32, element by element, rounded to the output's format; padding lanes like any others.

    A formula whose steps may cancel is computed in float64 and rounded to float32 first.
    """
    pointwise = device_operation(execution.superdsc.op_func_name).pointwise
    assert pointwise is not None
    algebra = DOUBLE if pointwise.is_double else SINGLE
    absent = pointwise.absent or {}
    names = pointwise.formula.operands[len(execution.inputs) :]
    rest = [np.full((), absent[name], algebra.dtype) for name in names]
    for core in execution.cores:
        operands = [execution.values(position, core).astype(algebra.dtype) for position in execution.inputs]
        result = pointwise.formula.evaluate(algebra, (*operands, *rest))
        execution.store_rounded(core, result.astype(np.float32))


def _copy(execution: DefinedExecution) -> None:
    """Coordinate by coordinate, lane n to lane n: bits between equal formats and 32-bit ones, values between floats.

    With an index this is a gather or a scatter.
    """
    source, target = execution.inputs[0], execution.output
    formats = {execution.stored(source), execution.stored(target)}
    for core in execution.cores:
        if len(formats) == 2 and formats <= FLOATS:
            execution.store_rounded(core, execution.values(source, core))
        else:
            execution.store(core, execution.patterns(source, core, execution.offsets(source, core)))


def _shuffle(execution: DefinedExecution) -> None:
    """Every core gets what it shall own, from the cores that own it: all is read first, then it is stored.

    Of several owners of an element the lowest core counts.  Bits are copied, whatever they mean.
    """
    source, target = execution.inputs[0], execution.output
    owned: dict[tuple[int, ...], np.unsignedinteger] = {}
    for core in execution.cores:
        coordinates, offsets = _owned_elements(execution, source, core)
        for coordinate, pattern in zip(coordinates, execution.patterns(source, core, offsets), strict=True):
            owned.setdefault(coordinate, pattern)
    for core in execution.cores:
        coordinates, offsets = _owned_elements(execution, target, core)
        execution.store_at(core, offsets, np.array([owned[coordinate] for coordinate in coordinates]))


def _owned_elements(execution: DefinedExecution, position: int, core: int) -> tuple[list[tuple[int, ...]], Integers]:
    """Return the coordinates in the tensor of what a core owns of an operand, and the byte of each from its start.

    Elements lie as those of any operand in LX, in the order in which the folds count them, corelet by corelet.
    """
    superdsc, view = execution.superdsc, execution.views[position]
    own = superdsc.operands[position].distribution
    assert own is not None
    places: list[Integers] = []
    for dim in view.extents:
        core_fold, corelet_fold, _, *elements = own.folds[dim]
        inside = np.zeros(1, np.int64)
        for fold in elements:
            inside = (inside[:, None] + fold.alpha * np.arange(fold.factor)).reshape(-1)
        inside = inside[: own.corelet_elements(dim)]
        corelets = corelet_fold.alpha * np.arange(corelet_fold.factor)
        first = core_fold.alpha * own.core_slices[core][dim]
        places.append(first + (corelets[:, None] + inside).reshape(-1))
    box = {dim: len(at) for dim, at in zip(view.extents, places, strict=True)}
    points = np.meshgrid(*places, indexing="ij")
    return list(zip(*(axis.reshape(-1).tolist() for axis in points), strict=True)), view.offsets(box).reshape(-1)


def _norm_scale(execution: DefinedExecution) -> None:
    """layernormscale: ``1 / sqrt(lane 1 - lane 0 squared + eps)`` of each input stick, in every lane of the output."""
    for core in execution.cores:
        mean, square = (execution.values(execution.inputs[0], core, lane).astype(np.float64) for lane in (0, 1))
        execution.store_rounded(core, 1.0 / np.sqrt(square - mean * mean + execution.constants["eps"]))


def _top(execution: DefinedExecution, *, is_index: bool) -> None:
    """Sort along the dim that only the input has, descending, NaN last, equal ones as they stand; store the first.

    How many is said by the dim that only the output has, of which a core has its slice; without such a dim it is one.
    """
    source, target = execution.inputs[0], execution.output
    (sorted_dim,) = (d for d in execution.box if execution.extends(source, d) and not execution.extends(target, d))
    own = [d for d in execution.box if execution.extends(target, d) and not execution.extends(source, d)]
    taken_dim = own[0] if own else sorted_dim
    count, slices = (execution.box[taken_dim] if own else 1), execution.superdsc.core_work_slices
    dims = list(execution.box)
    for core in execution.cores:
        rows = np.swapaxes(execution.values(source, core), dims.index(sorted_dim), dims.index(taken_dim))
        axis = dims.index(taken_dim)
        places = np.argsort(-rows, axis=axis, kind="stable")
        places = np.take(places, slices[core][taken_dim] * count + np.arange(count), axis=axis)
        if is_index and execution.views[target].data_format not in FLOATS:
            execution.store(core, places.astype(np.uint32))
        else:
            values = places.astype(np.float64) if is_index else np.take_along_axis(rows, places, axis=axis)
            execution.store_rounded(core, values)
