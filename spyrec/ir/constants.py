"""The numbers of a graph's constants: written inline, or loaded from the file they refer to."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.array_memory import is_uniform, per_number, without_repeats
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import ConstantData, Graph, location_of
from spyrec.ir.inference import MAX_ELEMENTS
from spyrec.ir.numbers import decode, encode, fits, misfit
from spyrec.ir.tensor_file import WIDE, TensorFileError, load_tensor
from spyrec.ir.types import TensorType

MAX_INLINE_ELEMENTS = 4096
"""Most numbers of a constant that a graph's text holds: a table of 64 by 64."""

_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


class InlineValueError(Exception):
    """An inline value that is no value of its constant; ``path`` are the list indices to the place."""

    def __init__(self, code: str, message: str, path: tuple[int, ...]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def read_inline(value: JsonValue, wanted: TensorType, *, is_wide: bool = False) -> npt.NDArray[np.generic]:
    """Return an inline ``value`` in the carrier of its dtype: a nested list of the shape, or one number for all.

    One that ``is_wide`` is float64, whatever its dtype.

    A number in place of a list takes no memory, whatever the shape.
    Errors (:class:`InlineValueError`): SPY0103 not finite, SPY0125 beyond 2**63 bytes, SPY0127 another shape, SPY0128 a
    number that does not fit.
    """
    dtype = None if is_wide else wanted.dtype
    carrier = np.float64 if wanted.dtype.is_float else np.int64
    if not isinstance(value, list):
        number = np.asarray(_read_leaf(value, dtype, ()), carrier if is_wide else None)
        return repeated(number if dtype is None else encode(number, dtype), wanted.shape)
    leaves: list[float | int | bool] = []
    _collect(value, wanted.shape, dtype, (), leaves)
    numbers = np.array(leaves, carrier).reshape(wanted.shape)
    return numbers if dtype is None else encode(numbers, dtype)


def narrowed(numbers: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], str]:
    """Return float64 numbers as float32, rounded once, and in words what they lost."""
    with np.errstate(over="ignore", under="ignore"):
        found = per_number(numbers, lambda once: once.astype(np.float32))
    shown, wide = without_repeats(found), without_repeats(numbers)
    each = numbers.size // max(wide.size, 1)
    overflown = int(np.count_nonzero(np.isinf(shown) & np.isfinite(wide))) * each
    lost = int(np.count_nonzero((shown == 0) & (wide != 0))) * each
    found.setflags(write=False)
    return found, f"of its {numbers.size} numbers {overflown} overflow to an infinity, and {lost} are lost to 0"


def repeated(number: npt.NDArray[np.generic], shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    """Return one number as a tensor of any shape; it takes no memory.

    Errors (:class:`InlineValueError`): SPY0125 more bytes than NumPy can count.
    """
    count = math.prod(shape)
    if count * number.itemsize >= MAX_ELEMENTS:
        message = f"{count} elements of {number.itemsize} bytes are 2**63 bytes or more"
        raise InlineValueError("SPY0125", message, ())
    return np.broadcast_to(number, shape)


def _collect(
    value: JsonValue,
    shape: tuple[int, ...],
    dtype: DType | None,
    path: tuple[int, ...],
    leaves: list[float | int | bool],
) -> None:
    depth = len(path)
    if depth == len(shape):
        leaves.append(_read_leaf(value, dtype, path))
        return
    if not isinstance(value, list) or len(value) != shape[depth]:
        found = f"a list of {len(value)}" if isinstance(value, list) else "no list"
        message = f"the value has {found} where the shape {list(shape)} has {shape[depth]} entries"
        raise InlineValueError("SPY0127", message, path)
    for index, item in enumerate(value):
        _collect(item, shape, dtype, (*path, index), leaves)


def _read_leaf(value: JsonValue, dtype: DType | None, path: tuple[int, ...]) -> float | int | bool:
    if isinstance(value, list | dict) or value is None:
        raise InlineValueError("SPY0127", "a list or object stands where a number is due", path)
    number = _INFINITIES.get(value) if isinstance(value, str) else value
    if isinstance(number, float) and not isinstance(value, str) and not math.isfinite(number):
        raise InlineValueError("SPY0103", f"number {number} is not finite", path)
    if number is None or (isinstance(number, bool) and dtype is not DType.BOOL) or not _fits(number, dtype):
        shown = f'"{value[:40]}"' if isinstance(value, str) else str(value)[:40]
        name = WIDE if dtype is None else dtype.value
        raise InlineValueError("SPY0128", f"{shown} is no {name}: {_misfit(number, dtype)}", path)
    if dtype is None:
        return float(number)
    return number if dtype is DType.BOOL or not dtype.is_float else float(number)


def _fits(number: float | bool, dtype: DType | None) -> bool:
    if dtype is not None:
        return fits(number, dtype)
    return isinstance(number, float) or abs(number) <= sys.float_info.max


def _misfit(number: float | str | bool | None, dtype: DType | None) -> str:
    if number is None or isinstance(number, str):
        return "it is no number"
    is_bool = isinstance(number, bool) and dtype is not DType.BOOL
    if is_bool:
        return "it is a bool, write 0 or 1"
    return "it has more digits than any float64" if dtype is None else misfit(number, dtype)


def is_inline(data: ConstantData, found: TensorType) -> bool:
    """Whether a constant's numbers stand in the text of a written graph, and not in a file beside it.

    They do where they are few or one number for all, without NaN, and no 8-bit floats: those are given as bits.
    """
    if data.array is None or found.dtype in (DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2FNUZ):
        return False
    uniform = is_uniform(data.array)
    if data.array.size > MAX_INLINE_ELEMENTS and not uniform:
        return False
    numbers = decode(np.asarray(data.array.flat[0]) if uniform else data.array, found.dtype)
    return not bool(np.isnan(numbers).any())


def load_constant(graph: Graph, name: str) -> npt.NDArray[np.generic]:
    """Return the numbers of a constant: host carrier dtype, the value's shape, read-only.

    Errors: SPY0130, SPY0131 the file is gone or has changed since the graph was read.
    """
    try:
        return load_constant_data(graph.constants[name], graph.type_of(name))
    except TensorFileError as error:
        place: Location = location_of(graph.values[name].origin)
        raise refuse(error.code, f'constant "{name}": {error.message}', place) from None


def load_constant_data(data: ConstantData, wanted: TensorType) -> npt.NDArray[np.generic]:
    """Return the numbers of a constant of this type; errors (:class:`TensorFileError`): as :func:`load_constant`."""
    if data.array is not None:
        return data.array
    assert data.file is not None, data
    return load_tensor(Path(data.file), data.tensor, wanted)
