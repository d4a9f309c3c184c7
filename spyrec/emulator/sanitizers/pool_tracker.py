"""The part of ``init`` that knows tensors of the pool: what is read there is the tensor that was stored, not another.

A bundle does not say which tensor an operation expects at an address of the pool.  But writer and reader of one tensor
describe the same buffer: its size, the width of its elements, and, unless one of them sees a window, its first byte.  A
tensor of another shape that was stored over it before its last reader shows in that, one of the same shape does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import reduce

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.dataclass import dataclass
from spyrec.emulator.footprint import whole_sticks
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.portion import Portion, WatchedCalls
from spyrec.emulator.resolve import POOL
from spyrec.emulator.rules.fault_places import START, operand_field
from spyrec.emulator.sanitizers.kernel_owners import WINDOW, run_owners
from spyrec.emulator.sanitizers.owner_accesses import OwnerAccesses
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.findings import Sanitizer

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer as one operand describes it; ``first`` (bytes from the region's start) is ``None`` for a window."""

    size_bytes: int
    element_bytes: int
    first: int | None

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Size, bytes per element, first byte, as :func:`run_owners` takes them."""
        return self.size_bytes, self.element_bytes, WINDOW if self.first is None else self.first

    def contradicts(self, other: Tensor) -> bool:
        """Whether this and the other cannot be one buffer."""
        if (self.size_bytes, self.element_bytes) != (other.size_bytes, other.element_bytes):
            return True
        return None not in (self.first, other.first) and self.first != other.first

    def __str__(self) -> str:
        where = "" if self.first is None else f" at byte {self.first}"
        return f"{self.size_bytes} bytes of {self.element_bytes}-byte elements{where}"


@dataclass(slots=True)
class _Writer:
    """Who stored a tensor; ``starts``: per core in one execution, ``shifts``: how far beyond that in all of them.

    ``latest``: the number of the latest dispatch that did.
    """

    planned: PlannedCall
    tensor: Tensor
    starts: Integers
    shifts: set[int] = field(default_factory=set[int])
    latest: int = 0


class PoolTracker:
    """Per stick of the pool and of the program's own memory the number of its writer, 0 where there is none."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._owners: dict[int, npt.NDArray[np.int32]] = {}
        self._numbers: dict[tuple[int, int | None], int] = {}
        self._writers: list[_Writer] = []
        self._sticks: dict[tuple[int, int], Integers] = {}
        self._accesses: OwnerAccesses | None = None
        self._dispatches = 0

    def begin(self, bases: Mapping[int, int], sizes_bytes: Mapping[int, int]) -> None:
        """A launch begins; ``sizes_bytes``: by emulated address, of the memory that holds nothing yet."""
        sticks = {
            base: -(-sizes_bytes[address] // STICK_BYTES)
            for base, address in bases.items()
            if base <= POOL and address in sizes_bytes
        }
        self._all_owners = np.zeros(sum(sticks.values()), np.int32)
        parts = np.split(self._all_owners, np.cumsum(list(sticks.values()))[:-1])
        self._owners = dict(zip(sticks, parts))
        self._numbers, self._writers, self._accesses = {}, [], None

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Check what one execution reads, then take note of what it stores."""
        self._dispatches += 1
        if planned.call.data_dsc is not None:  # pieces say nothing of the buffer that they are part of
            for position in planned.call.superdsc.compute.outputs:
                of_pieces = self._owners.get(planned.binding.bases[position] or 0)
                if of_pieces is not None:
                    of_pieces[self._touched(planned, position, starts[position])] = 0
            return
        for position in _loads(planned):
            self._read(planned, position, starts[position])
        output = planned.setting.output
        owners = self._owners.get(planned.binding.bases[output] or 0)
        if owners is not None:
            tensor = self._tensor(planned, output, starts[output])
            number = self._number(planned, tensor, starts[output])
            owners[self._touched(planned, output, starts[output])] = number
            writer = self._writers[number - 1]
            writer.shifts.add(int(starts[output, 0] - writer.starts[0]))
            writer.latest = self._dispatches

    def _number(self, planned: PlannedCall, tensor: Tensor, starts: Integers) -> int:
        """Return the number of a writer, a new one where it has none."""
        key = (id(planned), tensor.first)
        if key not in self._numbers:
            self._writers.append(_Writer(planned, tensor, starts))
            self._numbers[key] = len(self._writers)
        return self._numbers[key]

    def passes(self, portion: Portion) -> bool:
        """Take note of a portion where all of its reads are right, otherwise do nothing and return false."""
        if self._accesses is None or self._accesses.calls is not portion.calls:
            self._accesses = self._described(portion.calls)
        accesses = self._accesses
        if not any(number in portion.places for number in accesses.numbers):
            return True
        written = [number for number in portion.places if number in accesses.stores]
        known = len(self._writers)
        numbers = self._numbered(portion, written)
        tensors = np.array([item.tensor.numbers for item in self._writers], np.int64).reshape(-1, 3)
        expansion = self._places.shadow.expansion
        low, high = accesses.hull(portion, written, STICK_BYTES * expansion)
        saved = self._all_owners[low:high].copy()
        wrong = run_owners(
            portion.units, portion.moved, numbers, tensors, *accesses.tables, self._all_owners, expansion
        )  # fmt: skip
        if wrong >= 0:
            self._all_owners[low:high] = saved
            self._forget_writers(known)
            return False
        for number in written:
            self._note_shifts(portion, number, numbers)
        self._dispatches += len(portion.units)
        return True

    def _numbered(self, portion: Portion, written: list[int]) -> npt.NDArray[np.int32]:
        """Return per dispatch the number of the writer that it is, 0 for none; new ones are numbered as they come."""
        output = {number: portion.calls.planned[number].setting.output for number in written}
        found = np.zeros(len(portion.units), np.int32)
        fresh: list[tuple[int, int, Integers]] = []
        for number in written:
            at = portion.places[number]
            if self._is_window(portion.calls.planned[number], output[number]):
                groups = [at]
            else:
                _, group = np.unique(portion.shifts(number, output[number]), return_inverse=True)
                order = np.argsort(group, kind="stable")
                groups = np.split(at[order], np.cumsum(np.bincount(group))[:-1])
            fresh += [(int(own[0]), number, own) for own in groups]
        for place, number, own in sorted(fresh, key=lambda item: item[0]):
            planned, starts = portion.calls.planned[number], portion.starts(place)[output[number]]
            found[own] = self._number(planned, self._tensor(planned, output[number], starts), starts)
        return found

    def _forget_writers(self, known: int) -> None:
        self._writers = self._writers[:known]
        self._numbers = {key: number for key, number in self._numbers.items() if number <= known}

    def _note_shifts(self, portion: Portion, number: int, numbers: npt.NDArray[np.int32]) -> None:
        output, at = portion.calls.planned[number].setting.output, portion.places[number]
        own = numbers[at]
        found: list[int] = np.unique(own).tolist()
        for one in found:
            writer = self._writers[one - 1]
            first = int(portion.calls.starts[number][output, 0] - writer.starts[0])
            writer.shifts.update((np.unique(portion.moved[at[own == one], output]) + first).tolist())
            writer.latest = self._dispatches + 1 + int(at[own == one][-1])

    def _described(self, calls: WatchedCalls) -> OwnerAccesses:
        """Return what every call of a launch loads from and stores to the memories that are looked after."""
        found = OwnerAccesses(calls)
        firsts = {base: owners.ctypes.data - self._all_owners.ctypes.data for base, owners in self._owners.items()}
        for number, planned in enumerate(calls.planned):
            loads = [position for position in _loads(planned) if self._is_tracked(planned, position)]
            stores = [position for position in (planned.setting.output,) if self._is_tracked(planned, position)]
            for position in (*loads, *stores):
                starts, base = calls.starts[number][position], planned.binding.bases[position]
                tensor = self._tensor(planned, position, starts)
                self._touched(planned, position, calls.first_starts(number)[position])
                offsets = starts - self._places.base(base)
                place = (firsts[base or 0] // self._all_owners.itemsize, position)
                found.add(place, offsets, tensor.numbers, self._sticks[id(planned), position])
            found.close(number, len(loads), len(stores))
        return found

    def _is_tracked(self, planned: PlannedCall, position: int) -> bool:
        return (planned.binding.bases[position] or 0) in self._owners

    def _read(self, planned: PlannedCall, position: int, starts: Integers) -> None:
        owners = self._owners.get(planned.binding.bases[position] or 0)
        if owners is None:
            return
        own = self._tensor(planned, position, starts)
        touched = self._touched(planned, position, starts)
        found = owners[touched]
        numbers: list[int] = np.unique(found).tolist()
        for number in numbers:
            if number == 0 or not self._writers[number - 1].tensor.contradicts(own):
                continue
            stored = self._was_stored(own, touched, numbers, self._writers[number - 1])
            at = np.argwhere((found == number) & stored)
            if not len(at):
                continue
            core, place = (int(index) for index in at[0])
            base = self._places.base(planned.binding.bases[position])
            emulated = base + int(touched[core, place]) * STICK_BYTES * self._places.shadow.expansion
            self._add(planned, Spot(position, core, max(emulated, int(starts[core]))), own, self._writers[number - 1])

    def _was_stored(self, own: Tensor, touched: Integers, numbers: list[int], other: _Writer) -> npt.NDArray[np.bool_]:
        """Return which sticks of a read were stored as part of its tensor: padding keeps what ``other`` left there.

        All of them where nothing was: then it is another tensor altogether.  ``numbers``: of whose data is there now.
        Where all of the tensor that is left is younger than ``other``, whoever is not among them stored an earlier one.
        """
        agreeing = {number for number, item in enumerate(self._writers, 1) if not item.tensor.contradicts(own)}
        left = agreeing.intersection(numbers)
        is_younger = bool(left) and all(self._writers[number - 1].latest > other.latest for number in left)
        stored = [self._stored(self._writers[number - 1]) for number in (left if is_younger else agreeing)]
        return np.isin(touched, np.concatenate(stored)) if stored else np.ones(touched.shape, np.bool_)

    def _stored(self, writer: _Writer) -> Integers:
        """Return the sticks that a writer has stored so far."""
        touched = np.unique(self._touched(writer.planned, writer.planned.setting.output, writer.starts))
        shifts = np.array(sorted(writer.shifts), np.int64) // (STICK_BYTES * self._places.shadow.expansion)
        return np.unique(touched[None, :] + shifts[:, None])

    def _add(self, planned: PlannedCall, spot: Spot, own: Tensor, writer: _Writer) -> None:
        file = self._places.file_of(writer.planned)
        message = f'reads a tensor of {own}, but "{file}" has stored one of {writer.tensor} here'
        field = f"{operand_field(spot.operand, START)}, {operand_field(spot.operand, 'layoutDimOrder_')}, N_"
        self._report.add(self._places.finding(Sanitizer.INIT, planned, spot, message, field))

    def _tensor(self, planned: PlannedCall, position: int, starts: Integers) -> Tensor:
        geometry = planned.setting.geometries[position]
        is_window = self._is_window(planned, position)
        first = (
            int(starts.min()) - self._places.base(planned.binding.bases[position])
        ) // self._places.shadow.expansion
        return Tensor(geometry.buffer_bytes, geometry.element_bytes, None if is_window else first)

    @staticmethod
    def _is_window(planned: PlannedCall, position: int) -> bool:
        return any(planned.call.superdsc.operands[position].back_gap.values())

    def _touched(self, planned: PlannedCall, position: int, starts: Integers) -> Integers:
        """Return the sticks ``[core, n]`` of the region that an operand touches."""
        base = self._places.base(planned.binding.bases[position])
        offsets = (starts - base) // self._places.shadow.expansion
        # a start inside a stick (of an index tensor) may reach into one more
        aligned = offsets // STICK_BYTES
        key = (id(planned), position)
        if key not in self._sticks:
            shift = int(offsets[0]) % STICK_BYTES
            parts = [_sticks_of(runs + shift) for runs, _ in planned.binding.touched(position)]
            # where cores touch different ones, because only outer ones have padding, those of all cores
            self._sticks[key] = reduce(np.intersect1d, parts)
        return aligned[:, None] + self._sticks[key][None, :]


def _sticks_of(runs: Integers) -> Integers:
    bounds: list[list[int]] = (whole_sticks(runs) // STICK_BYTES).tolist()
    parts = [np.arange(first, past, dtype=np.int64) for first, past in bounds]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _loads(planned: PlannedCall) -> list[int]:
    """Return the operands that a call loads at places known beforehand, each once."""
    superdsc = planned.call.superdsc
    positions = dict.fromkeys((*planned.setting.inputs, *superdsc.compute.indirect_access_indices))
    return [position for position in positions if superdsc.operands[position].indirection is not Indirection.VALUE]
