"""Where the ops of the catalogue are computed, by dtype: asked of the declarations on their own samples."""

from __future__ import annotations

from collections.abc import Iterator

from spyrec.device_ops import IDENTITY
from spyrec.hardware.dtypes import DType
from spyrec.ir.host_ops import host_reason
from spyrec.ir.opdef import ROW_DTYPES, OpDef, OpError, OpKind, Sample
from spyrec.ir.types import TensorType

CLASSES: dict[str, tuple[DType, ...]] = {
    "16-bit": (DType.FLOAT16, DType.BFLOAT16),
    "float32": (DType.FLOAT32,),
    "int": (DType.INT64, DType.INT32, DType.INT16, DType.INT8, DType.UINT8),
    "bool": (DType.BOOL,),
}
"""Dtypes that the documentation names together."""

HOST = "host"


def places(definition: OpDef) -> dict[str, tuple[str, ...]]:
    """Return for each class of dtypes that an op takes where it is computed: a device op, how else, or the host.

    A class is that of the op's first tensor that is no condition and no index.  Two places: attributes decide.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, dtypes in CLASSES.items():
        seen = [place for dtype in dtypes for place in _places_of(definition, dtype)]
        if seen:
            found[name] = tuple(dict.fromkeys(sorted(seen, key=HOST.__eq__)))
    return found


def _places_of(definition: OpDef, dtype: DType) -> Iterator[str]:
    for sample in definition.samples:
        types, attributes = sample
        if any(item is not None and 0 in item.shape for item in types):
            continue  # a tensor without elements is the host's, whatever the op is
        retyped = _retyped(definition, sample, dtype)
        try:
            results = definition.infer(retyped, attributes)
        except OpError:
            continue
        if any(0 in item.shape for item in results):
            continue
        if definition.rows is not None and results[0].dtype in ROW_DTYPES:
            yield f"`{IDENTITY}`"  # where the index is one row of sticks, and the rows are whole ones
        if definition.packed is not None:
            yield "decomposed"  # where the weight is constant
        yield HOST if host_reason(definition, retyped, results, attributes) is not None else device_form(definition)


def _retyped(definition: OpDef, sample: Sample, dtype: DType) -> tuple[TensorType | None, ...]:
    """Return the operands with ``dtype`` where the sample has the dtype of its first number."""
    types, _ = sample
    candidates = [
        item.dtype
        for index, item in enumerate(types)
        if item is not None and not definition.operand_spec(index).is_condition
    ]
    main = next((item for item in candidates if item.is_float), candidates[0] if candidates else None)
    return tuple(TensorType(item.shape, dtype) if item is not None and item.dtype is main else item for item in types)


def device_form(definition: OpDef) -> str:
    """Return what an op is on the device: an operation's name in backquotes, or how it comes about."""
    if definition.device is not None:
        return f"`{definition.device.op_func}`"
    match definition.kind:
        case OpKind.VIEW:
            return "view"
        case OpKind.MOVEMENT:
            return "copy"
        case OpKind.CREATION:
            return "constant"
        case OpKind.CAST:
            return "conversion"
        case OpKind.HOST:
            return HOST
        case _:
            return "decomposed"


def error_class(definition: OpDef) -> str:
    """Return in a phrase what ``--check`` allows a result to be off by."""
    if definition.device is not None:
        return definition.device.record.error.kind.value
    match definition.kind:
        case OpKind.VIEW | OpKind.MOVEMENT | OpKind.CREATION:
            return "elements move and keep their errors"
        case OpKind.CAST | OpKind.HOST:
            return "rounded once"
        case _:
            return "that of its steps"
