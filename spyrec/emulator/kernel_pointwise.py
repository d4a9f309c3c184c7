"""The pointwise kernel: decode, operate in float32, round once; one pass over memory for all cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.jit import kernel
from spyrec.emulator.kernel_codec import decode_run, encode_run

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

POINTWISE_OPERATIONS = (
    "add",
    "sub",
    "mul",
    "realdiv",
    "maximum",
    "minimum",
    "equal",
    "notequal",
    "greaterequal",
    "greaterthan",
    "lesserequal",
    "lesserthan",
    "where3",
    "convert",
    "layernormnorm",
)
"""Operations of :func:`run_pointwise`; the position is the operation's code."""

_BLOCK = 2048  # elements per block: five float32 operands stay in the first-level cache


@kernel
def _operate(operation: int, count: int, scratch: Floats) -> None:
    """Apply one operation to ``count`` elements of the rows of ``scratch``; the last row is the result."""
    out = scratch[scratch.shape[0] - 1]
    x = scratch[0]
    y = scratch[1]
    if operation == 0:
        for i in range(count):
            out[i] = x[i] + y[i]
    elif operation == 1:
        for i in range(count):
            out[i] = x[i] - y[i]
    elif operation == 2:
        for i in range(count):
            out[i] = x[i] * y[i]
    elif operation == 3:
        for i in range(count):
            out[i] = x[i] / y[i]
    elif operation == 4:
        # NaN wins, as in PyTorch.
        for i in range(count):
            out[i] = x[i] if x[i] > y[i] or x[i] != x[i] else y[i]
    elif operation == 5:
        for i in range(count):
            out[i] = x[i] if x[i] < y[i] or x[i] != x[i] else y[i]
    elif operation <= 11:
        _compare(operation, count, scratch)
    elif operation == 12:
        z = scratch[2]
        for i in range(count):
            out[i] = y[i] if x[i] != np.float32(0) else z[i]
    elif operation == 13:
        for i in range(count):
            out[i] = x[i]
    else:
        # Rows of operands that are absent hold what changes nothing: weight 1, bias 0.
        factor, weight, bias = scratch[2], scratch[3], scratch[4]
        for i in range(count):
            # Four steps may cancel: double width keeps the one rounding the only one that counts.
            centred = np.float64(x[i]) - np.float64(y[i])
            out[i] = centred * np.float64(factor[i]) * np.float64(weight[i]) + np.float64(bias[i])


@kernel
def _compare(operation: int, count: int, scratch: Floats) -> None:
    out = scratch[scratch.shape[0] - 1]
    x = scratch[0]
    y = scratch[1]
    one = np.float32(1)
    zero = np.float32(0)
    if operation == 6:
        for i in range(count):
            out[i] = one if x[i] == y[i] else zero
    elif operation == 7:
        for i in range(count):
            out[i] = one if x[i] != y[i] else zero
    elif operation == 8:
        for i in range(count):
            out[i] = one if x[i] >= y[i] else zero
    elif operation == 9:
        for i in range(count):
            out[i] = one if x[i] > y[i] else zero
    elif operation == 10:
        for i in range(count):
            out[i] = one if x[i] <= y[i] else zero
    else:
        for i in range(count):
            out[i] = one if x[i] < y[i] else zero


@kernel
def _load(code: int, address: int, steps: Integers, counts: Integers, out: Floats) -> None:
    """Decode a block of ``counts = (inner, outer)`` elements whose steps in bytes are ``steps``."""
    inner, outer = counts[0], counts[1]
    if steps[1] == steps[0] * inner or outer == 1:
        decode_run(code, address, steps[0], inner * outer, out)
    elif steps[1] == 0:
        decode_run(code, address, steps[0], inner, out)
        for row in range(1, outer):
            for i in range(inner):
                out[row * inner + i] = out[i]
    else:
        for row in range(outer):
            decode_run(code, address + row * steps[1], steps[0], inner, out[row * inner :])


@kernel
def run_pointwise(
    operation: int, codes: Integers, starts: Integers, nest: Integers, first_task: int, last_task: int
) -> None:
    """Run tasks ``first_task <= t < last_task`` of one operation.

    ``codes[t]``: format of operand t, the result last.  ``starts[t, core]``: byte addresses.  ``nest[k]``: extent of
    loop k, then each operand's step in bytes; loop 0 is the innermost; there are at least two.  A task is one core at
    one point of the loops from 2 outward.
    """
    operands = codes.shape[0]
    loops = nest.shape[0]
    rows = max(operands, 6)
    scratch = np.empty((rows, _BLOCK), np.float32)
    scratch[3, :] = np.float32(1)
    scratch[4, :] = np.float32(0)
    counts = np.empty(2, np.int64)
    steps = np.empty(2, np.int64)
    addresses = np.empty(operands, np.int64)
    outer_points = 1
    for k in range(2, loops):
        outer_points *= nest[k, 0]
    inner, outer = nest[0, 0], nest[1, 0]
    inner_block = min(inner, _BLOCK)
    outer_block = max(1, _BLOCK // inner_block) if inner_block == inner else 1
    for task in range(first_task, last_task):
        core = task // outer_points
        point = task % outer_points
        for t in range(operands):
            addresses[t] = starts[t, core]
        for k in range(2, loops):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            for t in range(operands):
                addresses[t] += index * nest[k, t + 1]
        for row in range(0, outer, outer_block):
            counts[1] = min(outer_block, outer - row)
            for column in range(0, inner, inner_block):
                counts[0] = min(inner_block, inner - column)
                for t in range(operands - 1):
                    steps[0] = nest[0, t + 1]
                    steps[1] = nest[1, t + 1]
                    _load(codes[t], addresses[t] + row * steps[1] + column * steps[0], steps, counts, scratch[t])
                _operate(operation, counts[0] * counts[1], scratch)
                last = operands - 1
                steps[0] = nest[0, operands]
                steps[1] = nest[1, operands]
                address = addresses[last] + row * steps[1] + column * steps[0]
                result = scratch[rows - 1]
                if steps[1] == steps[0] * counts[0] or counts[1] == 1:
                    encode_run(int(codes[last]), address, steps[0], counts[0] * counts[1], result)
                else:
                    for line in range(counts[1]):
                        place = address + line * steps[1]
                        encode_run(int(codes[last]), place, steps[0], counts[0], result[line * counts[0] :])
