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

_LEAST_PARTS, _MOST_PARTS = 8, 64
"""Into how many tasks a nest without outer loops is cut at most: a small one and a large one."""

_PART_ELEMENTS = 1 << 14  # of a task of a large one
_PAGE_BYTES = 4096  # of the host
_UNIT = 64  # elements of an innermost loop that stay together


def core_loops(starts: Integers) -> list[Loop] | None:
    """Return loops, innermost first, that make ``starts[operand, core]`` of those of core 0; ``None`` if none do."""
    loops: list[Loop] = []
    while starts.shape[1] > 1:
        differences = starts[:, 1:] - starts[:, :-1]
        is_other = differences != differences[:, :1]
        if not is_other.any():  # as a rule cores are one loop: binding is worth microseconds
            loops.append([starts.shape[1], *differences[:, 0].tolist()])
            return loops
        count = int(is_other.any(axis=0).argmax()) + 1
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
    by_core, by_address = merged([*own, *cores]), merged(sorted([*own, *cores], key=lambda loop: loop[:0:-1]))
    is_fewer = len(by_address) < len(by_core) and is_forward(by_address[0])
    loops = by_address if is_fewer else by_core
    if not loops or not is_forward(loops[0]):
        loops = [[1] + [0] * len(at), *loops]
    inner, *outer = loops
    if is_shared:
        inner, outer = _cut(inner, outer, _most_parts(starts.shape[1] * nest.points))
    ordered = [inner, *_longest_first(outer, kept=1 if is_shared else 0)]
    while len(ordered) < 2:
        ordered.append([1] + [0] * len(at))
    return np.ascontiguousarray(at[:, :1]), np.array(ordered, np.int64)


def is_forward(loop: Loop) -> bool:
    """Whether the kernels can go along a loop element by element: what they decode begins at its lowest address.

    Cores whose slices run backward make loops that do not.
    """
    return all(step >= 0 for step in loop[1:])


def merged(loops: list[Loop]) -> list[Loop]:
    """Join loops that go on where the one inside of them ends; the innermost first."""
    found: list[Loop] = []
    for loop in loops:
        if found and all(step == before * found[-1][0] for step, before in zip(loop[1:], found[-1][1:])):
            found[-1] = [found[-1][0] * loop[0], *found[-1][1:]]
        else:
            found.append(list(loop))
    return found


def _longest_first(outer: list[Loop], kept: int) -> list[Loop]:
    """Put the longest loop next to the innermost one, but leave so many last ones: threads share along the last one.

    Of short loops and long ones those come first in which the fewest operands advance by whole pages.
    """
    if len(outer) < 2 + kept:
        return outer
    chosen = min(range(len(outer) - kept), key=lambda place: (_aliases(outer[place]), -outer[place][0]))
    return [outer[chosen], *outer[:chosen], *outer[chosen + 1 :]]


def _aliases(loop: Loop) -> int:
    """Return how many operands would want the same lines of the host's caches over and over."""
    return sum(step != 0 and step % _PAGE_BYTES == 0 for step in loop[1:]) if loop[0] > 1 else len(loop)


def _most_parts(elements: int) -> int:
    return min(_MOST_PARTS, max(_LEAST_PARTS, elements // _PART_ELEMENTS))


def _cut(inner: Loop, outer: list[Loop], most: int) -> tuple[Loop, list[Loop]]:
    """Make several tasks of loops that would be one, ``most`` at most: the loops from 2 outward are tasks."""
    if len(outer) >= 2:
        return inner, outer
    if outer:
        count = _divisor(outer[0][0], 1, most)
        return inner, _halved(outer[0], count)
    count = _divisor(inner[0], _UNIT, most)
    first, *rest = _halved(inner, count)
    return first, [[1] + [0] * (len(inner) - 1), *rest]


def _divisor(extent: int, unit: int, most: int) -> int:
    return next((count for count in range(most, 1, -1) if extent % (count * unit) == 0), 1)


def _halved(loop: Loop, count: int) -> list[Loop]:
    """Return a loop as an inner and an outer one of ``count`` rounds."""
    if count == 1:
        return [loop]
    extent, *steps = loop
    inner = extent // count
    return [[inner, *steps], [count, *(inner * step for step in steps)]]
