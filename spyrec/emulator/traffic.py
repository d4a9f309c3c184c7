"""The traffic counters: distinct sticks, sticks per core, floating-point operations; from footprints alone."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.emulator.binding_rules import Binding
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import length, merge, shifted, whole_sticks
from spyrec.emulator.functions import FUNCTIONS, Family
from spyrec.target import STICK_BYTES

Integers = npt.NDArray[np.int64]

_CORE_DISTANCE = 1 << 45  # farther apart than any two addresses: keeps the cores' sticks apart while merging


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one execution of one SuperDSC moves and computes."""

    hbm_read_bytes: int
    hbm_write_bytes: int
    hbm_core_read_bytes: int
    flops: int


def traffic_of(setting: Setting, binding: Binding) -> Traffic:
    """Return the counters of one execution."""
    operands = setting.superdsc.operands
    reads: dict[int, list[int]] = defaultdict(list)
    indices = setting.superdsc.compute.indirect_access_indices
    for position in dict.fromkeys((*setting.inputs, *indices)):
        base = binding.bases[position]
        if operands[position].indirection is Indirection.VALUE:
            continue  # its rows depend on data: counted when it runs
        if operands[position].component is Component.HBM and base is not None:
            reads[base].append(position)
    read = core_read = 0
    for positions in reads.values():
        sticks = {t: whole_sticks(binding.runs[t]) for t in positions}
        distinct = {(tuple(binding.offsets[t].tolist()), sticks[t].tobytes()): t for t in positions}
        used = list(distinct.values())
        read += _union(sticks, binding, used, 0)
        core_read += _union(sticks, binding, used, _CORE_DISTANCE)
    written = 0
    if operands[setting.output].component is Component.HBM:
        sticks = {setting.output: whole_sticks(binding.runs[setting.output])}
        written = _union(sticks, binding, [setting.output], 0)
    return Traffic(read, written, core_read, _flops(setting))


def _union(sticks: dict[int, Integers], binding: Binding, positions: list[int], distance: int) -> int:
    parts: list[Integers] = []
    for position in positions:
        # Starts may stand inside a stick (index tensors): round after shifting.
        aligned = binding.offsets[position] // STICK_BYTES * STICK_BYTES
        starts = aligned + np.arange(len(aligned), dtype=np.int64) * distance
        parts.append(shifted(sticks[position], np.unique(starts)))
    return length(merge(np.concatenate(parts)))


def _flops(setting: Setting) -> int:
    """One per result of a pointwise operation, one per element folded, two per multiply-add, none for copies."""
    superdsc = setting.superdsc
    points = math.prod(superdsc.iteration.values())
    match FUNCTIONS[superdsc.op_func_name].family:
        case Family.MATMUL:
            return 2 * points
        case Family.NORM_STATISTICS:
            return 3 * points
        case Family.IDENTITY | Family.RESTICKIFY | Family.CAST | Family.TOP:
            return 0
        case _:
            return 4 * points if superdsc.op_func_name == "layernormnorm" else points
