"""How a copy nest is executed: its bounds, and the parts that threads take. Pure functions of the table."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo

_PART_ELEMENTS = 1 << 19
"""About as many elements as are copied at a time: a part pays for the hand-over, and its temporaries stay small."""


@dataclass(frozen=True, slots=True)
class NestPlan:
    """One nest: first and last element on both sides, its parts, and whether they may be copied side by side."""

    source_span: tuple[int, int]
    destination_span: tuple[int, int]
    elements: int
    parts: tuple[CopyNest, ...]
    is_shareable: bool


@lru_cache(maxsize=4096)
def plan_of(nest: CopyNest) -> NestPlan:
    """Return the plan of a nest; a run copies through the same few tables again and again."""
    simple = _simplified(nest)
    elements = math.prod(simple.sizes)
    return NestPlan(
        nest.source_span, nest.destination_span, elements, _parts(simple, elements), _writes_each_element_once(simple)
    )


def writes_every_element(info: DataConversionInfo) -> bool:
    """Whether a copy surely leaves no element of a contiguous host tensor unwritten; known of tables of one nest."""
    if len(info.nests) != 1:
        return False
    plan = plan_of(info.nests[0])
    elements = math.prod(info.host_shape)
    return plan.is_shareable and plan.elements == elements and plan.destination_span == (0, elements - 1)


@lru_cache(maxsize=4096)
def kernel_loops(part: CopyNest) -> npt.NDArray[np.int64]:
    """Return a part for the kernels: two loops or more, from the third on as they walk host memory most closely."""
    loops = list(zip(part.sizes, part.source_strides, part.destination_strides, strict=True))
    loops += [(1, 0, 0)] * (2 - len(loops))
    loops[2:] = sorted(loops[2:], key=lambda loop: min(abs(loop[1]), abs(loop[2])))
    return np.array(loops, dtype=np.int64)


def _simplified(nest: CopyNest) -> CopyNest:
    """Drop loops of one pass and fuse loops that run on through both sides; at least one loop remains."""
    sizes: list[int] = []
    source: list[int] = []
    destination: list[int] = []
    for size, source_stride, destination_stride in zip(
        nest.sizes, nest.source_strides, nest.destination_strides, strict=True
    ):
        if size == 1:
            continue
        if sizes and source_stride == source[-1] * sizes[-1] and destination_stride == destination[-1] * sizes[-1]:
            sizes[-1] *= size
            continue
        sizes.append(size)
        source.append(source_stride)
        destination.append(destination_stride)
    if not sizes:
        sizes, source, destination = [1], [1], [1]
    return CopyNest(tuple(sizes), tuple(source), tuple(destination), nest.source_offset, nest.destination_offset)


def _parts(nest: CopyNest, elements: int) -> tuple[CopyNest, ...]:
    """Cut the longest loop."""
    longest = max(range(len(nest.sizes)), key=lambda loop: nest.sizes[loop])
    size = nest.sizes[longest]
    count = min(size, -(-elements // _PART_ELEMENTS))
    bounds = [size * part // count for part in range(count + 1)]
    return tuple(
        dataclasses.replace(
            nest,
            sizes=(*nest.sizes[:longest], last - first, *nest.sizes[longest + 1 :]),
            source_offset=nest.source_offset + first * nest.source_strides[longest],
            destination_offset=nest.destination_offset + first * nest.destination_strides[longest],
        )
        for first, last in pairwise(bounds)
    )


def _writes_each_element_once(nest: CopyNest) -> bool:
    """Whether every loop, taken by falling stride, steps over all that the loops below it reach."""
    reach = 0
    for stride, size in sorted(zip(map(abs, nest.destination_strides), nest.sizes, strict=True)):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True
