"""Whether results are right: dtype, shape, and every number within what its format explains.

A number may be off by ``unit * roundings * terms``: of float16 the unit is 2**-9, since the device holds 16-bit floats
with 9 bits behind the point, of bfloat16 half a place of its own more, of float32 2**-20.  Integers and bools are
exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.model_ops.oracle import Expected
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import decode
from spyrec.sweep.model_calls.arguments import Array

UNITS = {DType.FLOAT16: 2.0**-9, DType.BFLOAT16: 2.0**-9 + 2.0**-8, DType.FLOAT32: 2.0**-20}
SMALLEST = {DType.FLOAT16: 2.0**-24, DType.BFLOAT16: 2.0**-30, DType.FLOAT32: 2.0**-100}
"""Units in the last place, relative, and the absolute error near 0 that a format always has."""


def complaint(found: Array, expected: Expected, dtype: DType, given: str) -> str | None:
    """Return what is wrong with a result in its host carrier; ``None`` for nothing.

    ``dtype`` is PyTorch's for it, ``given`` the one that the run states.
    """
    wanted = expected.values
    if given != dtype.value:
        return f"the result is {given}, PyTorch's is {dtype.value}"
    if found.shape != wanted.shape:
        return f"the result has shape {list(found.shape)}, PyTorch's has {list(wanted.shape)}"
    got = decode(found, dtype)
    if not dtype.is_float:
        return _differing(got, wanted, got != wanted)
    exact = _held(wanted.astype(np.float64), dtype)
    terms = np.abs(exact) if expected.terms is None else expected.terms.astype(np.float64)
    with np.errstate(all="ignore"):
        allowed = UNITS[dtype] * expected.roundings * np.where(np.isfinite(terms), terms, 0) + SMALLEST[dtype]
        is_same = (got == exact) | (np.isnan(got) & np.isnan(exact)) | _overflows(got, exact, dtype)
        return _differing(got, exact, ~is_same & ~(np.abs(got.astype(np.float64) - exact) <= allowed))


def _held(exact: npt.NDArray[np.float64], dtype: DType) -> npt.NDArray[np.float64]:
    """Return what the device's 16-bit format has of finite numbers: its largest for those beyond it (D203)."""
    if dtype is DType.FLOAT32:
        return exact
    return np.where(np.isfinite(exact), np.clip(exact, -dlfloat.MAXIMUM, dlfloat.MAXIMUM), exact)


def _overflows(got: Array, exact: npt.NDArray[np.float64], dtype: DType) -> npt.NDArray[np.bool_]:
    """Return where a result is an infinity because the dtype's numbers end before it."""
    largest = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895e38, DType.FLOAT32: 3.4028e38}[dtype]
    return np.isinf(got.astype(np.float64)) & (np.abs(exact) > largest) & (np.sign(got) == np.sign(exact))


def _differing(got: Array, wanted: Array, is_wrong: npt.NDArray[np.bool_]) -> str | None:
    count = int(is_wrong.sum())
    if not count:
        return None
    place = np.unravel_index(int(np.argmax(is_wrong)), is_wrong.shape)
    where = [int(index) for index in place]
    return f"{count} of {is_wrong.size} elements: at {where} {got[place]} instead of {wanted[place]}"
