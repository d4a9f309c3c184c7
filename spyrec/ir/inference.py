"""What types the operands of a node have, what its results are, and which dim names their axes carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand, Scalar, Value
from spyrec.ir.numbers import HOST_DTYPES, default_dtype, holds, misfit
from spyrec.ir.opdef import Attributes, OpDef, OperandTypes, OpError, catalogue
from spyrec.ir.operands import widest_integer
from spyrec.ir.sizes import dim_of_size
from spyrec.ir.types import TensorType

MAX_ELEMENTS = 2**63
"""Element counts reach this limit nowhere: shape arithmetic stays within 64-bit integers."""

DimNames = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a node's operands and results are: types, and the dim names of each result."""

    operands: tuple[TensorType | None, ...]
    results: tuple[TensorType, ...]
    dims: tuple[DimNames, ...]


def infer(
    definition: OpDef, operands: Sequence[Operand], attributes: Attributes, values: Mapping[str, Value]
) -> Inferred | OpError:
    """Return the types and dim names of one node, or how its operands and attributes contradict the op.

    Ops raise what contradicts them.  It is caught here, around their rules alone, so that whoever asks, to report it
    or to try other extents, looks at a value and catches nothing.
    Contradictions: SPY0120 arity, SPY0125 too many elements, SPY0214 a device format that the op does not
    take, SPY0215 a number that does not fit, SPY0219 a number or nothing where a tensor is needed, and those of the op.
    """
    try:
        return _inferred(definition, operands, attributes, values)
    except OpError as contradiction:
        return contradiction


def _inferred(
    definition: OpDef, operands: Sequence[Operand], attributes: Attributes, values: Mapping[str, Value]
) -> Inferred:
    types = operand_types(definition, operands, values)
    results = definition.infer(types, attributes)
    _require_formats(definition, types)
    for result in results:
        if result.element_count >= MAX_ELEMENTS:
            raise OpError("SPY0125", f"the result {result} has {result.element_count} elements, the limit is 2**63 - 1")
    names = [values[operand].dims if isinstance(operand, str) else () for operand in operands]
    first = dim_names(definition, types, attributes, names)
    if definition.pieces is None:
        others = [first if result.shape == results[0].shape else (None,) * result.rank for result in results[1:]]
    else:
        pieces = definition.pieces(types, attributes)[1:]
        others = [inherited_names(catalogue()[op], types, values, names) for op, values in pieces]
    return Inferred(types, results, (first, *others))


def dim_names(definition: OpDef, types: OperandTypes, attributes: Attributes, names: Sequence[DimNames]) -> DimNames:
    """Return the dim names of a node's first result: what its attributes say, else those of its operands' axes.

    Of several operands the first one's name wins.
    """
    found = inherited_names(definition, types, attributes, names)
    sizes = result_sizes(definition, attributes)
    if sizes is None:
        return found
    return tuple(dim_of_size(size) or name for size, name in zip(sizes, found, strict=True))


def inherited_names(
    definition: OpDef, types: OperandTypes, attributes: Attributes, names: Sequence[DimNames]
) -> DimNames:
    """Return the dim names that a node's first result has from its operands' axes, whatever its attributes say."""
    return tuple(_axis_name(sources, names) for sources in definition.axes(types, attributes))


def result_sizes(definition: OpDef, attributes: Attributes) -> tuple[int, ...] | None:
    """Return the extents of the result's axes as the attributes state them, ``None`` where the op has no such."""
    if definition.result_sizes is None:
        return None
    return cast("tuple[int, ...]", getattr(attributes, definition.result_sizes))


def complete_attributes(definition: OpDef, types: OperandTypes, attributes: Attributes) -> Attributes:
    """Return the attributes with the defaults filled in that depend on the operand types."""
    return attributes if definition.complete is None else definition.complete(types, attributes)


def operand_types(
    definition: OpDef, operands: Sequence[Operand], values: Mapping[str, Value]
) -> tuple[TensorType | None, ...]:
    """Return the type of each operand; absent trailing ones are added as ``None``.

    Errors (:class:`OpError`): SPY0120, SPY0215, SPY0219.
    """
    _require_arity(definition, len(operands))
    types = [_operand_type(definition, index, operand, values) for index, operand in enumerate(operands)]
    _refuse_bools(definition, operands, types)
    if any(isinstance(operand, Scalar) for operand in operands):
        beside = number_dtype(definition, operands, values)
        for index, operand in enumerate(operands):
            if isinstance(operand, Scalar):
                types[index] = _number_type(operand, index, beside)
    if not definition.is_variadic:
        types.extend([None] * (len(definition.operands) - len(types)))
    if None in types:
        _require_present(definition, types, len(operands))
    return tuple(types)


def _refuse_bools(definition: OpDef, operands: Sequence[Operand], types: OperandTypes) -> None:
    """Refuse bools, tensors and numbers, where the op has no arithmetic of them.  Errors: SPY0202."""
    for index, (operand, found) in enumerate(zip(operands, types, strict=True)):
        other = definition.operand_spec(index).no_bool
        is_bool = isinstance(operand, Scalar) and isinstance(operand.value, bool)
        if other is not None and (is_bool or (found is not None and found.dtype is DType.BOOL)):
            shown = f"the number {operand.value}" if isinstance(operand, Scalar) else str(found)
            message = f"{definition.name} has no arithmetic of bools, and operand {index} is {shown}"
            raise OpError("SPY0202", message, hint=f"for bools there are {other}", operand=index)


def _require_present(definition: OpDef, types: OperandTypes, count: int) -> None:
    for index, found in enumerate(types):
        if found is None and not definition.operand_spec(index).is_optional:
            name = definition.operand_spec(index).name
            position = index if index < count else None
            raise OpError("SPY0219", f'operand {index} ("{name}") is absent and not optional', operand=position)


def _require_arity(definition: OpDef, count: int) -> None:
    fewest = sum(not spec.is_optional for spec in definition.operands)
    most = None if definition.is_variadic else len(definition.operands)
    if count < fewest or (most is not None and count > most):
        wanted = f"{fewest} or more" if most is None else f"{fewest}" if fewest == most else f"{fewest} to {most}"
        names = ", ".join(spec.name + ("?" if spec.is_optional else "") for spec in definition.operands)
        hint = f"{definition.name} takes ({names})"
        raise OpError("SPY0120", f"{definition.name} takes {wanted} operands, not {count}", hint=hint)


def _operand_type(definition: OpDef, index: int, operand: Operand, values: Mapping[str, Value]) -> TensorType | None:
    if isinstance(operand, str):
        return values[operand].type
    if isinstance(operand, Scalar) and not definition.operand_spec(index).accepts_number:
        name = definition.operand_spec(index).name
        message = (
            f'operand {index} ("{name}") is the number {operand.value}, and {definition.name} needs a tensor there'
        )
        raise OpError("SPY0219", message, hint="make it a constant of shape []", operand=index)
    return None


def number_dtype(definition: OpDef, operands: Sequence[Operand], values: Mapping[str, Value]) -> DType:
    """Return the dtype that the number operands of a node take.

    It is that of the float among its tensors, and where there is none, what PyTorch makes of the numbers beside them:
    float32 of a number with a point, the widest integer of a whole one, bool of true and false.  Without any tensor it
    is float16 (in place of PyTorch's default, float32), int64 or bool.  A number that fills places of the first operand
    has its dtype, where that holds it; of bools each does.
    """
    dtypes = [
        values[operand].type.dtype
        for index, operand in enumerate(operands)
        if isinstance(operand, str) and not definition.operand_spec(index).is_condition
    ]
    numbers = [operand.value for operand in operands if isinstance(operand, Scalar)]
    if _fills(definition, operands) and all(holds(number, dtypes[0]) for number in numbers):
        return dtypes[0]
    found = next((dtype for dtype in dtypes if dtype.is_float), None)
    if found is not None:
        return found
    are_bools = bool(numbers) and all(isinstance(number, bool) for number in numbers)
    if not dtypes and numbers:
        return default_dtype(numbers)
    if any(isinstance(number, float) for number in numbers):
        return DType.FLOAT32
    whole = [dtype for dtype in dtypes if dtype is not DType.BOOL]
    if whole:
        return widest_integer(whole)
    return DType.BOOL if are_bools else DType.INT64


def _fills(definition: OpDef, operands: Sequence[Operand]) -> bool:
    """Whether the first operand is a tensor, and all numbers take places among its own."""
    places = [index for index, operand in enumerate(operands) if isinstance(operand, Scalar)]
    is_tensor = bool(operands) and isinstance(operands[0], str)
    return bool(places) and is_tensor and all(definition.operand_spec(index).is_fill for index in places)


def _number_type(operand: Scalar, index: int, dtype: DType) -> TensorType:
    if not holds(operand.value, dtype):
        where = f"{dtype.value}, the dtype of the tensors beside it"
        message = f"the number {operand.value} does not fit {where}: {misfit(operand.value, dtype)}"
        raise OpError("SPY0215", message, hint="a number never widens a tensor", operand=index)
    return TensorType((), dtype)


def _require_formats(definition: OpDef, types: OperandTypes) -> None:
    """Refuse what neither the device nor the host computes with: 8-bit floats.  Errors: SPY0214.

    The host moves them like all others.
    """
    if definition.moves:
        return
    for index, operand in enumerate(types):
        if operand is None or operand.dtype in HOST_DTYPES or operand.dtype.device_format in definition.formats:
            continue
        formats = " and ".join(sorted(item.name for item in definition.formats))
        taken = f"{formats} on the device, and on the host all dtypes" if formats else "all dtypes"
        message = f"{definition.name} has no form of {operand}: it takes {taken} but 8-bit floats"
        raise OpError("SPY0214", message, hint="convert the operand first: to(float16)", operand=index)


def _axis_name(sources: tuple[tuple[int, int], ...], names: Sequence[DimNames]) -> str | None:
    for operand, axis in sources:
        if operand < len(names) and names[operand] and names[operand][axis] is not None:
            return names[operand][axis]
    return None
