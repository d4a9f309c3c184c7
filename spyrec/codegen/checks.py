"""What is checked of an OpSpec beside its lowering: operands, formats, places, work division, combination."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

from spyrec.bundle.dialects import Dialect
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import EXTENDS, OperandDims
from spyrec.codegen.opspec import AllocationKind, OpSpec, TensorArgument
from spyrec.device_ops import DEVICE_OPERATIONS, MATMULS, SHUFFLE, TOPKS, device_operation
from spyrec.device_ops.record import ANY_FORMAT, HALF, ErrorKind
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import (
    DATA_SEGMENTS,
    MOST_ARGUMENTS,
    SEGMENT_BYTES,
    STICK_BYTES,
    Target,
)


def check_operand_list(spec: OpSpec, location: Location | None) -> None:
    """Check number and order of the operands.  Errors: SPY0506."""
    at = None if location is None else location.child("args")
    if not spec.args or spec.args[-1].is_input or not all(argument.is_input for argument in spec.args[:-1]):
        raise refuse("SPY0506", f'"{spec.op}" needs its inputs first and one output last', at)
    names = [argument.name for argument in spec.args if argument.name is not None]
    reads = {name for argument in spec.args for coord in argument.device_coordinates for name in coord.indirect_names}
    if any(names.count(name) > 1 for name in reads):
        raise refuse("SPY0506", "two operands of a gather have the same name", at)
    index_count = sum(argument.name in reads for argument in spec.args)
    record = device_operation(spec.op)
    least, most = record.least_inputs, record.inputs
    inputs = len(spec.args) - 1 - index_count
    if not least <= inputs <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise refuse("SPY0506", f'"{spec.op}" takes {wanted} inputs, {inputs} are given', at)


def check_places(spec: OpSpec, is_symbolic: bool, location: Location | None) -> None:
    """Check where the operands lie, whose addresses are symbols or baked in.  Errors: SPY0505."""
    at = None if location is None else location.child("args")
    for position, argument in enumerate(spec.args):
        _check_allocation(argument, is_symbolic, None if at is None else at.child(position))


def _check_allocation(argument: TensorArgument, is_symbolic: bool, location: Location | None) -> None:
    at = None if location is None else location.child("allocation", argument.allocation.kind.value)
    start = argument.allocation.start_bytes
    if start % STICK_BYTES:
        raise refuse("SPY0505", f"allocation at byte {start} is not aligned to the stick of {STICK_BYTES} bytes", at)
    if argument.allocation.kind is AllocationKind.LX:
        return
    sticks = 1
    for size in argument.device_size[:-1]:
        sticks *= size
    end = start + sticks * STICK_BYTES
    if argument.allocation.kind is AllocationKind.HBM:
        limit = (start // SEGMENT_BYTES + 1) * SEGMENT_BYTES
    else:
        limit = SEGMENT_BYTES
    # a symbol needs no segment: what counts then is the offset in the argument
    segments = MOST_ARGUMENTS if is_symbolic and argument.arg_index is not None else DATA_SEGMENTS
    if end > limit or start >= segments * SEGMENT_BYTES:
        raise refuse(
            "SPY0505",
            f"operand of {sticks * STICK_BYTES} bytes at byte {start} leaves its segment of {SEGMENT_BYTES} bytes",
            at,
        )


def check_gather(spec: OpSpec, value: int, index: int | None, dialect: Dialect, location: Location | None) -> int:
    """Check the operands of a gather or scatter and return the index tensor's position.  Errors: SPY0521."""

    def wrong(fact: str, position: int) -> SpyrecError:
        return refuse("SPY0521", fact, None if location is None else location.child("args", position))

    if index is None:
        raise wrong("rows are read through a name that no operand has", value)
    if value == len(spec.args) - 1 and not dialect.scatters:
        raise wrong("the output cannot be scattered through an index tensor", value)
    if index in {value, len(spec.args) - 1}:
        raise wrong("an index tensor must be an input of its own", index)
    for position in (index, value):
        if spec.args[position].allocation.kind is AllocationKind.LX:
            raise wrong("index and value tensors of a gather must lie in device memory, not in LX", position)
    if spec.args[index].device_dtype.elements_per_stick != 32:
        raise wrong(f"an index tensor has 32-bit elements, not {spec.args[index].device_dtype.name}", index)
    return index


def check_cores(iteration: IterationSpace, target: Target, location: Location | None) -> None:
    """Check that the target has as many cores as the work division needs.  Errors: SPY0510."""
    at = None if location is None else location.child("iteration_space")
    if iteration.cores > target.cores:
        cuts = " * ".join(str(cut) for cut in iteration.work_slices.values())
        raise refuse("SPY0510", f"work division {cuts} needs {iteration.cores} cores, there are {target.cores}", at)


def check_even(iteration: IterationSpace, location: Location | None) -> None:
    """Check that every core gets the same extent along every dim.  Errors: SPY0511."""
    for dim, cut in iteration.work_slices.items():
        if iteration.sizes[dim] % cut:
            padding = iteration.padding.get(dim, 0)
            rounded = f" ({iteration.sizes[dim] - padding} rounded up to whole sticks)" if padding else ""
            raise refuse(
                "SPY0511",
                f'{cut} slices do not divide {iteration.sizes[dim]} elements{rounded} along "{dim}"',
                None if location is None else location.child("iteration_space"),
                hint="choose a divisor of the extent",
            )


def check_combination(
    spec: OpSpec, dims: Sequence[OperandDims], iteration: IterationSpace, location: Location | None
) -> None:
    """Check that cores which share an output element may combine their results.  Errors: SPY0522."""
    output = dims[-1].scales
    fold = device_operation(spec.op).fold
    combines = fold is not None and fold.cores_combine and (spec.is_reduction or spec.op in MATMULS)
    reduced = [dim for dim, size in iteration.sizes.items() if size > 1 and output.get(dim) != EXTENDS]
    at = None if location is None else location.child("args", len(dims) - 1)
    if not spec.is_reduction and spec.op not in MATMULS and reduced:
        raise refuse(
            "SPY0522",
            f'"{spec.op}" is no reduction, but its output does not vary along "{reduced[0]}" of extent '
            f"{iteration.sizes[reduced[0]]}",
            at,
        )
    divided = [dim for dim in reduced if iteration.work_slices[dim] > 1]
    if divided and not combines:
        raise refuse(
            "SPY0522",
            f'"{spec.op}" is divided along "{divided[0]}", which it reduces; its partial results cannot be combined',
            at,
            hint="divide the work along another dim",
        )


def check_pairs(spec: OpSpec, dims: Sequence[OperandDims], location: Location | None) -> None:
    """Check that sticks of pairs run along the dims that the operation has for them.  Errors: SPY0545."""
    for position, operand in enumerate(dims):
        if not operand.has_pairs:
            continue
        rows, lanes = operand.stick_dims
        output = dims[-1].scales
        if lanes != operand.stick_dim or {operand.scales[rows], operand.scales[lanes]} != {EXTENDS}:
            fact = (
                f'pairs of "{rows}" in sticks along "{lanes}", the elements of a stick run along "{operand.stick_dim}"'
            )
        elif spec.op in MATMULS and (position != 1 or rows in output or lanes not in output):
            fact = f'operand {position} has pairs of "{rows}" along "{lanes}"; the second operand has pairs of the dim'
            fact += " that is contracted"
        elif any(other.stick_dim != lanes for other in dims) and spec.op not in MATMULS:
            fact = f'pairs in sticks along "{lanes}", another operand has sticks along another dim'
        else:
            continue
        at = None if location is None else location.child("args", position, "element_arrangement")
        raise refuse("SPY0545", fact, at)


def check_top(
    spec: OpSpec, dims: Sequence[OperandDims], iteration: IterationSpace, device: Target, location: Location | None
) -> None:
    """Check how many elements a top-k takes, on each core and of how many.  Errors: SPY0535."""
    if spec.op not in TOPKS:
        return
    source, target = dims[0].dim_order, dims[-1].dim_order
    taken = [dim for dim in target if dim not in source]
    count = prod(iteration.sizes[dim] for dim in taken)
    own = prod(iteration.core_extent(dim) for dim in taken)
    of = prod(iteration.sizes[dim] for dim in source if dim not in target)
    at = None if location is None else location.child("iteration_space")
    for found, most, where, figure in (
        (count, device.topk_limit, "", "topk_limit"),
        (own, device.topk_core_limit, " on each core", "topk_core_limit"),
    ):
        if found > most:
            fact = f'"{spec.op}" takes {found} elements{where}, target "{device.name}" has at most {most} ({figure})'
            raise refuse("SPY0535", fact, at, hint="name another target with --target, or take fewer elements")
    if count > of:
        fact = f'"{spec.op}" takes {count} elements of {of}'
        raise refuse("SPY0535", fact, at, hint="take as many as there are")


def check_operation(spec: OpSpec, location: Location | None) -> None:
    """Check that the device has the operation.  Errors: SPY0530."""
    # an OpSpec names a reduction alike whatever dim it folds, and a shuffle is an identity between two owners
    if spec.op == SHUFFLE or spec.op not in DEVICE_OPERATIONS or device_operation(spec.op).name != spec.op:
        at = None if location is None else location.child("op")
        hint = "the device has " + ", ".join(sorted({record.name for record in DEVICE_OPERATIONS.values()} - {SHUFFLE}))
        raise refuse("SPY0530", f'operation "{spec.op}" is not known', at, hint=hint)


def check_formats(
    spec: OpSpec, indices: Collection[int], dialect: Dialect, location: Location | None, *, is_exact: bool
) -> None:
    """Check the formats of all operands but index tensors; ``is_exact``: each by itself.  Errors: SPY0531."""
    record = device_operation(spec.op)
    if record.error.kind is ErrorKind.COMPARISON and not dialect.compares_singles:
        record = replace(record, accepts=HALF, gives=HALF)
    last = len(spec.args) - 1
    first_format: DeviceFormat | None = None
    for position, argument in enumerate(spec.args):
        found = argument.device_dtype
        if position in indices:
            continue
        at = None if location is None else location.child("args", position, "device_dtype")
        allowed = record.gives if position == last else record.accepts
        if allowed != ANY_FORMAT and found not in allowed:
            takes = ", ".join(sorted(item.name for item in allowed))
            hint = f"{'it gives' if position == last else 'it takes'} {takes}"
            raise refuse("SPY0531", f'"{spec.op}" on {found.name}', at, hint=hint)
        is_apart = is_exact and dialect.reproduces_mistakes  # as upstream's gate looks at them
        if is_apart or not record.is_uniform or (position == last and record.gives != record.accepts):
            continue
        first_format = first_format or found
        if found is not first_format:
            fact = f'"{spec.op}" on {first_format.name} and {found.name} together'
            raise refuse("SPY0531", fact, at, hint="convert one of them: dl16tofp32 and fp32todl16 do")
