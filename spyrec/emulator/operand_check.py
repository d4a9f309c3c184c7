"""What a program asks of the operands of a launch, checked before anything is enqueued."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.streams.control_block import COMPILED_STRIDES, StickStrides

Extent = tuple[int, int, int]
"""The first device byte of an operand, its bytes, and its index."""

_APART, _APART_BITS = 1 << 40, 36
"""Where memory of a launch's own is thought to lie: behind all segments, and further apart than they are long."""

_MOST_PLACES = 256
"""Ways in which operands share memory that are kept as legal; the oldest goes first."""


class EmulatedOperandCheck:
    """Refuses operands that a program of the emulated device cannot be launched on.

    ``planned``: from stick strides, by index of each argument that a correction sets them for, to the program's plan.
    ``bases``: the device address of each region.
    """

    def __init__(self, planned: Callable[[StickStrides], EmulatedProgram], bases: Mapping[int, int]) -> None:
        self._planned = planned
        self._bases = bases
        self._legal: dict[tuple[object, ...], None] = {}

    @property
    def index_rows(self) -> Mapping[int, int]:
        """By index of an operand that holds row numbers: the rows of the smallest table that they choose of."""
        return self._planned(COMPILED_STRIDES).index_rows

    def __call__(self, operands: Sequence[AddressRange | None], strides: StickStrides = COMPILED_STRIDES) -> None:
        """Refuse operands that overlap where the program loads and stores them, and strides that it cannot walk.

        Errors: SPY0717, SPY0983.
        """
        extents = [
            (_APART + (index << _APART_BITS), 0, index)
            if item is None
            else (self._bases[item.address.region_id] + item.address.offset, item.size_bytes, index)
            for index, item in enumerate(operands)
        ]
        shared = _shared(sorted(extents))
        # what decides is where they lie to one another, not where in memory
        key = (*strides.items(), *((index, first - shared[0][0]) for first, _, index in shared))
        if key in self._legal:
            return
        program = self._planned(strides)
        if shared:
            EmulatedDevice.refuse_overlaps(program, {index: first for first, _, index in extents})
        if len(self._legal) >= _MOST_PLACES:
            self._legal.pop(next(iter(self._legal)), None)
        self._legal[key] = None


def _shared(ordered: Sequence[Extent]) -> list[Extent]:
    """Return the operands, by address, that have bytes in common with another one."""
    found: list[Extent] = []
    reach: Extent | None = None
    for item in ordered:
        first, size_bytes, _ = item
        if reach is not None and first < reach[0] + reach[1]:
            found += [other for other in (reach, item) if other not in found]
        if reach is None or first + size_bytes > reach[0] + reach[1]:
            reach = item
    return found
