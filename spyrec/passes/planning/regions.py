"""The box of a tensor that an operation reads, how it moves along loops, and the tensor that holds just that box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.ir.access import Access, Coordinate
from spyrec.ir.device_layout import BufferLayout, Digit, device_layout_of
from spyrec.ir.kernel import Kernel, KernelBuffer, Use
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


@remembers_hash
@dataclass(frozen=True, slots=True)
class BufferRegion(RemembersHash):
    """A box of a buffer: first index and extent per dim.

    ``loops``: the loops in each iteration of which it is another box, or another tile of the buffer, outermost first;
    ``steps``: how far it moves with each of them, in elements per dim.
    """

    low: tuple[int, ...]
    shape: tuple[int, ...]
    loops: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]


def region_of(buffer: KernelBuffer, kernel: Kernel, use: Use) -> BufferRegion:
    """Return the smallest box with everything that a kernel reads of ``buffer`` in one iteration of its loops."""
    low, shape = _box(use.access)
    moving = [depth + 1 for depth, step in enumerate(use.steps) if any(step)]
    depth = max(len(buffer.home), *moving) if moving else len(buffer.home)
    still = (0,) * len(shape)
    steps = use.steps[:depth] if use.steps else (still,) * depth
    return BufferRegion(low, shape, kernel.loops[:depth], steps)


def whole_region(buffer: KernelBuffer) -> BufferRegion:
    """Return all of a buffer."""
    return _whole(buffer.type.shape, buffer.home)


@lru_cache(maxsize=1 << 14)
def _whole(shape: tuple[int, ...], home: tuple[int, ...]) -> BufferRegion:
    still = (0,) * len(shape)
    return BufferRegion(still, shape, home, (still,) * len(home))


@lru_cache(maxsize=1 << 14)
def _box(access: Access) -> tuple[tuple[int, ...], tuple[int, ...]]:
    low = tuple(coordinate.offset for coordinate in access.coordinates)
    shape = tuple(
        1 + sum(term.coefficient * (term.modulus - 1) for term in coordinate.terms) for coordinate in access.coordinates
    )
    return low, shape


def fetching_use(buffer: KernelBuffer, region: BufferRegion) -> Use:
    """Return how a copy of the region, which iterates over its extents, reads ``buffer``."""
    whole = Access.identity(region.shape)
    coordinates = tuple(
        Coordinate(low, coordinate.terms) for low, coordinate in zip(region.low, whole.coordinates, strict=True)
    )
    moves = any(any(step) for step in region.steps)
    return Use(buffer.name, Access(region.shape, coordinates), region.steps if moves else ())


def use_of_twin(use: Use, region: BufferRegion, name: str) -> Use:
    """Return ``use`` of a buffer as a use of the one that holds just the region."""
    coordinates = tuple(
        Coordinate(coordinate.offset - low, coordinate.terms)
        for low, coordinate in zip(region.low, use.access.coordinates, strict=True)
    )
    return Use(name, Access(use.access.extents, coordinates))


@lru_cache(maxsize=1 << 14)
def layout_of_region(layout: BufferLayout, shape: tuple[int, ...], region: tuple[int, ...]) -> BufferLayout | None:
    """Return the layout of a buffer of shape ``region`` that walks its dims as ``layout`` does those of ``shape``.

    ``None`` where a box of that shape is no box in device memory: the region cuts a tile of the layout.
    """
    if region == shape:
        return layout
    digits: list[Digit] = []
    for digit in layout.digits[:-1]:
        shrunk = _shrunk(digit, shape, region)
        if shrunk is None:
            return None
        digits.append(shrunk)
    stick_dim = layout.stick_dim
    if stick_dim is not None and region[stick_dim] == 1 < shape[stick_dim]:
        return None
    digits.append(layout.digits[-1])
    return BufferLayout(device_layout_of(digits, region, layout.device.device_dtype), tuple(digits))


def _shrunk(digit: Digit, shape: Sequence[int], region: Sequence[int]) -> Digit | None:
    if digit.host_dim is None:
        return digit
    full, extent = shape[digit.host_dim], region[digit.host_dim]
    if full == extent:
        return digit
    if digit.divisor * digit.extent >= full:  # the outermost digit of its dim
        count = -(-extent // digit.divisor)
        return Digit(None, 1, 1) if extent == 1 else replace(digit, extent=count)
    return digit if extent % (digit.divisor * digit.extent) == 0 else None
