"""The OpSpec of an operation that takes the largest elements of each column of a matrix, or their places.

Both tensors are in their default layouts: the columns lie in the sticks, whole ones of the input and of the result.
The elements taken are divided among cores, each of which searches all of its columns.  Source: torch-spyre's top-k
(docs/compatibility.md).
"""

from __future__ import annotations

from spyrec.codegen.expression import CoordinateExpression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, IterationDim, OpSpec, TensorArgument
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.ir.types import TensorType
from spyrec.layout.device_layout import DeviceLayout


def top_spec(op_func: str, source: TensorType, result: TensorType, cores: int) -> OpSpec:
    """Return the OpSpec of ``[n, columns] -> [k, columns]``, the k divided among ``cores``."""
    (searched, columns), taken = source.shape, result.shape[0]
    space = [IterationDim("c0", taken, cores)] if taken > 1 else []
    space += [IterationDim("c1", columns), *([IterationDim("c2", searched)] if searched > 1 else [])]
    arguments = (
        _argument(0, source, "c2", is_input=True),
        _argument(1, result, "c0", is_input=False),
    )
    return OpSpec(op_func, True, tuple(space), args=arguments)


def _argument(number: int, tensor: TensorType, along: str, *, is_input: bool) -> TensorArgument:
    layout = DeviceLayout.default(tensor.shape, tensor.dtype)
    lanes = tensor.dtype.device_format.elements_per_stick
    assert lanes is not None
    row = CoordinateExpression.symbol(along) if tensor.shape[0] > 1 else CoordinateExpression.constant(0)
    return TensorArgument(
        is_input=is_input,
        arg_index=number,
        device_dtype=tensor.dtype.device_format,
        device_size=layout.device_size,
        device_coordinates=(CoordinateExpression.floor("c1", lanes), row, CoordinateExpression.mod("c1", lanes)),
        allocation=ArgumentAllocation(AllocationKind.HBM, number * SEGMENT_BYTES),
    )
