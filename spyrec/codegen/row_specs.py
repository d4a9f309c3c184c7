"""The OpSpec of an operation that reads or writes the rows of a tensor by an index (gather and scatter).

All operands are in their default layouts; the rows go along a dim that is not the sticks'.  The index lies in device
memory as 32-bit integers, one row of sticks.  Source: torch-spyre's indirect access (docs/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.codegen.expression import CoordinateExpression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, IterationDim, OpSpec, TensorArgument
from spyrec.dataclass import dataclass
from spyrec.device_ops import IDENTITY
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.ir.opdef import RowAccess
from spyrec.ir.types import TensorType
from spyrec.layout.device_layout import DeviceLayout

_INDEX = "row"
"""What the index tensor is called in the coordinates of the table."""


def row_spec(access: RowAccess, table: TensorType, index: TensorType) -> OpSpec:
    """Return the OpSpec; arguments: the index, then what is read, then what is written."""
    rows = access.walked(table, index)
    symbols = [f"c{dim}" for dim in range(table.rank)]
    walk = [_Walk(symbol, extent) for symbol, extent in zip(symbols, rows, strict=True)]
    index_walk = [_Walk("", 1)] * (index.rank - 1) + [walk[access.dim]]
    sides = (
        (index, _coordinates(index, index_walk, None)),
        (TensorType(rows, table.dtype), _coordinates(TensorType(rows, table.dtype), walk, None)),
        (table, _coordinates(table, walk, access.dim)),
    )
    order = (0, 2, 1) if access.source is None else (0, 1, 2)
    rank = max(len(coordinates) for _, coordinates in sides)
    arguments = tuple(
        _argument(number, *sides[side], rank, is_input=number < 2, is_index=side == 0)
        for number, side in enumerate(order)
    )
    space = tuple(IterationDim(item.symbol, item.extent) for item in walk if item.extent > 1)
    return OpSpec(IDENTITY, False, space, args=arguments)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The symbol that goes along a dim, and its extent."""

    symbol: str
    extent: int

    @property
    def whole(self) -> CoordinateExpression:
        return CoordinateExpression.symbol(self.symbol) if self.extent > 1 else CoordinateExpression.constant(0)


def _coordinates(tensor: TensorType, walk: Sequence[_Walk], row_dim: int | None) -> tuple[CoordinateExpression, ...]:
    """Return the coordinates of the default layout's dims: middle dims, tiles of the last, the first, lane."""
    elements = tensor.dtype.device_format.elements_per_stick
    assert elements is not None
    last = tensor.rank - 1
    places = (*range(1, last), last, 0) if last > 0 else (0,)
    found: list[CoordinateExpression] = []
    for place in places:
        if place == row_dim:
            found.append(CoordinateExpression.indirect(_INDEX))
        elif place == last and walk[place].extent > 1:
            found.append(CoordinateExpression.floor(walk[place].symbol, elements))
        else:
            found.append(walk[place].whole if place != last else CoordinateExpression.constant(0))
    lane = walk[last]
    is_wide = lane.extent > 1
    found.append(CoordinateExpression.mod(lane.symbol, elements) if is_wide else CoordinateExpression.constant(0))
    return tuple(found)


def _argument(  # noqa: PLR0913 -- an operand, and what it is
    number: int,
    tensor: TensorType,
    coordinates: tuple[CoordinateExpression, ...],
    rank: int,
    *,
    is_input: bool,
    is_index: bool,
) -> TensorArgument:
    layout = DeviceLayout.default(tensor.shape, tensor.dtype)
    missing = rank - len(coordinates)
    return TensorArgument(
        is_input=is_input,
        arg_index=number,
        device_dtype=tensor.dtype.device_format,
        device_size=(*(1,) * missing, *layout.device_size),
        device_coordinates=(*(CoordinateExpression.constant(0),) * missing, *coordinates),
        allocation=ArgumentAllocation(AllocationKind.HBM, number * SEGMENT_BYTES),
        name=_INDEX if is_index else None,
    )
