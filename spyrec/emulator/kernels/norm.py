"""The last two steps of layer norm: the scale of a row in float64; from memory to memory x, mean and scale to rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops import LAYERNORM_NORM
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.dl16_folds import normalise_groups
from spyrec.emulator.kernels.instructions import (
    double_at,
    float_at,
    floats_on_stack,
    give_back,
    room_of,
    set_double,
    set_word,
    word_at,
)
from spyrec.emulator.kernels.jit import doubles_at, words16_at
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.nests import element_record, operand_places, task_places
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.linked_kernel import linked
from spyrec.hardware.dlfloat_kernels import decode_scalar

Integers = npt.NDArray[np.int64]

LONGEST_RUN = 8192
"""Elements of loop 0 up to which :data:`norm_step` serves: its weights and biases are decoded once per task."""


@linked
def decode_doubles(address: int, count: int, out: int) -> None:
    """Decode DLFloat16 side by side to float64."""
    words, values = words16_at(address, count), doubles_at(out, count)
    for i in range(count):
        values[i] = np.float64(decode_scalar(words[i]))


_ONE = int(np.float64(1).view(np.int64))


@linked
def norm_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Normalise rows; operands: x, mean, factor, then weight, bias where they are given, the result last.

    The record's operation is :data:`decode_doubles`.
    """
    own, places = element_record(record), operand_places()
    decode, nest, operands = own.operation, own.nest, own.operands
    inner, row_steps = word_at(nest, 0), nest + 8 * (operands + 2)
    room = room_of(16 * inner + 16)
    weights, biases, scalars = room, room + 8 * inner, room + 16 * inner
    for i in range(inner):
        set_word(weights, i, _ONE)
        set_word(biases, i, 0)
    for task in range(first, last):
        task_places(record, moved, task, places)
        for t in range(3, operands - 1):
            call(decode, (word_at(places, t), inner, weights if t == 3 else biases))
        for row in range(word_at(row_steps, -1)):
            for t in range(1, 3):
                call(decode, (word_at(places, t) + row * word_at(row_steps, t), 1, scalars + 8 * (t - 1)))
            x = word_at(places, 0) + row * word_at(row_steps, 0)
            out = word_at(places, operands - 1) + row * word_at(row_steps, operands - 1)
            mean, factor = double_at(scalars), double_at(scalars + 8)
            normalise_groups(x, mean, factor, weights, biases, out, inner // GROUP)
    give_back(room)


def can_normalise(operation: str, codes: Integers, nest: Integers) -> bool:
    """Whether :data:`norm_step` serves an operation on operands with these formats and steps."""
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
    ``lane_bytes``: from lane 0 to lane 1.  ``eps``, ``one``: addresses of float64.  ``store``: the function of
    ``codec`` for a result's format.
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
    one: int
    store: int


_scale_record = reader_of(ScaleRecord)


_room = floats_on_stack(4)


@linked
def scale_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Compute in float64 and round once; a task is a core."""
    own, lanes = _scale_record(record), _room()
    eps, repeats, scale = double_at(own.eps), own.repeats, lanes + 8
    for core in range(first, last):
        source = word_at(own.sources, core) + word_at(moved, own.source_row)
        target = word_at(own.targets, core) + word_at(moved, own.target_row)
        for row in range(own.rows):
            call(own.decode, (source + word_at(own.source_places, row), own.lane_bytes, 2, lanes))
            mean, square = np.float64(float_at(lanes)), np.float64(float_at(lanes + 4))
            set_double(scale, 1.0 / np.sqrt(square - mean * mean + eps))
            call(own.store, (repeats, scale, 0, own.one, own.target_places + 8 * row * repeats, target))
