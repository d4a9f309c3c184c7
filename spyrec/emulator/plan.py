"""Planning one call: addressing, the rules that need places, the counters, and what to execute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

import numpy as np
import numpy.typing as npt

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.superdsc import Component, Indirection
from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import Family
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.choices import Numerics
from spyrec.emulator.engine import Executable, Setting
from spyrec.emulator.geometry import describe, valid_extents
from spyrec.emulator.moved_pieces import cells_of
from spyrec.emulator.operations.data_move import DataMove
from spyrec.emulator.operations.host import HostExecutable, HostWork
from spyrec.emulator.operations.indexed_function import IndexedFunction
from spyrec.emulator.operations.matmul import MatmulExecutable
from spyrec.emulator.operations.norm_scale import NormScaleExecutable
from spyrec.emulator.operations.pointwise import (
    PointwiseExecutable,
    plan_conversion,
    plan_identity,
)
from spyrec.emulator.operations.reduction import plan_reduction, plan_statistics
from spyrec.emulator.operations.shuffle_steps import ShuffleExecutable
from spyrec.emulator.operations.top import Top
from spyrec.emulator.operations.unary import plan_unary
from spyrec.emulator.operations.weight_cache import WeightCache
from spyrec.emulator.operations.window import Window
from spyrec.emulator.resolve import ScheduledCall
from spyrec.emulator.restriding import restrided
from spyrec.emulator.rules.binding import Binding, check_binding
from spyrec.emulator.rules.moves import bind_move, check_move, geometries_of
from spyrec.emulator.rules.overlaps import check_overlaps
from spyrec.emulator.rules.superdsc import check_superdsc
from spyrec.emulator.timeline.move_traffic import move_traffic
from spyrec.emulator.timeline.traffic import Traffic, traffic_of
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, Target
from spyrec.runtime.device import TableEntry
from spyrec.runtime.threads import Threads

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Options:
    """How to execute: numerics, threads, and the device; decoded weights that are kept; rules that sanitizers watch
    instead of refusing at load.
    """

    numerics: Numerics
    threads: Threads
    target: Target
    weights: WeightCache
    deferred_rules: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One ``sdsc_execute``, ready: bases and offsets of its operands, what it runs, what it moves."""

    call: ScheduledCall
    setting: Setting
    binding: Binding
    executable: Executable
    traffic: Traffic


def plan_call(
    call: ScheduledCall, entries: Mapping[int, TableEntry], region_bytes: Mapping[int, int], options: Options
) -> PlannedCall:
    """Check every rule on one call and plan it; errors SPY0711 to SPY0724, SPY0757, SPY0758."""
    superdsc = call.superdsc
    if call.data_dsc is not None:
        return _plan_move(call, call.data_dsc, entries, region_bytes, options)
    problems = check_superdsc(call.file, superdsc, options.target)
    if problems:
        raise SpyrecError(problems)
    geometries = tuple(
        describe(superdsc, operand, _entry_of(call, position, entries))
        for position, operand in enumerate(superdsc.operands)
    )
    extents = valid_extents(superdsc, geometries)
    deferred = options.deferred_rules
    setting = Setting(call.file, superdsc, geometries, extents, options.numerics, options.threads, deferred)
    binding = check_binding(call, setting, entries, region_bytes, options.target)
    check_overlaps(call, setting, binding, entries)
    setting, binding = restrided(call, setting, binding, entries)
    return PlannedCall(call, setting, binding, _executable(setting, options.weights), traffic_of(setting, binding))


def check_places(call: ScheduledCall, names: Mapping[int, str], target: Target) -> None:
    """Check where a call's operands begin where nobody says how large arguments are; errors SPY0714 to SPY0717.

    ``names``: what the memory of each base is called.

    Cores are held against their slices (V4), starts against sticks (V5), stores of cores against one another (V7).
    What is gathered from needs the table; whether loops step by whole tiles (V10) is left to who runs it.
    """
    superdsc = call.superdsc
    if call.data_dsc is not None or any(item.indirection is not Indirection.NONE for item in superdsc.operands):
        return
    geometries = tuple(describe(superdsc, operand, None) for operand in superdsc.operands)
    extents = valid_extents(superdsc, geometries)
    setting = Setting(call.file, superdsc, geometries, extents, Numerics.DL16, Threads(1), frozenset({10}))
    entries = {base: TableEntry(name, base, (), DeviceFormat.INVALID, 0, SEGMENT_BYTES) for base, name in names.items()}
    check_binding(call, setting, entries, {0: SEGMENT_BYTES}, target)


def _plan_move(
    call: ScheduledCall,
    data_dsc: DataDsc,
    entries: Mapping[int, TableEntry],
    region_bytes: Mapping[int, int],
    options: Options,
) -> PlannedCall:
    """Plan a data DSC: its operands are the places of its pieces, those of the source first."""
    problems = check_move(call.file, data_dsc, options.target)
    if problems:
        raise SpyrecError(problems)
    superdsc = call.superdsc
    extents = superdsc.core_extent
    setting = Setting(call.file, superdsc, geometries_of(data_dsc), extents, options.numerics, options.threads)
    binding = bind_move(call, setting, entries, region_bytes)
    cells = cells_of(data_dsc)
    executable = HostExecutable(DataMove(setting, data_dsc, cells))
    return PlannedCall(call, setting, binding, executable, move_traffic(setting, binding, cells, data_dsc))


def _entry_of(call: ScheduledCall, position: int, entries: Mapping[int, TableEntry]) -> TableEntry | None:
    places = call.places[position]
    if places is None or not places or places[0].base is None:
        return None
    return entries.get(places[0].base)


_HOST_WORK: Mapping[Family, Callable[[Setting], HostWork]] = {
    Family.TOP: Top,
    Family.WINDOW: Window,
}


def _executable(setting: Setting, weights: WeightCache) -> Executable:
    superdsc = setting.superdsc
    family = device_operation(superdsc.op_func_name).family
    match family:
        case Family.UNARY | Family.POINTWISE if superdsc.compute.indirect_access_indices:
            return HostExecutable(IndexedFunction(setting))
        case Family.UNARY:
            return plan_unary(setting)
        case Family.POINTWISE:
            return PointwiseExecutable(setting, superdsc.op_func_name)
        case Family.IDENTITY:
            return plan_identity(setting)
        case Family.RESTICKIFY | Family.CAST | Family.PACK:
            return plan_conversion(setting)
        case Family.REDUCTION:
            return plan_reduction(setting)
        case Family.MATMUL:
            return MatmulExecutable(setting, weights)
        case Family.NORM_STATISTICS:
            return plan_statistics(setting)
        case Family.NORM_SCALE:
            return NormScaleExecutable(setting)
        case Family.SHUFFLE:
            return ShuffleExecutable(setting)
        case Family.TOP | Family.WINDOW:
            return HostExecutable(_HOST_WORK[family](setting))
        case _:
            assert_never(family)


def last_core(planned: PlannedCall) -> int:
    """Return the last core that does a part of one call, or whose LX it reaches."""
    return max(*planned.call.superdsc.core_ids, *planned.binding.holders.values(), 0)


def lx_used_bytes(planned: PlannedCall) -> int:
    """Return the highest LX byte that any core touches in one call, plus one."""
    used = 0
    for position, operand in enumerate(planned.call.superdsc.operands):
        if operand.component is Component.LX:
            used = max(used, operand.start_addresses[0] + planned.binding.buffer_bytes[position])
    return used
