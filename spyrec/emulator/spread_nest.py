"""A SuperDSC's cores as loops: where their starts advance evenly, the cores of a nest become its outer loops.

A stick of each of 32 cores, side by side, is then one run and not 32.  Elements are independent in what nests are
used for, so that their order is nobody's business.
"""

from __future__ import annotations

import numpy as np

from spyrec.emulator.engine import Integers
from spyrec.emulator.geometry import Nest

Loop = list[int]
"""Extent, then each operand's step in bytes."""

_PARTS = 8  # into how many tasks a nest without outer loops is cut at most
_UNIT = 64  # elements of an innermost loop that stay together


def core_loops(starts: Integers) -> list[Loop] | None:
    """Return loops, innermost first, that make ``starts[operand, core]`` of those of core 0; ``None`` if none do."""
    loops: list[Loop] = []
    while starts.shape[1] > 1:
        differences = np.diff(starts, axis=1)
        breaks = np.flatnonzero((differences != differences[:, :1]).any(axis=0))
        count = int(breaks[0]) + 1 if len(breaks) else starts.shape[1]
        firsts, step = starts[:, ::count], differences[:, 0]
        inner = np.arange(count, dtype=np.int64) * step[:, None]
        if starts.shape[1] % count or not np.array_equal(
            (firsts[:, :, None] + inner[:, None, :]).reshape(starts.shape), starts
        ):
            return None
        loops.append([count, *step.tolist()])
        starts = firsts
    return loops


def spread(starts: Integers, nest: Nest, *, is_shared: bool) -> tuple[Integers, Integers]:
    """Return starts ``[operand, origin]`` and loops that go over the same elements of all cores in fewer tasks.

    ``is_shared``: threads share the tasks, of which there should then be several.
    """
    at = starts + nest.offsets[:, None]
    cores = core_loops(at)
    if cores is None or any(loop[-1] == 0 for loop in cores):  # cores that store at one place keep their order
        return np.ascontiguousarray(at), np.ascontiguousarray(nest.loops)
    own = [loop for loop in nest.loops.tolist() if loop[0] > 1]
    # Cores outermost: a thread then has the same cores in every operation, and their LX in its cache.
    by_core, by_address = _merged([*own, *cores]), _merged(sorted([*own, *cores], key=lambda loop: loop[:0:-1]))
    loops = by_address if len(by_address) < len(by_core) else by_core
    inner, *outer = loops or [[1] + [0] * len(at)]
    if is_shared:
        inner, outer = _cut(inner, outer)
    ordered = [inner, *_longest_first(outer)]
    while len(ordered) < 2:
        ordered.append([1] + [0] * len(at))
    return np.ascontiguousarray(at[:, :1]), np.array(ordered, np.int64)


def _merged(loops: list[Loop]) -> list[Loop]:
    found: list[Loop] = []
    for loop in loops:
        if found and all(step == before * found[-1][0] for step, before in zip(loop[1:], found[-1][1:])):
            found[-1] = [found[-1][0] * loop[0], *found[-1][1:]]
        else:
            found.append(list(loop))
    return found


def _longest_first(outer: list[Loop]) -> list[Loop]:
    """Put the longest loop next to the innermost one, but leave the last one, along which threads share."""
    if len(outer) < 3:
        return outer
    longest = max(range(len(outer) - 1), key=lambda place: outer[place][0])
    return [outer[longest], *outer[:longest], *outer[longest + 1 :]]


def _cut(inner: Loop, outer: list[Loop]) -> tuple[Loop, list[Loop]]:
    """Make several tasks of loops that would be one: the loops from 2 outward are tasks."""
    if len(outer) >= 2:
        return inner, outer
    if outer:
        count = _divisor(outer[0][0], 1)
        return inner, _halved(outer[0], count)
    count = _divisor(inner[0], _UNIT)
    first, *rest = _halved(inner, count)
    return first, [[1] + [0] * (len(inner) - 1), *rest]


def _divisor(extent: int, unit: int) -> int:
    return next((count for count in range(_PARTS, 1, -1) if extent % (count * unit) == 0), 1)


def _halved(loop: Loop, count: int) -> list[Loop]:
    """Return a loop as an inner and an outer one of ``count`` rounds."""
    if count == 1:
        return [loop]
    extent, *steps = loop
    inner = extent // count
    return [[inner, *steps], [count, *(inner * step for step in steps)]]
