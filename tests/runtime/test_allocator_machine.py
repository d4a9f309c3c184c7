"""The allocator against a plain dictionary, over random sequences of requests."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spyrec.runtime.errors import DoubleFree, OutOfDeviceMemory, StaleHandle
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex, FlexAllocator, MemoryOptions
from spyrec.runtime.memory.lazy_memory import LazyMemory
from spyrec.runtime.memory.statistics import BlockState, MemoryKind

REGIONS = (4096, 2048, 1024)


class AllocatorMachine(RuleBasedStateMachine):
    """The model: handle -> (bytes, kind, uses, freed), and what was freed for good."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = LazyMemory()
        self.allocator = FlexAllocator(MemoryOptions(region_bytes=REGIONS), backing=self.memory)
        self.model: dict[AllocationIndex, tuple[AddressRange, MemoryKind]] = {}
        self.uses: dict[AllocationIndex, int] = {}
        self.freed: set[AllocationIndex] = set()
        self.gone: set[AllocationIndex] = set()
        self.peak = self.total = self.count = 0

    def blocks(self, kind: MemoryKind) -> list[tuple[int, int, int]]:
        """Region, start and end of what is taken of the regions for a kind."""
        return sorted(
            (place.address.region_id, place.address.offset, place.past)
            for place, its_kind in self.model.values()
            if its_kind is kind
        )

    def holes(self, kind: MemoryKind) -> list[tuple[int, int, int]]:
        """Size, region and offset of each hole, by brute force."""
        found: list[tuple[int, int, int]] = []
        for region in (2,) if kind is MemoryKind.PROGRAM else (0, 1):
            at = 0
            for start, past in [item[1:] for item in self.blocks(kind) if item[0] == region] + [(REGIONS[region],) * 2]:
                if start > at:
                    found.append((start - at, region, at))
                at = past
        return found

    @rule(size=st.integers(1, 1500), kind=st.sampled_from(MemoryKind))
    def allocate(self, size: int, kind: MemoryKind) -> None:
        rounded = -(-size // 128) * 128
        fitting = [hole for hole in self.holes(kind) if hole[0] >= rounded]
        if not fitting:
            with pytest.raises(OutOfDeviceMemory):
                self.allocator.allocate(size, kind)
            return
        first_region = min(region for _, region, _ in fitting)
        _, region, offset = min(hole for hole in fitting if hole[1] == first_region)
        index = self.allocator.allocate(size, kind)
        assert index not in self.model
        assert index not in self.gone
        place = self.allocator.range_of(index)
        assert place == ((region, offset), rounded)
        self.memory.view(place)[:] = index % 251
        self.model[index], self.uses[index] = (place, kind), 0
        self.total, self.count = self.total + rounded, self.count + 1
        self.peak = max(self.peak, sum(item.size_bytes for item, _ in self.model.values()))

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(self.model)))
        if index in self.freed:
            with pytest.raises(DoubleFree):
                self.allocator.free(index)
            return
        self.allocator.free(index)
        self.freed.add(index)
        self.settle(index)

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(self.model)))
        if index in self.freed:
            with pytest.raises(StaleHandle):
                self.allocator.retain(index)
            return
        self.allocator.retain(index)
        self.uses[index] += 1

    @precondition(lambda self: any(self.uses.values()))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(index for index, uses in self.uses.items() if uses)))
        self.allocator.release(index)
        self.uses[index] -= 1
        self.settle(index)

    @precondition(lambda self: bool(self.gone))
    @rule(data=st.data())
    def use_what_is_gone(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(self.gone)))
        with pytest.raises(DoubleFree):
            self.allocator.free(index)
        with pytest.raises(StaleHandle):
            self.allocator.resolve(index)

    def settle(self, index: AllocationIndex) -> None:
        if index in self.freed and self.uses[index] == 0:
            del self.model[index], self.uses[index]
            self.freed.discard(index)
            self.gone.add(index)

    @invariant()
    def blocks_cover_every_region_without_overlap_and_no_two_free_ones_touch(self) -> None:
        at = dict.fromkeys(range(3), 0)
        before: tuple[int, BlockState] | None = None
        for block in self.allocator.snapshot():
            region = block.range.address.region_id
            assert block.range.address.offset == at[region]
            assert block.range.size_bytes % 128 == 0
            assert before != (region, BlockState.FREE) or block.state is not BlockState.FREE
            at[region] = block.range.past
            before = (region, block.state)
        assert tuple(at.values()) == REGIONS

    @invariant()
    def statistics_are_those_of_the_model(self) -> None:
        statistics = self.allocator.statistics()
        pending = [index for index in self.model if index in self.freed]
        assert statistics.allocated_bytes == sum(place.size_bytes for place, _ in self.model.values())
        assert statistics.allocations == len(self.model)
        assert statistics.pending_free_bytes == sum(self.model[index][0].size_bytes for index in pending)
        assert statistics.pending_frees == len(pending)
        assert (statistics.peak_bytes, statistics.accumulated_bytes) == (self.peak, self.total)
        assert statistics.accumulated_allocations == self.count

    @invariant()
    def everything_held_keeps_its_place_and_its_bytes(self) -> None:
        for index, (place, _) in self.model.items():
            assert set(self.memory.view(place).tolist()) == {index % 251}
            if index not in self.freed:
                assert self.allocator.range_of(index) == place


TestAllocatorMachine = AllocatorMachine.TestCase
TestAllocatorMachine.settings = settings(max_examples=60, stateful_step_count=40)
