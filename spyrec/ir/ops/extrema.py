"""The largest and the smallest element: where they are, both at once, along a dim or of two tensors; the median."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import array, common_dtype, present, tensor
from spyrec.ir.ops.reduction import FoldAttributes, kept_axes, kept_shape, require_elements
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, broadcast, broadcast_axes, normalize_dim, normalize_dims
from spyrec.ir.types import TensorType

Places = Callable[..., Array]
"""``np.argmax`` or ``np.argmin``: the first of equals; NaN is the largest and the smallest."""


@dataclass(frozen=True, slots=True)
class ExtremumAttributes:
    """``dim``: the one to fold, none given means all; ``keepdim``: folded dims stay with extent 1."""

    dim: int | None = None
    keepdim: bool = False

    def folded(self, rank: int) -> Shape:
        """Return the dims to fold.  Errors: SPY0204."""
        return normalize_dims(None if self.dim is None else (self.dim,), rank)


def _folded_shape(operand: TensorType, attributes: ExtremumAttributes) -> Shape:
    folded = attributes.folded(operand.rank)
    require_elements(operand, folded)
    return kept_shape(operand.shape, folded, attributes.keepdim)


def _folded_axes(operands: OperandTypes, attributes: ExtremumAttributes) -> AxisSources:
    rank = tensor(operands).rank
    return kept_axes(rank, attributes.folded(rank), attributes.keepdim)


# --- argmax, argmin ---------------------------------------------------------------------------------------------------


def _infer_places(operands: OperandTypes, attributes: ExtremumAttributes) -> tuple[TensorType, ...]:
    if tensor(operands).dtype is DType.BOOL:
        raise OpError("SPY0202", "the largest of bools has no one place", hint="convert them: to(int32)", operand=0)
    return (TensorType(_folded_shape(tensor(operands), attributes), DType.INT64),)


def _places(places: Places) -> Reference:
    def reference(operands: Sequence[Array | None], attributes: ExtremumAttributes) -> tuple[Array, ...]:
        x = array(operands)
        if x.ndim == 0:
            return (np.zeros((), np.int64),)
        return (np.asarray(places(x, axis=attributes.dim, keepdims=attributes.keepdim), np.int64),)

    return rule(ExtremumAttributes, reference)


_SAMPLES: tuple[Sample, ...] = (
    ((f16(3, 70),), ExtremumAttributes(-1)),
    ((f32(2, 3, 4),), ExtremumAttributes(1, keepdim=True)),
    ((f16(2, 3),), ExtremumAttributes(keepdim=True)),
    ((i64(3, 4),), ExtremumAttributes()),
    ((f16(),), ExtremumAttributes(0)),
    ((f16(0, 3),), ExtremumAttributes(1)),
)

for _name, _summary, _function in (
    ("argmax", "place of the largest element, the first of equals", np.argmax),
    ("argmin", "place of the smallest element, the first of equals", np.argmin),
):
    define_on_host(
        _name,
        _summary,
        (OperandSpec("input"),),
        HostRules(rule(ExtremumAttributes, _infer_places), _places(_function), rule(ExtremumAttributes, _folded_axes)),
        _SAMPLES,
        ExtremumAttributes,
    )

# --- max, min ---------------------------------------------------------------------------------------------------------


def _infer_extremum(operands: OperandTypes, attributes: ExtremumAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    if operands[1] is not None:
        if attributes != ExtremumAttributes():
            fact = "two tensors are compared element by element, and dim and keepdim fold one"
            raise OpError("SPY0209", fact, attribute="dim" if attributes.dim is not None else "keepdim")
        shape = broadcast([(index, item.shape) for index, item in present(operands)])
        return (TensorType(shape, common_dtype(operands)),)
    if attributes.dim is None and attributes.keepdim:
        raise OpError("SPY0209", "keepdim without dim has no form in PyTorch", hint="amax has one", attribute="keepdim")
    values = TensorType(_folded_shape(operand, attributes), operand.dtype)
    return (values,) if attributes.dim is None else (values, TensorType(values.shape, DType.INT64))


def _extremum_axes(operands: OperandTypes, attributes: ExtremumAttributes) -> AxisSources:
    if operands[1] is None:
        return _folded_axes(operands, attributes)
    return broadcast_axes(operands, _infer_extremum(operands, attributes)[0].shape)


def _extremum(pair: np.ufunc, places: Places) -> Reference:
    def reference(operands: Sequence[Array | None], attributes: ExtremumAttributes) -> tuple[Array, ...]:
        x = array(operands)
        if operands[1] is not None:
            return (np.asarray(pair(x, array(operands, 1))),)
        dims = attributes.folded(x.ndim)
        values = np.asarray(pair.reduce(x, axis=dims, keepdims=attributes.keepdim))
        if attributes.dim is None:
            return (values,)
        if x.ndim == 0:
            return values, np.zeros((), np.int64)
        return values, np.asarray(places(x, axis=attributes.dim, keepdims=attributes.keepdim), np.int64)

    return rule(ExtremumAttributes, reference)


for _name, _summary, _pair, _function in (
    ("max", "largest element of all, or along dim with its place; of two tensors the larger", np.maximum, np.argmax),
    ("min", "smallest element of all, or along dim with its place; of two tensors the smaller", np.minimum, np.argmin),
):
    register(
        OpDef(
            name=_name,
            summary=_summary,
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"), OperandSpec("other", is_optional=True)),
            attributes=ExtremumAttributes,
            infer=rule(ExtremumAttributes, _infer_extremum),
            reference=_extremum(_pair, _function),
            axes=rule(ExtremumAttributes, _extremum_axes),
            formats=HALF_OR_SINGLE,
            result_count=None,
            is_first_enough=True,
            number_attributes=("dim", "keepdim"),
            is_promoted=True,
            samples=(
                ((f16(3, 70), None), ExtremumAttributes()),
                ((f16(3, 70), None), ExtremumAttributes(1)),
                ((f32(2, 3, 4), None), ExtremumAttributes(-2, keepdim=True)),
                ((i64(3, 4), None), ExtremumAttributes(0)),
                ((boolean(3, 4), None), ExtremumAttributes()),
                ((f16(3, 1), f16(4)), ExtremumAttributes()),
                ((i64(3), f16(3)), ExtremumAttributes()),
                ((f16(), None), ExtremumAttributes(0)),
            ),
        )
    )

# --- aminmax ----------------------------------------------------------------------------------------------------------


def _infer_both(operands: OperandTypes, attributes: ExtremumAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    return (TensorType(_folded_shape(operand, attributes), operand.dtype),) * 2


def _both(operands: Sequence[Array | None], attributes: ExtremumAttributes) -> tuple[Array, ...]:
    x = array(operands)
    dims = attributes.folded(x.ndim)
    return tuple(ufunc.reduce(x, axis=dims, keepdims=attributes.keepdim) for ufunc in (np.minimum, np.maximum))


def _both_folds(_: OperandTypes, attributes: ExtremumAttributes) -> tuple[tuple[str, Attributes], ...]:
    fold = FoldAttributes(None if attributes.dim is None else (attributes.dim,), attributes.keepdim)
    return ("amin", fold), ("amax", fold)


register(
    OpDef(
        name="aminmax",
        summary="smallest and largest element",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"),),
        attributes=ExtremumAttributes,
        infer=rule(ExtremumAttributes, _infer_both),
        reference=rule(ExtremumAttributes, _both),
        axes=rule(ExtremumAttributes, _folded_axes),
        formats=HALF_OR_SINGLE,
        result_count=2,
        pieces=rule(ExtremumAttributes, _both_folds),
        samples=(*_SAMPLES, ((boolean(4),), ExtremumAttributes(0))),
    )
)

# --- median -----------------------------------------------------------------------------------------------------------


def _infer_median(operands: OperandTypes, attributes: ExtremumAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    if operand.dtype is DType.BOOL:
        raise OpError("SPY0202", "bools have no median", hint="convert it first: to(float16)", operand=0)
    return _infer_extremum((operand, None), attributes)


def _median(operands: Sequence[Array | None], attributes: ExtremumAttributes) -> tuple[Array, ...]:
    """The lower of the two in the middle, as in PyTorch; NaN where there is one."""
    x = array(operands)
    if attributes.dim is None:
        flat = x.reshape(-1)
        middle = np.sort(flat)[(flat.size - 1) // 2]
        return (np.asarray(np.nan if flat.dtype.kind == "f" and np.isnan(flat).any() else middle, flat.dtype),)
    rows = x[None] if x.ndim == 0 else x
    dim = normalize_dim(attributes.dim, rows.ndim)
    order = np.argsort(rows, axis=dim, kind="stable")
    places = np.take(order, [(rows.shape[dim] - 1) // 2], axis=dim)
    if rows.dtype.kind == "f":
        unknown = np.isnan(rows)
        places = np.where(unknown.any(axis=dim, keepdims=True), np.argmax(unknown, axis=dim, keepdims=True), places)
    values = np.take_along_axis(rows, places, axis=dim)
    if attributes.keepdim and x.ndim:
        return values, places
    return np.squeeze(values, dim), np.squeeze(places, dim)


define_on_host(
    "median",
    "the middle element of all, or along dim with its place; the lower of two",
    (OperandSpec("input"),),
    HostRules(
        rule(ExtremumAttributes, _infer_median),
        rule(ExtremumAttributes, _median),
        rule(ExtremumAttributes, _folded_axes),
        result_count=None,
        is_first_enough=True,
    ),
    (
        ((f16(3, 5),), ExtremumAttributes()),
        ((f32(3, 4),), ExtremumAttributes(1)),
        ((i64(3, 4),), ExtremumAttributes(0, keepdim=True)),
        ((f16(),), ExtremumAttributes(0)),
    ),
    ExtremumAttributes,
)
