"""Which core wrote an element of an argument: read from the bundle alone, by the address rules of a SuperDSC."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from spyrec.bundle.bundle_content import BundleContent
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.dsc_actions import computing
from spyrec.bundle.manifest import Argument, PlanStep
from spyrec.bundle.program import Add, AffineApply, ArgumentExtract, Constant, For, SdscExecute, Statement
from spyrec.bundle.superdsc import Component, Operand, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.device_ops import RESTICKIFY
from spyrec.hardware.target import DATA_SEGMENTS, STICK_BYTES, segment_base
from spyrec.layout.device_layout import DeviceLayout


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """Where an element lies on the device, and the core that wrote it last (``None``: by no SuperDSC that is known)."""

    device_coordinate: tuple[int, ...]
    core: int | None


@dataclass(frozen=True, slots=True)
class _Address:
    """A byte address: relative to the base of a program argument, or absolute where ``parameter`` is ``None``."""

    parameter: str | None
    offset_bytes: int


_MOST_EXECUTIONS = 1 << 16
"""Executions of a program that are looked at; an element that a later one writes has no known core."""


def locate_output(bundle: BundleContent, result: str, index: tuple[int, ...]) -> ElementPlace | None:
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
    return ElementPlace(layout.device_coordinate(index), _last_writer(bundle, argument, address))


def _last_writer(bundle: BundleContent, argument: Argument, offset_bytes: int) -> int | None:
    programs = {program.directory: program for program in bundle.programs}
    for step in reversed(bundle.manifest.plan):
        if argument.name not in step.arguments:
            continue
        target = _argument_address(step, step.arguments.index(argument.name), offset_bytes)
        core = None
        for dsc, symbols in islice(_executions(programs[step.program]), _MOST_EXECUTIONS):
            found = _writing_core(dsc, symbols, target)
            core = core if found is None else found
        if core is not None:
            return core
    return None


def _argument_address(step: PlanStep, position: int, offset_bytes: int) -> tuple[_Address, _Address]:
    """Return both forms of an address in an argument: by parameter, and baked into its segment."""
    segment = position + (1 if step.pool_bytes else 0)
    baked = segment_base(segment) + offset_bytes if segment < DATA_SEGMENTS else -1
    return _Address(f"arg_{position}_base_addr", offset_bytes), _Address(None, baked)


def _executions(program: DeviceProgram) -> Iterator[tuple[SuperDsc, Mapping[int, _Address]]]:
    """Yield what a program executes, loops round by round, with the addresses bound to symbol ids."""
    maps = {item.name: item.coefficients for item in program.program.maps}
    for call, values in _calls(program.program.body, {}, maps):
        identifiers = call.symbol_ids or ()
        bound = {key: values[name] for key, name in zip(identifiers, call.operands) if name in values}
        for dsc in computing(program.superdscs[call.sdsc_filename]):
            yield dsc, bound


def _calls(
    body: Sequence[Statement], values: dict[str, _Address], maps: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[SdscExecute, Mapping[str, _Address]]]:
    """Yield the calls of a body with the values known at each; a loop whose bounds a launch gives is left out."""
    for statement in body:
        if isinstance(statement, SdscExecute):
            yield statement, values
        elif isinstance(statement, For):
            bounds = [values.get(name) for name in (statement.lower, statement.upper, statement.step)]
            numbers = [bound.offset_bytes for bound in bounds if bound is not None and bound.parameter is None]
            if len(numbers) == len(bounds) and numbers[-1] > 0:
                for number in range(*numbers):
                    values[statement.induction] = _Address(None, number)
                    yield from _calls(statement.body, values, maps)
        else:
            _record(statement, values, maps)


def _record(statement: Statement, values: dict[str, _Address], maps: Mapping[str, tuple[int, ...]]) -> None:
    match statement:
        case ArgumentExtract(result, argument):
            values[result] = _Address(argument, 0)
        case Constant(result, value):
            values[result] = _Address(None, value)
        case Add(result, left, right) if left in values and right in values:
            one, other = values[left], values[right]
            parameter = one.parameter if one.parameter is not None else other.parameter
            values[result] = _Address(parameter, one.offset_bytes + other.offset_bytes)
        case AffineApply(result, name, dims, symbol) if {symbol, *dims} <= values.keys():
            moved = sum(factor * values[dim].offset_bytes for factor, dim in zip(maps[name], dims))
            values[result] = replace(values[symbol], offset_bytes=values[symbol].offset_bytes + moved)
        case _:
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
    if dsc.op_func_name != RESTICKIFY or dsc.work_slices[dim] != 1:
        return False
    if dim == dsc.labels[operand.label].stick_dim:
        return False
    others = (dsc.labels[other.label] for other in dsc.operands)
    return any(0 < operand.back_gap.get(dim, 0) < other.stick_size for other in others if other.stick_dim == dim)
