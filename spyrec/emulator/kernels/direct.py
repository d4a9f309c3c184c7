"""Two operands into one from memory to memory, of DLFloat16 or float32, and casts between these: as fast as memory is.

All take part in :data:`combine_step`; a cast takes its operand for both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.device_ops.record import Pointwise
from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.dl16_loops import combine_rows
from spyrec.emulator.kernels.following import FETCHED_ELEMENTS, FOLLOWED_BYTES, chain_notes
from spyrec.emulator.kernels.formulas import named, text_of
from spyrec.emulator.kernels.instructions import fetch_rows, word_at
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.nests import element_record, operand_places, task_places
from spyrec.emulator.kernels.pointwise import CONVERT
from spyrec.emulator.numerics import ElementStorage
from spyrec.files.linked_kernel import Linked, linked
from spyrec.hardware.dtypes import DeviceFormat

Integers = npt.NDArray[np.int64]


def combination(form: str, name: str, pointwise: Pointwise) -> Linked:
    """Return ``(left, right, result, nest, streams)``, which combines loops 0 and 1 of a nest by a formula.

    The first four are addresses.  ``form``: as :data:`spyrec.emulator.kernels.dl16_loops.combine_rows` takes it.
    """
    # a decoded DLFloat16 is never NaN
    formula = pointwise.formula.without_nan() if form == "dl16" else pointwise.formula
    by_row = pointwise.by_row or () if form == "dl16" else ()
    formulas = "; ".join(map(text_of, (formula, *by_row)))

    def combine(left: int, right: int, result: int, nest: int, streams: int) -> None:
        combine_rows(form, formulas, left, right, result, nest, streams)

    return linked(named(combine, f"{form} {name}"))


def combinations(form: str, data_format: DeviceFormat) -> Mapping[str, Linked]:
    """Return the functions of all operations of two operands in a format, by name."""
    found: dict[str, Linked] = {}
    for name, record in DEVICE_OPERATIONS.items():
        if record.pointwise is not None and record.inputs == _TWO and data_format in record.accepts:
            found[name] = combination(form, name, record.pointwise)
    return found


_TWO = 2

COMBINATIONS = combinations("dl16", DeviceFormat.SEN169_FP16)
"""By name: ``(left, right, result, nest, streams)`` combines loops 0 and 1 of a nest; the first four are addresses."""

_STREAMED_ELEMENTS = 1 << 20
"""Elements that one call stores, from which on it stores them past the cache: 2 MiB, a second-level cache."""


@linked
def combine_step(record: int, moved: int, notes: int, first: int, last: int) -> None:
    """Combine operands by the record's operation, which is one of COMBINATIONS or a cast.

    Loop 0 has whole groups and steps of 2 bytes (4 of float32); an input may have step 0 there.
    """
    own, places = element_record(record), operand_places()
    combine, nest, movement = own.operation, own.nest, own.rows
    count, rows = word_at(nest, 0), word_at(nest, 4)
    elements = (last - first) * count * rows
    if elements <= FETCHED_ELEMENTS:
        following = chain_notes(notes).following
        ahead = following if following != 0 else moved
        for task in range(first, last):
            task_places(record, ahead, task, places)
            # the operand of a cast stands for both
            for t in range(2 if word_at(movement, 0) != word_at(movement, 1) else 1):
                row, row_step, row_bytes = word_at(movement, t), word_at(nest, 5 + t), count * word_at(nest, 1 + t)
                run_bytes = rows * row_bytes if row_step == row_bytes else row_bytes
                is_elsewhere = following == 0 or word_at(ahead, row) != word_at(moved, row)  # else it is at hand
                if is_elsewhere and run_bytes < FOLLOWED_BYTES:
                    fetch_rows(word_at(places, t), rows, row_step, row_bytes)
    streams = 1 if elements >= _STREAMED_ELEMENTS else 0
    for task in range(first, last):
        task_places(record, moved, task, places)
        call(combine, (word_at(places, 0), word_at(places, 1), word_at(places, 2), nest, streams))


def can_combine(operation: str, codes: Integers, nest: Integers) -> bool:
    """Whether :data:`combine_step` serves: DLFloat16 alone, whole groups, the result adjacent."""
    return operation in COMBINATIONS and not codes.any() and is_in_groups(nest, 2)


def is_in_groups(nest: Integers, element_bytes: int) -> bool:
    """Whether loop 0 has whole groups, the result adjacent, inputs adjacent or one element."""
    if nest[0, 0] % GROUP or nest[0, 3] != element_bytes:
        return False
    return all(nest[0, t] in (0, element_bytes) for t in (1, 2))


_DL16, _SINGLE = ElementStorage.DL16.value, ElementStorage.SINGLE.value


@linked
def _widen(source: int, _same: int, result: int, nest: int, _streams: int) -> None:
    for row in range(word_at(nest, 4)):
        decode_groups(source + row * word_at(nest, 5), result + row * word_at(nest, 7), word_at(nest, 0) // GROUP)


@linked
def _narrow(source: int, _same: int, result: int, nest: int, _streams: int) -> None:
    for row in range(word_at(nest, 4)):
        encode_groups(source + row * word_at(nest, 5), result + row * word_at(nest, 7), word_at(nest, 0) // GROUP)


_SINGLES = combinations("single", DeviceFormat.IEEE_FP32)


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
    """Return starts and nest as :data:`combine_step` takes them: an only input stands for both."""
    if len(starts) == 2:
        starts, nest = starts[[0, 0, 1]], nest[:, [0, 1, 1, 2]]
    return np.ascontiguousarray(starts), np.ascontiguousarray(nest)
