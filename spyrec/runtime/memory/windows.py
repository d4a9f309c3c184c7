"""Windows of memory: chunks at even distances, the sticks that they touch, and whether two have a stick in common.

Sticks are found by arithmetic on the loops, whatever the number of chunks.  Two limits keep that bounded; beyond them a
window counts as the whole range around it, which is more than it touches:

* loops whose strides are no whole sticks are cut into loops that are, at most ``_MOST_PARTS`` of them;
* two windows are held against each other as far as at most ``_MOST_TRIALS`` combinations of rounds are to be tried.
  Windows of one tensor take a handful: strides that both have count once, and the longer ones leave little choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.memory.addresses import AddressRange

_MOST_PARTS = 128
_MOST_TRIALS = 1 << 22
_FEW_TRIALS = 1 << 10


class AddressWindow(NamedTuple):
    """Chunks of ``chunk_bytes`` from the first byte of ``range`` on, repeated in nested loops.

    ``strides`` in bytes, none below 0.  ``range`` goes from the first byte to behind the last one.
    """

    range: AddressRange
    chunk_bytes: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


Touched = AddressRange | AddressWindow
"""A range as a whole, or a window."""


class StickLoop(NamedTuple):
    """``rounds``, at least 2, ``stride`` sticks apart."""

    rounds: int
    stride: int


class Sticks(NamedTuple):
    """Runs of ``run`` sticks from stick ``first`` of a region on, repeated in nested loops, the longest stride first.

    Runs do not touch each other in the innermost loop: without loops it is one stretch.
    """

    first: int
    run: int
    loops: tuple[StickLoop, ...] = ()

    @property
    def past(self) -> int:
        """The stick behind the last one."""
        past = self.first + self.run
        for rounds, stride in self.loops:
            past += (rounds - 1) * stride
        return past


def covering(item: Touched) -> AddressRange:
    """Return the range from the first byte to behind the last one."""
    return item if isinstance(item, AddressRange) else item.range


def sticks_of(item: Touched) -> tuple[Sticks, ...]:
    """Return the sticks that have a byte in common with ``item``; the parts of a window may share some."""
    if isinstance(item, AddressRange):
        return _stretch(item)
    stick, lead_bytes = divmod(item.range.address.offset, STICK_BYTES)
    shape = _shape(lead_bytes, item.chunk_bytes, item.sizes, item.strides)
    if shape is None:
        return _stretch(item.range)
    return tuple([Sticks(stick + first, run, loops) for first, run, loops in shape])


def stretch_of(parts: tuple[Sticks, ...]) -> tuple[int, int]:
    """Return the first stick of some, at least one, and the stick behind the last."""
    if len(parts) == 1:
        return parts[0].first, parts[0].past
    return min(part.first for part in parts), max(part.past for part in parts)


def meet(some: tuple[Sticks, ...], others: tuple[Sticks, ...]) -> bool:
    """Whether both have a stick in common; beyond the limits also where they only lie in and out of each other."""
    return any(_meet(one, other) for one in some for other in others)


def _meet(one: Sticks, other: Sticks) -> bool:
    if one.past <= other.first or other.past <= one.first:
        return False
    if not one.loops and not other.loops:
        return True
    return _is_common(other.first - one.first, one[1:], other[1:])


def _stretch(place: AddressRange) -> tuple[Sticks, ...]:
    first = place.address.offset // STICK_BYTES
    return (Sticks(first, -(-place.past // STICK_BYTES) - first),) if place.size_bytes > 0 else ()


@lru_cache(maxsize=4096)
def _shape(
    lead_bytes: int, chunk_bytes: int, sizes: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[Sticks, ...] | None:
    """Return the sticks of chunks that begin ``lead_bytes`` into a stick, which counts as stick 0.

    ``None`` where that is too many parts.
    """
    if chunk_bytes <= 0 or 0 in sizes:
        return ()
    moving = [StickLoop(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1 and stride > 0]
    loops = sorted(moving, key=lambda loop: loop.stride, reverse=True)
    while loops and loops[-1].stride - chunk_bytes < STICK_BYTES:  # what lies between holds no whole stick
        innermost = loops.pop()
        chunk_bytes += (innermost.rounds - 1) * innermost.stride
    if prod(min(loop.rounds, _period(loop.stride)) for loop in loops) > _MOST_PARTS:
        return None
    parts: list[Sticks] = []
    for offset_bytes, even in _even_loops(lead_bytes, loops):
        first, lead = divmod(offset_bytes, STICK_BYTES)
        parts.append(_merged(first, -(-(lead + chunk_bytes) // STICK_BYTES), even))
    return tuple(parts)


def _period(stride_bytes: int) -> int:
    """Return after how many rounds a loop is at the same byte of a stick again."""
    return STICK_BYTES // gcd(stride_bytes, STICK_BYTES)


def _even_loops(offset_bytes: int, loops: list[StickLoop]) -> Iterator[tuple[int, list[StickLoop]]]:
    """Yield where loops of whole sticks begin, and them, outermost first: together they are the loops in bytes."""
    if not loops:
        yield offset_bytes, []
        return
    (count, stride), inner = loops[0], loops[1:]
    period = _period(stride)
    for number in range(min(count, period)):
        rounds = -(-(count - number) // period)
        outer = [StickLoop(rounds, stride * period // STICK_BYTES)] if rounds > 1 else []
        for start, even in _even_loops(offset_bytes + number * stride, inner):
            yield start, [*outer, *even]


def _merged(first: int, run: int, loops: list[StickLoop]) -> Sticks:
    """Return the same sticks in as few loops as follow from neighbours: a loop that goes on evenly is one with it."""
    kept: list[StickLoop] = []
    for count, stride in sorted(loops, key=lambda loop: loop.stride):
        if not kept and stride <= run:
            run += (count - 1) * stride
        elif kept and stride == kept[-1].rounds * kept[-1].stride:
            kept[-1] = StickLoop(kept[-1].rounds * count, kept[-1].stride)
        else:
            kept.append(StickLoop(count, stride))
    return Sticks(first, run, tuple(reversed(kept)))


_Numbers = npt.NDArray[np.int64]

_Shape = tuple[int, tuple[StickLoop, ...]]
"""The run and the loops of sticks, wherever they begin."""


class _Level(NamedTuple):
    """A number from ``low`` to ``high`` of ``stride`` sticks, and what all levels behind it add to that.

    They add multiples of ``step`` (0: nothing), from ``least`` to ``most``.
    """

    stride: int
    low: int
    high: int
    least: int
    most: int
    step: int


@lru_cache(maxsize=1 << 14)
def _is_common(distance: int, one: _Shape, other: _Shape) -> bool:
    """Whether both have a stick in common, where the other one begins ``distance`` sticks behind the first."""
    low, high = distance - (one[0] - 1), distance + (other[0] - 1)
    levels = _levels(one[1], other[1])
    trials = prod(
        min(level.high - level.low, (level.most - level.least + high - low) // level.stride) + 1
        for level in levels[:-1]
    )
    if trials > _MOST_TRIALS:
        return True
    return _is_reached(levels, low, high) if trials <= _FEW_TRIALS else _is_reached_by_many(levels, low, high)


def _levels(plus: tuple[StickLoop, ...], minus: tuple[StickLoop, ...]) -> tuple[_Level, ...]:
    """Return what the differences between rounds of one window and of another are made of, longest stride first."""
    rounds: dict[int, tuple[int, int]] = {}
    for loops, sign in ((plus, 1), (minus, -1)):
        for count, stride in loops:
            low, high = rounds.get(stride, (0, 0))
            rounds[stride] = (low, high + count - 1) if sign > 0 else (low - count + 1, high)
    levels: list[_Level] = []
    least = most = step = 0
    for stride, (low, high) in sorted(rounds.items()):
        levels.append(_Level(stride, low, high, least, most, step))
        least, most, step = least + low * stride, most + high * stride, gcd(step, stride)
    return tuple(reversed(levels))


def _is_reached(levels: tuple[_Level, ...], low: int, high: int) -> bool:
    """Whether a sum of one number of each level, at least one, lies in ``low`` to ``high``."""
    stride, fewest, most_often, least, most, step = levels[0]
    begin = max(fewest, -((most - low) // stride))
    end = min(most_often, (high - least) // stride)
    if step == 0:
        return begin <= end
    for number in range(begin, end + 1):
        rest_low, rest_high = low - number * stride, high - number * stride
        if rest_high // step * step >= rest_low and _is_reached(levels[1:], rest_low, rest_high):
            return True
    return False


def _is_reached_by_many(levels: tuple[_Level, ...], low: int, high: int) -> bool:
    """Whether a sum of one number of each level lies in ``low`` to ``high``: all numbers of a level at once."""
    lows: _Numbers = np.array([low], np.int64)
    for level in levels[:-1]:
        begin, counts = _choices(level, lows, high - low)
        behind: _Numbers = np.cumsum(counts)
        number: _Numbers = np.arange(behind[-1], dtype=np.int64) - np.repeat(behind - counts, counts)
        rest: _Numbers = np.repeat(lows, counts) - (np.repeat(begin, counts) + number) * level.stride
        lows = np.unique(rest[(rest + (high - low)) // level.step * level.step >= rest])
        if not lows.size:
            return False
    return bool(_choices(levels[-1], lows, high - low)[1].any())


def _choices(level: _Level, lows: _Numbers, width: int) -> tuple[_Numbers, _Numbers]:
    """Return for each low end of a target the first number of a level that may reach it, and how many may."""
    begin: _Numbers = np.maximum(level.low, -((level.most - lows) // level.stride))
    end: _Numbers = np.minimum(level.high, (lows + (width - level.least)) // level.stride)
    return begin, np.maximum(end - begin + 1, 0)
