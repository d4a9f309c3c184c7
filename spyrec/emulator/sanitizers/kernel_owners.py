"""The kernel that follows who stored each stick of the pool through many dispatches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.jit import kernel
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]

POSITION, CORES, FIRST_OFFSET, FIRST_STICK, STICKS, FIRST_OWNER, SIZE, ELEMENT, FIRST_BYTE = range(9)
"""Columns of ``accesses``: the operand, where its cores' offsets and its sticks begin in their arrays, and how many
there are; where its memory begins in ``owners``; the tensor that it describes, its first byte WINDOW for a window."""

WINDOW = -(1 << 62)


@kernel
def run_owners(
    units: Integers, moved: Integers, numbers: npt.NDArray[np.int32], tensors: Integers, calls: Integers,
    accesses: Integers, offsets: Integers, sticks: Integers, owners: npt.NDArray[np.int32], expansion: int,
) -> int:  # fmt: skip
    """Follow dispatches in order; return the first one that reads another tensor than its own, -1 where none does.

    ``calls[u]``: first access of a call, first of its stores, past its last.  ``numbers[d]``: what a dispatch's stores
    write into ``owners``; ``tensors[number - 1]``: size, bytes per element, first byte (WINDOW for a window).
    """
    pitch = STICK_BYTES * expansion
    for d in range(units.shape[0]):
        first_load, first_store, past = calls[units[d], 0], calls[units[d], 1], calls[units[d], 2]
        for a in range(first_load, past):
            shift = moved[d, accesses[a, POSITION]]
            is_window = accesses[a, FIRST_BYTE] == WINDOW
            own_first = accesses[a, FIRST_BYTE] + shift // expansion
            is_store = a >= first_store
            accepted = np.int32(0)
            for core in range(accesses[a, CORES]):
                place = accesses[a, FIRST_OWNER] + (offsets[accesses[a, FIRST_OFFSET] + core] + shift) // pitch
                for k in range(accesses[a, FIRST_STICK], accesses[a, FIRST_STICK] + accesses[a, STICKS]):
                    if is_store:
                        owners[place + sticks[k]] = numbers[d]
                        continue
                    number = owners[place + sticks[k]]
                    if number == accepted:
                        continue
                    if number == 0:
                        continue
                    if tensors[number - 1, 0] != accesses[a, SIZE] or tensors[number - 1, 1] != accesses[a, ELEMENT]:
                        return d
                    first = tensors[number - 1, 2]
                    if first != WINDOW and not is_window and first != own_first:
                        return d
                    accepted = number
    return -1
