"""Masks that are constants, as index tensors: what they choose is known before a graph runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location
from spyrec.hardware.dtypes import DType
from spyrec.ir.constants import load_constant_data
from spyrec.ir.declarations import Declarations
from spyrec.ir.graph import ConstantData, Operand, Value
from spyrec.ir.opdef import OpError
from spyrec.ir.shapes import show
from spyrec.ir.tensor_file import TensorFileError
from spyrec.ir.types import TensorType
from spyrec.layout.symbolic_dim import SymbolicDim

MOST_MASK_ELEMENTS = 2**24
"""Elements of a mask whose positions are kept; they take up to 8 bytes of each of its dims per element."""


def with_positions(operands: Sequence[Operand], declarations: Declarations, place: Location) -> list[Operand]:
    """Return the operands of an ``index`` with the positions of each mask that is a constant in its place.

    ``index(x, mask[2,3])  -->  index(x, mask.true0[n], mask.true1[n])``, as PyTorch and NumPy define it: the new
    constants, one per dim of the mask, are declared at ``place``.  A mask that is no constant, is too large or runs
    along a symbolic dim is left to be refused.  Errors (:class:`OpError`): SPY0206 a mask without dims or of more than
    there are, SPY0207 one of another extent than what it covers, SPY0130, SPY0131 its file.
    """
    if not operands or not isinstance(operands[0], str) or operands[0] not in declarations.values:
        return list(operands)
    covered = declarations.values[operands[0]]
    found: list[Operand] = [operands[0]]
    for index, operand in enumerate(operands[1:], 1):
        mask = declarations.values.get(operand) if isinstance(operand, str) else None
        axis = len(found) - 1
        if mask is None or not _is_known(mask, declarations) or _is_open(covered, mask, axis, declarations):
            found.append(operand)
            continue
        _require_covered(mask, covered, axis, index)
        found += _positions(mask, declarations, place, index)
    return found


def _is_known(mask: Value, declarations: Declarations) -> bool:
    small = mask.type.element_count <= MOST_MASK_ELEMENTS
    return mask.type.dtype is DType.BOOL and mask.name in declarations.constants and small


def _is_open(covered: Value, mask: Value, axis: int, declarations: Declarations) -> bool:
    names = covered.dims[axis : axis + mask.type.rank]
    return any(isinstance(declarations.dims.get(name), SymbolicDim) for name in names if name is not None)


def _require_covered(mask: Value, covered: Value, axis: int, index: int) -> None:
    shape = covered.type.shape[axis : axis + mask.type.rank]
    if mask.type.rank == 0 or len(shape) < mask.type.rank:
        left = len(covered.type.shape) - axis
        message = (
            f"the mask {mask.type} covers {mask.type.rank} dims, and {covered.type} has {max(left, 0)} left for it"
        )
        raise OpError("SPY0206", message, operand=index)
    if shape != mask.type.shape:
        message = f"the mask {mask.type} covers dims of the extents {show(shape)} of {covered.type}"
        raise OpError("SPY0207", message, operand=index)


def _positions(mask: Value, declarations: Declarations, place: Location, index: int) -> list[Operand]:
    try:
        numbers = load_constant_data(declarations.constants[mask.name], mask.type)
    except TensorFileError as error:
        raise OpError(error.code, f'constant "{mask.name}": {error.message}', operand=index) from None
    return [
        _declared(f"{mask.name[:100]}.true{axis}", array.astype(np.int64), declarations, place)
        for axis, array in enumerate(np.nonzero(numbers))
    ]


def _declared(name: str, array: npt.NDArray[np.int64], declarations: Declarations, place: Location) -> str:
    """Declare a constant under the first free of a row of names; one that is there already serves again."""
    number = 0
    chosen = name
    while declarations.is_claimed(chosen):
        held = declarations.constants.get(chosen)
        is_whole = held is not None and declarations.values[chosen].type.dtype is DType.INT64
        if held is not None and is_whole and held.array is not None and np.array_equal(held.array, array):
            return chosen
        number += 1
        chosen = f"{name}.{number}"
    declarations.claim(chosen, place)
    kind = TensorType(array.shape, DType.INT64)
    declarations.values[chosen] = Value(chosen, kind, (None,), place, None)
    declarations.constants[chosen] = ConstantData(array=array)
    return chosen
