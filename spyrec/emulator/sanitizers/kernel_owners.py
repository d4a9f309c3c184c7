"""The kernel that follows who stored each stick of the pool through many dispatches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.jit import address_of
from spyrec.emulator.kernels.records import bytes_of, reader_of
from spyrec.files.kernel_cache import cached_kernel
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]

WINDOW = -(1 << 62)


@dataclass(frozen=True, slots=True)
class OwnerAccess:
    """A row of ``accesses``: the operand, where its cores' offsets and its sticks begin in their arrays, and how many
    there are; where its memory begins in ``owners``; the tensor that it describes, its first byte WINDOW for a window.
    """

    position: int
    cores: int
    first_offset: int
    first_stick: int
    sticks: int
    first_owner: int
    size_bytes: int
    element_bytes: int
    first_byte: int


_owner_access = reader_of(OwnerAccess)
_ACCESS_BYTES = bytes_of(OwnerAccess)


@cached_kernel
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
            own = _owner_access(address_of(accesses) + _ACCESS_BYTES * a)
            shift = moved[d, own.position]
            is_window = own.first_byte == WINDOW
            own_first = own.first_byte + shift // expansion
            is_store = a >= first_store
            accepted = np.int32(0)
            for core in range(own.cores):
                place = own.first_owner + (offsets[own.first_offset + core] + shift) // pitch
                for k in range(own.first_stick, own.first_stick + own.sticks):
                    if is_store:
                        owners[place + sticks[k]] = numbers[d]
                        continue
                    number = owners[place + sticks[k]]
                    if number == accepted:
                        continue
                    if number == 0:
                        continue
                    if tensors[number - 1, 0] != own.size_bytes or tensors[number - 1, 1] != own.element_bytes:
                        return d
                    first = tensors[number - 1, 2]
                    if first != WINDOW and not is_window and first != own_first:
                        return d
                    accepted = number
    return -1
