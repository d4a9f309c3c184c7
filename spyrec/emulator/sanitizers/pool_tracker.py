"""The part of ``init`` that knows tensors of the pool: what is read there is the tensor that was stored, not another.

A bundle does not say which tensor an operation expects at an address of the pool.  But writer and reader of one tensor
describe the same buffer: its size, the width of its elements, and, unless one of them sees a window, its first byte.  A
tensor of another shape that was stored over it before its last reader shows in that, one of the same shape does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.emulator.fault_places import START, operand_field
from spyrec.emulator.footprint import whole_sticks
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.resolve import POOL
from spyrec.emulator.sanitizers.places import Places, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.runtime.findings import Sanitizer
from spyrec.target import STICK_BYTES

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer as one operand describes it; ``first`` (bytes from the region's start) is ``None`` for a window."""

    size_bytes: int
    element_bytes: int
    first: int | None

    def contradicts(self, other: Tensor) -> bool:
        """Whether this and the other cannot be one buffer."""
        if (self.size_bytes, self.element_bytes) != (other.size_bytes, other.element_bytes):
            return True
        return None not in (self.first, other.first) and self.first != other.first

    def __str__(self) -> str:
        where = "" if self.first is None else f" at byte {self.first}"
        return f"{self.size_bytes} bytes of {self.element_bytes}-byte elements{where}"


@dataclass(frozen=True, slots=True)
class _Writer:
    planned: PlannedCall
    tensor: Tensor


class PoolTracker:
    """Per stick of the pool and of the program's own memory the number of its writer, 0 where there is none."""

    def __init__(self, report: Report, places: Places) -> None:
        self._report = report
        self._places = places
        self._owners: dict[int, npt.NDArray[np.int32]] = {}
        self._numbers: dict[tuple[int, int | None], int] = {}
        self._writers: list[_Writer] = []
        self._stored: dict[int, Integers] = {}
        self._sticks: dict[tuple[int, int], Integers] = {}

    def begin(self, bases: Mapping[int, int], sizes_bytes: Mapping[int, int]) -> None:
        """A launch begins; ``sizes_bytes``: by emulated address, of the memory that holds nothing yet."""
        self._owners = {
            base: np.zeros(-(-sizes_bytes[address] // STICK_BYTES), np.int32)
            for base, address in bases.items()
            if base <= POOL and address in sizes_bytes
        }
        self._numbers, self._writers, self._stored = {}, [], {}

    def execute(self, planned: PlannedCall, starts: Integers) -> None:
        """Check what one execution reads, then take note of what it stores."""
        for position in dict.fromkeys(
            (*planned.setting.inputs, *planned.call.superdsc.compute.indirect_access_indices)
        ):
            if planned.call.superdsc.operands[position].indirection is not Indirection.VALUE:
                self._read(planned, position, starts[position])
        output = planned.setting.output
        owners = self._owners.get(planned.binding.bases[output] or 0)
        if owners is not None:
            tensor = self._tensor(planned, output, starts[output])
            key = (id(planned), tensor.first)
            if key not in self._numbers:
                self._writers.append(_Writer(planned, tensor))
                self._numbers[key] = len(self._writers)
            touched = self._touched(planned, output, starts[output])
            owners[touched] = self._numbers[key]
            known = self._stored.get(self._numbers[key])
            fresh = np.unique(touched)
            self._stored[self._numbers[key]] = fresh if known is None else np.union1d(known, fresh)

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
            at = np.argwhere((found == number) & self._was_stored(own, touched))
            if not len(at):
                continue
            core, place = (int(index) for index in at[0])
            base = self._places.base(planned.binding.bases[position])
            emulated = base + int(touched[core, place]) * STICK_BYTES * self._places.shadow.expansion
            self._add(planned, Spot(position, core, max(emulated, int(starts[core]))), own, self._writers[number - 1])

    def _was_stored(self, own: Tensor, touched: Integers) -> npt.NDArray[np.bool_]:
        """Return which sticks of a read were stored as part of its tensor: padding keeps what another one left there.

        All of them where nothing was: then it is another tensor altogether.
        """
        stored = [
            self._stored[number] for number, writer in enumerate(self._writers, 1) if not writer.tensor.contradicts(own)
        ]
        return np.isin(touched, np.concatenate(stored)) if stored else np.ones(touched.shape, np.bool_)

    def _add(self, planned: PlannedCall, spot: Spot, own: Tensor, writer: _Writer) -> None:
        file = self._places.file_of(writer.planned)
        message = f'reads a tensor of {own}, but "{file}" has stored one of {writer.tensor} here'
        field = f"{operand_field(spot.operand, START)}, {operand_field(spot.operand, 'layoutDimOrder_')}, N_"
        self._report.add(self._places.finding(Sanitizer.INIT, planned, spot, message, field))

    def _tensor(self, planned: PlannedCall, position: int, starts: Integers) -> Tensor:
        geometry = planned.setting.geometries[position]
        operand = planned.call.superdsc.operands[position]
        is_window = any(operand.back_gap.values())
        first = (
            int(starts.min()) - self._places.base(planned.binding.bases[position])
        ) // self._places.shadow.expansion
        return Tensor(geometry.buffer_bytes, geometry.element_bytes, None if is_window else first)

    def _touched(self, planned: PlannedCall, position: int, starts: Integers) -> Integers:
        """Return the sticks ``[core, n]`` of the region that an operand touches."""
        base = self._places.base(planned.binding.bases[position])
        offsets = (starts - base) // self._places.shadow.expansion
        # a start inside a stick (of an index tensor) may reach into one more
        aligned = offsets // STICK_BYTES
        key = (id(planned), position)
        if key not in self._sticks:
            runs = whole_sticks(planned.binding.runs[position] + int(offsets[0]) % STICK_BYTES) // STICK_BYTES
            self._sticks[key] = np.concatenate(
                [np.arange(first, past, dtype=np.int64) for first, past in runs.tolist()]
            )
        return aligned[:, None] + self._sticks[key][None, :]
