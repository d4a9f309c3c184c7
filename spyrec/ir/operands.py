"""What ops ask of their operands' dtypes, and how their references read the operand arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import HOST_DTYPES, fits, holds, misfit
from spyrec.ir.opdef import Array, Attributes, OperandTypes, OpError
from spyrec.ir.types import TensorType

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def tensor(operands: OperandTypes, index: int = 0) -> TensorType:
    """Return the type of an operand that is present."""
    found = operands[index]
    assert found is not None, index
    return found


def array(operands: Sequence[Array | None], index: int = 0) -> Array:
    """Return the array of an operand that is present."""
    found = operands[index]
    assert found is not None, index
    return found


def floats(operands: Sequence[Array | None], index: int = 0) -> Floats:
    """Return the array of an operand that is present, as float64."""
    return array(operands, index).astype(np.float64, copy=False)


def means(x: Floats, dims: tuple[int, ...]) -> Floats:
    """Return the means along dims, which are kept; of no elements it is NaN."""
    count = math.prod(x.shape[dim] for dim in dims)
    with np.errstate(invalid="ignore"):  # of nothing it is 0 / 0
        return np.asarray(np.sum(x, axis=dims, keepdims=True) / np.float64(count))


def first_operand(operands: Sequence[Array | None], _: Attributes) -> Floats:
    """Return the first operand, as float64: what an op of one operand multiplies, whatever its attributes are."""
    return floats(operands)


def present(operands: OperandTypes) -> list[tuple[int, TensorType]]:
    """Return (operand index, type) of the operands that are present."""
    return [(index, operand) for index, operand in enumerate(operands) if operand is not None]


def integers(operands: Sequence[Array | None], index: int = 0) -> Integers:
    """Return the array of an operand that is present, as int64."""
    return array(operands, index).astype(np.int64, copy=False)


def alike(operands: Sequence[Array | None], *places: int) -> tuple[Array, ...]:
    """Return operands that are present as what they are computed with together: int64 where none is a float.

    Whole numbers above 2**53 stay exact, and wrap around in 64 bits as PyTorch's do.
    """
    found = [array(operands, place) for place in places]
    kind = np.float64 if any(item.dtype.kind == "f" for item in found) else np.int64
    return tuple(item.astype(kind, copy=False) for item in found)


def scaled(number: float, values: Array) -> Array:
    """Return values times a number of an attribute, which is whole where they are.

    A factor of exactly 1 turns no infinity times 0 into anything.
    """
    whole = number if values.dtype.kind == "f" else int(number)
    return values if number == 1 else np.multiply(values, np.asarray(whole, values.dtype))


def require_number(dtype: DType, number: float, attribute: str) -> None:
    """Refuse a number of an attribute that is no value of the dtype beside it.  Errors: SPY0215."""
    if not fits(number, dtype):
        message = f"{attribute} {number} is no {dtype.value}: {misfit(number, dtype)}"
        raise OpError("SPY0215", message, hint="convert the tensor first: to(float32)", attribute=attribute)


def require_factor(dtype: DType, number: float, attribute: str) -> None:
    """Refuse a factor of whole numbers that is none of them.  Errors: SPY0215.

    Of bools any number says whether it is 0.
    """
    if not dtype.is_float and dtype is not DType.BOOL:
        require_number(dtype, number, attribute)


def require_alpha(dtype: DType, alpha: float) -> None:
    """Refuse an ``alpha`` of sums of whole numbers that is none of them, or is written as a float, as PyTorch does.

    Errors: SPY0215.
    """
    if isinstance(alpha, float) and not dtype.is_float:
        message = f"alpha {alpha} is a float, and the sum is of {dtype.value}"
        raise OpError("SPY0215", message, hint="write a whole alpha without a point", attribute="alpha")
    require_factor(dtype, alpha, "alpha")


def converted(values: Array, dtype: DType | None) -> Array:
    """Return values as an op computes with them after a conversion: float64, int64 (cut off), or bool.

    Without a dtype floats stay, and integers and bools become int64.  Errors: SPY0318 what no int64 is, as NaN, of
    which PyTorch promises nothing; where narrow integers are asked for, it is any number.
    """
    if dtype is DType.BOOL:
        return values != 0
    is_float = values.dtype.kind == "f" if dtype is None else dtype.is_float
    if is_float or values.dtype.kind != "f":
        return values.astype(np.float64 if is_float else np.int64)
    if dtype in (DType.INT32, DType.INT64):
        for number in values[~(np.abs(values) < 2.0**63)].flat:
            hint = "keep the numbers within 64 bits, or add them as floats"
            raise OpError("SPY0318", f"{number} is no {dtype.value}", hint=hint, operand=0)
    return np.trunc(values).astype(np.int64)


def require_float(operand: TensorType, index: int) -> None:
    """Refuse anything but floats.  Errors: SPY0202."""
    if not operand.dtype.is_float:
        message = f"{operand.dtype.value} is not a floating-point dtype"
        raise OpError("SPY0202", message, hint="convert it first: to(float16)", operand=index)


def function_dtype(operand: TensorType) -> DType:
    """Return the dtype of a function that gives fractions: that of a float, else float32, as PyTorch."""
    return operand.dtype if operand.dtype.is_float else DType.FLOAT32


def common_float(operands: OperandTypes) -> DType:
    """Return the float dtype of operands that must all be of one float dtype.

    Errors: SPY0202 no float, SPY0203 two float dtypes.
    """
    for index, operand in present(operands):
        require_float(operand, index)
    return common_dtype(operands)


def common_dtype(operands: OperandTypes) -> DType:
    """Return the dtype that operands compute in: the float among them, else the widest integer, else bool.

    As in PyTorch a tensor without dims, or a number, widens others only where it is of another kind (bool, integer,
    float).  Two float dtypes never meet: a cast that nobody asked for would round.  Errors: SPY0203.
    """
    floats_found = [(index, operand.dtype) for index, operand in present(operands) if operand.dtype.is_float]
    for index, dtype in floats_found:
        if dtype is not floats_found[0][1]:
            raise _conflict(floats_found[0][1], dtype, index)
    if floats_found:
        return floats_found[0][1]
    whole = [(operand.rank > 0, operand.dtype) for _, operand in present(operands) if operand.dtype is not DType.BOOL]
    if not whole:
        return DType.BOOL
    return widest_integer([dtype for has_dims, dtype in whole if has_dims] or [dtype for _, dtype in whole])


_INTEGER_WIDTHS = {DType.UINT8: 1, DType.INT8: 1, DType.INT16: 2, DType.INT32: 4, DType.INT64: 8}


def widest_integer(dtypes: Sequence[DType]) -> DType:
    """Return the integer dtype that holds the numbers of all these integer dtypes."""
    widest = max(dtypes, key=_INTEGER_WIDTHS.__getitem__)
    return DType.INT16 if {DType.INT8, DType.UINT8} <= set(dtypes) and _INTEGER_WIDTHS[widest] == 1 else widest


def _conflict(one: DType, other: DType, index: int) -> OpError:
    hint = f'convert one of them first: {{"op": "to", "attrs": {{"dtype": "{one.value}"}}}} is to({one.value})'
    return OpError("SPY0203", f"dtypes {one.value} and {other.value} meet in one op", hint=hint, operand=index)


def require_held(name: str, number: float | bool, dtype: DType) -> None:
    """Refuse the number of an attribute that places of a tensor of ``dtype`` cannot hold.  Errors: SPY0215."""
    if not holds(number, dtype):
        message = f"{name} {number} is no {dtype.value}: {misfit(number, dtype)}"
        raise OpError("SPY0215", message, attribute=name)


def require_same_dtype(operands: OperandTypes) -> DType:
    """Return the dtype of operands that are moved together, any dtype.  Errors: SPY0203."""
    first = tensor(operands)
    for index, operand in present(operands):
        if operand.dtype is not first.dtype:
            raise _conflict(first.dtype, operand.dtype, index)
    return first.dtype


def joined_dtype(operands: OperandTypes) -> DType:
    """Return the dtype of operands that are joined: the one they have, any dtype, or the common one (PyTorch).

    Errors: SPY0203 two float dtypes, or an 8-bit float and another dtype.
    """
    dtypes = {operand.dtype for _, operand in present(operands)}
    return common_dtype(operands) if dtypes <= HOST_DTYPES else require_same_dtype(operands)


def joined_on_host(operands: OperandTypes, _: Attributes) -> str | None:
    """Return why the host joins operands of several dtypes."""
    dtypes = list(dict.fromkeys(operand.dtype.value for _, operand in present(operands)))
    return None if len(dtypes) == 1 else f"{' and '.join(dtypes)} are joined"


def require_rank(operand: TensorType, ranks: tuple[int, ...], index: int) -> None:
    """Refuse other ranks.  Errors: SPY0206."""
    if operand.rank not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise OpError("SPY0206", f"{operand} has rank {operand.rank}, the op takes rank {wanted}", operand=index)


def infinite_on_host(_: OperandTypes, attributes: Attributes) -> str | None:
    """Return why the host computes with an infinite factor: the device multiplies by it what it leaves out."""
    for item in fields(attributes):
        value = getattr(attributes, item.name)
        if isinstance(value, float) and math.isinf(value):
            return f"{item.name} is an infinity, and times 0 it is no number"
    return None


def unsupported(attribute: str, value: object, hint: str) -> OpError:
    """Return the error of an attribute value that PyTorch knows and the device does not (SPY0211)."""
    return OpError("SPY0211", f'"{attribute}": {value} is not supported', hint=hint, attribute=attribute)
