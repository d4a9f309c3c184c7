"""How the nests of a copy are executed: bounds, and the parts that threads take. Pure functions of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import pairwise, zip_longest

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo
from spyrec.runtime.host_copies.stick_conversion import FEW, INNER_LOOPS, PATTERN_BYTES, STICK_LANES

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
    is_shareable = all(_writes_each_element_once(nest.sizes, nest.destination_strides) for nest in simple) and (
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


_Loop = tuple[int, int, int]
"""Size, source stride, destination stride."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How kernels walk parts of a copy, whose sticks lie in rows of the host and in tiles of the device.

    ``rows``: how many rows of a tile are copied before the next tile; ``None``: a row in all of its tiles, before the
    next row.  ``tiles_ahead``: which tile memory is asked for meanwhile.  ``flags``: of the kernels.
    """

    flags: int = 0
    rows: int | None = None
    tiles_ahead: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class KernelWords:
    """Parts as kernels read them; ``places``: the address of the first word of each group, and ``counts`` the parts
    before it; of what comes after the last one as well.
    """

    table: npt.NDArray[np.int64]
    places: tuple[int, ...]
    counts: tuple[int, ...]


def kernel_words(groups: Sequence[Sequence[CopyNest]], walk: Walk) -> KernelWords:
    """Return the parts of groups for the kernels, one after the other."""
    words: list[int] = []
    firsts, counts = [0], [0]
    for group in groups:
        parts = _rows_with_ends(group) if walk.rows is None else [(part, None) for part in group]
        for part, end in parts:
            words += _part_words(part, end, walk)
        firsts.append(len(words))
        counts.append(counts[-1] + len(parts))
    table = np.array(words, dtype=np.int64)
    return KernelWords(table, tuple(table.ctypes.data + first * table.itemsize for first in firsts), tuple(counts))


def _rows_with_ends(parts: Sequence[CopyNest]) -> list[tuple[CopyNest, CopyNest | None]]:
    """Return parts, each with the one after it where that copies the ragged ends of its rows: both go together."""
    found: list[tuple[CopyNest, CopyNest | None]] = []
    for part in parts:
        before, end = found[-1] if found else (None, None)
        if before is not None and end is None and _are_rows_and_ends(before, part):
            found[-1] = (before, part)
        else:
            found.append((part, None))
    return found


def _are_rows_and_ends(part: CopyNest, end: CopyNest) -> bool:
    """Whether ``end`` copies less than a stick behind each row of ``part``, and no element that this one writes."""
    if part.sizes[0] != STICK_LANES or not FEW <= end.sizes[0] < STICK_LANES or not (_is_run(part) and _is_run(end)):
        return False
    tiles = _tile_loops(part, end)
    if len(tiles) != 1 or [loop for loop in _loops(part)[1:] if loop not in tiles] != _loops(end)[1:]:
        return False
    size, _, step = tiles[0]
    row, behind = size * STICK_LANES, end.destination_offset - part.destination_offset
    if behind == row and step in (0, STICK_LANES):  # rows that run on, as the host's do
        return _writes_each_element_once((row + end.sizes[0], *end.sizes[1:]), end.destination_strides)
    return _writes_each_element_once((*part.sizes, 2), (*part.destination_strides, behind))


def _tile_loops(part: CopyNest, end: CopyNest) -> list[_Loop]:
    """Return the loops over the sticks of a row: those that its end has not."""
    return [loop for loop in _loops(part)[1:] if loop not in _loops(end)[1:]] or [(1, 0, 0)]


def _is_run(part: CopyNest) -> bool:
    return part.source_strides[0] == part.destination_strides[0] == 1


def _loops(part: CopyNest) -> list[_Loop]:
    return list(zip(part.sizes, part.source_strides, part.destination_strides, strict=True))


def tiles_of_a_row(part: CopyNest) -> tuple[int, int]:
    """Return how many sticks of a row a part copies, and how many bytes they are written apart."""
    loops = _padded(_loops(part))
    size, _, step = loops[2]
    return size, step * PATTERN_BYTES


def _padded(loops: Sequence[_Loop]) -> list[_Loop]:
    """Return three loops or more, from the third on as they walk host memory most closely."""
    found = [*loops, *[(1, 0, 0)] * (INNER_LOOPS - len(loops))]
    return found[:2] + sorted(found[2:], key=lambda loop: min(abs(loop[1]), abs(loop[2])))


def _part_words(part: CopyNest, end: CopyNest | None, walk: Walk) -> list[int]:
    loops = _loops(part)
    starts = [part.source_offset * PATTERN_BYTES, part.destination_offset * PATTERN_BYTES]
    rest = loops[0][0] % STICK_LANES
    beyond = [(loops[0][0] - rest) * PATTERN_BYTES] * 2
    if end is not None:
        loops = [loops[0], *_tile_loops(part, end), *_loops(end)[1:]]
        rest = end.sizes[0]
        beyond = [end.source_offset * PATTERN_BYTES - starts[0], end.destination_offset * PATTERN_BYTES - starts[1]]
    loops = _padded(loops)
    if walk.rows is None and end is None:
        loops[1:3] = loops[2], loops[1]
    at_a_time = walk.rows or loops[1][0]
    passes = math.prod(size for size, _, _ in loops[INNER_LOOPS:])
    words = [len(loops), passes, walk.flags, _line_steps(loops), at_a_time, walk.tiles_ahead, *starts, rest, *beyond]
    for size, source, destination in loops:
        words += [size, source * PATTERN_BYTES, destination * PATTERN_BYTES]
    return words


def _line_steps(loops: Sequence[_Loop]) -> int:
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
        replace(
            nest,
            sizes=(*nest.sizes[:longest], last - first, *nest.sizes[longest + 1 :]),
            source_offset=nest.source_offset + first * nest.source_strides[longest],
            destination_offset=nest.destination_offset + first * nest.destination_strides[longest],
        )
        for first, last in pairwise(bounds)
    ]


def _writes_each_element_once(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether every loop, taken by falling stride, steps over all that the loops below it reach."""
    reach = 0
    for stride, size in sorted(zip(map(abs, strides), sizes, strict=True)):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True
