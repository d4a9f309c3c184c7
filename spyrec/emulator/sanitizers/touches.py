"""What an operation does to states where all that it loads is defined: bytes to look at, to forget and to define."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import merge

Integers = npt.NDArray[np.int64]

_MOST_BYTES = 1 << 20  # states of one operand that one thread may as well look through alone


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes of one operand: on which cores (positions), and their runs ``[first, past)`` from a core's start."""

    position: int
    cores: Integers
    runs: Integers


@dataclass(frozen=True, slots=True)
class Touches:
    """In this order: ``loads`` have to be defined; then ``forgets`` hold nothing and ``stores`` are defined."""

    loads: tuple[Touch, ...]
    stores: tuple[Touch, ...]
    forgets: tuple[Touch, ...] = ()


def is_small(setting: Setting, positions: Sequence[int]) -> bool:
    """Whether the elements that all cores touch of each operand are few."""
    return all(
        setting.cores * setting.codec(position).word_bytes * _elements(setting, position) <= _MOST_BYTES
        for position in positions
    )


def _elements(setting: Setting, position: int) -> int:
    extents = [extent for dim, extent in setting.extents.items() if setting.extends(position, dim)]
    return int(np.prod(extents, dtype=np.int64))


def touch(setting: Setting, position: int, offsets: Integers, cores: Sequence[int] | Integers | None = None) -> Touch:
    """Return the touch of elements at byte offsets from a core's start, on all cores where none are named."""
    firsts = np.unique(offsets)
    runs = merge(np.stack([firsts, firsts + setting.codec(position).word_bytes], axis=1))
    return Touch(position, np.array(range(setting.cores) if cores is None else cores, np.int64), runs)
