"""Folds: of every core in float64, then the cores that share a result in slice order, then rounded once.

Those of a matrix product are folded in float32, as ``_contract`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np

from spyrec.device_ops import device_operation
from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.device_ops.record import Accumulator, WindowForm
from spyrec.emulator.reference.execution import DefinedExecution, mask_value, masked
from spyrec.emulator.reference.memory import Doubles, Flags, Floats
from spyrec.emulator.reference.operands import at_axis

DOUBLE = ArrayAlgebra(np.float64)
"""Formulas in float64: every step is rounded to that."""


def reduce_dims(execution: DefinedExecution) -> None:
    """Fold the input over the dims along which the output does not extend; scale by a constant at last, where one is.

    exx2 stores two folds, the sum in lane 0, or 0 under ``useZeroMean``, and the sum of squares in lane 1.
    """
    fold = device_operation(execution.superdsc.op_func_name).fold
    assert fold is not None
    scale = 1.0 if fold.scale is None else execution.constants[fold.scale]
    for lane, accumulator in enumerate(fold.accumulators):
        has_zero = lane == 0 and execution.constants.get("useZeroMean", 0.0) != 0
        for core, folded in _folded(execution, accumulator):
            execution.store_rounded(core, np.zeros_like(folded) if has_zero else folded * scale, lane=lane)


def _folded(execution: DefinedExecution, accumulator: Accumulator) -> Iterator[tuple[int, Doubles]]:
    """Yield the results of each cohort of cores, in float64, and the core that stores them: its first one."""

    def step(total: Doubles, x: Doubles) -> Doubles:
        return np.asarray(accumulator.step.evaluate(DOUBLE, (total, x)), np.float64)

    def merge(total: Doubles, x: Doubles) -> Doubles:
        return np.asarray(accumulator.merge.evaluate(DOUBLE, (total, x)), np.float64)

    source = execution.inputs[0]
    folded = [dim for dim in execution.box if not execution.extends(execution.output, dim)]
    lanes = _lanes(execution, folded)
    for members in execution.cohorts(folded):
        parts: list[Doubles] = []
        for core in members:
            values = np.where(masked(execution, core, folded), mask_value(execution), execution.values(source, core))
            elements = execution.folded_first(values, folded).astype(np.float64)
            sums = [np.full(elements.shape[1:], accumulator.identity) for _ in range(_LANES)]
            for lane, element in zip(lanes, elements, strict=True):
                sums[lane] = step(sums[lane], element)
            parts.append(reduce(merge, sums))
        yield members[0], reduce(merge, parts)


_LANES = 64


def _lanes(execution: DefinedExecution, folded: Sequence[str]) -> list[int]:
    """Return the lane that takes each folded element: lanes are folded side by side, and one after the other at last.

    Where sticks are folded, neighbours in memory go to lanes one after the other, a run of 64 at most; the next run
    begins at lane 0 again.  Elsewhere all go to lane 0.
    """
    view = execution.views[execution.inputs[0]]
    offsets = execution.folded_first(view.offsets(execution.box), folded)[:, *[0] * len(execution.box)].tolist()
    lanes = [0] * len(offsets)
    for place in range(1, len(offsets) if view.stick_dim in folded else 0):
        if offsets[place] == offsets[place - 1] + view.element_bytes:
            lanes[place] = (lanes[place - 1] + 1) % _LANES
    return lanes


def matmul(execution: DefinedExecution) -> None:
    """``C = sum over K of A B``: K is what A and B have and C has not; everything else follows from broadcasting."""
    a, b = execution.inputs
    folded = [
        dim
        for dim in execution.box
        if execution.extends(a, dim) and execution.extends(b, dim) and not execution.extends(execution.output, dim)
    ]
    _contract(execution, folded, lambda core: execution.values(a, core))


def _contract(execution: DefinedExecution, folded: Sequence[str], first_input: Callable[[int], Floats]) -> None:
    """Fold the products of both inputs.

    Each element is one chain of fused multiply-adds in float32 from 0 on, k ascending, per slice of K; the slices are
    added in float32, in order, and the sum is rounded.
    """
    for members in execution.cohorts(folded):
        total: Floats | None = None
        for core in members:
            left = np.where(_padding(execution, core, folded), np.float32(0), first_input(core))
            rows = execution.folded_first(left, folded)
            columns = execution.folded_first(execution.values(execution.inputs[1], core), folded)
            part = np.zeros(np.broadcast_shapes(rows.shape[1:], columns.shape[1:]), np.float32)
            for row, column in zip(rows.astype(np.float32), columns.astype(np.float32), strict=True):
                part = fused_multiply_add(row, column, part)
            total = part if total is None else total + part
        assert total is not None
        execution.store_rounded(members[0], total)


def slide(execution: DefinedExecution) -> None:
    """Slide a window: a pool sums in float64 and scales, a depthwise convolution sums products in float64.

    A convolution over all channels is a matrix product whose K is input channels and window, in the order of the file;
    each core has a part of the channels, and whole windows.
    """
    form = device_operation(execution.superdsc.op_func_name).window
    folded = [dim for dim in execution.box if not execution.extends(execution.output, dim)]
    if form is WindowForm.CONVOLUTION:
        _contract(execution, folded, execution.slid_values)
        return
    for core in execution.cores:
        values = execution.slid_values(core).astype(np.float64)
        if form is WindowForm.DEPTHWISE:
            values = values * execution.values(execution.inputs[1], core)
        elements = execution.folded_first(values, folded)
        total = np.zeros(elements.shape[1:])
        for element in elements.astype(np.float64):
            total = total + element
        execution.store_rounded(core, total * execution.constants["nmap"] if form is WindowForm.POOL else total)


def fused_multiply_add(x: Floats, y: Floats, z: Floats) -> Floats:
    """Return ``x * y + z``, rounded once to float32.

    float64 holds the product exactly, but not the sum.  What rounding that lost is known exactly, and the bit below
    all others is set instead where there was anything (rounding to odd): with 29 bits to spare the second rounding then
    is that of the exact sum.
    """
    product, addend = np.multiply(x, y, dtype=np.float64), z.astype(np.float64)
    total = product + addend
    back = total - product
    lost = (product - (total - back)) + (addend - back)
    if not lost.any():  # nothing was, and nothing is infinite or NaN
        return total.astype(np.float32)
    bits = total.view(np.int64)
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    is_rounded_to_even = np.isfinite(total) & (lost != 0) & (bits % 2 == 0)
    return np.where(is_rounded_to_even, bits + towards, bits).view(np.float64).astype(np.float32)


def _padding(execution: DefinedExecution, core: int, folded: Sequence[str]) -> Flags:
    """Return where A counts as zero: where k may be padding, because it lies in the last stick of K, and B is zero in
    every column.  The file does not say where K really ends, and what A holds behind that is undefined.

    Columns of other cores count, and matrices of a batch each for itself.
    """
    superdsc, box, (a, b) = execution.superdsc, execution.box, execution.inputs
    stick_dim = execution.views[a].stick_dim
    if stick_dim is None or stick_dim not in folded:
        return np.zeros([1] * len(box), bool)
    slices = superdsc.core_work_slices
    place = slices[core][stick_dim] * superdsc.core_extent[stick_dim] + np.arange(box[stick_dim])
    first = execution.iteration[stick_dim] - execution.views[a].stick_size
    is_last = at_axis(list(box).index(stick_dim), box, place >= first)
    if not is_last.any():
        return is_last
    shared = [dim for dim in box if execution.extends(a, dim) and execution.extends(b, dim)]
    others = [other for other in execution.cores if all(slices[other][dim] == slices[core][dim] for dim in shared)]
    columns = tuple(axis for axis, dim in enumerate(box) if execution.extends(b, dim) and dim not in shared)
    zero = [np.all(execution.values(b, other) == 0, axis=columns, keepdims=True) for other in others]
    return is_last & np.logical_and.reduce(zero)
