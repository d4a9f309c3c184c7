"""Data conversion tables (DCI): the loop nests that copy a tensor between host and device memory.

The data classes mirror DeepTools' ``DataConversionInfo``; their JSON form is that of ``dci/*.json`` in a bundle.  All
arrays are innermost first, all strides and offsets count elements of their own side.
"""

from __future__ import annotations

import math
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DeviceFormat

MAX_RANK = 32
"""Most loops in one nest that is read from a file."""

MAX_NESTS = 4096
"""Most nests in one table that is read from a file; a tensor of 6 dims makes at most 2**6."""

_MAX_ELEMENTS = 1 << 62
_NAME = "DCI-Tensor-0"  # what torch-spyre writes for every tensor

Triple = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Seed 004's form of one nest: ranges, host strides, device strides; outermost first."""


class Direction(Enum):
    """Which way a copy goes."""

    HOST_TO_DEVICE = "h2d"
    DEVICE_TO_HOST = "d2h"


@dataclass(frozen=True, slots=True)
class CopyNest:
    """One loop nest of a copy (``DCSI``), loops innermost first."""

    sizes: tuple[int, ...]
    source_strides: tuple[int, ...]
    destination_strides: tuple[int, ...]
    source_offset: int = 0
    destination_offset: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the nest under its file keys."""
        return {
            "size_": list(self.sizes),
            "stride_src_": list(self.source_strides),
            "stride_dst_": list(self.destination_strides),
            "offset_src_": self.source_offset,
            "offset_dst_": self.destination_offset,
        }

    def reversed(self) -> CopyNest:
        """Return the copy the other way."""
        return CopyNest(
            self.sizes, self.destination_strides, self.source_strides, self.destination_offset, self.source_offset
        )

    @property
    def source_span(self) -> tuple[int, int]:
        """Lowest and highest element touched in the source."""
        return _span(self.source_offset, self.sizes, self.source_strides)

    @property
    def destination_span(self) -> tuple[int, int]:
        """Lowest and highest element touched in the destination."""
        return _span(self.destination_offset, self.sizes, self.destination_strides)


def _span(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    reach = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    return offset + sum(min(step, 0) for step in reach), offset + sum(max(step, 0) for step in reach)


@dataclass(frozen=True, slots=True)
class DataConversionInfo:
    """How one tensor is copied: formats of both sides, their shapes (innermost first), and the nests in order."""

    direction: Direction
    source_format: DeviceFormat
    destination_format: DeviceFormat
    nests: tuple[CopyNest, ...]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    name: str = _NAME

    @property
    def host_format(self) -> DeviceFormat:
        """The format on the host side."""
        return self.source_format if self.direction is Direction.HOST_TO_DEVICE else self.destination_format

    @property
    def device_format(self) -> DeviceFormat:
        """The format on the device side."""
        return self.destination_format if self.direction is Direction.HOST_TO_DEVICE else self.source_format

    @property
    def host_shape(self) -> tuple[int, ...]:
        """The host tensor's shape, outermost first; ``(1,)`` for a scalar."""
        shape = self.input_shape if self.direction is Direction.HOST_TO_DEVICE else self.output_shape
        return shape[::-1]

    @property
    def device_size(self) -> tuple[int, ...]:
        """The device layout's sizes, outermost first."""
        shape = self.output_shape if self.direction is Direction.HOST_TO_DEVICE else self.input_shape
        return shape[::-1]

    def triples(self) -> list[Triple]:
        """Return per nest (ranges, host strides, device strides), outermost first, as seed 004 writes them."""
        is_to_device = self.direction is Direction.HOST_TO_DEVICE
        return [
            (
                nest.sizes[::-1],
                (nest.source_strides if is_to_device else nest.destination_strides)[::-1],
                (nest.destination_strides if is_to_device else nest.source_strides)[::-1],
            )
            for nest in self.nests
        ]

    def to_json(self) -> dict[str, object]:
        """Return the table under its file keys, in file order."""
        return {
            "dci_dsName_": self.name,
            "isHostToSen_": self.direction is Direction.HOST_TO_DEVICE,
            "dataformat_src_": self.source_format.name,
            "dataformat_dst_": self.destination_format.name,
            "dcsi_": [nest.to_json() for nest in self.nests],
            "input_shape_": list(self.input_shape),
            "output_shape_": list(self.output_shape),
        }

    @classmethod
    def from_json(cls, data: JsonValue, location: Location | None = None) -> DataConversionInfo:
        """Read a table; ``location`` is that of ``data`` in its file.

        Errors: SPY0316 for a missing, unknown or ill-typed key, unequal ranks, or sizes beyond the limits.
        """
        return _Reader(location or Location()).table(data)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads JSON values at a location; every mistake is SPY0316 there."""

    location: Location

    def child(self, token: str | int) -> _Reader:
        return _Reader(self.location.child(token))

    def fail(self, message: str) -> SpyrecError:
        return refuse("SPY0316", message, self.location)

    def table(self, data: JsonValue) -> DataConversionInfo:
        known = {"dataformat_src_", "dataformat_dst_", "dcsi_", "input_shape_", "output_shape_"}
        members = self.members(data, known | {"dci_dsName_", "isHostToSen_"}, known | {"isHostToSen_"})
        is_to_device = members["isHostToSen_"]
        if not isinstance(is_to_device, bool):
            raise self.child("isHostToSen_").fail("expected true or false")
        name = members.get("dci_dsName_", _NAME)
        if not isinstance(name, str):
            raise self.child("dci_dsName_").fail("expected a string")
        return DataConversionInfo(
            Direction.HOST_TO_DEVICE if is_to_device else Direction.DEVICE_TO_HOST,
            self.child("dataformat_src_").format(members["dataformat_src_"]),
            self.child("dataformat_dst_").format(members["dataformat_dst_"]),
            self.child("dcsi_").nests(members["dcsi_"]),
            self.child("input_shape_").sizes(members["input_shape_"]),
            self.child("output_shape_").sizes(members["output_shape_"]),
            name,
        )

    def members(self, data: JsonValue, known: set[str], required: set[str]) -> dict[str, JsonValue]:
        if not isinstance(data, dict):
            raise self.fail("expected an object")
        for key in data:
            if key not in known:
                raise self.child(key).fail(f'unknown key "{key}"')
        for key in sorted(required):
            if key not in data:
                raise self.fail(f'key "{key}" is missing')
        return data

    def format(self, data: JsonValue) -> DeviceFormat:
        if not isinstance(data, str) or data not in DeviceFormat.__members__:
            raise self.fail(f"unknown data format {data!r}")
        return DeviceFormat[data]

    def integer(self, data: JsonValue) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise self.fail("expected an integer")
        if abs(data) > _MAX_ELEMENTS:
            raise self.fail(f"{data} is beyond {_MAX_ELEMENTS}")
        return data

    def integers(self, data: JsonValue) -> tuple[int, ...]:
        if not isinstance(data, list) or not 1 <= len(data) <= MAX_RANK:
            raise self.fail(f"expected an array of 1 to {MAX_RANK} integers")
        return tuple(self.child(index).integer(item) for index, item in enumerate(data))

    def sizes(self, data: JsonValue) -> tuple[int, ...]:
        sizes = self.integers(data)
        if min(sizes) < 1 or math.prod(sizes) > _MAX_ELEMENTS:
            raise self.fail(f"sizes {list(sizes)} are not all positive with a product of at most {_MAX_ELEMENTS}")
        return sizes

    def nests(self, data: JsonValue) -> tuple[CopyNest, ...]:
        if not isinstance(data, list) or not 1 <= len(data) <= MAX_NESTS:
            raise self.fail(f"expected an array of 1 to {MAX_NESTS} nests")
        return tuple(self.child(index).nest(item) for index, item in enumerate(data))

    def nest(self, data: JsonValue) -> CopyNest:
        required = {"size_", "stride_src_", "stride_dst_"}
        members = self.members(data, required | {"offset_src_", "offset_dst_"}, required)
        nest = CopyNest(
            self.child("size_").sizes(members["size_"]),
            self.child("stride_src_").integers(members["stride_src_"]),
            self.child("stride_dst_").integers(members["stride_dst_"]),
            self.child("offset_src_").integer(members.get("offset_src_", 0)),
            self.child("offset_dst_").integer(members.get("offset_dst_", 0)),
        )
        if not len(nest.sizes) == len(nest.source_strides) == len(nest.destination_strides):
            raise self.fail("size_, stride_src_ and stride_dst_ differ in length")
        return nest
