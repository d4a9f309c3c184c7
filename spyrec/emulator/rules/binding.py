"""Rules on a SuperDSC whose operands have places: V4, V5, V6, V7, V10, V13."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection, SuperDsc
from spyrec.bundle.superdsc_windows import slid_axes
from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import Family
from spyrec.diagnostics import Diagnostic, Location, Severity, SpyrecError
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import box_runs, merge, shifted
from spyrec.emulator.geometry import (
    index_dims,
    outer_sum,
    owned_extents,
    row_dim_of,
    window_elements,
    window_inside,
)
from spyrec.emulator.resolve import POOL, ScheduledCall, ScheduledLoop
from spyrec.emulator.rules.fault_places import Fault, FaultSpot, operand_field, place_of
from spyrec.emulator.rules.races import races
from spyrec.emulator.rules.superdsc import RULE_CODES, name_of
from spyrec.emulator.rules.tile_reach import Walk, overrun
from spyrec.hardware.target import STICK_BYTES, Target
from spyrec.runtime.device import TableEntry
from spyrec.runtime.findings import RuleDiagnostic

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the operands of one call lie.

    ``bases[t]``: argument index, ``POOL``, or ``None`` in LX.  ``offsets[t][core]``: bytes from the base.
    ``steps[t]``: bytes per loop variable.  ``runs[t]``: bytes one core touches, relative to its start.
    ``core_runs[t]``: the same core by core, where cores differ, because only outer ones have padding; ``runs[t]`` then
    is what any of them touches.
    ``limits[t]``: bytes of the memory that operand t lies in, where it is left to a sanitizer whether it stays inside.
    ``holders[t]``: the core whose LX operand t lies in, where that is not each core's own.
    """

    bases: tuple[int | None, ...]
    offsets: tuple[Integers, ...]
    steps: tuple[Mapping[int, int], ...]
    runs: tuple[Integers, ...]
    buffer_bytes: tuple[int, ...]
    limits: Mapping[int, int] = field(default_factory=dict[int, int])
    warnings: tuple[Diagnostic, ...] = ()
    core_runs: Mapping[int, tuple[Integers, ...]] = field(default_factory=dict[int, tuple[Integers, ...]])
    holders: Mapping[int, int] = field(default_factory=dict[int, int])

    def touched(self, position: int) -> list[tuple[Integers, list[int]]]:
        """Return the runs of an operand, and the cores that touch these, relative to their own starts."""
        cores = list(range(len(self.offsets[position])))
        if position not in self.core_runs:
            return [(self.runs[position], cores)]
        alike: dict[bytes, list[int]] = {}
        for core in cores:
            alike.setdefault(self.core_runs[position][core].tobytes(), []).append(core)
        return [(self.core_runs[position][members[0]], members) for members in alike.values()]


_MAPS = ("affine_map of bundle.mlir",)
_REACH_LIMIT = 1 << 48  # bytes: far beyond every memory, and sums of a few such numbers still fit 64 bits


def check_binding(
    call: ScheduledCall,
    setting: Setting,
    entries: Mapping[int, TableEntry],
    region_bytes: Mapping[int, int],
    target: Target,
) -> Binding:
    """Check a call's places and return them; errors SPY0714 to SPY0717, SPY0720, SPY0723."""
    return _Checker(call, setting, entries, region_bytes, target).check()


def differing_runs(setting: Setting, positions: Iterable[int]) -> dict[int, tuple[Integers, ...]]:
    """Return the runs of each core, of those operands of which cores touch different ones."""
    found = ((position, own_runs(setting, position)) for position in positions)
    return {position: runs for position, runs in found if runs is not None}


def operand_runs(setting: Setting, position: int) -> Integers:
    """Return the byte runs ``[first, past)`` that one core touches of an operand, relative to its start."""
    geometry, operand = setting.geometries[position], setting.superdsc.operands[position]
    extents = dict(setting.extents)
    if operand.distribution is not None:
        extents = owned_extents(setting.superdsc, operand)
    if operand.indirection is Indirection.VALUE:
        # Any row may be read: the footprint is every row the table has.
        row_dim = row_dim_of(setting.superdsc, operand)
        if row_dim is not None and row_dim in geometry.extents:
            size = geometry.stick_size if row_dim == geometry.stick_dim else 1
            extents[row_dim] = geometry.extents[row_dim] * size
    if slid_axes(setting.superdsc, position):
        return merge(np.concatenate(_window_runs(setting, position)))
    return box_runs(geometry, extents, 2 if _touches_two_lanes(setting, position) else 1)


def own_runs(setting: Setting, position: int) -> tuple[Integers, ...] | None:
    """Return the runs of each core where they differ: of a divided axis only outer cores have padding."""
    if not slid_axes(setting.superdsc, position):
        return None
    found = _window_runs(setting, position)
    return None if all(np.array_equal(runs, found[0]) for runs in found) else found


def _window_runs(setting: Setting, position: int) -> tuple[Integers, ...]:
    """Return the runs of the elements that windows of each core take, each once however many windows have it.

    Padding has none.
    """
    superdsc, geometry = setting.superdsc, setting.geometries[position]
    slid, inside = window_elements(superdsc, position), window_inside(superdsc, position, geometry.extents)
    rest = box_runs(geometry, {dim: extent for dim, extent in setting.extents.items() if dim not in slid})
    known: dict[bytes, Integers] = {}
    found: list[Integers] = []
    for core in range(setting.cores):
        key = b"".join(flags[core].tobytes() for flags in inside.values())
        if key not in known:
            parts = [geometry.offsets(axis, np.unique(slid[axis][flags[core]])) for axis, flags in inside.items()]
            known[key] = merge(shifted(rest, outer_sum(parts)))
        found.append(known[key])
    return tuple(found)


def _touches_two_lanes(setting: Setting, position: int) -> bool:
    family = device_operation(setting.superdsc.op_func_name).family
    if family is Family.NORM_STATISTICS:
        return position == setting.output
    return family is Family.NORM_SCALE and position in setting.inputs


class _Checker:
    def __init__(
        self,
        call: ScheduledCall,
        setting: Setting,
        entries: Mapping[int, TableEntry],
        region_bytes: Mapping[int, int],
        target: Target,
    ) -> None:
        self.call = call
        self.setting = setting
        self.entries = entries
        self.region_bytes = region_bytes
        self.target = target
        self.problems: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        self.limits: dict[int, int] = {}

    def check(self) -> Binding:
        operands = self.setting.superdsc.operands
        bound = [self.place(position) for position in range(len(operands))]
        self.stop()
        runs = tuple(operand_runs(self.setting, position) for position in range(len(operands)))
        binding = Binding(
            tuple(base for base, _, _ in bound),
            tuple(offsets for _, offsets, _ in bound),
            tuple(steps for _, _, steps in bound),
            runs,
            tuple(geometry.buffer_bytes for geometry in self.setting.geometries),
            core_runs=differing_runs(self.setting, range(len(operands))),
        )
        for position, operand in enumerate(operands):
            self.agreement(position, binding)
            if operand.component is Component.HBM:
                self.alignment(position, binding)
                self.extents(position, binding)
                self.footprint(position, binding)
                self.tile_steps(position, binding)
                self.tile_reach(position, binding)
        if {item.code for item in self.problems} == {RULE_CODES[4]}:
            self.races(binding)  # a start on another core's data is worth its own message
        self.stop()
        if 7 not in self.setting.deferred_rules:
            self.races(binding)
        self.stop()
        return replace(binding, limits=self.limits, warnings=tuple(self.warnings))

    def stop(self) -> None:
        if self.problems:
            raise SpyrecError(self.problems)

    def problem(self, fault: Fault, message: str, hint: str | None = None) -> None:
        rule, position = fault.rule, fault.position
        plain = Diagnostic(
            RULE_CODES[rule],
            f"{name_of(self.setting.superdsc, position)}: {message}",
            Location(self.call.file),
            hint=hint,
        )
        field = ", ".join((operand_field(position, fault.field), *fault.more_fields))
        found = RuleDiagnostic.of(plain, place_of(self.call, position, fault.spot, field, self.entries))
        if rule == 10 and rule in self.setting.deferred_rules:
            self.warnings.append(replace(found, severity=Severity.WARNING))
        else:
            self.problems.append(found)

    def place(self, position: int) -> tuple[int | None, Integers, Mapping[int, int]]:
        """Return base, byte offsets per core and steps per loop; cores must agree on base and steps (V6, V10)."""
        places = self.call.places[position]
        if places is None:
            starts = self.setting.superdsc.operands[position].start_addresses
            return None, np.array(starts, np.int64), {}
        bases = {place.base for place in places}
        if len(bases) != 1:
            other = next(core for core, place in enumerate(places) if place.base != places[0].base)
            fault = Fault(6, position, FaultSpot(other, places[other].offset))
            self.problem(fault, f"its cores start in different arguments: {sorted(map(str, bases))}")
        steps = [{loop: step for loop, step in place.steps.items() if step} for place in places]
        if any(other != steps[0] for other in steps):
            other = next(core for core, own in enumerate(steps) if own != steps[0])
            fault = Fault(10, position, FaultSpot(other, places[other].offset), more_fields=_MAPS)
            self.problem(fault, "its cores advance by different steps in a loop")
        far = next((core for core, place in enumerate(places) if abs(place.offset) > _REACH_LIMIT), None)
        if far is not None:
            message = f"its start, {places[far].offset} bytes into its memory, lies beyond every memory"
            self.problem(Fault(6, position, FaultSpot(far, places[far].offset)), message)
            return places[0].base, np.zeros(len(places), np.int64), {}
        offsets = np.array([place.offset for place in places], np.int64)
        if self._is_gather_table(position):
            offsets = offsets[_first_slices(self.setting.superdsc)]
        return places[0].base, offsets, steps[0]

    def agreement(self, position: int, binding: Binding) -> None:
        """V4: the starts of all cores are what the strides say, relative to the first core's."""
        setting = self.setting
        superdsc, geometry = setting.superdsc, setting.geometries[position]
        operand = superdsc.operands[position]
        offsets = binding.offsets[position]
        if operand.component is Component.LX:
            return
        exempt = index_dims(superdsc) if operand.indirection is Indirection.VALUE else ()
        keys = [tuple(of_core[dim] for dim in exempt) for of_core in superdsc.core_work_slices]
        expected = np.zeros(len(offsets), np.int64)
        slid = slid_axes(superdsc, position)
        for dim in superdsc.iteration:
            if dim in geometry.stride_sticks and dim not in exempt:
                first = np.array([s[dim] for s in superdsc.core_work_slices], np.int64) * superdsc.core_extent[dim]
                expected += geometry.offsets(dim, first * slid[dim].stride if dim in slid else first)
        reference: dict[tuple[int, ...], int] = {}
        for core, (key, offset, wanted) in enumerate(zip(keys, offsets.tolist(), expected.tolist())):
            base = reference.setdefault(key, offset - wanted)
            if offset != base + wanted:
                hint = "the core's start, its slice indices and the layout disagree"
                message = f"core {superdsc.core_ids[core]} starts {offset - base} bytes past the window's start"
                fault = Fault(4, position, FaultSpot(core, offset), more_fields=("coreIdToWkSlice_",))
                self.problem(fault, f"{message}, its slices and strides say {wanted}", hint)
                return

    def alignment(self, position: int, binding: Binding) -> None:
        """V5: starts are whole sticks; those of an index tensor are whole elements."""
        operand = self.setting.superdsc.operands[position]
        unit = operand.word_length if operand.indirection is Indirection.INDEX else STICK_BYTES
        numbers = [*binding.offsets[position].tolist(), *binding.steps[position].values()]
        wrong = [number for number in numbers if number % unit]
        if wrong:
            starts = binding.offsets[position].tolist()
            core = next((core for core, start in enumerate(starts) if start == wrong[0]), 0)
            self.problem(Fault(5, position, FaultSpot(core, wrong[0])), f"start {wrong[0]} is not {unit}-byte aligned")

    def extents(self, position: int, binding: Binding) -> None:
        """V6: the buffer that the strides describe is the one that the argument table describes."""
        base = binding.bases[position]
        geometry = self.setting.geometries[position]
        entry = self.entries.get(base) if base is not None else None
        if entry is None or not entry.device_size:
            return
        first = FaultSpot(0, int(binding.offsets[position][0]))
        if entry.device_size[-1] != geometry.stick_size:
            message = f'its stick has {geometry.stick_size} elements, argument "{entry.name}" has sticks of'
            fault = Fault(6, position, first, "wordLength_")
            self.problem(fault, f"{message} {entry.device_size[-1]}")
            return
        described = tuple(geometry.extents.values())
        if not geometry.table_extents and not _same_buffer(described, entry.device_size[:-1]):
            order = list(reversed(described))
            message = f'its extents {order} (outermost first, sticks) contradict argument "{entry.name}"'
            fault = Fault(6, position, first, "layoutDimOrder_", ("N_", operand_field(position, "backGapCore_")))
            self.problem(fault, f"{message}, whose device_size is {list(entry.device_size)}")

    def footprint(self, position: int, binding: Binding) -> None:
        """V6 and V13: every byte lies in the argument or the pool, in every iteration; the span is bounded."""
        base, touched = binding.bases[position], [item for item in binding.touched(position) if len(item[0])]
        if not touched:
            return
        span = max(int(runs[-1, 1] - runs[0, 0]) for runs, _ in touched)
        if span > self.target.span_limit_bytes and not self._is_gather_table(position):
            fault = Fault(13, position, FaultSpot(0, int(binding.offsets[position][0])), "layoutDimOrder_", ("N_",))
            self.problem(fault, f"one core spans {span} bytes, at most {self.target.span_limit_bytes} are legal")
        if not self.call.is_executed:
            return
        starts = binding.offsets[position]
        first = min(int(starts[cores].min() + runs[0, 0]) for runs, cores in touched)
        past = max(int(starts[cores].max() + runs[-1, 1]) for runs, cores in touched)
        for loop in self.call.loops:
            step = binding.steps[position].get(loop.number, 0)
            ends = (step * loop.values[0], step * loop.values[-1])
            first, past = first + min(ends), past + max(ends)
        entry = self.entries.get(base) if base is not None else None
        size = entry.size_bytes if entry is not None else self.region_bytes.get(base if base is not None else 0, 0)
        name = f'argument "{entry.name}"' if entry is not None else "the pool" if base == POOL else "its own memory"
        if first >= 0 and past <= size:
            return
        if 6 in self.setting.deferred_rules and max(-first, past) < _REACH_LIMIT:
            self.limits[position] = size
        else:
            spot = FaultSpot(int(starts.argmin()), first) if first < 0 else FaultSpot(int(starts.argmax()), past - 1)
            more = ("N_", *(_MAPS if binding.steps[position] else ()))
            fault = Fault(6, position, spot, more_fields=more)
            self.problem(fault, f"it touches bytes [{first}, {past}) of {name}, which has {size} bytes")

    def _is_gather_table(self, position: int) -> bool:
        return self.setting.superdsc.operands[position].indirection is Indirection.VALUE

    def tile_steps(self, position: int, binding: Binding) -> None:
        """V10: a loop advances an operand by whole tiles along some of its dims.

        Around a loop that walks the tiles of a dim, another one may advance along it by several of them.
        """
        setting = self.setting
        geometry = setting.geometries[position]
        slid, tile = slid_axes(setting.superdsc, position), self.call.tile
        steps = {
            dim: geometry.unit_step(dim, tile[dim] * (slid[dim].stride if dim in slid else 1))
            for dim in geometry.stride_sticks
            if dim != geometry.stick_dim or tile[dim] % geometry.stick_size == 0
        }
        for loop, found in self._uneven_steps(position, binding, steps):
            named = ", ".join(f"{dim}: {step}" for dim, step in steps.items())
            places = self.call.places[position] or ()
            maps = ", ".join(f"#{name}" for name in (places[0].maps if places else ()))
            message = f"map {maps} advances it by {found} bytes per round of loop {loop.number}"
            message += f"; expected is a sum of tile steps of its layout, which are {named} bytes"
            fault = Fault(10, position, FaultSpot(0, int(binding.offsets[position][0])), more_fields=_MAPS)
            self.problem(fault, message, "a coefficient is the sum of tile steps over the dims that the loop tiles")

    def _uneven_steps(
        self, position: int, binding: Binding, steps: Mapping[str, int]
    ) -> list[tuple[ScheduledLoop, int]]:
        """Return the loops, outermost first, and their steps that no tile steps explain."""
        walked_inside: set[str] = set()
        uneven: list[tuple[ScheduledLoop, int]] = []
        for loop in reversed(self.call.loops):
            found = binding.steps[position].get(loop.number, 0)
            units = [steps[dim] for dim in sorted(walked_inside)]
            chosen = tile_summands(found, steps, units)
            if chosen is None:  # the variable may count elements instead of tiles, a whole tile's per round
                chosen = tile_summands(found * loop.values.step, steps, units)
            walked_inside.update(chosen or ())
            if len(loop.values) > 1 and chosen is None:
                uneven.insert(0, (loop, found * loop.values.step))
        return uneven

    def tile_reach(self, position: int, binding: Binding) -> None:
        """V10: the tiles that loops walk stay inside each dim of the argument's buffer."""
        setting, base = self.setting, binding.bases[position]
        geometry, entry = setting.geometries[position], self.entries.get(base) if base is not None else None
        if slid_axes(setting.superdsc, position):
            return  # windows overlap: tiles of the output do not cut the input into tiles
        if entry is None or geometry.buffer_bytes != entry.size_bytes or geometry.table_extents or self.problems:
            return
        if setting.superdsc.operands[position].indirection is not Indirection.NONE or not self.call.is_executed:
            return
        counts = {
            dim: -(-setting.extents[dim] // (geometry.stick_size if dim == geometry.stick_dim else 1))
            for dim in geometry.stride_sticks
        }
        offsets, steps = binding.offsets[position], binding.steps[position]
        found = overrun(geometry, Walk(offsets, steps, counts), self.call.loops)
        if found is None:
            return
        fault = Fault(10, position, FaultSpot(found.core, int(offsets[found.core])), more_fields=_MAPS)
        message = f'loops {", ".join(map(str, found.loops))} carry it along "{found.dim}" to entry {found.reached} of'
        hint = "a loop walks the tiles of a dim once: its rounds times its tile step end where the dim ends"
        self.problem(fault, f'{message} {found.extent} in argument "{entry.name}"', hint)

    def races(self, binding: Binding) -> None:
        """V7: different cores store different bytes, unless they combine; no core loads what another stores."""
        for fault, message in races(self.setting, binding):
            self.problem(fault, message)


def _first_slices(superdsc: SuperDsc) -> list[int]:
    """Return per core the position of the core with the same slices but slice 0 in the dims of the index (A2).

    Row numbers are relative to the table's start; some writers add the index's slice offset to it, which is wrong.
    """
    rows = index_dims(superdsc)
    exact = {tuple(sorted(of_core.items())): core for core, of_core in enumerate(superdsc.core_work_slices)}
    return [
        exact[tuple(sorted((dim, 0 if dim in rows else index) for dim, index in of_core.items()))]
        for of_core in superdsc.core_work_slices
    ]


def _same_buffer(described: tuple[int, ...], device_size: tuple[int, ...]) -> bool:
    """Whether extents (inner to outer) are the buffer's, up to dims of size 1 and dims that one side merges.

    A single row of sticks has no strides to contradict: any tensor that fits into it may begin there (D155).
    """
    if len(device_size) == 1:
        return math.prod(described) <= device_size[0]
    own = _boundaries(described)
    other = _boundaries(tuple(reversed(device_size)))
    return math.prod(described) == math.prod(device_size) and (own <= other or other <= own)


def _boundaries(extents: tuple[int, ...]) -> set[int]:
    return set(np.cumprod([1, *extents], dtype=object).tolist())


def tile_summands(found: int, steps: Mapping[str, int], units: Sequence[int]) -> tuple[str, ...] | None:
    """Return the dims whose tile steps add up to a step, up to multiples of two of ``units``; else ``None``."""
    for count in range(len(steps) + 1):
        for chosen in combinations(steps, count):
            rest = found - sum(steps[dim] for dim in chosen)
            if rest == 0 or any(rest % unit == 0 for unit in units if unit):
                return chosen
    pairs = [pair for pair in combinations(units, 2) if all(pair)]
    return () if any(_is_sum_of_multiples(found, *pair) for pair in pairs) else None


def _is_sum_of_multiples(number: int, one: int, other: int) -> bool:
    """Whether a positive number is so many of one and so many of another, none of them taken away."""
    shared = math.gcd(one, other)
    if number % shared:
        return False
    fewest = number // shared * pow(one // shared, -1, other // shared) % (other // shared)
    return fewest * one <= number
