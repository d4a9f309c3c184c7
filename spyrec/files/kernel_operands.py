"""Operands of kernels as machine code takes them: a number is one word, an array several."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt


class ArrayKind(NamedTuple):
    """What arrays have in common that one compilation serves; ``layout``: C or F, as the order of indices, else A."""

    dtype: np.dtype[np.generic]
    rank: int
    layout: str
    is_writable: bool


OperandKind = ArrayKind | type[int] | type[float] | type[bool]


def kind_of(operand: object) -> OperandKind:
    """Return the kind of an operand: an array, or a number of Python's or NumPy's."""
    if isinstance(operand, np.ndarray):
        array = cast("npt.NDArray[np.generic]", operand)
        flags = array.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return ArrayKind(array.dtype, array.ndim, layout, flags.writeable)
    if isinstance(operand, bool | np.bool_):
        return bool
    return float if isinstance(operand, float | np.floating) else int


_WORD, _STATUS = ctypes.c_int64, ctypes.c_int32

_byte_of: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer
_place_of = ctypes.addressof  # looked up in no module: an address is asked for in every small copy

_RESULTS: dict[str, Any] = {
    "none": None,
    "bool": ctypes.c_uint8,
    "boolean": ctypes.c_uint8,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "uint8": ctypes.c_uint8,
}
"""What kernels return, by numba's name."""


def called_with(address: int, kinds: Sequence[OperandKind], result: str) -> Callable[..., Any]:
    """Return what calls the code at an address with operands of these kinds, without the interpreter lock.

    Code takes two addresses before its operands: for what it returns and for what it raises.
    """
    function = ctypes.CFUNCTYPE(_STATUS, *[_WORD] * 2, *(item for kind in kinds for item in _words_of(kind)))(address)
    returned = _RESULTS[result]
    written = [_array_words if isinstance(kind, ArrayKind) else partial(_number, kind) for kind in kinds]

    def call(*operands: Any) -> Any:  # noqa: ANN401
        words = [word for write, operand in zip(written, operands) for word in write(operand)]
        room, raised = _WORD(), _WORD()
        status = function(ctypes.addressof(room), ctypes.addressof(raised), *words)
        if status != 0:
            raise MemoryError("a kernel could not get the memory that it works in")
        if returned is None:
            return None
        return returned.from_buffer(room).value

    return call


def address_of(array: npt.NDArray[np.generic]) -> int:
    """Return where an array begins; a contiguous one that may be written says it in a quarter of the time."""
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size:
        return _place_of(_byte_of(array))
    return array.ctypes.data


def _words_of(kind: OperandKind) -> list[Any]:
    if isinstance(kind, ArrayKind):
        return [_WORD] * (5 + 2 * kind.rank)
    return [ctypes.c_double if kind is float else _WORD]


def _number(kind: type[int | float | bool], operand: Any) -> tuple[float]:  # noqa: ANN401
    return (kind(operand),)


def _array_words(array: npt.NDArray[np.generic]) -> tuple[int, ...]:
    """Return an array as numba takes it apart: no owner, no parent, its count, item and address, extents and steps."""
    return 0, 0, array.size, array.itemsize, address_of(array), *array.shape, *array.strides
