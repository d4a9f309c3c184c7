"""What lookups and writes by index ask of their index tensors, and how their references read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import Array, OperandTypes, OpError
from spyrec.ir.operands import integers, tensor
from spyrec.ir.shapes import show
from spyrec.ir.types import TensorType

Indices = npt.NDArray[np.int64]
Place = Indices | npt.NDArray[np.bool_] | slice
"""What NumPy takes for one dim, or, a mask, for several."""

_INDEX_DTYPES = (DType.INT32, DType.INT64)


def require_index(operands: OperandTypes, index: int) -> TensorType:
    """Return the type of an index tensor, int32 or int64.  Errors: SPY0230."""
    found = tensor(operands, index)
    if found.dtype not in _INDEX_DTYPES:
        raise OpError("SPY0230", f"{found} is no index: an index is of int32 or int64", operand=index)
    return found


def require_list(operands: OperandTypes, index: int) -> int:
    """Return how many elements an index of rank 0 or 1 names.  Errors: SPY0230, SPY0206."""
    found = require_index(operands, index)
    if found.rank > 1:
        raise OpError("SPY0206", f"{found} has rank {found.rank}, the index has rank 0 or 1", operand=index)
    return found.element_count


def indices_below(
    operands: Sequence[Array | None], index: int, extent: int, dim: int, *, from_end: bool = False
) -> Indices:
    """Return an index operand's numbers, all of 0 to ``extent`` - 1.

    ``dim`` is what they run along, for the message; ``from_end``: negative ones count from the end.
    Errors: SPY0231.
    """
    return checked_below(integers(operands, index), extent, (dim, index), from_end=from_end)


def checked_below(found: Indices, extent: int, place: tuple[int, int], *, from_end: bool) -> Indices:
    """Return indices, counted from the front; ``place``: the dim they run along, and the operand they are.

    Errors: SPY0231.
    """
    lowest = -extent if from_end else 0
    wrong = (found < lowest) | (found >= extent)
    if wrong.any():
        where = np.unravel_index(int(np.argmax(wrong)), found.shape) if found.ndim else ()
        at = f" at {show([int(item) for item in where])}" if found.ndim else ""
        message = f"index {int(found[where])}{at} is out of range for dim {place[0]} of extent {extent}"
        hint = f"indices run from {lowest} to {extent - 1}" if extent else "the dim has no elements"
        raise OpError("SPY0231", message, hint=hint, operand=place[1])
    return np.where(found < 0, found + extent, found)


def along(indices: Indices, dim: int) -> tuple[Indices, ...]:
    """Return the index arrays that ``indices``, in their own shape, choose with along ``dim``: NumPy's open grid.

    An index of rank 0 counts as one of rank 1.
    """
    rank = indices.ndim
    return tuple(
        indices if axis == dim else np.arange(extent, dtype=np.int64).reshape(-1, *(1,) * (rank - axis - 1))
        for axis, extent in enumerate(indices.shape)
    )


def add_at(x: Array, places: tuple[Place, ...], values: Array) -> Array:
    """Return ``x`` with ``values``, of the shape of the places, added; to a place that is named twice, both."""
    flat = np.array(x).reshape(-1)
    positions = np.arange(x.size).reshape(x.shape)[places]
    np.add.at(flat, positions, values)
    return flat.reshape(x.shape)
