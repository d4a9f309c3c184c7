"""Rule V7 inside one core: what an operation stores may not lie where it still loads, unless it works in place.

Nothing says in which order a core loads and stores, so a result that depends on it is no result.  In place means that
every element is stored where it was loaded from: one start and one addressing of an operation that works element by
element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import Family
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import first_conflict
from spyrec.emulator.resolve import POOL, ScheduledCall
from spyrec.emulator.rules.binding import Binding
from spyrec.emulator.rules.fault_places import START, FaultSpot, operand_field, place_of
from spyrec.emulator.rules.superdsc import RULE_CODES, name_of
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import TableEntry
from spyrec.runtime.findings import RuleDiagnostic

Integers = npt.NDArray[np.int64]

_ELEMENTWISE = frozenset({Family.UNARY, Family.POINTWISE, Family.IDENTITY, Family.CAST, Family.PACK, Family.RESTICKIFY})
_MOST_SHIFTS = 1 << 12  # distances that loops make between two operands; beyond that the span of all of them counts

Region = tuple[int | None, int]
"""A memory, and where in it a base begins; ``None`` is LX, a memory of its own on each core."""


def check_overlaps(call: ScheduledCall, setting: Setting, binding: Binding, entries: Mapping[int, TableEntry]) -> None:
    """Refuse an input that overlaps the output on its own core other than in place; errors SPY0717."""
    regions: dict[int | None, Region] = {base: (base, 0) for base in binding.bases}
    _Overlaps(call, setting, binding, regions).check(entries, every_core=False)


def pool_entry(size_bytes: int) -> TableEntry:
    """Return the pool as if it were an argument."""
    return TableEntry("pool", POOL, (size_bytes // STICK_BYTES, 64), DeviceFormat.SEN169_FP16, 0, size_bytes)


def check_aliases(
    calls: Iterable[tuple[ScheduledCall, Setting, Binding]],
    entries: Mapping[int, TableEntry],
    addresses: Mapping[int, int],
) -> bool:
    """Return whether arguments overlap; refuse it where one call loads and stores them: errors SPY0717.

    ``entries`` and ``addresses``: of each argument and of the pool, by base.  Overlaps of arguments that no call loads
    and stores at once are legal, and so is work in place.
    """
    ordered = sorted((start, start + entries[base].reach_bytes) for base, start in addresses.items())
    if all(past <= start for (_, past), (start, _) in pairwise(ordered)):
        return False
    for call, setting, binding in calls:
        regions: dict[int | None, Region] = {
            base: (0, addresses[base]) if base is not None and base in addresses else (base, 0)
            for base in binding.bases
        }
        placed = {base: replace(entry, baked_base=addresses[base]) for base, entry in entries.items()}
        _Overlaps(call, setting, binding, regions).check(placed, every_core=True)
    return True


class _Overlaps:
    def __init__(
        self, call: ScheduledCall, setting: Setting, binding: Binding, regions: Mapping[int | None, Region]
    ) -> None:
        self.call = call
        self.setting = setting
        self.binding = binding
        self.regions = regions

    def check(self, entries: Mapping[int, TableEntry], *, every_core: bool) -> None:
        """Look at each input; ``every_core``: also at what it loads of other cores' stores."""
        setting, binding = self.setting, self.binding
        output = setting.output
        memory, _ = self.regions[binding.bases[output]]
        problems: list[Diagnostic] = []
        for position in dict.fromkeys((*setting.inputs, *setting.superdsc.compute.indirect_access_indices)):
            if self.regions[binding.bases[position]][0] != memory:
                continue
            found = self.overlap(position, every_core=every_core and memory is not None)
            if found is not None:
                problems.append(self.problem(position, FaultSpot(*found), entries))
        if problems:
            raise SpyrecError(problems)

    def overlap(self, position: int, *, every_core: bool) -> tuple[int, int] | None:
        """Return (core position, byte from the input's base) of one overlap that is not in place."""
        binding, output = self.binding, self.setting.output
        loads, stores = binding.runs[position], binding.runs[output]
        if len(loads) == 0 or len(stores) == 0:
            return None
        apart = self.regions[binding.bases[position]][1] - self.regions[binding.bases[output]][1]
        starts = binding.offsets[position] + apart
        targets = binding.offsets[output]
        may_be_in_place = self.is_same_addressing(position)
        for low, high in self.shifts(position):
            if low == high and may_be_in_place and np.array_equal(starts + low, targets):
                continue
            reached = loads if low == high else np.array([[loads[0, 0], loads[-1, 1] + high - low]], np.int64)
            found = _first_overlap((stores, targets), (reached, starts + low), every_core=every_core)
            if found is not None:
                core, byte = found
                return core, byte - apart - low
        return None

    def shifts(self, position: int) -> list[tuple[int, int]]:
        """Return the distances that the loops around the call add between input and output, as ranges."""
        mine, other = self.binding.steps[position], self.binding.steps[self.setting.output]
        if not self.call.is_executed:
            return []
        found = {0}
        for loop in self.call.loops:
            step = mine.get(loop.number, 0) - other.get(loop.number, 0)
            if step and len(found) * len(loop.values) <= _MOST_SHIFTS:
                found = {shift + step * value for shift in found for value in loop.values}
            elif step:
                return self._one_range(position)
        return [(shift, shift) for shift in sorted(found)]

    def _one_range(self, position: int) -> list[tuple[int, int]]:
        mine, other = self.binding.steps[position], self.binding.steps[self.setting.output]
        low = high = 0
        for loop in self.call.loops:
            step = mine.get(loop.number, 0) - other.get(loop.number, 0)
            ends = (step * loop.values[0], step * loop.values[-1])
            low, high = low + min(ends), high + max(ends)
        return [(low, high)]

    def is_same_addressing(self, position: int) -> bool:
        """Whether the operation works element by element and both operands address each element alike."""
        setting = self.setting
        superdsc = setting.superdsc
        if device_operation(superdsc.op_func_name).family not in _ELEMENTWISE:
            return False
        if superdsc.operands[position].indirection is not Indirection.NONE:
            return False
        mine, other = setting.geometries[position], setting.geometries[setting.output]
        orders = [(item.element_bytes, item.stick_size, item.pair_dim, item.is_interleaved) for item in (mine, other)]
        if orders[0] != orders[1]:
            return False
        walked = [dim for dim, extent in setting.extents.items() if extent > 1]
        alike = all(mine.stride_sticks.get(dim) == other.stride_sticks.get(dim) for dim in walked)
        sticks = [item.stick_dim if item.stick_dim in walked else None for item in (mine, other)]
        return alike and sticks[0] == sticks[1]

    def problem(self, position: int, spot: FaultSpot, entries: Mapping[int, TableEntry]) -> Diagnostic:
        superdsc = self.setting.superdsc
        subject = f"{name_of(superdsc, position)} overlaps {name_of(superdsc, self.setting.output)}"
        message = f"{subject}: core {superdsc.core_ids[spot.core]} loads byte {spot.byte} of it"
        message += ", which the operation stores"
        hint = "a result may replace its operand only element by element: same start, same layout, same extents"
        plain = Diagnostic(RULE_CODES[7], message, Location(self.call.file), hint=hint)
        fields = ", ".join(operand_field(item, START) for item in (position, self.setting.output))
        return RuleDiagnostic.of(plain, place_of(self.call, position, spot, fields, entries))


def _first_overlap(
    stores: tuple[Integers, Integers], loads: tuple[Integers, Integers], *, every_core: bool
) -> tuple[int, int] | None:
    """Return (loading core, byte) of one overlap of a core's loads with its own stores, or with those of any core."""
    if every_core:
        kept = np.unique(stores[1], return_index=True)[1]
        conflict = first_conflict((stores[0], stores[1][kept]), loads, [-1] * len(loads[1]))
        return None if conflict is None else (conflict[0], conflict[2])
    distances, cores = np.unique(loads[1] - stores[1], return_index=True)
    for distance, core in zip(distances.tolist(), cores.tolist(), strict=True):
        moved = (loads[0] + distance, np.zeros(1, np.int64))
        conflict = first_conflict((stores[0], np.zeros(1, np.int64)), moved, [-1])
        if conflict is not None:
            return core, conflict[2] + int(stores[1][core])
    return None
