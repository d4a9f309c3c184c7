"""How the nests of a copy are executed: bounds, and the parts that threads take. Pure functions of the table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import pairwise, zip_longest

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo
from spyrec.runtime.host_copies.stick_conversion import PATTERN_BYTES, STICK_LANES

_PART_ELEMENTS = 1 << 19
"""About as many elements as are copied at a time: a part pays for the hand-over, and its temporaries stay small."""


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """The nests of a table: first and last element on both sides, and groups of their parts.

    ``groups``: a task of a thread each, the parts of a group in order; ``is_shareable``: whether groups may be copied
    side by side, else all nests are one group.
    """

    source_span: tuple[int, int]
    destination_span: tuple[int, int]
    elements: int
    groups: tuple[tuple[CopyNest, ...], ...]
    is_shareable: bool


@lru_cache(maxsize=4096)
def plan_of(nests: tuple[CopyNest, ...]) -> CopyPlan:
    """Return the plan of nests that are copied one after the other; a run copies through the same few tables again."""
    simple = [_simplified(nest) for nest in nests]
    elements = sum(math.prod(nest.sizes) for nest in simple)
    count = -(-elements // _PART_ELEMENTS)
    groups = _groups(simple, count)
    is_shareable = all(map(_writes_each_element_once, simple)) and (
        _are_apart([nest.destination_span for nest in simple])
        or _are_apart([_joined([part.destination_span for part in group]) for group in groups])
    )
    return CopyPlan(
        _joined([nest.source_span for nest in nests]),
        _joined([nest.destination_span for nest in nests]),
        elements,
        groups if is_shareable else (tuple(part for nest in simple for part in _parts(nest, count)),),
        is_shareable,
    )


def writes_every_element(info: DataConversionInfo) -> bool:
    """Whether a copy surely leaves no element of a contiguous host tensor unwritten; known of tables of one nest."""
    if len(info.nests) != 1:
        return False
    plan = plan_of(info.nests)
    elements = math.prod(info.host_shape)
    return plan.is_shareable and plan.elements == elements and plan.destination_span == (0, elements - 1)


@dataclass(frozen=True, slots=True, eq=False)
class KernelWords:
    """Parts as kernels read them; ``places``: the address of the first word of each group, and ``counts`` the parts
    before it; of what comes after the last one as well.
    """

    table: npt.NDArray[np.int64]
    places: tuple[int, ...]
    counts: tuple[int, ...]


def kernel_words(groups: Sequence[Sequence[CopyNest]]) -> KernelWords:
    """Return the parts of groups for the kernels, one after the other."""
    words: list[int] = []
    firsts, counts = [0], [0]
    for group in groups:
        for part in group:
            words += _part_words(part)
        firsts.append(len(words))
        counts.append(counts[-1] + len(group))
    table = np.array(words, dtype=np.int64)
    return KernelWords(table, tuple(table.ctypes.data + first * table.itemsize for first in firsts), tuple(counts))


def _part_words(part: CopyNest) -> list[int]:
    """Return a part's words: two loops or more, from the third on as they walk host memory most closely."""
    loops = list(zip(part.sizes, part.source_strides, part.destination_strides, strict=True))
    loops += [(1, 0, 0)] * (2 - len(loops))
    loops[2:] = sorted(loops[2:], key=lambda loop: min(abs(loop[1]), abs(loop[2])))
    tiles = math.prod(size for size, _, _ in loops[2:])
    words = [len(loops), tiles, _line_steps(loops), part.source_offset * PATTERN_BYTES]
    words.append(part.destination_offset * PATTERN_BYTES)
    for size, source, destination in loops:
        words += [size, source * PATTERN_BYTES, destination * PATTERN_BYTES]
    return words


def _line_steps(loops: Sequence[tuple[int, int, int]]) -> int:
    """Return the bits of the steps, in bytes, between runs that are written; 1 where runs are not whole sticks."""
    (lanes, source, destination), *others = loops
    if (source, destination) != (1, 1) or lanes % STICK_LANES:
        return 1
    return reduce(int.__or__, (step * PATTERN_BYTES for _, _, step in others))


def _joined(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return min(first for first, _ in spans), max(last for _, last in spans)


def _are_apart(spans: Sequence[tuple[int, int]]) -> bool:
    """Whether no two of the spans share an element."""
    return all(before[1] < after[0] for before, after in pairwise(sorted(spans)))


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


def _groups(nests: Sequence[CopyNest], count: int) -> tuple[tuple[CopyNest, ...], ...]:
    """Cut the longest loop of each nest into as many parts; the n-th parts of all are a group.

    So the ragged end of rows is copied with the rows.
    """
    parts = zip_longest(*(_parts(nest, count) for nest in nests))
    return tuple(tuple(part for part in group if part is not None) for group in parts)


def _parts(nest: CopyNest, count: int) -> Sequence[CopyNest]:
    longest = max(range(len(nest.sizes)), key=lambda loop: nest.sizes[loop])
    size = nest.sizes[longest]
    bounds = [size * part // min(size, count) for part in range(min(size, count) + 1)]
    return [
        dataclasses.replace(
            nest,
            sizes=(*nest.sizes[:longest], last - first, *nest.sizes[longest + 1 :]),
            source_offset=nest.source_offset + first * nest.source_strides[longest],
            destination_offset=nest.destination_offset + first * nest.destination_strides[longest],
        )
        for first, last in pairwise(bounds)
    ]


def _writes_each_element_once(nest: CopyNest) -> bool:
    """Whether every loop, taken by falling stride, steps over all that the loops below it reach."""
    reach = 0
    for stride, size in sorted(zip(map(abs, nest.destination_strides), nest.sizes, strict=True)):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True
