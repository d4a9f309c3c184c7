"""Rules between the files of a bundle: names, symbols, arguments, tables.  All problems are collected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath

from spyrec.bundle.device_program import DeviceProgram, executes
from spyrec.bundle.dynamic_sizes import refuse_shared
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role, baked_base
from spyrec.bundle.program import ARGUMENT_PARAMETER, InputArgument, SdscExecute, is_value_parameter
from spyrec.bundle.program_scope import check_scope
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import DATA_SEGMENTS, SEGMENT_BYTES
from spyrec.layout.conversion_table import DataConversionInfo, Direction
from spyrec.layout.symbolic_dim import SymbolicDim

CONTRADICTORY_MANIFEST = "SPY0611"
"""Code of a manifest whose parts disagree, or that disagrees with another file."""

SYMBOLS = "SPY0633"
"""Code of a call whose operands and symbol ids disagree (rule V9)."""

PARAMETERS = "SPY0634"
"""Code of a program whose parameters the plan or the argument table does not provide."""

POOL_PARAMETER = "pool_base_addr"

_HINTS = {
    CONTRADICTORY_MANIFEST: "write the bundle again, or mend the manifest by hand",
    SYMBOLS: "bundle.mlir and the SuperDSC come from different programs, or one of them was edited",
    PARAMETERS: "describe every argument, and the pool, in the manifest or in the table given with --args",
}

_PROGRAM_DIRECTORY = re.compile(r"\.|kernels/[0-9]{1,6}")
_TILE_DIRECTORY = re.compile(r"tiles/(main|kernels-[0-9]{1,6})/(init|combine|publish)")
_FORMS = {_PROGRAM_DIRECTORY: '"." or "kernels/N"', _TILE_DIRECTORY: '"tiles/main/init" or the like'}


_GIVEN = (Role.INPUT, Role.OUTPUT, Role.INOUT)


def _error(sink: DiagnosticSink, code: str, fact: str, where: Location) -> None:
    sink.error(code, fact, where, hint=_HINTS[code])


def check_manifest(manifest: Manifest, where: Location, sink: DiagnosticSink) -> None:
    """Check what the manifest says of itself; errors SPY0611."""
    arguments = {item.name: item for item in manifest.arguments}
    if len(arguments) != len(manifest.arguments):
        names = [item.name for item in manifest.arguments]
        twice = sorted({name for name in names if names.count(name) > 1})
        _error(sink, CONTRADICTORY_MANIFEST, f"arguments {twice[:8]} stand twice", where.child("arguments"))
    for index, item in enumerate(manifest.arguments):
        _check_argument(item, where.child("arguments", index), sink)
        _check_axes(item, manifest.symbolic_dims, where.child("arguments", index, "symbolic_axes"), sink)
    for name, dim in manifest.symbolic_dims.items():
        if dim.smallest > dim.largest:
            fact = f'symbolic dim "{name}" has no size ({dim})'
            _error(sink, CONTRADICTORY_MANIFEST, fact, where.child("symbolic_dims", name))
    for index, name in enumerate(manifest.inputs):
        if name not in arguments or arguments[name].role not in {Role.INPUT, Role.INOUT}:
            fact = f'input "{name}" is no argument of role input or inout'
            _error(sink, CONTRADICTORY_MANIFEST, fact, where.child("inputs", index))
    _check_all_named(manifest, where, sink)
    for index, (_, name) in enumerate(manifest.outputs):
        if name not in arguments:
            _error(sink, CONTRADICTORY_MANIFEST, f'argument "{name}" does not exist', where.child("outputs", index))
    for index, step in enumerate(manifest.plan):
        _check_step(step, arguments, manifest.pool_bytes, where.child("plan", index), sink)
        _check_trip_counts(step, manifest.symbolic_dims, where.child("plan", index, "trip_counts"), sink)
        _check_directory(step, _PROGRAM_DIRECTORY, where.child("plan", index), sink)
    _check_host_steps(manifest, arguments, where.child("host_steps"), sink)
    _check_updates(manifest, where.child("updates"), sink)
    for index, step in enumerate(manifest.tile_steps):
        place = where.child("tile_contract", "steps", index)
        _check_step(step, arguments, manifest.pool_bytes, place, sink)
        _check_directory(step, _TILE_DIRECTORY, place, sink)


def check_indices(manifest: Manifest, where: Location, sink: DiagnosticSink) -> None:
    """Check that arguments have the numbers that the first program binds them to which uses them; errors SPY0611.

    A run goes by the plan alone.
    """
    first: dict[str, int] = {}
    for step in manifest.steps:
        for number, name in enumerate(step.arguments):
            first.setdefault(name, number)
    for index, item in enumerate(manifest.arguments):
        number = first.get(item.name)
        if item.arg_index is not None and number is not None and item.arg_index != number:
            fact = f'"{item.name}" has arg_index {item.arg_index}, the plan binds it to argument {number}'
            _error(sink, CONTRADICTORY_MANIFEST, fact, where.child("arguments", index, "arg_index"))


def _check_updates(manifest: Manifest, place: Location, sink: DiagnosticSink) -> None:
    """Check that updates name results and inputs."""
    results = {name for name, _ in manifest.outputs}
    for result, name in manifest.updates.items():
        if result not in results or name not in manifest.inputs:
            fact = f'"{result}" is no result, or "{name}", which it replaces, no input'
            _error(sink, CONTRADICTORY_MANIFEST, fact, place.child(result))


def _check_host_steps(
    manifest: Manifest, arguments: Mapping[str, Argument], place: Location, sink: DiagnosticSink
) -> None:
    """Check that steps of the host stand in order, in the plan, and name tensors of the device by their arguments."""
    latest = 0
    for index, step in enumerate(manifest.host_steps):
        if not latest <= step.before <= len(manifest.plan):
            fact = f"a step before program {step.before} of {len(manifest.plan)}, behind one before program {latest}"
            _error(sink, CONTRADICTORY_MANIFEST, fact, place.child(index, "before"))
        latest = max(latest, step.before)
        for key, values in (("takes", step.takes), ("gives", step.gives)):
            for value, name in values.items():
                if name not in arguments or arguments[name].arg_index is None or arguments[name].shape is None:
                    fact = f'"{name}", which holds "{value}", is no argument of a program with a host form'
                    _error(sink, CONTRADICTORY_MANIFEST, fact, place.child(index, key, value))


def _check_all_named(manifest: Manifest, where: Location, sink: DiagnosticSink) -> None:
    """Every argument that a caller gives or gets is one of the inputs or outputs."""
    held = {argument for _, argument in manifest.outputs}
    for item in manifest.arguments:
        if item.role in {Role.INPUT, Role.INOUT} and item.name not in manifest.inputs:
            fact = f'argument "{item.name}" is an {item.role.value}, which "inputs" does not name'
            _error(sink, CONTRADICTORY_MANIFEST, fact, where.child("inputs"))
        if item.role is Role.OUTPUT and item.name not in held:
            fact = f'argument "{item.name}" is an output, which "outputs" does not name'
            _error(sink, CONTRADICTORY_MANIFEST, fact, where.child("outputs"))


def _check_argument(item: Argument, place: Location, sink: DiagnosticSink) -> None:
    pairs = ((item.host_strides, "host_strides", item.shape, "shape"),
             (item.stride_map, "stride_map", item.device_size, "device_size"))  # fmt: skip
    for first, first_name, second, second_name in pairs:
        if first is not None and second is not None and len(first) != len(second):
            fact = f"{first_name} has {len(first)} entries, {second_name} {len(second)}"
            _error(sink, CONTRADICTORY_MANIFEST, fact, place.child(first_name))
    eps = item.device_dtype.elements_per_stick
    if item.device_size[-1] != eps:
        fact = f"the last extent is {item.device_size[-1]}, a stick of {item.device_dtype.name} has {eps} elements"
        _error(sink, CONTRADICTORY_MANIFEST, fact, place.child("device_size"))
    is_copied = item.role is not Role.INTERMEDIATE and item.arg_index is not None
    host_form = (item.shape, item.dtype, item.stride_map, item.dci if is_copied else item.shape)
    lacks = [part is None for part in host_form]
    # without any of it the argument is given and returned in device form
    if any(lacks) and not (all(lacks) and item.role in _GIVEN):
        fact = f'argument "{item.name}" has no host form (shape, dtype, stride_map and dci)'
        _error(sink, CONTRADICTORY_MANIFEST, fact, place)


def _check_axes(item: Argument, dims: Mapping[str, SymbolicDim], place: Location, sink: DiagnosticSink) -> None:
    """Check that the symbolic dims of an argument's axes exist, and fit into it."""
    extents = item.device_size if item.shape is None else item.shape
    if item.symbolic_axes and len(item.symbolic_axes) != len(extents):
        fact = f"{len(item.symbolic_axes)} axes for {len(extents)} extents"
        _error(sink, CONTRADICTORY_MANIFEST, fact, place)
        return
    for axis, (name, extent) in enumerate(zip(item.symbolic_axes, extents, strict=False)):
        if name is not None and (name not in dims or dims[name].largest > extent):
            fact = f'symbolic dim "{name}" does not exist'
            if name in dims:
                fact = f'symbolic dim "{name}" has up to {dims[name].largest} elements, the axis {extent}'
            _error(sink, CONTRADICTORY_MANIFEST, fact, place.child(axis))


def _check_trip_counts(step: PlanStep, dims: Mapping[str, SymbolicDim], place: Location, sink: DiagnosticSink) -> None:
    for name, count in step.trip_counts.items():
        if count.dim not in dims:
            fact = f'symbolic dim "{count.dim}" does not exist'
            _error(sink, CONTRADICTORY_MANIFEST, fact, place.child(name, "dim"))


def _check_directory(step: PlanStep, form: re.Pattern[str], place: Location, sink: DiagnosticSink) -> None:
    if not form.fullmatch(step.program):
        fact = f'program directory "{step.program[:80]}" is not {_FORMS[form]}'
        _error(sink, CONTRADICTORY_MANIFEST, fact, place.child("program"))


def _check_step(
    step: PlanStep, arguments: Mapping[str, Argument], pool_bytes: int, place: Location, sink: DiagnosticSink
) -> None:
    for index, name in enumerate(step.arguments):
        if name not in arguments:
            fact = f'argument "{name}" does not exist'
            _error(sink, CONTRADICTORY_MANIFEST, fact, place.child("arguments", index))
    if step.pool_bytes > pool_bytes:
        fact = f"the step's pool has {step.pool_bytes} bytes, the bundle's {pool_bytes}"
        _error(sink, CONTRADICTORY_MANIFEST, fact, place.child("pool_bytes"))


def check_tables(
    manifest: Manifest, tables: Mapping[str, DataConversionInfo], where: Location, sink: DiagnosticSink
) -> None:
    """Check that each conversion table copies the argument that names it; errors SPY0611."""
    for index, item in enumerate(manifest.arguments):
        for direction, name in (item.dci or {}).items():
            if name in tables:
                place = where.child("arguments", index, "dci", direction)
                _check_table(item, tables[name], Direction(direction), place, sink)


def _check_table(
    item: Argument, table: DataConversionInfo, direction: Direction, place: Location, sink: DiagnosticSink
) -> None:
    expected = (direction, item.device_size, item.device_dtype, item.shape or (1,))
    found = (table.direction, table.device_size, table.device_format, table.host_shape)
    names = ("direction", "device_size", "device format", "host shape")
    for name, wanted, given in zip(names, expected, found):
        if wanted != given:
            fact = f'the table for argument "{item.name}" has {name} {_shown(given)}, the argument {_shown(wanted)}'
            _error(sink, CONTRADICTORY_MANIFEST, fact, place)


def _shown(value: object) -> str:
    match value:
        case Direction():
            return value.value
        case DeviceFormat():
            return value.name
        case _:
            return str(value)


def check_program(program: DeviceProgram, manifest: Manifest | None, file: str, sink: DiagnosticSink) -> None:
    """Check one program against its own files and, where there is a manifest, every step that runs it.

    Errors: SPY0632 and SPY0635 (values and loops, see ``program_scope``), SPY0633 (rule V9), SPY0634.
    """
    where = Location(file)
    check_scope(program.program, where, sink)
    for call in executes(program.program.body):
        if call.sdsc_filename in program.superdscs:
            _check_symbols(call, program.superdscs[call.sdsc_filename], where, sink)
            beside = f"{file.removesuffix(PurePosixPath(file).name)}{call.sdsc_filename}"
            attempt(sink, partial(refuse_shared, program.superdscs[call.sdsc_filename], beside))
    for step in () if manifest is None else manifest.steps:
        if step.program == program.directory:
            check_parameters(program.program.parameters, step, where, sink)
            if manifest is not None:
                _check_segments(program.program.parameters, step, manifest, where, sink)


def _check_segments(
    parameters: Sequence[InputArgument], step: PlanStep, manifest: Manifest, where: Location, sink: DiagnosticSink
) -> None:
    """Check that arguments with baked addresses, which no parameter binds, lie in a segment; errors SPY0634."""
    bound = {int(match[1]) for item in parameters if (match := ARGUMENT_PARAMETER.fullmatch(item.name))}
    unbound = [index for index in range(len(step.arguments)) if index not in bound]
    if not unbound:  # symbolic addresses, as most programs have: the manifest is not looked through for each
        return
    arguments = {item.name: item for item in manifest.arguments}
    is_only = len(manifest.plan) == 1 and step in manifest.plan
    for index in unbound:
        name = step.arguments[index]
        if name not in arguments:
            continue
        base = baked_base(arguments[name], index, step, is_only=is_only)
        if base >= DATA_SEGMENTS * SEGMENT_BYTES:
            fact = f'argument {index}, "{name}", has no parameter, and lies behind the {DATA_SEGMENTS} segments'
            _error(sink, PARAMETERS, fact, where)
            return


def _check_symbols(call: SdscExecute, dsc: SuperDsc, where: Location, sink: DiagnosticSink) -> None:
    """Rule V9: one symbol id per operand, none twice, exactly the ids that the SuperDSC holds."""
    ids = call.symbol_ids or ()
    operands = [operand for item in dsc.dscs for operand in item.operands if operand.is_symbolic]
    used = {start for operand in operands for start in operand.start_addresses}
    used |= {item.symbol_id for item in dsc.dynamic_dims.values()}
    file = call.sdsc_filename
    if len(ids) != len(call.operands):
        fact = f'{len(call.operands)} operands and {len(ids)} symbol ids in the call of "{file}" (rule V9)'
        _error(sink, SYMBOLS, fact, where)
    if len(set(ids)) != len(ids):
        _error(sink, SYMBOLS, f'a symbol id is bound twice in the call of "{file}" (rule V9)', where)
    if any(number >= 0 for number in ids):
        _error(sink, SYMBOLS, f'symbol id {max(ids)} in the call of "{file}" is not negative (rule V9)', where)
    unbound, unused = sorted(used - set(ids)), sorted(set(ids) - used)
    if unbound:
        _error(sink, SYMBOLS, f'symbol ids {unbound[:8]} of "{file}" are bound by no operand (rule V9)', where)
    if unused:
        _error(sink, SYMBOLS, f'symbol ids {unused[:8]} of the call do not occur in "{file}" (rule V9)', where)


def check_parameters(
    parameters: Sequence[InputArgument], step: PlanStep, where: Location, sink: DiagnosticSink
) -> None:
    """Check that a step gives a program what it takes; errors SPY0634."""
    for parameter in parameters:
        name = parameter.name
        match = ARGUMENT_PARAMETER.fullmatch(name)
        if name == POOL_PARAMETER:
            if step.pool_bytes == 0:
                _error(sink, PARAMETERS, f'the program takes "%{name}", but its pool has 0 bytes', where)
        elif is_value_parameter(name):
            if parameter.max_value is None and name not in {*step.trip_counts, *step.values}:
                _error(sink, PARAMETERS, f'nothing says how large the value of parameter "%{name}" may be', where)
        elif match is None:
            _error(sink, PARAMETERS, f'parameter "%{name}" is neither a pool nor an argument nor a value', where)
        elif int(match[1]) >= len(step.arguments):
            fact = f'the program takes "%{name}", but only {len(step.arguments)} arguments are described'
            _error(sink, PARAMETERS, fact, where)
    for name in sorted({*step.trip_counts, *step.values} - {item.name for item in parameters}):
        _error(sink, PARAMETERS, f'the plan describes the value "{name}", which the program does not take', where)
