"""Reductions that are made of sums, means and extrema.

Variance, norms and logarithms of sums are computed in float32, also where their operands and results have 16 bits: what
is squared there, or subtracted from another number, would have lost the digits that the result is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.extrema import ExtremumAttributes
from spyrec.ir.ops.log_sums import LogSumAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.normalization import SoftmaxAttributes
from spyrec.ir.ops.norms import NormAttributes, VectorNormAttributes, as_norm
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.spread import SpreadAttributes
from spyrec.ir.ops.truth import judged_dims
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.shapes import normalize_dims
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.elementwise import truth

Rewrite = Callable[[NodeBuilder], str]

_LARGEST = 3.4e38
"""A finite float32 beyond every 16-bit float: what stands for an infinity in a difference."""

_MOST_TERMS = 2.0**31
"""More elements than a dim has: a sum of exponentials up to 1 lies below."""


def _converted(builder: NodeBuilder, value: Operand, dtype: DType) -> str:
    assert isinstance(value, str)
    if builder.type_of(value).dtype is dtype:
        return value
    return builder.emit("to", value, attributes=ToAttributes(dtype))


def _result(builder: NodeBuilder, value: str) -> str:
    """Return a value in the dtype and shape of the node's result."""
    wanted = builder.type_of(builder.node.output)
    value = _converted(builder, value, wanted.dtype)
    return builder.emit("reshape", value, attributes=ReshapeAttributes(wanted.shape))


def _is_any(op: str) -> Rewrite:
    def rewrite(builder: NodeBuilder) -> str:
        """``any(x) --> amax(x != 0)``, ``all(x) --> amin(x != 0)``."""
        (operand,) = builder.node.inputs
        attributes = builder.node.attributes
        assert isinstance(attributes, FoldAttributes)
        dims = judged_dims(builder.type_of(operand).rank, attributes)
        found = truth(builder, operand)
        if not dims:
            assert isinstance(found, str)
            return found
        return builder.emit(op, found, attributes=FoldAttributes(dims, attributes.keepdim))

    return rewrite


def centred(builder: NodeBuilder, x: str, fold: ReductionAttributes) -> str:
    """Return ``d - mean(d)``, where ``d = x - mean(x)``, of a float32 value.

    The mean is rounded, which of numbers far from 0 may be as much as their distances: what is left of it in the
    differences is taken out with their own mean.  The variance is that of the result, no difference of two large means.
    """
    for _ in range(2):
        x = builder.emit("sub", x, builder.emit("mean", x, attributes=fold), attributes=AlphaAttributes())
    return x


def _variance(builder: NodeBuilder) -> str:
    """``--> sum((x - mean(x))**2) / (count - correction)`` in float32."""
    (operand,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, SpreadAttributes)
    shape = builder.type_of(operand).shape
    fold = ReductionAttributes(normalize_dims(attributes.dim, len(shape)), keepdim=True)
    distances = centred(builder, _converted(builder, operand, DType.FLOAT32), fold)
    total = builder.emit("sum", builder.emit("mul", distances, distances), attributes=fold)
    divisor = attributes.divisor(shape)
    if divisor:
        return builder.emit("mul", total, builder.number(1.0 / divisor, DType.FLOAT32))
    return builder.emit("div", total, builder.number(0.0, DType.FLOAT32), attributes=DivAttributes())


def _var(builder: NodeBuilder) -> str:
    return _result(builder, _variance(builder))


def _std(builder: NodeBuilder) -> str:
    return _result(builder, builder.emit("sqrt", _variance(builder)))


def _norm(builder: NodeBuilder) -> str:
    """Sums of magnitudes, or roots of sums of squares, in float32; extrema of magnitudes in the operand's format."""
    (operand,) = builder.node.inputs
    given = builder.node.attributes
    assert isinstance(given, NormAttributes | VectorNormAttributes)
    attributes = as_norm(given)
    dims = normalize_dims(attributes.dim, builder.type_of(operand).rank)
    if math.isinf(attributes.p):
        op = "amax" if attributes.p > 0 else "amin"
        largest = builder.emit(op, builder.emit("abs", operand), attributes=FoldAttributes(dims, keepdim=True))
        return _result(builder, largest)
    x = _converted(builder, operand, DType.FLOAT32)
    terms = builder.emit("abs", x) if attributes.p == 1 else builder.emit("mul", x, x)
    total = builder.emit("sum", terms, attributes=ReductionAttributes(dims, keepdim=True))
    return _result(builder, total if attributes.p == 1 else builder.emit("sqrt", total))


def _logarithm(builder: NodeBuilder, total: str) -> str:
    """Return the logarithm of a float32 from 1 to 2**31, in float32: what lies outside counts as the nearer end.

    The device has it in 16 bits alone, which is where it starts: an error e of y is half of e squared after
    ``y + (x exp(-y) - 1)``, so that two steps make 3e-9 of the 0.02 that 16 bits may be off by.  It is not 0 times
    infinity that the ends are for, but NaN: the sum of no probability is 0, and its logarithm is beside an infinity.
    """
    one = builder.number(1.0, DType.FLOAT32)
    x = builder.emit("maximum", total, one)
    x = builder.emit("minimum", x, builder.number(_MOST_TERMS, DType.FLOAT32))
    start = builder.emit("log", builder.emit("to", x, attributes=ToAttributes(DType.FLOAT16)))
    result = builder.emit("to", start, attributes=ToAttributes(DType.FLOAT32))
    for _ in range(2):
        inverse = builder.emit("exp", builder.emit("neg", result))
        excess = builder.emit("sub", builder.emit("mul", x, inverse), one, attributes=AlphaAttributes())
        result = builder.emit("add", result, excess, attributes=AlphaAttributes())
    return result


def _logsumexp(builder: NodeBuilder) -> str:
    """``--> m + log(sum(exp(x - m)))``, m the largest element, within what is finite."""
    (operand,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, LogSumAttributes)
    dims = normalize_dims(attributes.dim, builder.type_of(operand).rank)
    x = _converted(builder, operand, DType.FLOAT32)
    largest = builder.emit("amax", x, attributes=FoldAttributes(dims, keepdim=True))
    finite = builder.emit("minimum", largest, builder.number(_LARGEST, DType.FLOAT32))
    finite = builder.emit("maximum", finite, builder.number(-_LARGEST, DType.FLOAT32))
    exponential = builder.emit("exp", builder.emit("sub", x, finite, attributes=AlphaAttributes()))
    total = builder.emit("sum", exponential, attributes=ReductionAttributes(dims, keepdim=True))
    logarithm = _logarithm(builder, total)
    return _result(builder, builder.emit("add", largest, logarithm, attributes=AlphaAttributes()))


def _log_softmax(builder: NodeBuilder) -> str:
    """``--> (x - m) - log(sum(exp(x - m)))``, m the largest element."""
    (operand,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, SoftmaxAttributes)
    dims = normalize_dims((attributes.dim,), builder.type_of(operand).rank)
    if attributes.dtype is not None:
        operand = _converted(builder, operand, attributes.dtype)
    x = _converted(builder, operand, DType.FLOAT32)
    largest = builder.emit("amax", x, attributes=FoldAttributes(dims, keepdim=True))
    shifted = builder.emit("sub", x, largest, attributes=AlphaAttributes())
    total = builder.emit("sum", builder.emit("exp", shifted), attributes=ReductionAttributes(dims, keepdim=True))
    logarithm = _logarithm(builder, total)
    return _result(builder, builder.emit("sub", shifted, logarithm, attributes=AlphaAttributes()))


def _extremum(fold: str, pair: str) -> Rewrite:
    def rewrite(builder: NodeBuilder) -> str:
        """``max(x) --> amax(x)``, ``max(x, y) --> maximum(x, y)``."""
        operand, other = builder.node.inputs
        attributes = builder.node.attributes
        assert isinstance(attributes, ExtremumAttributes)
        if other is not None:
            return builder.emit(pair, operand, other)
        dims = None if attributes.dim is None else (attributes.dim,)
        return builder.emit(fold, operand, attributes=FoldAttributes(dims, attributes.keepdim))

    return rewrite


REWRITES: Mapping[str, Rewrite] = {
    "any": _is_any("amax"),
    "all": _is_any("amin"),
    "var": _var,
    "std": _std,
    "norm": _norm,
    "linalg_vector_norm": _norm,
    "logsumexp": _logsumexp,
    "log_softmax": _log_softmax,
    "max": _extremum("amax", "maximum"),
    "min": _extremum("amin", "minimum"),
}
