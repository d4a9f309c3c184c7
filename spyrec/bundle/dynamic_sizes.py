"""Dynamic sizes of a program: extents that its launches give, as multiples of a granularity up to a maximum.

A SuperDSC states the largest extents, and names each size.  At a smaller size the elements behind it are not computed,
and operands lie where they lay: in buffers of the largest size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from spyrec.bundle.device_program import DeviceProgram, executes
from spyrec.bundle.manifest import Manifest, TripCount
from spyrec.bundle.program import ArgumentExtract, InputArgument, Program, is_size_parameter
from spyrec.bundle.superdsc import Operand, SuperDsc
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.layout.symbolic_dim import SymbolicDim

Parameters = Mapping[str, InputArgument]


def size_parameters(program: Program) -> dict[str, InputArgument]:
    """Return the parameters that are dynamic sizes, by name."""
    return {item.name: item for item in program.parameters if is_size_parameter(item.name)}


def largest_sizes(program: Program) -> dict[str, int]:
    """Return the largest value of each dynamic size that states one, by parameter."""
    return {name: item.max_value for name, item in size_parameters(program).items() if item.max_value is not None}


def with_sizes(program: Program, given: Mapping[str, int]) -> Mapping[str, int]:
    """Return the values of a launch with the dynamic sizes that it leaves out, which are the largest.

    Errors: SPY0708 a size that is no multiple of its granularity, or not from 1 up to its maximum.
    """
    known = {**largest_sizes(program), **given}
    for name, item in size_parameters(program).items():
        step, value = item.granularity or 1, known.get(name)
        if value is None or (value > 0 and value % step == 0 and value <= (item.max_value or value)):
            continue
        fact = f'size "%{name}" is {value}, it takes multiples of {step} up to {item.max_value}'
        raise _refused(fact)
    return known


def with_named_sizes(manifest: Manifest, program: DeviceProgram) -> Manifest:
    """Return the manifest of a bundle of one program with the dynamic sizes that its SuperDSCs name, as symbolic dims.

    The parameter of each holds as many elements as the dim of its name has.
    """
    named = _named_parameters(program)
    if not named:
        return manifest
    dims: dict[str, SymbolicDim] = {}
    for parameter, name in named.items():
        item = size_parameters(program.program)[parameter]
        known, step = dims.get(name), item.granularity or 1
        most = item.max_value or step
        if known is not None:  # two parameters of one name have one size
            step, most = math.lcm(step, known.multiple_of), min(most, known.maximum)
        dims[name] = SymbolicDim(step, most, step)
    counts = {parameter: TripCount(name, 1, dims[name].maximum) for parameter, name in named.items()}
    plan = tuple(replace(step, trip_counts={**step.trip_counts, **counts}) for step in manifest.plan)
    return replace(manifest, symbolic_dims={**manifest.symbolic_dims, **dims}, plan=plan)


def _named_parameters(program: DeviceProgram) -> dict[str, str]:
    """Return the names that SuperDSCs give to sizes, by the parameter."""
    sources = _sources(program.program)
    found: dict[str, str] = {}
    for call in executes(program.program.body):
        bound = dict(zip(call.symbol_ids or (), call.operands, strict=False))
        superdsc = program.superdscs.get(call.sdsc_filename)
        for item in () if superdsc is None else superdsc.dynamic_dims.values():
            parameter = sources.get(bound.get(item.symbol_id, ""), "")
            if is_size_parameter(parameter):
                found.setdefault(parameter, item.name)
    return found


def _sources(program: Program) -> dict[str, str]:
    return {item.result: item.argument for item in program.body if isinstance(item, ArgumentExtract)}


def at_sizes(program: Program, superdscs: Mapping[str, SuperDsc], values: Mapping[str, int]) -> dict[str, SuperDsc]:
    """Return SuperDSCs that compute so many elements of their dynamic dims, in buffers of the largest size.

    Errors: SPY0708 a dim in sticks that would end inside of one; SPY0547 a dynamic dim that cores share.
    """
    sources = _sources(program)
    found = dict(superdscs)
    for call in executes(program.body):
        superdsc = superdscs[call.sdsc_filename]
        bound = dict(zip(call.symbol_ids or (), call.operands, strict=True))
        sizes = {dim: values[sources[bound[item.symbol_id]]] for dim, item in superdsc.dynamic_dims.items()}
        found[call.sdsc_filename] = _at(superdsc, sizes, call.sdsc_filename)
    return found


def _at(superdsc: SuperDsc, sizes: Mapping[str, int], file: str) -> SuperDsc:
    smaller = {dim: size for dim, size in sizes.items() if size < superdsc.dynamic_dims[dim].max_size}
    for dim, size in smaller.items():
        sticks = [
            superdsc.labels[item.label].stick_size for item in superdsc.operands if _is_in_sticks(superdsc, item, dim)
        ]
        for elements in sticks:
            if size % elements:
                fact = f'{size} elements along "{dim}" end inside a stick of {elements}'
                raise _refused(fact, file)
    if not smaller:
        return superdsc
    missing = {dim: superdsc.iteration[dim] - size for dim, size in smaller.items()}
    operands = tuple(
        replace(
            item,
            back_gap={
                **item.back_gap,
                **{dim: item.back_gap.get(dim, 0) + rest for dim, rest in missing.items() if item.scales.get(dim) == 1},
            },
        )
        for item in superdsc.operands
    )
    masking = {dim: ranges for dim, ranges in superdsc.coordinate_masking.items() if dim not in smaller}
    return replace(
        superdsc,
        iteration={**superdsc.iteration, **smaller},
        core_extent={**superdsc.core_extent, **smaller},
        operands=operands,
        coordinate_masking=masking,
    )


def _is_in_sticks(superdsc: SuperDsc, operand: Operand, dim: str) -> bool:
    return dim in superdsc.labels[operand.label].stick_dims and operand.scales.get(dim) == 1


def _refused(message: str, file: str = "bundle.mlir") -> SpyrecError:
    hint = "give a multiple of the granularity, of whole sticks, or nothing for the largest size"
    return refuse("SPY0708", message, Location(file), hint=hint)


def refuse_shared(superdsc: SuperDsc, file: str) -> None:
    """Refuse a SuperDSC whose cores share a dynamic dim: where they begin counts from nothing; error SPY0547 (Q18)."""
    if superdsc.split_dynamic_dims:
        (dim, *_) = superdsc.split_dynamic_dims
        fact = f'{superdsc.work_slices[dim]} cores share the dynamic dim "{dim}" ("{superdsc.dynamic_dims[dim].name}")'
        fact += ", and the file says of none but the first where it begins (Q18)"
        raise refuse("SPY0547", fact, Location(file))
