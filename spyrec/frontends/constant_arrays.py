"""Numbers from memory as the constants of a graph: converted to the carrier of their dtype, and never changed after."""

from __future__ import annotations

import math
import warnings
from typing import cast

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Diagnostic, DiagnosticSink, Severity, refuse
from spyrec.files.array_memory import per_number, without_repeats
from spyrec.frontends.call_site import CallSite
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import AttributeTextError, read_dtype
from spyrec.ir.constants import narrowed
from spyrec.ir.numbers import encode, fits, misfit
from spyrec.ir.tensor_file import WIDE

Array = npt.NDArray[np.generic]


def constant_array(value: npt.ArrayLike, dtype: str | None, site: CallSite) -> tuple[Array, DType]:
    """Return numbers in the carrier of their dtype, read-only, and the dtype.

    The dtype is the one that is named, else the array's; Python's numbers are float16, or bool; float64 is narrowed to
    float32, with a warning (SPY0152).  Floats are rounded to
    nearest.  The 8-bit floats come as raw bits in uint8, bfloat16 as bits in uint16 or as numbers.  An array that
    nobody can write to is taken as it is, any other is copied.
    Errors: SPY0103 NaN outside an array, SPY0127 lists of several lengths, SPY0128 numbers that the dtype lacks,
    SPY0140 no dtype of that name.
    """
    try:
        array: Array = np.asarray(value)
    except ValueError:
        raise refuse("SPY0127", "the lists of a constant have several lengths", site) from None
    if array.dtype.kind not in "biuf":
        raise refuse("SPY0128", f"a constant of {array.dtype} holds no numbers", site)
    is_given = isinstance(value, np.ndarray | np.generic)
    found = _dtype(array, dtype, site, is_given=is_given)
    if (array.dtype.name if dtype is None and is_given else dtype) == WIDE:
        return _narrowed(array, site, may_have_nan=is_given), found
    return _converted(array, found, site, is_given=is_given), found


def _dtype(array: Array, dtype: str | None, site: CallSite, *, is_given: bool) -> DType:
    if dtype is None and not is_given:
        return DType.BOOL if array.dtype == np.bool_ else DType.FLOAT16
    if (array.dtype.name if dtype is None else dtype) == WIDE:
        return DType.FLOAT32
    try:
        return read_dtype(array.dtype.name if dtype is None else dtype)
    except AttributeTextError as error:
        hint = error.hint(DiagnosticSink()) if dtype is not None else 'name the dtype to convert to: dtype="float16"'
        raise refuse(error.code, error.message, site, hint=hint) from None


def _converted(array: Array, dtype: DType, site: CallSite, *, is_given: bool) -> Array:
    carrier = np.dtype(dtype.carrier)
    is_bits = array.dtype == carrier and carrier.kind == "u"
    if not is_bits:
        _require_fit(without_repeats(array), dtype, site, may_have_nan=is_given and dtype.is_float)
    if array.dtype == carrier and not _is_writable(array):
        return array

    def converted(numbers: Array) -> Array:
        is_held = is_bits or numbers.dtype == carrier
        return numbers.astype(carrier) if is_held else np.asarray(encode(numbers, dtype))

    held = per_number(array, converted)
    held.setflags(write=False)
    return held


def _narrowed(array: Array, site: CallSite, *, may_have_nan: bool) -> Array:
    """Return numbers that are float64 as float32, with a warning of Python's (SPY0152)."""
    wide = per_number(array, lambda numbers: numbers.astype(np.float64))
    if not may_have_nan and bool(np.isnan(without_repeats(wide)).any()):
        raise refuse("SPY0103", "a constant holds NaN", site, hint="leave it out, or give it in a float array")
    found, losses = narrowed(wide)
    message = f"a constant is float64, and narrowed to float32: {losses}"
    told = Diagnostic("SPY0152", message, site, hint='name the dtype: dtype="float32"', severity=Severity.WARNING)
    warnings.warn(told.render(), RuntimeWarning, stacklevel=4)
    return found


def _require_fit(array: Array, dtype: DType, site: CallSite, *, may_have_nan: bool) -> None:
    if dtype in (DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2FNUZ):
        message = f"{array.dtype} is not converted to {dtype.value}"
        raise refuse("SPY0128", message, site, hint="give the raw bits as a uint8 array")
    is_nan = np.isnan(array) if array.dtype.kind == "f" else np.zeros((), np.bool_)
    if is_nan.any() and not may_have_nan:
        raise refuse("SPY0103", "a constant holds NaN", site, hint="leave it out, or give it in a float array")
    sound = array[~is_nan] if is_nan.any() else array.reshape(-1)
    finite = sound[np.isfinite(sound)]
    has_infinity = finite.size < sound.size
    extremes = [] if finite.size == 0 else [finite.min().item(), finite.max().item()]
    wrong = [number for number in extremes if not fits(number, dtype)]
    if has_infinity and not fits(math.inf, dtype):
        wrong.append(math.inf)
    if not dtype.is_float and not wrong:
        wrong = [number.item() for number in finite[finite != np.floor(finite)][:1]]
    if dtype is DType.BOOL and not wrong:
        wrong = [number.item() for number in finite[(finite != 0) & (finite != 1)][:1]]
    if wrong:
        raise refuse("SPY0128", f"{wrong[0]} is no {dtype.value}: {misfit(wrong[0], dtype)}", site)


def _is_writable(array: Array) -> bool:
    """Whether anyone may change the numbers: through the array itself or through one that it is a view of."""
    here: object = array
    while isinstance(here, np.ndarray):
        if here.flags.writeable:
            return True
        here = cast("object", here.base)
    return isinstance(here, bytearray | memoryview)
