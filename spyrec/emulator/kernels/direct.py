"""Two operands into one from memory to memory, of DLFloat16 or float32, and casts between these: as fast as memory is.

All take part in :func:`combine_tasks`; a cast takes its operand for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.device_ops.record import Pointwise
from spyrec.emulator.kernels.dl16 import GROUP, decode_groups, encode_groups
from spyrec.emulator.kernels.dl16_loops import Rows, combine_rows
from spyrec.emulator.kernels.formulas import named, text_of
from spyrec.emulator.kernels.jit import inlined, integers_at
from spyrec.emulator.kernels.linked import Linked, call, linked
from spyrec.emulator.kernels.pointwise import CONVERT
from spyrec.emulator.numerics import ElementStorage
from spyrec.hardware.dtypes import DeviceFormat

Integers = npt.NDArray[np.int64]


@inlined
def operand_rows(start: int, nest: int, number: int, group_bytes: int) -> Rows:
    """Return the rows of one of three operands; ``nest`` (loops 0 and 1) is an address."""
    steps = integers_at(nest, 8)
    return start, steps[5 + number], group_bytes if steps[1 + number] != 0 else 0


@inlined
def counts_of(nest: int) -> tuple[int, int]:
    """Return rows and groups of a row."""
    extents = integers_at(nest, 8)
    return extents[4], extents[0] // GROUP


def combination(form: str, element_bytes: int, name: str, pointwise: Pointwise) -> Linked:
    """Return ``(left, right, result, nest, streams)``, which combines loops 0 and 1 of a nest by a formula.

    The first four are addresses.  ``form``: as :data:`spyrec.emulator.kernels.dl16_loops.combine_rows` takes it.
    """
    # a decoded DLFloat16 is never NaN
    formula = pointwise.formula.without_nan() if form == "dl16" else pointwise.formula
    by_row = pointwise.by_row or () if form == "dl16" else ()
    formulas, group_bytes = "; ".join(map(text_of, (formula, *by_row))), element_bytes * GROUP

    def combine(left: int, right: int, result: int, nest: int, streams: int) -> None:
        rows, groups = counts_of(nest)
        x = operand_rows(left, nest, 0, group_bytes)
        y = operand_rows(right, nest, 1, group_bytes)
        out = operand_rows(result, nest, 2, group_bytes)
        combine_rows(form, formulas, x, y, out, rows, groups, streams)

    return linked(named(combine, f"{form} {name}"))


def combinations(form: str, element_bytes: int, data_format: DeviceFormat) -> Mapping[str, Linked]:
    """Return the functions of all operations of two operands in a format, by name."""
    found: dict[str, Linked] = {}
    for name, record in DEVICE_OPERATIONS.items():
        if record.pointwise is not None and record.inputs == _TWO and data_format in record.accepts:
            found[name] = combination(form, element_bytes, name, record.pointwise)
    return found


_TWO = 2

COMBINATIONS = combinations("dl16", 2, DeviceFormat.SEN169_FP16)
"""By name: ``(left, right, result, nest, streams)`` combines loops 0 and 1 of a nest; the first four are addresses."""

_STREAMED_ELEMENTS = 1 << 20
"""Elements that one call stores, from which on it stores them past the cache: 2 MiB, a second-level cache."""


@inlined
def combine_tasks(
    combine: int, starts: int, origins: int, moved: tuple[int, int, int], nest: int, loops: int,
    first_task: int, last_task: int,
) -> None:  # fmt: skip
    """Run tasks ``first_task <= t < last_task`` of one operation, which is one of COMBINATIONS, by address.

    ``starts``, ``nest``: addresses of ``[3, origins]`` and ``[loops, 4]``, as in ``pointwise.pointwise_tasks``;
    operands lie ``moved`` past their starts.  Loop 0 has whole groups and steps of 2 bytes; an input may have step 0
    there.  It takes no memory of its own: small tiles would take longer to get that.
    """
    extents = integers_at(nest, 4 * loops)
    outer_points = 1
    for k in range(2, loops):
        outer_points *= extents[4 * k]
    streams = 1 if (last_task - first_task) * extents[0] * extents[4] >= _STREAMED_ELEMENTS else 0
    places = integers_at(starts, 3 * origins)
    for task in range(first_task, last_task):
        origin, point = task // outer_points, task % outer_points
        x, y = places[origin] + moved[0], places[origins + origin] + moved[1]
        out = places[2 * origins + origin] + moved[2]
        for k in range(2, loops):
            index = point % extents[4 * k]
            point //= extents[4 * k]
            x, y = x + index * extents[4 * k + 1], y + index * extents[4 * k + 2]
            out += index * extents[4 * k + 3]
        call(combine, (x, y, out, nest, streams))


def can_combine(operation: str, codes: Integers, nest: Integers) -> bool:
    """Whether :func:`combine_tasks` serves: DLFloat16 alone, whole groups, the result adjacent."""
    return operation in COMBINATIONS and not codes.any() and is_in_groups(nest, 2)


def is_in_groups(nest: Integers, element_bytes: int) -> bool:
    """Whether loop 0 has whole groups, the result adjacent, inputs adjacent or one element."""
    if nest[0, 0] % GROUP or nest[0, 3] != element_bytes:
        return False
    return all(nest[0, t] in (0, element_bytes) for t in (1, 2))


_DL16, _SINGLE = ElementStorage.DL16.value, ElementStorage.SINGLE.value


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
    """Return starts and nest as :func:`combine_tasks` takes them: an only input stands for both."""
    if len(starts) == 2:
        starts, nest = starts[[0, 0, 1]], nest[:, [0, 1, 1, 2]]
    return np.ascontiguousarray(starts), np.ascontiguousarray(nest)
