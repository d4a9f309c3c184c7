"""The device memory manager of seed 000: opaque handles out, virtual addresses for the execution pipeline only."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType, Protocol

from spyrec.runtime.argument_kinds import as_integer, is_a, of, shown, takes
from spyrec.runtime.errors import (
    DeviceMismatch,
    DoubleFree,
    InvalidArgument,
    InvalidSize,
    OutOfDeviceMemory,
    OutsideAllocation,
    StaleHandle,
)
from spyrec.runtime.memory.addresses import (
    REGION_BYTES,
    REGIONS,
    AddressRange,
    MemoryMode,
    RegionTable,
    VirtualAddress,
    whole_sticks,
)
from spyrec.runtime.memory.free_list import FreeList
from spyrec.runtime.memory.statistics import (
    AllocatorStatistics,
    Block,
    BlockState,
    Counters,
    MemoryKind,
    MemoryObserver,
)

AllocationIndex = NewType("AllocationIndex", int)
"""An opaque handle of one allocation: nothing follows from its value, and none is ever given twice."""

NULL_ALLOCATION = AllocationIndex(0)
"""The handle of zero bytes: it may be freed, and has no address."""

_SLOT_BITS = 32
_GENERATION_BITS = 32


class DeviceBytes(NamedTuple):
    """A part of a live allocation: what copies are given."""

    allocation: AllocationIndex
    range: AddressRange


class Backing(Protocol):
    """Whoever keeps the bytes: told of every block that begins and ends its life."""

    def attach(self, block: AddressRange) -> None:
        """A block is allocated; its bytes are backed when they are first touched."""
        ...

    def detach(self, block: AddressRange) -> None:
        """A block is free again: nothing reads or writes it any more."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How device memory is cut: the mode, bytes per region (whole sticks; the last region holds programs)."""

    mode: MemoryMode = MemoryMode.VF
    region_bytes: Sequence[int] = (REGION_BYTES,) * REGIONS


@dataclass(slots=True)
class _Slot:
    """One allocation, or the place of a former one: ``generation`` counts the allocations that had this place."""

    generation: int = 0
    range: AddressRange | None = None
    kind: MemoryKind = MemoryKind.TENSOR
    uses: int = 0
    is_freed: bool = False


class FlexAllocator:
    """A pool of up to 8 regions, carved into blocks of whole sticks: best fit, free neighbours joined at once.

    The same requests in the same order give the same addresses.  Programs go to the last region; all else to the first
    region with room.  Memory that is freed while enqueued operations use it is given back when the last of them has
    retired (:meth:`retain`, :meth:`release`).  Every method may be called from any thread.

    ``device_index`` goes into the handles, so that those of another device are told apart.
    """

    def __init__(
        self, options: MemoryOptions | None = None, *, backing: Backing | None = None, device_index: int = 0
    ) -> None:
        if not is_a(options, MemoryOptions | None):
            raise InvalidArgument(f"the options of an allocator are {shown(options)}, no MemoryOptions")
        chosen = options or MemoryOptions()
        self.regions = RegionTable.of(chosen.mode, chosen.region_bytes)
        self.mode = chosen.mode
        self._backing = backing
        self._device_index = device_index
        self._free_lists = [FreeList(size) for size in self.regions.region_bytes]
        self._slots: list[_Slot] = []
        self._given: dict[AllocationIndex, _Slot] = {}
        self._spare: list[int] = []
        self._counters = Counters()
        self._dropped: deque[AllocationIndex] = deque()
        self._released: deque[AllocationIndex] = deque()
        self.observers: list[MemoryObserver] = self._counters.observers
        self._lock = threading.Lock()

    def allocate(self, size_bytes: int, kind: MemoryKind = MemoryKind.TENSOR) -> AllocationIndex:
        """Return the handle of ``size_bytes`` bytes, rounded up to whole sticks; of zero bytes the null handle.

        Errors: SPY0901 no region has a free block of that size, SPY0906 a negative size.
        """
        size_bytes = _size(size_bytes)
        if not is_a(kind, MemoryKind):
            raise InvalidArgument(f"an allocation of kind {shown(kind)}, no MemoryKind")
        if size_bytes == 0:
            return NULL_ALLOCATION
        rounded = whole_sticks(size_bytes)
        with self._lock:
            self._free_dropped()
            found = self._take(rounded, kind)
            if found is None:
                raise self._out_of_memory(size_bytes, rounded, kind)
            try:
                if self._backing is not None:
                    self._backing.attach(found)
            except BaseException:
                self._free_lists[self.regions.index_of(found.address.region_id)].give_back(
                    found.address.offset, rounded
                )
                raise
            self._counters.add(
                allocated_bytes=rounded, allocations=1, accumulated_bytes=rounded, accumulated_allocations=1
            )
            self._counters.tell(BlockState.LIVE, found)
            return self._handle(found, kind)

    def free(self, index: AllocationIndex) -> None:
        """Give an allocation back, at once or when the last enqueued operation that uses it has retired.

        Errors: SPY0903 it was freed before, SPY0954 it is another device's.
        """
        if type(index) is int and index == NULL_ALLOCATION:
            return
        with self._lock:
            self._free_dropped()
            self._free(index)

    def drop(self, index: AllocationIndex) -> None:
        """Free an allocation before the next call that looks: what the garbage collector may call at any moment."""
        if type(index) is not int:
            raise _no_handle(index)
        if index != NULL_ALLOCATION:
            self._dropped.append(index)

    def resolve(self, index: AllocationIndex) -> VirtualAddress:
        """Return where a live allocation begins; errors SPY0902, SPY0954."""
        return self.range_of(index).address

    def range_of(self, index: AllocationIndex) -> AddressRange:
        """Return the bytes of a live allocation, rounded up to whole sticks; errors SPY0902, SPY0954."""
        with self._lock:
            return self._live(index)

    def part(self, index: AllocationIndex, offset_bytes: int = 0, size_bytes: int | None = None) -> DeviceBytes:
        """Return ``size_bytes`` bytes of a live allocation (by default up to its end); errors SPY0902, 0905, 0954."""
        with self._lock:
            whole = self._live(index)
        (region_id, first), held_bytes = whole
        if type(offset_bytes) is not int:
            offset_bytes = _whole(offset_bytes, "an offset")
        if size_bytes is not None and type(size_bytes) is not int:
            size_bytes = _whole(size_bytes, "a size")
        size = held_bytes - offset_bytes if size_bytes is None else size_bytes
        if offset_bytes < 0 or size < 0 or offset_bytes + size > held_bytes:
            fact = f"bytes [{offset_bytes}, {offset_bytes + size}) of an allocation of {held_bytes}"
            raise OutsideAllocation(fact)
        return DeviceBytes(index, AddressRange(VirtualAddress(region_id, first + offset_bytes), size))

    def retain(self, index: AllocationIndex) -> None:
        """Count one more enqueued operation that uses a live allocation; errors SPY0902, SPY0954."""
        with self._lock:
            self._retain(index)

    def retain_all(self, indices: Sequence[AllocationIndex]) -> None:
        """Count one more operation for each mention of an allocation, or, where this raises, none.

        Errors: SPY0902, SPY0954.
        """
        if not is_a(indices, Sequence):
            raise InvalidArgument(f"the handles are {shown(indices)}, no sequence")
        with self._lock:
            done = 0
            try:
                for index in indices:
                    self._retain(index)
                    done += 1
            except BaseException:
                for index in indices[:done]:
                    self._release(index)
                raise

    def release_all(self, indices: Sequence[AllocationIndex]) -> None:
        """Count one operation less for each mention of an allocation, as :meth:`release` does."""
        with self._lock:
            for index in indices:
                self._release(index)

    def release(self, index: AllocationIndex) -> None:
        """Count one operation less: if it was the last one of a freed allocation, its block is free now."""
        with self._lock:
            self._release(index)

    def release_later(self, index: AllocationIndex) -> None:
        """Release before the next call that looks: what the garbage collector may call at any moment."""
        self._released.append(index)

    @takes(place=of("AddressRange"))
    def containing(self, place: AddressRange) -> AllocationIndex:
        """Return the handle of the live allocation that holds all of these bytes; errors SPY0905."""
        with self._lock:
            self._free_dropped()
            for number, slot in enumerate(self._slots):
                if slot.range is not None and not slot.is_freed and slot.range.contains(place):
                    return self._index(number, slot)
        raise OutsideAllocation(
            f"bytes [{place.address.offset}, {place.past}) of region {place.address.region_id} lie in no allocation"
        )

    def statistics(self) -> AllocatorStatistics:
        """Return the counters as they are now."""
        with self._lock:
            self._free_dropped()
            return self._counters.current

    def reset_peak(self) -> None:
        """Let the peak be what is allocated now."""
        with self._lock:
            current = self._counters.current
            self._counters.current = dataclasses.replace(current, peak_bytes=current.allocated_bytes)

    def reset_accumulated(self) -> None:
        """Count accumulated bytes and allocations from zero again."""
        with self._lock:
            changes = {"accumulated_bytes": 0, "accumulated_allocations": 0}
            self._counters.current = dataclasses.replace(self._counters.current, **changes)

    def snapshot(self) -> tuple[Block, ...]:
        """Return all blocks, free ones too, by region and address: each region is covered without a gap."""
        with self._lock:
            self._free_dropped()
            blocks = [
                Block(slot.range, BlockState.PENDING_FREE if slot.is_freed else BlockState.LIVE, slot.kind, slot.uses)
                for slot in self._slots
                if slot.range is not None
            ]
            for region_id, free in zip(self.regions.region_ids, self._free_lists, strict=True):
                ranges = (AddressRange(VirtualAddress(region_id, offset), size) for offset, size in free.blocks)
                blocks += [Block(item, BlockState.FREE) for item in ranges]
            return tuple(sorted(blocks, key=lambda block: block.range.address))

    def _free_dropped(self) -> None:
        while self._dropped:
            self._free(self._dropped.popleft())
        while self._released:
            self._release(self._released.popleft())

    def _retain(self, index: AllocationIndex) -> None:
        slot = self._slot(index)
        if slot is None or slot.is_freed:
            raise _stale(index)
        slot.uses += 1

    def _release(self, index: AllocationIndex) -> None:
        slot = self._slot(index)
        assert slot is not None, "an operation held memory that is gone"
        assert slot.uses > 0
        slot.uses -= 1
        if slot.is_freed and slot.uses == 0 and slot.range is not None:
            self._counters.add(pending_free_bytes=-slot.range.size_bytes, pending_frees=-1)
            self._give_back(index, slot)

    def _free(self, index: AllocationIndex) -> None:
        slot = self._slot(index)
        if slot is None or slot.is_freed:
            raise DoubleFree(f"allocation {index:#x} was freed before")
        slot.is_freed = True
        assert slot.range is not None
        if slot.uses:
            self._counters.add(pending_free_bytes=slot.range.size_bytes, pending_frees=1)
            self._counters.tell(BlockState.PENDING_FREE, slot.range)
        else:
            self._give_back(index, slot)

    def _take(self, rounded: int, kind: MemoryKind) -> AddressRange | None:
        for index in self._regions_for(kind):
            offset = self._free_lists[index].take(rounded)
            if offset is not None:
                return AddressRange(VirtualAddress(self.regions.region_ids[index], offset), rounded)
        return None

    def _regions_for(self, kind: MemoryKind) -> Sequence[int]:
        last = self.regions.program_index
        return (last,) if kind is MemoryKind.PROGRAM else range(last)

    def _give_back(self, index: AllocationIndex, slot: _Slot) -> None:
        block = slot.range
        assert block is not None
        if self._backing is not None:
            self._backing.detach(block)
        slot.range = None
        self._free_lists[self.regions.index_of(block.address.region_id)].give_back(
            block.address.offset, block.size_bytes
        )
        del self._given[index]
        self._spare.append(index & ((1 << _SLOT_BITS) - 1))
        self._counters.add(allocated_bytes=-block.size_bytes, allocations=-1)
        self._counters.tell(BlockState.FREE, block)

    def _handle(self, block: AddressRange, kind: MemoryKind) -> AllocationIndex:
        place = self._spare.pop() if self._spare else len(self._slots)
        if place == len(self._slots):
            self._slots.append(_Slot())
        slot = self._slots[place]
        slot.generation += 1
        slot.range, slot.kind, slot.uses, slot.is_freed = block, kind, 0, False
        assert slot.generation < 1 << _GENERATION_BITS
        index = self._index(place, slot)
        self._given[index] = slot
        return index

    def _index(self, place: int, slot: _Slot) -> AllocationIndex:
        high = self._device_index << _GENERATION_BITS | slot.generation
        return AllocationIndex(high << _SLOT_BITS | place)

    def _slot(self, index: AllocationIndex) -> _Slot | None:
        """Return the slot of a handle as long as its generation lasts, freed or not; errors SPY0954."""
        if type(index) is not int:
            raise _no_handle(index)
        slot = self._given.get(index)
        if slot is not None or index == NULL_ALLOCATION:
            return slot
        device = index >> (_SLOT_BITS + _GENERATION_BITS)
        if device != self._device_index:
            raise DeviceMismatch(f"allocation {index:#x} is of device {device}, this is device {self._device_index}")
        return None

    def _live(self, index: AllocationIndex) -> AddressRange:
        slot = self._slot(index)
        if slot is None or slot.is_freed or slot.range is None:
            raise _stale(index)
        return slot.range

    def _out_of_memory(self, size_bytes: int, rounded: int, kind: MemoryKind) -> OutOfDeviceMemory:
        chosen = self._regions_for(kind)
        largest = max(self._free_lists[index].largest_bytes for index in chosen)
        notes = tuple(
            f"region {index}: {self._free_lists[index].free_bytes} of {self.regions.region_bytes[index]} bytes free, "
            f"largest block {self._free_lists[index].largest_bytes}"
            for index in chosen
        )
        fact = f"{kind.value} of {size_bytes} bytes ({rounded} in whole sticks): the largest free block has {largest}"
        return OutOfDeviceMemory(fact, notes=notes)


def _size(value: object) -> int:
    """Return a number of bytes; errors SPY0906 it is none."""
    number = as_integer(value)
    if number is None or number < 0:
        raise InvalidSize(f"an allocation of {shown(value)} bytes")
    return number


def _whole(value: object, name: str) -> int:
    number = as_integer(value)
    if number is None:
        raise InvalidArgument(f"{name} is {shown(value)}, no whole number")
    return number


def _no_handle(index: object) -> InvalidArgument:
    return InvalidArgument(f"{shown(index)} is no handle of an allocation")


def _stale(index: AllocationIndex) -> StaleHandle:
    return StaleHandle(f"allocation {index:#x} is used after it was freed")
