"""Two float32 operands into one, and casts between float32 and DLFloat16, from memory to memory.

All take part in ``kernel_dl16.run_combine``; a cast takes its operand for both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import integers_at
from spyrec.emulator.jit_dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernel_block import CONVERT
from spyrec.emulator.kernel_dl16 import COMBINATIONS, can_combine, combinations, counts_of, is_in_groups
from spyrec.emulator.linked import Linked, linked
from spyrec.emulator.numerics import Storage
from spyrec.hardware.dtypes import DeviceFormat

Integers = npt.NDArray[np.int64]

_DL16, _SINGLE = Storage.DL16.value, Storage.SINGLE.value


@linked
def _widen(source: int, _same: int, result: int, nest: int, _streams: int) -> None:
    rows, groups = counts_of(nest)
    steps = integers_at(nest, 8)
    for row in range(rows):
        decode_groups(source + row * steps[5], result + row * steps[7], groups)


@linked
def _narrow(source: int, _same: int, result: int, nest: int, _streams: int) -> None:
    rows, groups = counts_of(nest)
    steps = integers_at(nest, 8)
    for row in range(rows):
        encode_groups(source + row * steps[5], result + row * steps[7], groups)


_SINGLES = combinations("single", 4, DeviceFormat.IEEE_FP32)


@dataclass(frozen=True, slots=True)
class _Cast:
    """A cast's function, and the steps in bytes that it serves."""

    function: Linked
    steps: list[int]


_CASTS = {(_DL16, _SINGLE): _Cast(_widen, [2, 4]), (_SINGLE, _DL16): _Cast(_narrow, [4, 2])}


def direct_function(operation: str, codes: Integers, nest: Integers) -> Linked | None:
    """Return what goes from memory to memory, one pass, if something does; of a cast ``nest`` has two operands.

    All give the bits of the pointwise kernel; which of two NaNs a sum has is left open, as IEEE 754 does.
    """
    if operation == CONVERT:
        cast = _CASTS.get((int(codes[0]), int(codes[1])))
        is_run = cast is not None and nest[0, 0] % GROUP == 0 and nest[0, 1:].tolist() == cast.steps
        return cast.function if cast is not None and is_run else None
    if can_combine(operation, codes, nest):
        return COMBINATIONS[operation]
    if operation in _SINGLES and (codes == _SINGLE).all() and is_in_groups(nest, 4):
        return _SINGLES[operation]
    return None


def three_operands(starts: Integers, nest: Integers) -> tuple[Integers, Integers]:
    """Return starts and nest as ``run_combine`` takes them: an only input stands for both."""
    if len(starts) == 2:
        starts, nest = starts[[0, 0, 1]], nest[:, [0, 1, 1, 2]]
    return np.ascontiguousarray(starts), np.ascontiguousarray(nest)
