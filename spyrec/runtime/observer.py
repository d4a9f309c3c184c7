"""What whoever watches a run is told: which bytes host copies define and read, and every execution of a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass
from spyrec.layout.conversion_table import CopyNest


@dataclass(frozen=True, slots=True)
class ArgumentCopy:
    """One host copy of an argument: ``nests`` of its table, ``None`` where all of the device form is copied.

    ``is_to_device``: the nests' destination is the device; else their source is.  ``host_shape`` is the host tensor's.
    """

    name: str
    address: int
    size_bytes: int
    device_size: tuple[int, ...]
    nests: tuple[CopyNest, ...] | None
    is_to_device: bool
    host_shape: tuple[int, ...] | None = None

    def host_index(self, number: int) -> tuple[int, ...] | None:
        """Return the host index of device element ``number``; ``None`` where no copy touches it."""
        for nest in self.nests or () if self.host_shape is not None else ():
            sides = (nest.destination_strides, nest.destination_offset, nest.source_strides, nest.source_offset)
            if not self.is_to_device:
                sides = (*sides[2:], *sides[:2])
            offset = _other_offset(nest, number, sides)
            if offset is not None:
                return unravel(offset, self.host_shape or ())
        return None

    def device_coordinate(self, number: int) -> tuple[int, ...] | None:
        """Return the device coordinate of device element ``number``; ``None`` outside of the argument."""
        return unravel(number, self.device_size)


def _other_offset(nest: CopyNest, number: int, side: tuple[tuple[int, ...], int, tuple[int, ...], int]) -> int | None:
    strides, first, other_strides, other = side
    left = number - first
    # The strides of a table are mixed radix: the largest that still fits decides its loop.
    for loop in sorted(range(len(strides)), key=lambda i: -abs(strides[i])):
        if strides[loop] == 0:
            continue
        count = min(max(left // strides[loop], 0), nest.sizes[loop] - 1)
        left -= count * strides[loop]
        other += count * other_strides[loop]
    return other if left == 0 else None


def unravel(number: int, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the index of element ``number`` in row-major order, ``None`` outside; sizes may be anything."""
    if not 0 <= number < math.prod(shape):
        return None
    index: list[int] = []
    for extent in reversed(shape):
        number, place = divmod(number, extent)
        index.append(place)
    return tuple(reversed(index))


class RunEnded(Exception):
    """Raised by an observer that has seen enough: the launch stops there, and is no failure."""


class Execution(Protocol):
    """One execution of a SuperDSC, as it lies in memory; ``iteration``: the count of each loop around it, from 0."""

    @property
    def file(self) -> str:
        """The file's name inside its program."""
        ...

    @property
    def superdsc(self) -> SuperDsc:
        """What is executed."""
        ...

    @property
    def iteration(self) -> tuple[int, ...]:
        """The number of the round of each loop around it, outermost first."""
        ...

    @property
    def is_last(self) -> bool:
        """Whether this call is executed no more in its launch."""
        ...

    def dims_of(self, position: int) -> tuple[str, ...]:
        """Return the dims that an operand extends along."""
        ...

    def base_of(self, position: int) -> int | None:
        """Return the argument that an operand lies in, a negative number for other memory, ``None`` for LX."""
        ...

    def addresses(self, position: int, dims: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return device bytes from the base, in LX the core's own, ``[core, *extents of dims]``, at 0 of other dims."""
        ...

    def patterns(self, position: int, dims: Sequence[str], lane: int = 0) -> npt.NDArray[np.unsignedinteger]:
        """Return the bits that stand there, or ``lane`` elements behind."""
        ...


class ExecutionObserver(Protocol):
    """Looks at memory around every execution of a launch; it raises :class:`RunEnded` to end it."""

    def before(self, execution: Execution) -> None:
        """Called when the execution is next."""
        ...

    def after(self, execution: Execution) -> None:
        """Called when it is done."""
        ...


class LaunchedMemory(Protocol):
    """The memory of a program that is being executed, as views."""

    def argument(self, index: int) -> npt.NDArray[np.uint8]:
        """Return the device bytes of an argument."""
        ...

    def pool(self, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Return the first bytes of the pool."""
        ...


class RunObserver(ExecutionObserver, Protocol):
    """An :class:`ExecutionObserver` of a whole run, told of its launches; ``is_ended`` says that it raised."""

    @property
    def is_ended(self) -> bool:
        """Whether the run is over for it."""
        ...

    def launching(self, memory: LaunchedMemory) -> None:
        """Called when the next program of the plan is next, with its memory, which it has until it is done."""
        ...
