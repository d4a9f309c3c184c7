"""What the pointwise kernel computes on a block of decoded elements: one linked function per operation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.device_ops.expression import Expression
from spyrec.device_ops.record import Pointwise
from spyrec.emulator.formulas import compute_rows, named, text_of
from spyrec.emulator.linked import Linked, linked

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
