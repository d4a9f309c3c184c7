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
from spyrec.emulator.kernels.instructions import double_at, floats_on_stack, lesser, word_at
from spyrec.emulator.kernels.jit import floats_at
from spyrec.emulator.kernels.linked import call
from spyrec.emulator.kernels.nests import element_record, operand_places, task_places
from spyrec.files.linked_kernel import Linked, linked

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


@linked
def _fill_rows(block: int, values: int, rows: int) -> None:
    """Fill rows of a block with one float64 each, as float32."""
    for row in range(rows):
        own = floats_at(block + ROW_BYTES * row, BLOCK)
        value = np.float32(double_at(values + 8 * row))
        for i in range(BLOCK):
            own[i] = value


_block = floats_on_stack(BLOCK_ROWS * BLOCK)


@linked
def pointwise_step(record: int, moved: int, _notes: int, first: int, last: int) -> None:
    """Run the record's operation, one of OPERATIONS, block by block.

    ``codecs[t]`` of the record: the function that decodes operand t; the result is last and is encoded.  ``blocks``:
    see :func:`block_functions`.
    """
    own, places, block = element_record(record), operand_places(), _block()
    operate, blocks, codecs, inputs = own.operation, own.blocks, own.codecs, own.operands - 1
    load_block, store_block, fill = word_at(blocks, 0), word_at(blocks, 1), word_at(blocks, 3)
    if fill != 0:  # operands that are absent hold what changes nothing
        call(fill, (block + ROW_BYTES * inputs, word_at(blocks, 2) + 8 * inputs, BLOCK_ROWS - 1 - inputs))
    steps, row_steps = own.nest + 8, own.nest + 8 * (own.operands + 2)  # of each operand; before them are extents
    inner, outer = word_at(steps, -1), word_at(row_steps, -1)
    inner_block = lesser(inner, BLOCK)
    outer_block = BLOCK // inner_block if inner_block == inner else 1
    for task in range(first, last):
        task_places(record, moved, task, places)
        for row in range(0, outer, outer_block):
            rows = lesser(outer_block, outer - row)
            for column in range(0, inner, inner_block):
                count = lesser(inner_block, inner - column)
                for t in range(inputs + 1):
                    step, row_step = word_at(steps, t), word_at(row_steps, t)
                    address = word_at(places, t) + row * row_step + column * step
                    if t < inputs:
                        load = word_at(codecs, t), address, step, row_step, count, rows, block + ROW_BYTES * t
                        call(load_block, load)
                        continue
                    call(operate, (block, rows * count))
                    result = block + ROW_BYTES * (BLOCK_ROWS - 1)
                    call(store_block, (word_at(codecs, t), address, step, row_step, count, rows, result))


@cache
def block_functions(operation: str) -> Integers:
    """Return the addresses of what loads and of what stores a block, of what its absent operands hold, and of what
    fills these, or 0 if none is absent.
    """
    absent = absent_operands(operation)
    fill = 0 if FORMULAS[operation].absent is None else _fill_rows.address
    return np.array([_load_block.address, _store_block.address, absent.ctypes.data, fill], np.int64)


def codecs_of(codes: Integers) -> Integers:
    """Return the functions that decode the operands with these formats, and encode the last one."""
    *inputs, output = map(int, codes)
    return np.array([*(DECODERS[code].address for code in inputs), ENCODERS[output].address], np.int64)
