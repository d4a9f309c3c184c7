"""Where bytes lie: virtual addresses, ranges of them, and the regions they count in.

A region is a physical reservation (12 GiB by default); a segment is a window of 16 GiB in a program's address space.
Region ``i`` appears in segment ``i``; the last one, segment 7, holds programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, cast

from spyrec.dataclass import dataclass
from spyrec.hardware.target import DATA_SEGMENTS, SEGMENT_BYTES, STICK_BYTES
from spyrec.runtime.argument_kinds import Whole, as_integer, is_a, shown, takes
from spyrec.runtime.errors import InvalidMemory, UnknownRegion

REGIONS = DATA_SEGMENTS + 1
"""Most regions of a device: one for each entry of a control block's segment table (seed 000)."""

PROGRAM_REGION = DATA_SEGMENTS
"""Index of the region that holds programs: that of the program segment."""

REGION_BYTES = 12 << 30
"""Bytes of a region where nothing else is asked for (seed 001: 8 x 12 GB)."""

HOST_REGION = 1 << 62
"""The region id of pinned host buffers: no device has it, so that footprints on the host are ordinary ranges."""


class VirtualAddress(NamedTuple):
    """A place in device memory: ``offset`` bytes into the region with the id ``region_id``."""

    region_id: int
    offset: int

    def advanced(self, distance_bytes: int) -> VirtualAddress:
        """Return the address ``distance_bytes`` further on in the same region."""
        return VirtualAddress(self.region_id, self.offset + distance_bytes)


class AddressRange(NamedTuple):
    """``size_bytes`` bytes from ``address`` on."""

    address: VirtualAddress
    size_bytes: int

    @property
    def past(self) -> int:
        """The offset behind the last byte."""
        return self.address.offset + self.size_bytes

    def overlaps(self, other: AddressRange) -> bool:
        """Whether both have a byte in common."""
        (my_region, mine), size_bytes = self
        (their_region, theirs), their_bytes = other
        if my_region != their_region or size_bytes <= 0 or their_bytes <= 0:
            return False
        return theirs < mine + size_bytes and mine < theirs + their_bytes

    def contains(self, other: AddressRange) -> bool:
        """Whether every byte of ``other`` is one of this range."""
        mine, theirs = self.address, other.address
        return mine.region_id == theirs.region_id and mine.offset <= theirs.offset and other.past <= self.past

    def part(self, offset_bytes: int, size_bytes: int) -> AddressRange:
        """Return ``size_bytes`` bytes of this range, ``offset_bytes`` behind its start."""
        return AddressRange(self.address.advanced(offset_bytes), size_bytes)


class MemoryMode(Enum):
    """What a region id is: an index into the firmware's table (VF), or the region's physical address (PF)."""

    VF = "vf"
    PF = "pf"


@dataclass(frozen=True, slots=True)
class RegionTable:
    """The regions of a device, by index: their ids, and the bytes of each.

    The mode decides what an id looks like and nothing else: offsets, segments and device addresses are the same.
    """

    region_ids: tuple[int, ...]
    region_bytes: tuple[int, ...]

    @classmethod
    def of(cls, mode: MemoryMode, region_bytes: Sequence[int] = (REGION_BYTES,) * REGIONS) -> RegionTable:
        """Return the table of a device with regions of these sizes (whole sticks, at most 16 GiB each).

        Physical addresses are those of regions that follow each other from 4 GiB on.  Errors: SPY0940.
        """
        if not is_a(mode, MemoryMode):
            raise InvalidMemory(f"the mode of a memory is {shown(mode)}, no MemoryMode")
        sizes = _region_sizes(region_bytes)
        bases = [(4 << 30) + sum(sizes[:index]) for index in range(len(sizes))]
        return cls(tuple(bases if mode is MemoryMode.PF else range(len(sizes))), sizes)

    @property
    def program_index(self) -> int:
        """Index of the region that holds programs: the last one."""
        return len(self.region_ids) - 1

    def index_of(self, region_id: int) -> int:
        """Return the index of a region; errors SPY0904."""
        if region_id not in self.region_ids:
            ids = ", ".join(map(str, self.region_ids))
            raise UnknownRegion(f"region {region_id} is none of this device's, {ids}")
        return self.region_ids.index(region_id)

    def segment_for_region(self, region_id: int) -> int:
        """Return the segment, 0 to 7, in which programs see a region; errors SPY0904."""
        index = self.index_of(region_id)
        return PROGRAM_REGION if index == self.program_index else index

    def device_address(self, address: VirtualAddress) -> int:
        """Return the address that programs and corrections know: segment times 16 GiB plus offset; errors SPY0904."""
        segment = self.segment_for_region(address.region_id)
        size = self.region_bytes[self.index_of(address.region_id)]
        if not 0 <= address.offset < size:
            raise UnknownRegion(f"offset {address.offset} is not in region {address.region_id} of {size} bytes")
        return segment * SEGMENT_BYTES + address.offset

    @takes(device_address=Whole())
    def virtual_address(self, device_address: int) -> VirtualAddress:
        """Return the place of a device address; errors SPY0904."""
        segment, offset = divmod(device_address, SEGMENT_BYTES)
        index = self.program_index if segment == PROGRAM_REGION else segment
        is_known = 0 <= segment <= PROGRAM_REGION and (segment == PROGRAM_REGION or segment < self.program_index)
        if not is_known or offset >= self.region_bytes[index]:
            raise UnknownRegion(f"device address {device_address:#x} lies in no region")
        return VirtualAddress(self.region_ids[index], offset)


def _region_sizes(given: object) -> tuple[int, ...]:
    """Return bytes per region; errors SPY0940."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidMemory(f"region_bytes is {shown(given)}, no sequence of sizes")
    listed = tuple(cast("Sequence[object]", given))
    if not 2 <= len(listed) <= REGIONS:
        raise InvalidMemory(f"{len(listed)} regions, a device has 2 to {REGIONS}: the last one holds programs")
    sizes: list[int] = []
    for number, item in enumerate(listed):
        size = as_integer(item)
        if size is None or not 0 < size <= SEGMENT_BYTES or size % STICK_BYTES:
            wanted = f"whole sticks of {STICK_BYTES} bytes, up to the {SEGMENT_BYTES} of a segment"
            raise InvalidMemory(f"region {number} has {shown(item)} bytes, it takes {wanted}")
        sizes.append(size)
    return tuple(sizes)


def whole_sticks(size_bytes: int) -> int:
    """Return the bytes of the sticks that hold ``size_bytes`` bytes."""
    return -(-size_bytes // STICK_BYTES) * STICK_BYTES
