"""Where a group of loops has to be parted, so that each part uses no more tensors from outside than a program names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer
from spyrec.passes.base import PipelineOptions
from spyrec.passes.tile_loops.levels import Path
from spyrec.passes.tile_loops.tree import dim_of


def part_groups(
    kernels: Sequence[Kernel], paths: Mapping[str, Path], buffers: Mapping[str, KernelBuffer], options: PipelineOptions
) -> frozenset[str]:
    """Return the names of the kernels before which open loops end, so that the fewest loops are parted."""
    users: dict[str, list[int]] = {}
    for position, kernel in enumerate(kernels):
        for use in kernel.uses:
            users.setdefault(use.buffer, []).append(position)
    found: set[str] = set()
    for first, end in _groups(kernels, paths):
        part = _Part(kernels, paths, buffers, users, options)
        found.update(kernels[place].name for place in _fewest(part, first, end)[1:])
    return frozenset(found)


def _groups(kernels: Sequence[Kernel], paths: Mapping[str, Path]) -> list[tuple[int, int]]:
    """Return the spans of neighbours that stand in one outermost loop."""
    outermost = [paths[kernel.name][:1] for kernel in kernels]
    cuts = [place for place in range(1, len(kernels)) if outermost[place] != outermost[place - 1]]
    spans = list(pairwise([0, *cuts, len(kernels)])) if kernels else []
    return [(first, end) for first, end in spans if outermost[first]]


class _Part:
    """Counts the tensors from outside that some neighbouring kernels use."""

    def __init__(
        self,
        kernels: Sequence[Kernel],
        paths: Mapping[str, Path],
        buffers: Mapping[str, KernelBuffer],
        users: Mapping[str, Sequence[int]],
        options: PipelineOptions,
    ) -> None:
        self._kernels = kernels
        self._paths = paths
        self._buffers = buffers
        self._users = users
        self._spare = options.spare_arguments
        self._limit = {has_pool: options.most_arguments(has_pool=has_pool) for has_pool in (False, True)}

    def ends(self, first: int, end: int) -> Iterator[int]:
        """Yield where kernels from ``first`` on may end so that they keep the argument limit; one alone always may try.

        What is from outside is counted kernel by kernel: a buffer is, until its last user is among them.
        """
        used: set[str] = set()
        opened = pending = 0
        accumulates = False
        for place in range(first, end):
            kernel = self._kernels[place]
            accumulates = accumulates or self._accumulates(kernel)
            for name in {use.buffer for use in kernel.uses}:
                users = self._users[name]
                is_open = self._buffers[name].role is not BufferRole.INTERMEDIATE or users[0] < first
                if name not in used:
                    used.add(name)
                    opened, pending = opened + is_open, pending + (not is_open)
                pending -= not is_open and users[-1] == place
            if place > first and opened + self._spare > self._limit[False]:
                return
            outside = opened + pending
            most = self._limit[accumulates or outside < len(used)]
            if place == first or outside + accumulates + self._spare <= most:
                yield place + 1

    def _accumulates(self, kernel: Kernel) -> bool:
        """Whether it needs the identity of a combination."""
        return any(dim_of(kernel, level) in kernel.reduced for level in self._paths[kernel.name])


def _fewest(part: _Part, first: int, end: int) -> list[int]:
    """Return the first kernels of the fewest parts of a span that all fit."""
    reach: dict[int, tuple[int, int]] = {first: (0, first)}
    for start in range(first, end):
        if start not in reach or (end in reach and reach[end][0] <= reach[start][0] + 1):
            continue
        for stop in part.ends(start, end):
            if stop not in reach or reach[stop][0] > reach[start][0] + 1:
                reach[stop] = (reach[start][0] + 1, start)
    starts: list[int] = []
    place = end
    while place > first:
        place = reach[place][1]
        starts.append(place)
    return starts[::-1]
