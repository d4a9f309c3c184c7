"""The last two steps of layer norm: the scale of a row in float64; from memory to memory x, mean and scale to rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops import LAYERNORM_NORM
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.dl16_folds import normalise_rows, widen_groups
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
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.nests import element_record, operand_places, task_places
from spyrec.emulator.kernels.records import reader_of
from spyrec.files.linked_kernel import linked

Integers = npt.NDArray[np.int64]

LONGEST_RUN = 8192
"""Elements of loop 0 up to which :data:`norm_step` serves: its weights and biases are decoded once per task."""


_ONE = int(np.float64(1).view(np.int64))

_WITHOUT_WEIGHTS = 4  # operands


@linked
def norm_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Normalise rows; operands: x, mean, factor, then weight, bias where they are given, the result last."""
    own, places = element_record(record), operand_places()
    nest, operands = own.nest, own.operands
    inner = word_at(nest, 0)
    room = room_of(16 * inner)
    weights, biases = room, room + 8 * inner
    for i in range(inner):
        set_word(weights, i, _ONE)
        set_word(biases, i, 0)
    for task in range(first, last):
        task_places(record, moved, task, places)
        for t in range(3, operands - 1):
            widen_groups(word_at(places, t), word_at(nest, 1 + t), weights if t == 3 else biases, inner // GROUP)
        is_scaled = 0
        for i in range(inner if operands > _WITHOUT_WEIGHTS else 0):
            is_scaled |= (word_at(weights, i) ^ _ONE) | word_at(biases, i)
        normalise_rows(places, nest, operands, weights if is_scaled != 0 else 0, biases)
    give_back(room)


def can_normalise(operation: str, codes: Integers, nest: Integers) -> bool:
    """Whether :data:`norm_step` serves an operation on operands with these formats and steps."""
    operands = len(codes)
    if operation != LAYERNORM_NORM or codes.any() or nest[0, 0] % GROUP or nest[0, 0] > LONGEST_RUN:
        return False
    if nest[0, [1, 2, 3, operands]].tolist() != [2, 0, 0, 2] or nest[1, 4:operands].any():
        return False
    return bool(np.isin(nest[0, 4:operands], (0, 2)).all())


@dataclass(frozen=True, slots=True)
class ScaleRecord:
    """layernormscale.

    ``source_row``, ``target_row``: of the movement.  ``sources``, ``targets``: addresses of the cores' starts.
    Byte offsets: ``source_places`` of ``rows`` sticks, ``target_places`` of ``[rows, repeats]`` results.
    ``lane_bytes``: from lane 0 to lane 1.  ``eps``, ``one``: addresses of float64.  ``store``: the function of
    ``codec`` for a result's format.  ``repeat``: what copies runs, where the results of each row are ``result_bytes``
    apart, else 0.
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
    repeat: int
    result_bytes: int


_scale_record = reader_of(ScaleRecord)


_room = floats_on_stack(6)


@linked
def scale_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Compute in float64 and round once; a task is a core."""
    own, lanes = _scale_record(record), _room()
    eps, repeats, scale, value = double_at(own.eps), own.repeats, lanes + 8, lanes + 16
    for core in range(first, last):
        source = word_at(own.sources, core) + word_at(moved, own.source_row)
        target = word_at(own.targets, core) + word_at(moved, own.target_row)
        for row in range(own.rows):
            call(own.decode, (source + word_at(own.source_places, row), own.lane_bytes, 2, lanes))
            mean, square = np.float64(float_at(lanes)), np.float64(float_at(lanes + 4))
            set_double(scale, 1.0 / np.sqrt(square - mean * mean + eps))
            results = own.target_places + 8 * row * repeats
            if own.repeat == 0:
                call(own.store, (repeats, scale, 0, own.one, results, target))
                continue
            first = word_at(results, 0)
            call(own.store, (1, scale, 0, own.one, results, value - first))
            call(own.repeat, (value, target + first, 0, own.result_bytes, repeats, 0))
