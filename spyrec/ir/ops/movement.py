"""Ops that write elements unchanged into new memory, the dtype cast, and ``full``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes, Number, Sizes
from spyrec.ir.numbers import HOST_DTYPES
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    DeviceOp,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    register,
    rule,
)
from spyrec.ir.operands import array, joined_dtype, joined_on_host, present, require_held, tensor
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import broadcast_axes, normalize_dim, show
from spyrec.ir.types import TensorType


def _infer_same(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (tensor(operands),)


def _same_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


def _identity(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (array(operands),)


_IDENTITY = DeviceOp("identity")
_RESTICKIFY = DeviceOp("ReStickifyOpHBM")

for _name, _summary, _device in (
    ("clone", "a copy", None),
    ("contiguous", "a copy in the default layout", None),
    ("spyre.copy", "a copy whose stick dim stays", _IDENTITY),
    ("spyre.restickify", "a copy whose stick moves to another dim", _RESTICKIFY),
):
    register(
        OpDef(
            name=_name,
            summary=_summary,
            kind=OpKind.MOVEMENT,
            operands=(OperandSpec("input"),),
            attributes=NoAttributes,
            infer=_infer_same,
            reference=_identity,
            axes=_same_axes,
            formats=ANY_FORMAT,
            device=_device,
            is_public=not _name.startswith("spyre."),
            samples=(((f16(3, 70),), NO_ATTRIBUTES), ((f16(),), NO_ATTRIBUTES)),
        )
    )


@dataclass(frozen=True, slots=True)
class JoinAttributes:
    """``dim``: along which the operands are joined."""

    dim: int = 0


def _joined(operands: OperandTypes) -> list[tuple[int, TensorType]]:
    """Return what ``cat`` joins, by operand: a tensor of shape [0] adds nothing to others (PyTorch)."""
    return [(index, item) for index, item in present(operands) if item.shape != (0,)] or present(operands)


def _infer_cat(operands: OperandTypes, attributes: JoinAttributes) -> tuple[TensorType, ...]:
    dtype = joined_dtype(operands)
    joined = _joined(operands)
    first = joined[0][1]
    if first.rank == 0:
        raise OpError("SPY0206", f"{first} has rank 0, cat takes rank 1 or more", hint="use stack", operand=0)
    dim = normalize_dim(attributes.dim, first.rank)
    for index, operand in joined:
        others = [(axis, pair) for axis, pair in enumerate(zip(first.shape, operand.shape)) if axis != dim]
        if operand.rank != first.rank or any(one != other for _, (one, other) in others):
            message = f"cat along dim {dim} joins {show(first.shape)} with {show(operand.shape)}"
            raise OpError("SPY0217", message, hint="give tensors of one rank, equal in all other dims", operand=index)
    total = sum(operand.shape[dim] for _, operand in joined)
    return (TensorType((*first.shape[:dim], total, *first.shape[dim + 1 :]), dtype),)


def _cat_axes(operands: OperandTypes, attributes: JoinAttributes) -> AxisSources:
    first = _joined(operands)[0][1]
    dim = normalize_dim(attributes.dim, first.rank)
    if any(item.shape == (0,) for _, item in present(operands)):
        return ((),) * first.rank
    sources = list(broadcast_axes(operands, first.shape))
    if len(operands) > 1:
        sources[dim] = ()
    return tuple(sources)


def _cat(operands: Sequence[Array | None], attributes: JoinAttributes) -> tuple[Array, ...]:
    pieces = [array(operands, index) for index in range(len(operands))]
    joined = [piece for piece in pieces if piece.shape != (0,)] or pieces
    return (np.concatenate(joined, axis=attributes.dim),)


register(
    OpDef(
        name="cat",
        summary="tensors joined along a dim",
        kind=OpKind.MOVEMENT,
        operands=(OperandSpec("tensors", is_variadic=True),),
        attributes=JoinAttributes,
        infer=rule(JoinAttributes, _infer_cat),
        reference=rule(JoinAttributes, _cat),
        axes=rule(JoinAttributes, _cat_axes),
        formats=ANY_FORMAT,
        host_when=joined_on_host,
        samples=(
            ((f16(3, 5), f16(2, 5)), JoinAttributes()),
            ((f16(3, 5), f16(3, 70), f16(3, 1)), JoinAttributes(-1)),
            ((boolean(4),), JoinAttributes()),
        ),
    )
)


def _infer_stack(operands: OperandTypes, attributes: JoinAttributes) -> tuple[TensorType, ...]:
    first = tensor(operands)
    dtype = joined_dtype(operands)
    dim = normalize_dim(attributes.dim, first.rank + 1)
    for index, operand in present(operands):
        if operand.shape != first.shape:
            message = f"stack joins {show(first.shape)} with {show(operand.shape)}"
            raise OpError("SPY0217", message, hint="all operands must have one shape", operand=index)
    return (TensorType((*first.shape[:dim], len(operands), *first.shape[dim:]), dtype),)


def _stack_axes(operands: OperandTypes, attributes: JoinAttributes) -> AxisSources:
    sources = list(broadcast_axes(operands, tensor(operands).shape))
    sources.insert(normalize_dim(attributes.dim, len(sources) + 1), ())
    return tuple(sources)


def _stack(operands: Sequence[Array | None], attributes: JoinAttributes) -> tuple[Array, ...]:
    return (np.stack([array(operands, index) for index in range(len(operands))], axis=attributes.dim),)


register(
    OpDef(
        name="stack",
        summary="tensors of one shape along a new dim",
        kind=OpKind.MOVEMENT,
        operands=(OperandSpec("tensors", is_variadic=True),),
        attributes=JoinAttributes,
        infer=rule(JoinAttributes, _infer_stack),
        reference=rule(JoinAttributes, _stack),
        axes=rule(JoinAttributes, _stack_axes),
        formats=ANY_FORMAT,
        host_when=joined_on_host,
        samples=(((f16(3, 5), f16(3, 5)), JoinAttributes(-1)), ((f16(), f16(), f16()), JoinAttributes())),
    )
)


@dataclass(frozen=True, slots=True)
class RepeatAttributes:
    """``repeats``: how often each dim repeats; more entries than dims add dims in front."""

    repeats: Sizes


def _infer_repeat(operands: OperandTypes, attributes: RepeatAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    new = len(attributes.repeats) - operand.rank
    if new < 0 or any(count < 0 for count in attributes.repeats):
        message = f"repeats {show(attributes.repeats)} of {operand} must be 0 or more, one per dim at least"
        raise OpError("SPY0209", message, attribute="repeats")
    shape = (1,) * new + operand.shape
    return (TensorType(tuple(extent * count for extent, count in zip(shape, attributes.repeats)), operand.dtype),)


def _repeat_axes(operands: OperandTypes, attributes: RepeatAttributes) -> AxisSources:
    new = len(attributes.repeats) - tensor(operands).rank
    return tuple(
        ((0, axis - new),) if axis >= new and count == 1 else () for axis, count in enumerate(attributes.repeats)
    )


def _repeat(operands: Sequence[Array | None], attributes: RepeatAttributes) -> tuple[Array, ...]:
    return (np.tile(array(operands), attributes.repeats),)


register(
    OpDef(
        name="repeat",
        summary="the tensor tiled along its dims",
        kind=OpKind.MOVEMENT,
        operands=(OperandSpec("input"),),
        attributes=RepeatAttributes,
        infer=rule(RepeatAttributes, _infer_repeat),
        reference=rule(RepeatAttributes, _repeat),
        axes=rule(RepeatAttributes, _repeat_axes),
        formats=ANY_FORMAT,
        samples=(((f16(3, 5),), RepeatAttributes((2, 1))), ((f16(3),), RepeatAttributes((2, 4)))),
    )
)

# --- to, full ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToAttributes:
    """The new dtype."""

    dtype: DType


def _infer_to(operands: OperandTypes, attributes: ToAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    for dtype in (operand.dtype, attributes.dtype):
        if dtype not in HOST_DTYPES and operand.dtype is not attributes.dtype:
            message = f"nothing converts {operand.dtype.value} to {attributes.dtype.value}"
            hint = "conversions run among float16, bfloat16, float32, bool and the integers"
            raise OpError("SPY0218", message, hint=hint, attribute="dtype")
    return (TensorType(operand.shape, attributes.dtype),)


def _to(operands: Sequence[Array | None], attributes: ToAttributes) -> tuple[Array, ...]:
    x = array(operands)
    if attributes.dtype is DType.BOOL:
        return (x != 0,)
    if attributes.dtype.is_float:
        return (x.astype(np.float64),)
    return (np.trunc(x) if x.dtype.kind == "f" else x,)


register(
    OpDef(
        name="to",
        summary="another dtype; to bool: whether not zero",
        kind=OpKind.CAST,
        operands=(OperandSpec("input"),),
        attributes=ToAttributes,
        infer=rule(ToAttributes, _infer_to),
        reference=rule(ToAttributes, _to),
        axes=_same_axes,
        formats=ANY_FORMAT,
        samples=(
            ((f16(3, 5),), ToAttributes(DType.FLOAT32)),
            ((f32(3, 5),), ToAttributes(DType.FLOAT16)),
            ((boolean(3, 5),), ToAttributes(DType.FLOAT16)),
            ((f16(3, 5),), ToAttributes(DType.BOOL)),
            ((i64(3),), ToAttributes(DType.INT64)),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class FullAttributes:
    """Shape, number and dtype; without a dtype float16, which is spyrec's default and not PyTorch's."""

    size: Sizes
    fill_value: Number
    dtype: DType = DType.FLOAT16


def full_type(attributes: FullAttributes, number: str = "fill_value") -> TensorType:
    """Return the type of a tensor of one number; ``number``: its attribute.  Errors: SPY0208 the size, SPY0215 it."""
    if any(extent < 0 for extent in attributes.size):
        fact = f"size {show(attributes.size)} holds an extent below 0"
        raise OpError("SPY0208", fact, hint="extents of a new tensor run from 0", attribute="size")
    dtype = attributes.dtype
    require_held(number, attributes.fill_value, dtype)
    return TensorType(tuple(map(int, attributes.size)), dtype)


def _infer_full(_: OperandTypes, attributes: FullAttributes) -> tuple[TensorType, ...]:
    return (full_type(attributes),)


def _full_axes(_: OperandTypes, attributes: FullAttributes) -> AxisSources:
    return ((),) * len(attributes.size)


def full_values(attributes: FullAttributes) -> Array:
    """Return a tensor of one number, which takes no memory of its own."""
    dtype = attributes.dtype
    if dtype is DType.BOOL:
        return np.broadcast_to(np.bool_(attributes.fill_value), attributes.size)
    carrier = np.float64 if dtype.is_float else np.int64
    return np.broadcast_to(carrier(attributes.fill_value), attributes.size)


def _full(_: Sequence[Array | None], attributes: FullAttributes) -> tuple[Array, ...]:
    return (full_values(attributes),)


register(
    OpDef(
        name="full",
        summary="a tensor of one number",
        kind=OpKind.CREATION,
        operands=(),
        attributes=FullAttributes,
        infer=rule(FullAttributes, _infer_full),
        reference=rule(FullAttributes, _full),
        axes=rule(FullAttributes, _full_axes),
        result_sizes="size",
        formats=ANY_FORMAT,
        samples=(
            ((), FullAttributes((3, 5), 0.5)),
            ((), FullAttributes((), 2, DType.FLOAT32)),
            ((), FullAttributes((2,), fill_value=True, dtype=DType.BOOL)),
        ),
    )
)
