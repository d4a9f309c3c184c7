"""The last two steps of layer norm: the scale of a row in float64; from memory to memory x, mean and scale to rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import LAYERNORM_NORM
from spyrec.emulator.kernels.codec import store_double
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.dl16_folds import normalise_groups
from spyrec.emulator.kernels.jit import address_of, doubles_at, floats_at, integers_at, kernel, words16_at
from spyrec.emulator.kernels.linked import call, linked
from spyrec.emulator.kernels.records import reader_of
from spyrec.hardware.dlfloat_kernels import decode_scalar

Integers = npt.NDArray[np.int64]

LONGEST_RUN = 8192
"""Elements of loop 0 up to which :func:`run_norm` serves: its weights and biases are decoded once per task."""


@kernel
def _decode_doubles(address: int, count: int, out: npt.NDArray[np.float64]) -> None:
    words = words16_at(address, count)
    for i in range(count):
        out[i] = np.float64(decode_scalar(words[i]))


@kernel
def run_norm(starts: Integers, nest: Integers, first_task: int, last_task: int) -> None:
    """Run tasks ``first_task <= t < last_task``; arguments as in ``pointwise.pointwise_tasks``.

    Operands: x, mean, factor, then weight, bias where they are given, the result last.
    """
    operands = starts.shape[0]
    outer_points = 1
    for k in range(2, nest.shape[0]):
        outer_points *= nest[k, 0]
    inner = nest[0, 0]
    rows = np.empty((2, inner), np.float64)
    rows[0, :] = 1.0
    rows[1, :] = 0.0
    addresses = np.empty(operands, np.int64)
    for task in range(first_task, last_task):
        point = task % outer_points
        for t in range(operands):
            addresses[t] = starts[t, task // outer_points]
        for k in range(2, nest.shape[0]):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            for t in range(operands):
                addresses[t] += index * nest[k, t + 1]
        for t in range(3, operands - 1):
            _decode_doubles(addresses[t], inner, rows[t - 3])
        for row in range(nest[1, 0]):
            mean = np.float64(decode_scalar(words16_at(addresses[1] + row * nest[1, 2], 1)[0]))
            factor = np.float64(decode_scalar(words16_at(addresses[2] + row * nest[1, 3], 1)[0]))
            x = addresses[0] + row * nest[1, 1]
            out = addresses[operands - 1] + row * nest[1, operands]
            weights, biases = address_of(rows[0]), address_of(rows[1])
            normalise_groups(x, mean, factor, weights, biases, out, inner // GROUP)


def can_normalise(operation: str, codes: Integers, nest: Integers) -> bool:
    """Whether :func:`run_norm` serves an operation on operands with these formats and steps."""
    operands = len(codes)
    if operation != LAYERNORM_NORM or codes.any() or nest[0, 0] % GROUP or nest[0, 0] > LONGEST_RUN:
        return False
    forms = [2, 0, 0, *[2] * (operands - 3)]
    return nest[0, 1:].tolist() == forms and not nest[1, 4:operands].any()


@dataclass(frozen=True, slots=True)
class ScaleRecord:
    """layernormscale.

    ``source_row``, ``target_row``: of the movement.  ``sources``, ``targets``: addresses of the cores' starts.
    Byte offsets: ``source_places`` of ``rows`` sticks, ``target_places`` of ``[rows, repeats]`` results.
    ``lane_bytes``: from lane 0 to lane 1.  ``eps``: address of a float64.  ``storage``: code of a result's format.
    """

    source_row: int
    target_row: int
    sources: int
    targets: int
    rows: int
    source_places: int
    repeats: int
    target_places: int
    decode: int
    lane_bytes: int
    eps: int
    storage: int


_scale_record = reader_of(ScaleRecord)


@linked
def scale_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Compute in float64 and round once; a task is a core."""
    own = _scale_record(record)
    rows, repeats = own.rows, own.repeats
    eps = doubles_at(own.eps, 1)[0]
    lanes = np.empty(2, np.float32)
    for core in range(first, last):
        values = address_of(lanes)  # inside of the loop: numba frees an array after its last use
        source = integers_at(own.sources + 8 * core, 1)[0] + integers_at(moved + 8 * own.source_row, 1)[0]
        target = integers_at(own.targets + 8 * core, 1)[0] + integers_at(moved + 8 * own.target_row, 1)[0]
        for row in range(rows):
            call(own.decode, (source + integers_at(own.source_places, rows)[row], own.lane_bytes, 2, values))
            mean, square = np.float64(floats_at(values, 2)[0]), np.float64(floats_at(values, 2)[1])
            scale = 1.0 / np.sqrt(square - mean * mean + eps)
            places = integers_at(own.target_places + 8 * row * repeats, repeats)
            for place in range(repeats):
                store_double(target + places[place], own.storage, scale)
