"""Which core wrote an element of an argument: read from the bundle alone, by the address rules of a SuperDSC."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.manifest import Argument, PlanStep
from spyrec.bundle.program import Add, ArgumentExtract, Constant, SdscExecute, Statement
from spyrec.bundle.superdsc import Component, Operand, SuperDsc
from spyrec.layout import DeviceLayout
from spyrec.target import DATA_SEGMENTS, STICK_BYTES, segment_base


@dataclass(frozen=True, slots=True)
class Place:
    """Where an element lies on the device, and the core that wrote it last (``None``: by no SuperDSC that is known)."""

    device_coordinate: tuple[int, ...]
    core: int | None


@dataclass(frozen=True, slots=True)
class _Address:
    """A byte address: relative to the base of a program argument, or absolute where ``parameter`` is ``None``."""

    parameter: str | None
    offset_bytes: int


def locate_output(bundle: BundleContent, result: str, index: tuple[int, ...]) -> Place | None:
    """Return the place of one element of a graph output; ``None`` where the bundle does not describe its layout."""
    manifest = bundle.manifest
    name = dict(manifest.outputs).get(result)
    argument = next((item for item in manifest.arguments if item.name == name), None)
    if argument is None or argument.shape is None or argument.stride_map is None:
        return None
    layout = DeviceLayout(argument.device_size, argument.stride_map, argument.device_dtype)
    if argument.host_strides is not None:
        layout = layout.with_host(argument.shape, argument.host_strides)
    address = layout.byte_address(index)
    return Place(layout.device_coordinate(index), _last_writer(bundle, argument, address))


def _last_writer(bundle: BundleContent, argument: Argument, offset_bytes: int) -> int | None:
    programs = {program.directory: program for program in bundle.programs}
    for step in reversed(bundle.manifest.plan):
        if argument.name not in step.arguments:
            continue
        target = _argument_address(step, step.arguments.index(argument.name), offset_bytes)
        for dsc, symbols in reversed(list(_executions(programs[step.program]))):
            core = _writing_core(dsc, symbols, target)
            if core is not None:
                return core
    return None


def _argument_address(step: PlanStep, position: int, offset_bytes: int) -> tuple[_Address, _Address]:
    """Return both forms of an address in an argument: by parameter, and baked into its segment."""
    segment = position + (1 if step.pool_bytes else 0)
    baked = segment_base(segment) + offset_bytes if segment < DATA_SEGMENTS else -1
    return _Address(f"arg_{position}_base_addr", offset_bytes), _Address(None, baked)


def _executions(program: DeviceProgram) -> Iterator[tuple[SuperDsc, Mapping[int, _Address]]]:
    """Yield what the straight part of a program executes, with the addresses bound to symbol ids."""
    values: dict[str, _Address] = {}
    for statement in program.program.body:
        _record(statement, values)
        if isinstance(statement, SdscExecute):
            identifiers = statement.symbol_ids or ()
            bound = {key: values[name] for key, name in zip(identifiers, statement.operands) if name in values}
            yield program.superdscs[statement.sdsc_filename], bound


def _record(statement: Statement, values: dict[str, _Address]) -> None:
    match statement:
        case ArgumentExtract(result, argument):
            values[result] = _Address(argument, 0)
        case Constant(result, value):
            values[result] = _Address(None, value)
        case Add(result, left, right) if left in values and right in values:
            one, other = values[left], values[right]
            parameter = one.parameter if one.parameter is not None else other.parameter
            values[result] = _Address(parameter, one.offset_bytes + other.offset_bytes)
        case _:  # loops move addresses: their elements are not located
            return


def _writing_core(dsc: SuperDsc, symbols: Mapping[int, _Address], targets: tuple[_Address, _Address]) -> int | None:
    for position in dsc.compute.outputs:
        operand = dsc.operands[position]
        if operand.component is not Component.HBM:
            continue
        for core, start in zip(dsc.core_ids, operand.start_addresses):
            base = symbols.get(start) if start < 0 else _Address(None, start)
            for target in targets:
                is_same = base is not None and base.parameter == target.parameter
                if is_same and base is not None and _holds(dsc, operand, target.offset_bytes - base.offset_bytes):
                    return core
    return None


def _holds(dsc: SuperDsc, operand: Operand, distance_bytes: int) -> bool:
    """Whether a core whose window begins ``distance_bytes`` before an element stores it.

    The digits of the distance in the mixed radix of the buffer's extents are the element's coordinates
    (the address rule of SuperDSC).
    """
    if distance_bytes < 0:
        return False
    label = dsc.labels[operand.label]
    sticks, lane_bytes = divmod(distance_bytes, STICK_BYTES)
    lane = lane_bytes // operand.word_length
    for dim in operand.layout_dim_order:
        if operand.scales[dim] != 1:
            continue
        is_stick = dim == label.stick_dim
        gap = operand.back_gap.get(dim, 0)
        extent = dsc.iteration[dim] + (-gap if _is_short_gap(dsc, operand, dim) else gap)
        sticks, position = divmod(sticks, math.ceil(extent / label.stick_size) if is_stick else extent)
        if (position * label.stick_size + lane if is_stick else position) >= dsc.core_extent[dim]:
            return False
    return sticks == 0 and (operand.scales[label.stick_dim] == 1 or lane == 0)


def _is_short_gap(dsc: SuperDsc, operand: Operand, dim: str) -> bool:
    """Whether a gap says how much shorter the buffer is: a restickify's plain dim, ragged as the other's stick dim."""
    if dsc.op_func_name != "ReStickifyOpHBM" or dsc.work_slices[dim] != 1:
        return False
    if dim == dsc.labels[operand.label].stick_dim:
        return False
    others = (dsc.labels[other.label] for other in dsc.operands)
    return any(0 < operand.back_gap.get(dim, 0) < other.stick_size for other in others if other.stick_dim == dim)
