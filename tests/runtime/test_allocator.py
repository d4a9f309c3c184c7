"""The allocator of device memory, request by request; ``test_allocator_machine.py`` has its state machine."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from spyrec.hardware.target import PROGRAM_SEGMENT_BASE, SEGMENT_BYTES
from spyrec.runtime.errors import (
    DeviceMismatch,
    DoubleFree,
    InvalidSize,
    OutOfDeviceMemory,
    OutsideAllocation,
    StaleHandle,
    UnknownRegion,
)
from spyrec.runtime.memory.addresses import AddressRange, MemoryMode, RegionTable, VirtualAddress
from spyrec.runtime.memory.allocator import NULL_ALLOCATION, AllocationIndex, FlexAllocator, MemoryOptions
from spyrec.runtime.memory.lazy_memory import LazyMemory
from spyrec.runtime.memory.spyre_allocator import SpyreAllocator
from spyrec.runtime.memory.statistics import AllocatorStatistics, BlockState, MemoryKind


def small(region_bytes: int = 20480, regions: int = 2, mode: MemoryMode = MemoryMode.VF) -> FlexAllocator:
    return FlexAllocator(MemoryOptions(mode, (region_bytes,) * regions))


def test_zero_bytes_have_a_handle_without_memory() -> None:
    allocator = small()
    index = allocator.allocate(0)
    assert index == NULL_ALLOCATION
    allocator.free(index)
    allocator.free(index)
    assert allocator.statistics() == AllocatorStatistics()
    with pytest.raises(StaleHandle):
        allocator.resolve(index)


@pytest.mark.parametrize(("asked", "rounded"), [(1, 128), (127, 128), (128, 128), (129, 256), (4097, 4224)])
def test_sizes_are_whole_sticks(asked: int, rounded: int) -> None:
    allocator = small()
    first, second = allocator.allocate(asked), allocator.allocate(1)
    assert allocator.range_of(first).size_bytes == rounded
    assert allocator.resolve(second).offset == rounded
    assert allocator.statistics().allocated_bytes == rounded + 128


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidSize, match="SPY0906"):
        small().allocate(-1)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_that_are_free_again_make_one_block_whatever_the_order(seed: int) -> None:
    allocator = small(region_bytes=100 * 2048)
    handles = [allocator.allocate(2048) for _ in range(100)]
    with pytest.raises(OutOfDeviceMemory):
        allocator.allocate(1)
    for handle in handles[:10]:
        allocator.free(handle)
    assert allocator.resolve(allocator.allocate(20480)).offset == 0
    rest = handles[10:]
    random.Random(seed).shuffle(rest)
    for handle in rest:
        allocator.free(handle)
    assert allocator.resolve(allocator.allocate(90 * 2048)).offset == 20480


def test_the_smallest_hole_that_fits_is_taken_and_of_equal_ones_the_lowest() -> None:
    allocator = small()
    handles = [allocator.allocate(size) for size in (512, 128, 256, 128, 256, 128, 1024, 128)]
    offsets = [allocator.resolve(handle).offset for handle in handles]
    for number in (0, 2, 4, 6):
        allocator.free(handles[number])
    assert allocator.resolve(allocator.allocate(200)).offset == offsets[2]
    assert allocator.resolve(allocator.allocate(256)).offset == offsets[4]
    assert allocator.resolve(allocator.allocate(600)).offset == offsets[6]
    assert allocator.resolve(allocator.allocate(128)).offset == offsets[6] + 640


def test_the_message_of_exhausted_memory_has_what_was_asked_and_what_is_there() -> None:
    allocator = small(region_bytes=1024, regions=3)
    held = [allocator.allocate(size) for size in (256, 128, 512, 1000)]
    allocator.free(held[0])
    before = allocator.snapshot()
    with pytest.raises(OutOfDeviceMemory) as caught:
        allocator.allocate(300)
    text = str(caught.value)
    for part in ("SPY0901", "300 bytes", "384 in whole sticks", "largest free block has 256", "region 0", "region 1"):
        assert part in text
    assert allocator.snapshot() == before


def test_a_handle_is_stale_after_free_even_when_its_place_is_used_again() -> None:
    allocator = small()
    first = allocator.allocate(128)
    allocator.free(first)
    second = allocator.allocate(128)
    assert allocator.resolve(second).offset == 0
    assert first != second
    for use in (allocator.resolve, allocator.range_of, allocator.retain, allocator.part):
        with pytest.raises(StaleHandle, match="SPY0902"):
            use(first)
    with pytest.raises(DoubleFree, match="SPY0903"):
        allocator.free(first)
    assert allocator.resolve(second).offset == 0


def test_a_number_that_never_was_a_handle_is_stale() -> None:
    allocator = small()
    with pytest.raises(StaleHandle):
        allocator.resolve(AllocationIndex((1 << 32) | 7))


def test_the_handle_of_another_device_is_refused() -> None:
    one = FlexAllocator(MemoryOptions(region_bytes=(1024, 1024)), device_index=0)
    other = FlexAllocator(MemoryOptions(region_bytes=(1024, 1024)), device_index=1)
    index = one.allocate(128)
    other.allocate(128)
    for use in (other.resolve, other.free, other.retain):
        with pytest.raises(DeviceMismatch, match="SPY0954"):
            use(index)


def test_memory_in_use_is_free_only_after_its_last_use() -> None:
    allocator = small(region_bytes=256)
    index = allocator.allocate(256)
    allocator.retain(index)
    allocator.retain(index)
    allocator.free(index)
    assert allocator.statistics().pending_free_bytes == 256
    assert allocator.snapshot()[0].state is BlockState.PENDING_FREE
    for use in (allocator.resolve, allocator.retain):
        with pytest.raises(StaleHandle):
            use(index)
    with pytest.raises(DoubleFree):
        allocator.free(index)
    allocator.release(index)
    with pytest.raises(OutOfDeviceMemory):
        allocator.allocate(128)
    allocator.release(index)
    assert allocator.statistics().pending_free_bytes == 0
    assert allocator.resolve(allocator.allocate(256)).offset == 0


def test_programs_and_tensors_have_regions_of_their_own() -> None:
    allocator = FlexAllocator()
    program, tensor = allocator.allocate(1, MemoryKind.PROGRAM), allocator.allocate(1)
    assert allocator.regions.device_address(allocator.resolve(program)) == PROGRAM_SEGMENT_BASE
    assert allocator.regions.device_address(allocator.resolve(tensor)) == 0
    full = small(region_bytes=256)
    full.allocate(256, MemoryKind.PROGRAM)
    with pytest.raises(OutOfDeviceMemory, match="program"):
        full.allocate(1, MemoryKind.PROGRAM)
    full.allocate(256)
    with pytest.raises(OutOfDeviceMemory, match="tensor"):
        full.allocate(1)


def test_a_full_region_is_followed_by_the_next_one() -> None:
    allocator = FlexAllocator()
    handles = [allocator.allocate(12 << 30) for _ in range(7)]
    assert [allocator.resolve(handle).region_id for handle in handles] == list(range(7))
    with pytest.raises(OutOfDeviceMemory):
        allocator.allocate(128)


@pytest.mark.parametrize("mode", list(MemoryMode))
def test_the_mode_changes_region_ids_and_nothing_else(mode: MemoryMode) -> None:
    allocator = FlexAllocator(MemoryOptions(mode))
    reference = FlexAllocator(MemoryOptions(MemoryMode.VF))
    for size, kind in [(12 << 30, MemoryKind.TENSOR), (300, MemoryKind.TENSOR), (500, MemoryKind.PROGRAM)]:
        mine, theirs = (item.resolve(item.allocate(size, kind)) for item in (allocator, reference))
        assert mine.offset == theirs.offset
        assert allocator.regions.device_address(mine) == reference.regions.device_address(theirs)
        assert allocator.regions.virtual_address(allocator.regions.device_address(mine)) == mine
    if mode is MemoryMode.PF:
        ids = allocator.regions.region_ids
        assert all(later - earlier >= 12 << 30 for earlier, later in itertools.pairwise(ids))


def test_an_address_outside_of_every_region_is_refused() -> None:
    table = RegionTable.of(MemoryMode.VF, (1024, 1024, 1024))
    assert table.segment_for_region(2) == 7
    with pytest.raises(UnknownRegion, match="SPY0904"):
        table.segment_for_region(3)
    for address in (1024, 2 * SEGMENT_BYTES, 8 * SEGMENT_BYTES, -1, PROGRAM_SEGMENT_BASE + 1024):
        with pytest.raises(UnknownRegion):
            table.virtual_address(address)
    for place in (VirtualAddress(0, 1024), VirtualAddress(0, -128), VirtualAddress(9, 0)):
        with pytest.raises(UnknownRegion):
            table.device_address(place)


def test_a_part_lies_inside_of_its_allocation() -> None:
    allocator = small()
    allocator.allocate(128)
    index = allocator.allocate(512)
    assert allocator.part(index, 128, 256).range == AddressRange(VirtualAddress(0, 256), 256)
    assert allocator.part(index, 384).range.size_bytes == 128
    for offset, size in [(0, 513), (-1, 2), (512, 1), (0, -1), (513, None)]:
        with pytest.raises(OutsideAllocation, match="SPY0905"):
            allocator.part(index, offset, size)


def test_the_same_requests_give_the_same_addresses_and_handles() -> None:
    def run() -> list[tuple[int, VirtualAddress]]:
        allocator, generator, live = small(region_bytes=1 << 16, regions=3), random.Random(7), list[AllocationIndex]()
        seen: list[tuple[int, VirtualAddress]] = []
        for _ in range(500):
            if live and generator.random() < 0.45:
                allocator.free(live.pop(generator.randrange(len(live))))
                continue
            try:
                live.append(allocator.allocate(generator.randrange(1, 4000)))
            except OutOfDeviceMemory:
                continue
            seen.append((live[-1], allocator.resolve(live[-1])))
        return seen

    assert run() == run()


def test_statistics_follow_peaks_and_resets() -> None:
    allocator = small()
    first, second = allocator.allocate(1000), allocator.allocate(128)
    allocator.free(first)
    assert allocator.statistics() == AllocatorStatistics(128, 1, 0, 0, 1152, 1152, 2)
    allocator.reset_peak()
    allocator.reset_accumulated()
    assert allocator.statistics() == AllocatorStatistics(128, 1, 0, 0, 128, 0, 0)
    allocator.free(second)
    assert allocator.statistics().peak_bytes == 128


def test_96_gibibytes_cost_nothing_until_they_are_touched() -> None:
    memory = LazyMemory()
    allocator = FlexAllocator(backing=memory)
    handles = [allocator.allocate(12 << 30) for _ in range(7)]
    assert memory.backed_bytes == 0
    place = allocator.range_of(handles[3])
    memory.view(place.part(place.size_bytes - 128, 128))[:] = 7
    assert memory.view(place)[-1] == 7
    for handle in handles:
        allocator.free(handle)
    assert memory.backed_bytes == 0


def test_memory_is_new_for_each_owner() -> None:
    memory = LazyMemory(fill=0xCD)
    allocator = FlexAllocator(MemoryOptions(region_bytes=(1024, 1024)), backing=memory)
    first = allocator.allocate(128)
    memory.view(allocator.range_of(first))[:] = 1
    allocator.free(first)
    second = allocator.allocate(128)
    np.testing.assert_array_equal(memory.view(allocator.range_of(second)), 0xCD)
    assert memory.view(allocator.range_of(second)).ctypes.data % 128 == 0


def test_bytes_between_allocations_are_nobody_s() -> None:
    memory = LazyMemory()
    allocator = FlexAllocator(MemoryOptions(region_bytes=(4096, 1024)), backing=memory)
    first, second = allocator.allocate(128), allocator.allocate(128)
    place = allocator.range_of(first)
    for bad in (
        AddressRange(place.address, 129),
        AddressRange(VirtualAddress(0, 300), 1),
        AddressRange(VirtualAddress(1, 0), 1),
    ):
        with pytest.raises(OutsideAllocation, match="SPY0905"):
            memory.view(bad)
    allocator.free(first)
    with pytest.raises(OutsideAllocation):
        memory.view(place)
    allocator.free(second)


def test_an_owner_frees_its_memory_when_it_is_dropped() -> None:
    allocator = small()
    owners = SpyreAllocator(allocator)
    kept, dropped = owners.allocate(100), owners.allocate(100)
    del dropped
    assert allocator.statistics().allocations == 1
    kept.free()
    assert kept.is_freed
    with pytest.raises(DoubleFree):
        kept.free()
    assert allocator.statistics().allocations == 0
    del kept
    assert allocator.statistics().accumulated_allocations == 2
