"""What ops ask of their operands' dtypes, and how their references read the operand arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import Array, OperandTypes, OpError
from spyrec.ir.types import TensorType

Floats = npt.NDArray[np.float64]


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


def present(operands: OperandTypes) -> list[tuple[int, TensorType]]:
    """Return (operand index, type) of the operands that are present."""
    return [(index, operand) for index, operand in enumerate(operands) if operand is not None]


def require_float(operand: TensorType, index: int) -> None:
    """Refuse anything but floats.  Errors: SPY0202."""
    if not operand.dtype.is_float:
        message = f"{operand.dtype.value} is not a floating-point dtype"
        raise OpError("SPY0202", message, hint=_conversion_hint(operand.dtype), operand=index)


def require_float_or_bool(operand: TensorType, index: int) -> None:
    """Refuse integers.  Errors: SPY0202."""
    if not operand.dtype.is_float and operand.dtype is not DType.BOOL:
        message = f"{operand.dtype.value} takes no part in arithmetic on the device"
        raise OpError("SPY0202", message, hint=_conversion_hint(operand.dtype), operand=index)


def _conversion_hint(dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "convert it first: to(float16)"
    return "integers can only be moved; store these numbers as float16 or float32"


def common_float(operands: OperandTypes) -> DType:
    """Return the float dtype of operands that must all be of one float dtype.

    Errors: SPY0202 no float, SPY0203 two float dtypes.
    """
    for index, operand in present(operands):
        require_float(operand, index)
    return common_dtype(operands)


def common_dtype(operands: OperandTypes) -> DType:
    """Return the dtype that floats and bools compute in: one float dtype, with bools beside 16-bit floats as 0 and 1.

    Errors: SPY0202 an integer, SPY0203 two float dtypes, or bool beside float32 (their device formats differ).
    """
    result: DType | None = None
    has_bool = False
    for index, operand in present(operands):
        require_float_or_bool(operand, index)
        if operand.dtype is DType.BOOL:
            has_bool = True
        elif result is None:
            result = operand.dtype
        elif operand.dtype is not result:
            raise _conflict(result, operand.dtype, index)
    if result is None:
        return DType.BOOL
    if has_bool and result.device_format is not DType.BOOL.device_format:
        index = next(index for index, operand in present(operands) if operand.dtype is DType.BOOL)
        raise _conflict(result, DType.BOOL, index)
    return result


def _conflict(one: DType, other: DType, index: int) -> OpError:
    hint = f'convert one of them first: {{"op": "to", "attrs": {{"dtype": "{one.value}"}}}} is to({one.value})'
    return OpError("SPY0203", f"dtypes {one.value} and {other.value} meet in one op", hint=hint, operand=index)


def require_same_dtype(operands: OperandTypes) -> DType:
    """Return the dtype of operands that are moved together, any dtype.  Errors: SPY0203."""
    first = tensor(operands)
    for index, operand in present(operands):
        if operand.dtype is not first.dtype:
            raise _conflict(first.dtype, operand.dtype, index)
    return first.dtype


def require_rank(operand: TensorType, ranks: tuple[int, ...], index: int) -> None:
    """Refuse other ranks.  Errors: SPY0206."""
    if operand.rank not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise OpError("SPY0206", f"{operand} has rank {operand.rank}, the op takes rank {wanted}", operand=index)


def unsupported(attribute: str, value: object, hint: str) -> OpError:
    """Return the error of an attribute value that PyTorch knows and the device does not (SPY0211)."""
    return OpError("SPY0211", f'"{attribute}": {value} is not supported', hint=hint, attribute=attribute)
