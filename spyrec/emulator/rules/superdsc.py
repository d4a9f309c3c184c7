"""Rules that one SuperDSC must obey whatever it is bound to: V1, V2, V3, V5, V8 (capacity), V11, V12, V14.

Each rule is a function from a :class:`SuperDsc` to diagnostics; ``SPY0711`` is V1 and so on.  V6, V7, V9, V10, V13 and
the rest of V4 and V8 need addresses or the whole program: ``binding_rules``, ``resolve``, ``scratchpad_rules``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.bundle.superdsc_windows import slid_axes
from spyrec.device_ops import DEVICE_OPERATIONS, device_operation, known_operations
from spyrec.device_ops.record import Family
from spyrec.diagnostics import Diagnostic, Location
from spyrec.emulator.geometry import RESTICKIFY, extending_dims, short_gap_dims, stick_dim_of
from spyrec.emulator.rules.shuffles import ShuffleFault, is_shuffle, shuffle_faults
from spyrec.emulator.rules.windows import check_windows
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES, Target
from spyrec.runtime.findings import FaultPlace, RuleDiagnostic

RULE_CODES = {number: f"SPY07{10 + number}" for number in range(1, 15)}
"""Diagnostic code of each rule V1 to V14."""

_FIELDS = {
    RULE_CODES[number]: field
    for number, field in (
        (1, "coreIdToWkSlice_"),
        (2, "N_"),
        (3, "numWkSlicesPerDim_"),
        (4, "scheduleTree_"),
        (5, "scheduleTree_"),
        (11, "labeledDs_"),
        (12, "scheduleTree_"),
        (13, "N_"),
        (14, "computeOp_"),
    )
}
"""By code of a rule, the field that what breaks it is read from, where the rule itself names none."""

_EXTENT_LIMIT = SEGMENT_BYTES  # no dim of a tensor that fits a segment has more elements


def check_superdsc(file: str, superdsc: SuperDsc, target: Target) -> list[Diagnostic]:
    """Return every violation found in one SuperDSC; an empty list means that its geometry can be computed."""
    where = Location(file)
    malformed = [*_operation(superdsc, where), *_form(superdsc, where)]
    if not malformed and is_shuffle(superdsc):
        malformed = [_shuffle_fault(superdsc, where, item) for item in shuffle_faults(superdsc)]
    if malformed:
        return [_of_operation(superdsc, item) for item in malformed]
    if is_shuffle(superdsc):  # what counts is who owns its operands, not how it is divided itself
        return [
            _of_operation(superdsc, item) for item in (*_extents(superdsc, where), *_sizes(superdsc, where, target))
        ]
    rules: tuple[Callable[[SuperDsc, Location], Iterator[Diagnostic]], ...] = (
        _grid,
        _extents,
        _whole_sticks_per_core,
        _sticks_of_pairs,
        _lx_gaps,
        _masks,
        _combinations,
        check_windows,
    )
    found = [diagnostic for rule in rules for diagnostic in rule(superdsc, where)]
    return [_of_operation(superdsc, item) for item in (*found, *_sizes(superdsc, where, target))]


def _shuffle_fault(superdsc: SuperDsc, where: Location, fault: ShuffleFault) -> Diagnostic:
    place = replace(_place_in_lx(superdsc, fault.position), field=f"scheduleTree_[{fault.position}].coordinates_")
    plain = Diagnostic(fault.code, f"{name_of(superdsc, fault.position)}: {fault.message}", where)
    return RuleDiagnostic.of(plain, place)


def _of_operation(superdsc: SuperDsc, found: Diagnostic) -> Diagnostic:
    """Return a diagnostic that names the operation, unless it names more."""
    if isinstance(found, RuleDiagnostic):
        return found
    place = FaultPlace(op=superdsc.op_func_name, field=_FIELDS.get(found.code), provenance=superdsc.provenance)
    return RuleDiagnostic.of(found, place)


def name_of(superdsc: SuperDsc, position: int) -> str:
    """Return how diagnostics name an operand: position, label and memory."""
    operand = superdsc.operands[position]
    return f"operand {position} ({operand.label}, {operand.component.value})"


def _rule(number: int, message: str, where: Location, hint: str | None = None) -> Diagnostic:
    return Diagnostic(RULE_CODES[number], message, where, hint=hint)


def _operation(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V14: what nobody has seen executed is refused by name."""
    compute = superdsc.compute
    function = DEVICE_OPERATIONS.get(compute.op_func_name)
    if function is None:
        hint = known_operations(compute.op_func_name)
        yield _rule(14, f'operation "{compute.op_func_name}" is not known', where, hint)
        return
    if len(compute.outputs) != 1:
        yield _rule(14, f'"{compute.op_func_name}" has {len(compute.outputs)} outputs, one is executed', where)
        return
    inputs = input_positions(superdsc)
    least = function.inputs - function.optional_inputs
    if not least <= len(inputs) <= function.inputs:
        takes = f"{least} to {function.inputs}" if function.optional_inputs else str(least)
        yield _rule(14, f'"{compute.op_func_name}" has {len(inputs)} inputs, it takes {takes}', where)
    names = {entry.name for entry in superdsc.constants}
    for constant in function.constants:
        if constant not in names:
            yield _rule(14, f'"{compute.op_func_name}" has no constant "{constant}", it has {sorted(names)}', where)
    yield from _formats(superdsc, where)
    if compute.indirect_access_indices and function.family not in _BY_ELEMENT:
        message = f'"{compute.op_func_name}" with an index tensor'
        hint = "copies and functions of single elements read and store rows by an index: gather first"
        yield _rule(14, f"{message} is not executed", where, hint)
    dims = {frozenset(superdsc.operands[t].layout_dim_order) for t in _known(superdsc, compute.indirect_access_indices)}
    if len(dims) > 1:
        yield _rule(14, f"index tensors over different dims, {sorted(map(sorted, dims))}, are not executed", where)


_BY_ELEMENT = frozenset({Family.IDENTITY, Family.UNARY, Family.POINTWISE})


def _known(superdsc: SuperDsc, positions: Sequence[int]) -> list[int]:
    return [position for position in positions if 0 <= position < len(superdsc.operands)]


_FLOATS = frozenset({DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP16, DeviceFormat.IEEE_FP32, DeviceFormat.SEN143_FP8})


def _formats(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V14: arithmetic is defined on the float formats only; copies take any format."""
    family = device_operation(superdsc.compute.op_func_name).family
    if family in {Family.IDENTITY, Family.RESTICKIFY, Family.SHUFFLE}:
        return
    computed = [*input_positions(superdsc), *(superdsc.compute.outputs if family is not Family.TOP else ())]
    for position in computed:
        data_format = superdsc.operands[position].data_format if position < len(superdsc.operands) else None
        if data_format is not None and data_format not in _FLOATS:
            message = f'"{superdsc.op_func_name}" does not compute on {data_format.name}'
            hint = "it takes " + ", ".join(sorted(item.name for item in _FLOATS))
            yield _rule(14, f"{name_of(superdsc, position)}: {message}", where, hint)


def input_positions(superdsc: SuperDsc) -> tuple[int, ...]:
    """Return the input operands; an output that a reduction lists among its inputs is not one."""
    outputs = superdsc.compute.outputs
    indices = superdsc.compute.indirect_access_indices
    return tuple(t for t in superdsc.compute.inputs if t not in outputs and t not in indices)


def _form(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V11: shapes of the record itself."""
    positions = {*superdsc.compute.inputs, *superdsc.compute.outputs, *superdsc.compute.indirect_access_indices}
    if any(not 0 <= t < len(superdsc.operands) for t in positions):
        yield _rule(11, f"operands {sorted(positions)} are named, there are {len(superdsc.operands)}", where)
        return
    for dim, extent in superdsc.iteration.items():
        if dim not in superdsc.work_slices or dim not in superdsc.core_extent:
            yield _rule(11, f'dim "{dim}" has no work slices or no extent per core', where)
        elif not 0 < extent <= _EXTENT_LIMIT or superdsc.work_slices[dim] < 1 or superdsc.core_extent[dim] < 1:
            yield _rule(13, f'dim "{dim}" has extent {extent}, slices {superdsc.work_slices[dim]}', where)
    for position, operand in enumerate(superdsc.operands):
        for message in _operand_form(superdsc, operand):
            yield _rule(11, f"{name_of(superdsc, position)}: {message}", where)


def _operand_form(superdsc: SuperDsc, operand: Operand) -> Iterator[str]:
    label = superdsc.labels.get(operand.label)
    if label is None:
        yield f"label {operand.label} is not in primaryDsInfo_"
        return
    order = operand.layout_dim_order
    if operand.word_length * label.stick_size != STICK_BYTES:
        yield f"word length {operand.word_length} times stick size {label.stick_size} is not {STICK_BYTES}"
    per_stick = operand.data_format.elements_per_stick
    if per_stick != label.stick_size:
        yield f"{operand.data_format.name} has {per_stick} elements per stick, the label {label.stick_size}"
    if set(order) != set(label.layout_dim_order) or len(set(order)) != len(order):
        yield f"layout order {list(order)} and the label's {list(label.layout_dim_order)} differ"
    if not set(order) <= set(superdsc.iteration):
        yield f"layout order {list(order)} has dims that are not iterated: {list(superdsc.iteration)}"
    if len(operand.start_addresses) != len(superdsc.core_ids):
        yield f"{len(operand.start_addresses)} start addresses for {len(superdsc.core_ids)} cores"
    if set(operand.scales) != set(order):
        yield f"scales for {sorted(operand.scales)}, dims {sorted(order)}"
    elif set(order) <= set(superdsc.iteration):
        yield from _scales_and_gaps(superdsc, operand)


def _scales_and_gaps(superdsc: SuperDsc, operand: Operand) -> Iterator[str]:
    label = superdsc.labels[operand.label]
    for dim, scale in operand.scales.items():
        if scale not in {1, -1, -2} or (scale == -2 and dim != label.stick_dim):
            yield f'scale {scale} of dim "{dim}", stick dim "{label.stick_dim}"'
    short = short_gap_dims(superdsc, operand)
    for dim, gap in operand.back_gap.items():
        if dim not in operand.layout_dim_order or gap < 0:
            yield f'gap {gap} of dim "{dim}"'
        elif dim == label.stick_dim and gap % label.stick_size and dim not in short:
            yield f'gap {gap} of stick dim "{dim}" is not whole sticks of {label.stick_size}'


def _grid(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V1: the slice tuples cover the grid exactly once."""
    slices = superdsc.work_slices
    expected = math.prod(slices.values())
    if expected != len(superdsc.core_ids) or len(set(superdsc.core_ids)) != len(superdsc.core_ids):
        yield _rule(1, f"work slices {dict(slices)} make {expected}, cores used {len(superdsc.core_ids)}", where)
        return
    tuples: set[tuple[int, ...]] = set()
    for core, of_core in zip(superdsc.core_ids, superdsc.core_work_slices):
        place = tuple(of_core.get(dim, -1) for dim in slices)
        if any(not 0 <= index < count for index, count in zip(place, slices.values())):
            yield _rule(1, f"core {core} has slices {dict(of_core)} outside the grid {dict(slices)}", where)
        elif place in tuples:
            yield _rule(1, f"core {core} has slices {dict(of_core)} of another core", where)
        tuples.add(place)


def _extents(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V2: slices times extent per core is the whole, exactly."""
    for dim, extent in superdsc.iteration.items():
        per_core, slices = superdsc.core_extent[dim], superdsc.work_slices[dim]
        if per_core * slices != extent:
            yield _rule(2, f'dim "{dim}": {slices} slices of {per_core} are not {extent}', where)


def _whole_sticks_per_core(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V3: a core's slice of a stick dim is a whole number of sticks."""
    for position, operand in enumerate(superdsc.operands):
        stick_dim = stick_dim_of(superdsc, operand)
        if operand.scales.get(stick_dim) != 1 or superdsc.work_slices[stick_dim] == 1:
            continue
        size = superdsc.labels[operand.label].stick_size
        per_core = superdsc.core_extent[stick_dim]
        if per_core % size == 0 or (operand.indirection is Indirection.INDEX and size % per_core == 0):
            continue
        message = f'{name_of(superdsc, position)}: {per_core} elements of stick dim "{stick_dim}" per core'
        yield _rule(3, f"{message} are not whole sticks of {size}", where, "split the stick dim by whole sticks")


def _sticks_of_pairs(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V3 and V14: pairs are whole on every core, and of the dims that the operation has for them."""
    for position, operand in enumerate(superdsc.operands):
        label = superdsc.labels[operand.label]
        if len(label.stick_dims) < 2:
            continue
        name, (rows, lanes) = name_of(superdsc, position), label.stick_dims
        if superdsc.core_extent[rows] % 2:
            message = f'{name}: {superdsc.core_extent[rows]} entries of dim "{rows}" per core'
            yield _rule(3, f"{message} are no whole pairs", where, "split the dim by whole pairs")
        if operand.is_interleaved or operand.scales.get(rows) != 1 or operand.scales.get(lanes) != 1:
            yield _rule(14, f'{name}: pairs of "{rows}" along "{lanes}", which it does not extend along', where)
        if device_operation(superdsc.op_func_name).family is Family.MATMUL:
            yield from _pairs_of_product(superdsc, position, where)
        elif any(stick_dim_of(superdsc, other) != lanes for other in superdsc.operands):
            yield _rule(14, f'{name}: sticks along "{lanes}", another operand has them along another dim', where)


def _pairs_of_product(superdsc: SuperDsc, position: int, where: Location) -> Iterator[Diagnostic]:
    rows, lanes = superdsc.labels[superdsc.operands[position].label].stick_dims
    first, second = (superdsc.operands[t].scales for t in input_positions(superdsc))
    output = superdsc.operands[superdsc.compute.outputs[0]].scales
    is_contracted = first.get(rows) == second.get(rows) == 1 and output.get(rows) != 1
    if position != input_positions(superdsc)[1] or not is_contracted or output.get(lanes) != 1:
        message = f'{name_of(superdsc, position)}: pairs of "{rows}" in sticks along "{lanes}"'
        yield _rule(14, f"{message}; the second operand has pairs of the dim that is contracted", where)


def _lx_gaps(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V12: the gap of an LX operand has no meaning on a split dim."""
    for position, operand in enumerate(superdsc.operands):
        for dim, gap in operand.back_gap.items():
            if operand.component is Component.LX and gap and superdsc.work_slices[dim] != 1:
                message = f'{name_of(superdsc, position)}: gap {gap} on dim "{dim}", which has'
                yield _rule(12, f"{message} {superdsc.work_slices[dim]} slices", where)


def _masks(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V14: masks belong to dims that are reduced, and to functions that have a number for what is hidden."""
    if not superdsc.coordinate_masking:
        return
    record = device_operation(superdsc.op_func_name)
    folds, fills = record.family in {Family.REDUCTION, Family.NORM_STATISTICS}, record.padding_mask is not None
    output = superdsc.operands[superdsc.compute.outputs[0]]
    for dim in superdsc.coordinate_masking:
        if not (folds or fills) or (output.scales.get(dim) == 1) != fills:
            yield _rule(14, f'a mask on dim "{dim}", which "{superdsc.op_func_name}" has no mask for', where)
        elif dim not in superdsc.iteration:
            yield _rule(11, f'a mask on dim "{dim}", which is not iterated', where)
    if mask_constant(superdsc) is None:
        yield _rule(14, 'a mask without a constant "samv-maskvalue"', where)


def _combinations(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """V8: a fold that is split over cores is combined in device memory, which all of them reach."""
    position = superdsc.compute.outputs[0]
    output = superdsc.operands[position]
    if output.component is not Component.LX or device_operation(superdsc.compute.op_func_name).fold is None:
        return
    for dim, slices in superdsc.work_slices.items():
        if slices == 1 or output.scales.get(dim) == 1:
            continue
        own = superdsc.core_work_slices[0]
        cohort = [
            core
            for core, of_core in zip(superdsc.core_ids, superdsc.core_work_slices)
            if all(of_core.get(other) == index for other, index in own.items() if other != dim)
        ]
        message = f'{name_of(superdsc, position)}: "{superdsc.op_func_name}" folds dim "{dim}" in {slices} slices,'
        message += f" on cores {', '.join(map(str, cohort))}, into the LX of each"
        hint = f'nothing moves data between the cores\' LX: store the result in device memory, or do not split "{dim}"'
        place = replace(_place_in_lx(superdsc, position), field="numWkSlicesPerDim_")
        yield RuleDiagnostic.of(_rule(8, message, where, hint), place)


def mask_constant(superdsc: SuperDsc) -> int | None:
    """Return the position of the mask's constant: by name, and only without such a name by id."""
    for position, entry in enumerate(superdsc.constants):
        if entry.name == "samv-maskvalue":
            return position
    identity = superdsc.masking_constant_id
    return identity if 0 <= identity < len(superdsc.constants) else None


def _place_in_lx(superdsc: SuperDsc, position: int) -> FaultPlace:
    return FaultPlace(
        op=superdsc.op_func_name,
        core=superdsc.core_ids[0],
        tensor="lx",
        operand=name_of(superdsc, position),
        address=superdsc.operands[position].start_addresses[0],
        field=f"scheduleTree_[{position}].startAddressCoreCorelet_, N_",
        provenance=superdsc.provenance,
    )


def _sizes(superdsc: SuperDsc, where: Location, target: Target) -> Iterator[Diagnostic]:
    """V5 and V8 (capacity) of LX starts, V13 of buffers: nothing is computed on sizes that cannot exist."""
    if len(superdsc.core_ids) > target.cores or max(superdsc.core_ids) >= target.cores:
        yield Diagnostic(
            "SPY0705", f"core {max(superdsc.core_ids)} is used, the device has {target.cores} cores", where
        )
    for position, operand in enumerate(superdsc.operands):
        size = superdsc.labels[operand.label].stick_size
        is_lx = operand.component is Component.LX
        stick_dim = stick_dim_of(superdsc, operand)
        short = short_gap_dims(superdsc, operand) if superdsc.op_func_name == RESTICKIFY else frozenset[str]()
        slid = {axis: sizes.total_size for axis, sizes in slid_axes(superdsc, position).items()}
        sticks = 1
        for dim in extending_dims(operand):
            gap = operand.back_gap.get(dim, 0)
            own = superdsc.core_elements(operand, dim) if is_lx else superdsc.iteration[dim]
            extent = own - gap if dim in short else own + gap
            sticks *= -(-extent // size) if dim == stick_dim else max(extent, slid.get(dim, 0))
        size_bytes = sticks * STICK_BYTES
        if size_bytes > SEGMENT_BYTES:
            message = f"{name_of(superdsc, position)}: its buffer of {size_bytes} bytes exceeds a segment"
            yield _rule(13, f"{message} of {SEGMENT_BYTES}", where)
        if operand.component is not Component.LX:
            continue
        start = max(operand.start_addresses)
        if min(operand.start_addresses) < 0 or start + size_bytes > target.lx_bytes:
            message = f"{name_of(superdsc, position)}: start {start} plus {size_bytes} bytes"
            found = _rule(8, f"{message} exceeds the {target.lx_bytes} bytes of a core's LX", where)
            yield RuleDiagnostic.of(found, _place_in_lx(superdsc, position))
        if any(address % STICK_BYTES for address in operand.start_addresses):
            yield _rule(5, f"{name_of(superdsc, position)}: start {start} is not {STICK_BYTES}-byte aligned", where)
        if len(set(operand.start_addresses)) != 1:
            yield _rule(4, f"{name_of(superdsc, position)}: LX starts differ between cores", where)
