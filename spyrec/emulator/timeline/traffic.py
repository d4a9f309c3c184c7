"""The traffic counters: distinct sticks, sticks per core, floating-point operations; from footprints alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import length, merge, shifted, whole_sticks
from spyrec.emulator.rules.binding import Binding
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]

NO_SHIFTS: Mapping[int, int] = {}

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
    read = core_read = 0
    for positions in reads_by_base(setting, binding).values():
        found = bytes_read(binding, positions)
        read, core_read = read + found[0], core_read + found[1]
    written = 0
    output = operands[setting.output]
    # rows that an index names are counted when it runs
    if output.component is Component.HBM and output.indirection is not Indirection.VALUE:
        written = _union([_Sticks.of(binding, setting.output, 0)], 0)
    return Traffic(read, written, core_read, _flops(setting))


def reads_by_base(setting: Setting, binding: Binding) -> dict[int, list[int]]:
    """Return the operands that are read of device memory at places that do not depend on data, by where they lie."""
    operands = setting.superdsc.operands
    found: dict[int, list[int]] = defaultdict(list)
    indices = setting.superdsc.compute.indirect_access_indices
    for position in dict.fromkeys((*setting.inputs, *indices)):
        base = binding.bases[position]
        if operands[position].indirection is Indirection.VALUE:
            continue  # its rows depend on data: counted when it runs
        if operands[position].component is Component.HBM and base is not None:
            found[base].append(position)
    return found


def bytes_read(binding: Binding, positions: Sequence[int], shifts: Mapping[int, int] = NO_SHIFTS) -> tuple[int, int]:
    """Return the bytes read of one memory through these operands: distinct ones, and the sum over cores.

    ``shifts``: by position, how far loops have moved the operand, in bytes.
    """
    found = [_Sticks.of(binding, t, shifts.get(t, 0)) for t in positions]
    distinct = {(item.starts.tobytes(), *(sticks.tobytes() for sticks, _ in item.touched)): item for item in found}
    used = list(distinct.values())
    return _union(used, 0), _union(used, _CORE_DISTANCE)


@dataclass(frozen=True, slots=True)
class _Sticks:
    """Where each core starts in an operand, and the sticks that these cores touch, relative to that."""

    starts: Integers
    touched: tuple[tuple[Integers, list[int]], ...]

    @classmethod
    def of(cls, binding: Binding, position: int, shift: int) -> Self:
        """Return the sticks of one operand, moved by ``shift`` bytes."""
        touched = tuple((whole_sticks(runs), cores) for runs, cores in binding.touched(position))
        return cls(binding.offsets[position] + shift, touched)


def _union(operands: Sequence[_Sticks], distance: int) -> int:
    parts: list[Integers] = []
    for item in operands:
        # Starts may stand inside a stick (index tensors): round after shifting.
        aligned = item.starts // STICK_BYTES * STICK_BYTES
        apart = aligned + np.arange(len(aligned), dtype=np.int64) * distance
        # a set of a few, and np.unique imports masked arrays
        parts.extend(
            shifted(sticks, np.array(sorted({*apart[cores].tolist()}), np.int64)) for sticks, cores in item.touched
        )
    return length(merge(np.concatenate(parts)))


def _flops(setting: Setting) -> int:
    """One per result of a pointwise operation, one per element folded, two per multiply-add, none for copies."""
    superdsc = setting.superdsc
    return device_operation(superdsc.op_func_name).flops * math.prod(superdsc.iteration.values())
