"""The device memory manager of seed 000: opaque handles out, virtual addresses for the execution pipeline only."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NewType, Protocol

from spyrec.dataclass import dataclass
from spyrec.runtime.argument_kinds import as_integer, is_a, of, shown, takes
from spyrec.runtime.errors import (
    DeviceClosed,
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
from spyrec.runtime.memory.free_list import FreeChange, FreeList
from spyrec.runtime.memory.statistics import (
    AllocatorCounters,
    AllocatorStatistics,
    Block,
    BlockState,
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
        """A block is allocated; its bytes are backed when they are first touched.  An interrupted call is repeated."""
        ...

    def detach(self, block: AddressRange) -> None:
        """A block is free again: nothing reads or writes it any more.  An interrupted call is repeated."""
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


class Claim(weakref.ref[object]):
    """Memory that somebody has as long as they live: allocations they own, and uses of others that count for them.

    What takes note of their end is no code of Python's, so that no interrupt is lost there.
    """

    __slots__ = ("held", "owned")

    owned: list[AllocationIndex]
    held: dict[AllocationIndex, int]


class FlexAllocator:
    """A pool of up to 8 regions, carved into blocks of whole sticks: best fit, free neighbours joined at once.

    The same requests in the same order give the same addresses.  Programs go to the last region; all else to the first
    region with room.  Memory that is freed while enqueued operations use it is given back when the last of them has
    retired (:meth:`retain`, :meth:`release`).  Every method may be called from any thread.

    An interrupt (Ctrl-C) leaves nothing half done: what changes more than one place is noted first and may be repeated;
    whoever comes next completes it.

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
        self._counters = AllocatorCounters()
        self._claims: dict[int, Claim] = {}
        self._dropped: deque[weakref.ref[object]] = deque()
        self._later: deque[tuple[AllocationIndex, Callable[[AllocationIndex], None]]] = deque()
        self._change: Callable[[], None] | None = None
        self._is_closed = False
        self.observers: list[MemoryObserver] = self._counters.observers
        self._lock = threading.RLock()

    def allocate(
        self, size_bytes: int, kind: MemoryKind = MemoryKind.TENSOR, claim: Claim | None = None
    ) -> AllocationIndex:
        """Return the handle of ``size_bytes`` bytes, rounded up to whole sticks; of zero bytes the null handle.

        ``claim`` owns it, and from the same moment on, whatever interrupts the call.
        Errors: SPY0901 no region has a free block of that size, SPY0906 a negative size, SPY0928.
        """
        size_bytes = _size(size_bytes)
        if not is_a(kind, MemoryKind):
            raise InvalidArgument(f"an allocation of kind {shown(kind)}, no MemoryKind")
        if self._is_closed:
            raise DeviceClosed(f"an allocation of {size_bytes} bytes on device {self._device_index}, which is closed")
        if size_bytes == 0:
            return NULL_ALLOCATION
        rounded = whole_sticks(size_bytes)
        with self._lock:
            self._catch_up()
            for number in self._regions_for(kind):
                taking = self._free_lists[number].taking(rounded)
                if taking is not None:
                    return self._allocated(number, taking, (rounded, kind), claim)
            raise self._out_of_memory(size_bytes, rounded, kind)

    def free(self, index: AllocationIndex) -> None:
        """Give an allocation back, at once or when the last enqueued operation that uses it has retired.

        Errors: SPY0903 it was freed before, SPY0954 it is another device's.
        """
        if type(index) is int and index == NULL_ALLOCATION:
            return
        with self._lock:
            self._catch_up()
            slot = self._slot(index)
            if slot is None or slot.is_freed:
                raise DoubleFree(f"allocation {index:#x} was freed before")
            self._free(index, slot)

    def drop(self, index: AllocationIndex) -> None:
        """Free an allocation before the next call that looks: what the garbage collector may call at any moment."""
        if type(index) is not int:
            raise _no_handle(index)
        if index != NULL_ALLOCATION:
            self._later.append((index, self.free))

    def release_later(self, index: AllocationIndex) -> None:
        """Release before the next call that looks: what the garbage collector may call at any moment."""
        self._later.append((index, self.release))

    def claim(self, holder: object) -> Claim:
        """Return a claim that ends with its holder: what it has is given back before the next call that looks.

        (The garbage collector may end it at any moment, also inside of a call.)
        """
        claim = Claim(holder, self._dropped.append)
        claim.owned, claim.held = [], {}
        self._claims[id(claim)] = claim
        return claim

    def disclaim(self, claim: Claim) -> None:
        """Let a claim end without giving anything back."""
        self._claims.pop(id(claim), None)

    def has_claim(self, claim: Claim) -> bool:
        """Whether a claim has not ended."""
        return id(claim) in self._claims

    @property
    def owners(self) -> list[object]:
        """Those alive who have a claim to memory of their own."""
        alive = [claim() for claim in list(self._claims.values()) if claim.owned]
        return [holder for holder in alive if holder is not None]

    def close(self) -> None:
        """Hand out no more memory: the device is closed."""
        self._is_closed = True

    def resolve(self, index: AllocationIndex) -> VirtualAddress:
        """Return where a live allocation begins; errors SPY0902, SPY0954."""
        return self.range_of(index).address

    def range_of(self, index: AllocationIndex) -> AddressRange:
        """Return the bytes of a live allocation, rounded up to whole sticks; errors SPY0902, SPY0954."""
        with self._lock:
            return self._live(index)

    def require_live(self, indices: Sequence[AllocationIndex]) -> None:
        """Refuse allocations of which one was freed; errors SPY0902, SPY0954."""
        with self._lock:
            given = self._given
            for slot in map(given.get, indices):
                if slot is None or slot.is_freed:
                    for index in indices:
                        self._live(index)

    def part(self, index: AllocationIndex, offset_bytes: int = 0, size_bytes: int | None = None) -> DeviceBytes:
        """Return ``size_bytes`` bytes of a live allocation (by default up to its end); errors SPY0902, 0905, 0954."""
        with self._lock:
            whole = self._live(index)
        (region_id, first), held_bytes = whole
        if type(size_bytes) is int and size_bytes == held_bytes and type(offset_bytes) is int and offset_bytes == 0:
            return DeviceBytes(index, whole)  # what launches ask for
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
        self.retain_all((index,))

    def retain_all(self, indices: Sequence[AllocationIndex], taken: dict[AllocationIndex, int] | None = None) -> None:
        """Count one more operation for each mention of an allocation, or, where this raises, none.

        ``taken``, as a claim's ``held``, gets them together with the counting, whatever interrupts the call.
        Errors: SPY0902, SPY0954.
        """
        if not is_a(indices, list) and not is_a(indices, Sequence):  # a class of its own is slow to ask
            raise InvalidArgument(f"the handles are {shown(indices)}, no sequence")
        with self._lock:
            if self._change is not None:
                self.complete()
            given = self._given
            uses: dict[AllocationIndex, int] = {}
            for index in indices:
                slot = given.get(index) if type(index) is int else None
                if slot is None or slot.is_freed:
                    self._live(index)
                    raise _stale(index)
                uses[index] = uses.get(index, slot.uses) + 1

            def count_all() -> None:
                for index, count in uses.items():
                    given[index].uses = count
                if taken is not None:
                    taken.update(uses)

            self._make(count_all)

    def release_all(self, indices: Sequence[AllocationIndex]) -> None:
        """Count one operation less for each mention of an allocation, as :meth:`release` does."""
        with self._lock:
            if self._change is not None:
                self.complete()
            given = self._given
            for index in indices:
                slot = given.get(index) or self._used(index)
                assert slot.uses > 0
                if slot.is_freed and slot.uses == 1:
                    self._make(self._ending(index, slot))
                else:
                    slot.uses -= 1

    def release(self, index: AllocationIndex) -> None:
        """Count one operation less: if it was the last one of a freed allocation, its block is free now."""
        self.release_all((index,))

    def complete(self) -> None:
        """Complete what an interrupt cut short."""
        with self._lock:
            if self._change is not None:
                self._make(self._change)

    @takes(place=of("AddressRange"))
    def containing(self, place: AddressRange) -> AllocationIndex:
        """Return the handle of the live allocation that holds all of these bytes; errors SPY0905."""
        with self._lock:
            self._catch_up()
            for number, slot in enumerate(self._slots):
                if slot.range is not None and not slot.is_freed and slot.range.contains(place):
                    return self._index(number, slot.generation)
        raise OutsideAllocation(
            f"bytes [{place.address.offset}, {place.past}) of region {place.address.region_id} lie in no allocation"
        )

    def statistics(self) -> AllocatorStatistics:
        """Return the counters as they are now."""
        with self._lock:
            self._catch_up()
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
            self._catch_up()
            blocks = [
                Block(slot.range, BlockState.PENDING_FREE if slot.is_freed else BlockState.LIVE, slot.kind, slot.uses)
                for slot in self._slots
                if slot.range is not None
            ]
            for region_id, free in zip(self.regions.region_ids, self._free_lists, strict=True):
                ranges = (AddressRange(VirtualAddress(region_id, offset), size) for offset, size in free.blocks)
                blocks += [Block(item, BlockState.FREE) for item in ranges]
            return tuple(sorted(blocks, key=lambda block: block.range.address))

    def _catch_up(self) -> None:
        """Complete what an interrupt cut short, and give back what the garbage collector has found."""
        self.complete()
        while self._dropped:
            claim = self._dropped[0]
            assert isinstance(claim, Claim)
            if self.has_claim(claim):
                for index in claim.owned:
                    slot = self._slot(index)
                    if slot is not None and not slot.is_freed:
                        self._free(index, slot)
                for index in list(claim.held):
                    self._release_held(index, claim.held)
                self.disclaim(claim)
            self._dropped.popleft()
        while self._later:
            index, give_back = self._later.popleft()
            give_back(index)

    def _make(self, change: Callable[[], None]) -> None:
        """Make a change that may be repeated: from here on it happens, however often it is interrupted."""
        self._change = change
        try:
            change()
        except Exception:  # what refuses it comes first in it
            self._change = None
            raise
        self._change = None

    def _used(self, index: AllocationIndex) -> _Slot:
        slot = self._slot(index)
        assert slot is not None, "an operation held memory that is gone"
        assert slot.uses > 0
        return slot

    def _release_held(self, index: AllocationIndex, held: dict[AllocationIndex, int]) -> None:
        slot = self._used(index)
        uses = slot.uses - 1
        end = self._ending(index, slot) if slot.is_freed and uses == 0 else None

        def let_go() -> None:
            slot.uses = uses
            held.pop(index, None)
            if end is not None:
                end()

        self._make(let_go)

    def _free(self, index: AllocationIndex, slot: _Slot) -> None:
        if not slot.uses:
            self._make(self._ending(index, slot))
            return
        block = slot.range
        assert block is not None
        after = self._counters.plus(pending_free_bytes=block.size_bytes, pending_frees=1)
        told = self._once_told(BlockState.PENDING_FREE, block)

        def let_wait() -> None:
            slot.is_freed = True
            self._counters.current = after
            told()

        self._make(let_wait)

    def _allocated(
        self, number: int, taking: FreeChange, wanted: tuple[int, MemoryKind], claim: Claim | None
    ) -> AllocationIndex:
        """Make an allocation of ``wanted`` bytes, of a kind, where a region has room; return its handle."""
        rounded, kind = wanted
        block = AddressRange(VirtualAddress(self.regions.region_ids[number], taking.offset), rounded)
        place = self._spare[-1] if self._spare else len(self._slots)
        slot = self._slots[place] if self._spare else _Slot()
        generation = slot.generation + 1
        assert generation < 1 << _GENERATION_BITS
        index = self._index(place, generation)
        after = self._counters.plus(rounded, 1)
        told = self._once_told(BlockState.LIVE, block)

        def begin() -> None:
            if self._backing is not None:
                self._backing.attach(block)
            self._free_lists[number].make(taking)
            if place == len(self._slots):
                self._slots.append(slot)
            elif self._spare and self._spare[-1] == place:
                self._spare.pop()
            slot.generation, slot.range, slot.kind, slot.uses, slot.is_freed = generation, block, kind, 0, False
            self._given[index] = slot
            if claim is not None:
                claim.owned[:] = (index,)
            self._counters.current = after
            told()

        self._make(begin)
        return index

    def _ending(self, index: AllocationIndex, slot: _Slot) -> Callable[[], None]:
        """Return the change that ends an allocation which nothing uses any more but, perhaps, who asks for it."""
        block = slot.range
        assert block is not None
        free_list = self._free_lists[self.regions.index_of(block.address.region_id)]
        giving_back = free_list.giving_back(block.address.offset, block.size_bytes)
        place = index & ((1 << _SLOT_BITS) - 1)
        size_bytes = block.size_bytes
        after = self._counters.plus(-size_bytes, -1, *((-size_bytes, -1) if slot.is_freed else (0, 0)))
        told = self._once_told(BlockState.FREE, block)

        def end() -> None:
            if self._backing is not None:
                self._backing.detach(block)
            slot.range, slot.uses, slot.is_freed = None, 0, True
            free_list.make(giving_back)
            self._given.pop(index, None)
            if not self._spare or self._spare[-1] != place:
                self._spare.append(place)
            self._counters.current = after
            told()

        return end

    def _once_told(self, state: BlockState, block: AddressRange) -> Callable[[], None]:
        """Return what tells the observers once, however often it is called."""
        left: Iterator[BlockState] = iter((state,))

        def tell() -> None:
            for item in left:
                self._counters.tell(item, block)

        return tell

    def _regions_for(self, kind: MemoryKind) -> Sequence[int]:
        last = self.regions.program_index
        return (last,) if kind is MemoryKind.PROGRAM else range(last)

    def _index(self, place: int, generation: int) -> AllocationIndex:
        high = self._device_index << _GENERATION_BITS | generation
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
