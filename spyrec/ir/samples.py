"""Operand types for the catalogue tests, written as ``f16(2, 3)``."""

from __future__ import annotations

from spyrec.hardware.dtypes import DType
from spyrec.ir.types import TensorType


def f16(*shape: int) -> TensorType:
    """Return a float16 type."""
    return TensorType(shape, DType.FLOAT16)


def f32(*shape: int) -> TensorType:
    """Return a float32 type."""
    return TensorType(shape, DType.FLOAT32)


def boolean(*shape: int) -> TensorType:
    """Return a bool type."""
    return TensorType(shape, DType.BOOL)


def i64(*shape: int) -> TensorType:
    """Return an int64 type."""
    return TensorType(shape, DType.INT64)
