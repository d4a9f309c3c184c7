"""The pointwise kernel: decode, operate in float32, round once; one pass over memory for all cores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.device_ops.expression import Expression
from spyrec.device_ops.record import Pointwise
from spyrec.emulator.kernels.codec import DECODERS, ENCODERS
from spyrec.emulator.kernels.formulas import compute_rows, named, text_of
from spyrec.emulator.kernels.jit import address_of, doubles_at, floats_at, kernel
from spyrec.emulator.kernels.linked import Linked, call, linked

BLOCK = 2048
"""Most elements of a block: five float32 operands stay in the first-level cache."""

BLOCK_ROWS = 6
"""Rows of float32 of a block, BLOCK apart: up to five inputs (absent ones hold what changes nothing), the result."""

ROW_BYTES = 4 * BLOCK

CONVERT = "convert"
"""The operation that changes nothing but the format."""


def _block_function(name: str, pointwise: Pointwise) -> Linked:
    formula, is_double = text_of(pointwise.formula), pointwise.is_double

    def compute(block: int, count: int) -> None:
        compute_rows(formula, is_double, block, ROW_BYTES, block + (BLOCK_ROWS - 1) * ROW_BYTES, count)

    return linked(named(compute, name))


def _formulas() -> Mapping[str, Pointwise]:
    found = {name: record.pointwise for name, record in DEVICE_OPERATIONS.items() if record.pointwise is not None}
    return {**found, CONVERT: Pointwise(Expression("x", ("x",)))}


FORMULAS = _formulas()
"""The formulas by name."""

OPERATIONS = {name: _block_function(name, pointwise) for name, pointwise in FORMULAS.items()}
"""By name: ``(block, count)`` computes the last row of a block from those before it; ``block`` is its address."""


@cache
def absent_operands(operation: str) -> npt.NDArray[np.float64]:
    """Return what each row of a block holds where the operation has no such operand."""
    pointwise = FORMULAS[operation]
    absent = pointwise.absent or {}
    values = [absent.get(name, 0.0) for name in pointwise.formula.operands]
    return np.array(values + [0.0] * (BLOCK_ROWS - 1 - len(values)), np.float64)


Integers = npt.NDArray[np.int64]


@linked
def _load_block(decode: int, address: int, step: int, row_step: int, count: int, rows: int, out: int) -> None:
    """Decode a block of ``rows`` times ``count`` elements whose steps are in bytes."""
    values = floats_at(out, rows * count)
    if step == 0:
        for row in range(rows):
            place = row * count
            call(decode, (address + row * row_step, 4, 1, out + 4 * place))
            for i in range(1, count):
                values[place + i] = values[place]
    elif row_step == step * count or rows == 1:
        call(decode, (address, step, rows * count, out))
    elif row_step == 0:
        call(decode, (address, step, count, out))
        for row in range(1, rows):
            for i in range(count):
                values[row * count + i] = values[i]
    else:
        for row in range(rows):
            call(decode, (address + row * row_step, step, count, out + 4 * row * count))


@linked
def _store_block(encode: int, address: int, step: int, row_step: int, count: int, rows: int, source: int) -> None:
    """Round a block as :func:`_load_block` decodes one."""
    if row_step == step * count or rows == 1:
        call(encode, (address, step, rows * count, source))
    else:
        for row in range(rows):
            call(encode, (address + row * row_step, step, count, source + 4 * row * count))


@kernel
def pointwise_tasks(
    operate: int, blocks: Integers, codecs: Integers, starts: Integers, nest: Integers, first_task: int, last_task: int
) -> None:  # fmt: skip
    """Run tasks ``first_task <= t < last_task`` of one operation.

    ``operate``: the function of this file.  ``blocks``: see :func:`block_functions`.  ``codecs[t]``: the
    function that decodes operand t; the result is last and is encoded.  ``starts[t, core]``: byte addresses.
    ``nest[k]``: extent of loop k, then each operand's step in bytes; loop 0 is the innermost; there are at least two.
    A task is one core at one point of the loops from 2 outward.
    """
    load_block, store_block = blocks[0], blocks[1]
    operands = codecs.shape[0]
    last = operands - 1
    block = np.empty(BLOCK_ROWS * BLOCK, np.float32)
    for t in range(last, BLOCK_ROWS - 1):  # operands that are absent hold what changes nothing
        value = np.float32(doubles_at(blocks[2], BLOCK_ROWS - 1)[t])
        for i in range(t * BLOCK, (t + 1) * BLOCK if blocks[3] != 0 else 0):
            block[i] = value
    addresses = np.empty(operands, np.int64)
    outer_points = 1
    for k in range(2, nest.shape[0]):
        outer_points *= nest[k, 0]
    inner, outer = nest[0, 0], nest[1, 0]
    inner_block = min(inner, BLOCK)
    outer_block = max(1, BLOCK // inner_block) if inner_block == inner else 1
    for task in range(first_task, last_task):
        at = address_of(block)  # inside of the loop: numba frees an array after its last use
        core = task // outer_points
        point = task % outer_points
        for t in range(operands):
            addresses[t] = starts[t, core]
        for k in range(2, nest.shape[0]):
            index = point % nest[k, 0]
            point //= nest[k, 0]
            for t in range(operands):
                addresses[t] += index * nest[k, t + 1]
        for row in range(0, outer, outer_block):
            rows = min(outer_block, outer - row)
            for column in range(0, inner, inner_block):
                count = min(inner_block, inner - column)
                for t in range(operands):
                    step, row_step = nest[0, t + 1], nest[1, t + 1]
                    address = addresses[t] + row * row_step + column * step
                    if t < last:
                        call(load_block, (codecs[t], address, step, row_step, count, rows, at + 4 * BLOCK * t))
                        continue
                    call(operate, (at, rows * count))
                    result = at + 4 * BLOCK * (BLOCK_ROWS - 1)
                    call(store_block, (codecs[t], address, step, row_step, count, rows, result))


@cache
def block_functions(operation: str) -> Integers:
    """Return the addresses of what loads and of what stores a block, and of what its absent operands hold, if any."""
    absent = absent_operands(operation)
    has_absent = int(FORMULAS[operation].absent is not None)
    return np.array([_load_block.address, _store_block.address, absent.ctypes.data, has_absent], np.int64)


def codecs_of(codes: Integers) -> Integers:
    """Return the functions that decode the operands with these formats, and encode the last one."""
    *inputs, output = map(int, codes)
    return np.array([*(DECODERS[code].address for code in inputs), ENCODERS[output].address], np.int64)
