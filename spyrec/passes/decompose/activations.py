"""Activations: of 16 bits as they are where each step is exact or rounds once, in float32 where steps would cancel."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.hardware.dtypes import DType
from spyrec.ir.ops.activations import (
    SELU_ALPHA,
    SELU_SCALE,
    EluAttributes,
    HardtanhAttributes,
    LeakyReluAttributes,
    ThresholdAttributes,
)
from spyrec.ir.ops.gates import GluAttributes, glu_halves, slope_shape
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.ir.ops.unary import ClampAttributes, SoftplusAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.elementary import expm1
from spyrec.passes.decompose.steps import Rewrite, Steps, Term

_LEAST = -1e30
"""Below it every gate is 0; the limit keeps -inf * 0 out."""


def _only(builder: NodeBuilder) -> str:
    (operand,) = builder.node.inputs
    assert isinstance(operand, str)
    return operand


def _native(builder: NodeBuilder) -> Steps:
    """Return steps in the dtype of the node."""
    return Steps(builder, builder.type_of(builder.node.inputs[0]).dtype)


def _sloped(steps: Steps, x: str, slope: Term) -> str:
    """``--> relu(x) + slope min(x, 0)``: one of the terms is 0, so that the product alone is rounded."""
    return steps.add(steps.of("relu", x), steps.mul(steps.of("minimum", x, 0.0), slope))


def _leaky_relu(builder: NodeBuilder) -> str:
    attributes = builder.node.attributes
    assert isinstance(attributes, LeakyReluAttributes)
    return _sloped(_native(builder), _only(builder), attributes.negative_slope)


def _prelu(builder: NodeBuilder) -> str:
    x, weight = builder.node.inputs
    assert isinstance(x, str)
    shape = slope_shape((builder.type_of(x), builder.type_of(weight)))
    slope = builder.emit("reshape", weight, attributes=ReshapeAttributes(shape))
    return _sloped(_native(builder), x, slope)


def _gate(steps: Steps, x: str) -> str:
    """``--> clamp(x + 3, 0, 6) / 6``: near -3, where the sum cancels, it is exact."""
    return steps.div(steps.limited(steps.add(x, 3.0), 0.0, 6.0), 6.0)


def _hardsigmoid(builder: NodeBuilder) -> str:
    return _gate(_native(builder), _only(builder))


def _hardswish(builder: NodeBuilder) -> str:
    return _native(builder).mul(_only(builder), _gate(_native(builder), _only(builder)))


def _limited(builder: NodeBuilder, low: float, high: float) -> str:
    return builder.emit("clamp", _only(builder), attributes=ClampAttributes(low, high))


def _hardtanh(builder: NodeBuilder) -> str:
    attributes = builder.node.attributes
    assert isinstance(attributes, HardtanhAttributes)
    return _limited(builder, attributes.min_val, attributes.max_val)


def _relu6(builder: NodeBuilder) -> str:
    return _limited(builder, 0.0, 6.0)


def _exponential_unit(builder: NodeBuilder, attributes: EluAttributes) -> str:
    """``--> scale relu(x) + scale alpha (exp(input_scale min(x, 0)) - 1)``, in float32: one of the terms is 0."""
    dtype = builder.type_of(_only(builder)).dtype
    single = Steps(builder, DType.FLOAT32)
    x = single.taken(_only(builder))
    above = single.mul(single.of("relu", x), attributes.scale)
    below = expm1(single, single.mul(single.of("minimum", x, 0.0), attributes.input_scale))
    return single.given(single.add(above, single.mul(below, attributes.scale * attributes.alpha)), dtype)


def _elu(builder: NodeBuilder) -> str:
    attributes = builder.node.attributes
    assert isinstance(attributes, EluAttributes)
    return _exponential_unit(builder, attributes)


def _selu(builder: NodeBuilder) -> str:
    return _exponential_unit(builder, EluAttributes(SELU_ALPHA, SELU_SCALE))


def _softsign(builder: NodeBuilder) -> str:
    steps = _native(builder)
    return steps.div(_only(builder), steps.add(steps.of("abs", _only(builder)), 1.0))


_SATURATED = 40.0
"""Above it tanh(softplus(x)) is 1 to 2**-115, and exp(x) squared would leave float32."""


def _mish(builder: NodeBuilder) -> str:
    """``--> x n / (n + 2)``, ``n = e (e + 2)``, ``e = exp(x)``: tanh(log(1 + e)) without logarithm or difference."""
    dtype = builder.type_of(_only(builder)).dtype
    single = Steps(builder, DType.FLOAT32)
    x = single.taken(_only(builder))
    exponential = single.of("exp", single.of("minimum", x, _SATURATED))
    product = single.mul(exponential, single.add(exponential, 2.0))
    gate = single.div(product, single.add(product, 2.0))
    return single.given(single.mul(single.of("maximum", x, _LEAST), gate), dtype)


def _logsigmoid(builder: NodeBuilder) -> str:
    """``--> -softplus(-x)``, the device's; beyond the threshold it leaves out 2e-9 of 20."""
    steps = _native(builder)
    softplus = builder.emit("softplus", steps.of("neg", _only(builder)), attributes=SoftplusAttributes())
    return steps.of("neg", softplus)


def _threshold(builder: NodeBuilder) -> str:
    attributes = builder.node.attributes
    assert isinstance(attributes, ThresholdAttributes)
    steps = _native(builder)
    is_low = steps.of("le", _only(builder), attributes.threshold)
    return steps.of("where", is_low, attributes.value, _only(builder))


def _glu(builder: NodeBuilder) -> str:
    """``--> a sigmoid(b)``, in float32: a gate below the least 16-bit float may have a large factor."""
    attributes = builder.node.attributes
    assert isinstance(attributes, GluAttributes)
    found = builder.type_of(_only(builder))
    dim, half = glu_halves(found, attributes)
    single = Steps(builder, DType.FLOAT32)
    values, gates = (
        single.taken(builder.emit("slice", _only(builder), attributes=SliceAttributes(dim, start, start + half)))
        for start in (0, half)
    )
    return single.given(single.mul(values, single.of("sigmoid", gates)), found.dtype)


REWRITES: Mapping[str, Rewrite] = {
    "leaky_relu": _leaky_relu,
    "prelu": _prelu,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "hardtanh": _hardtanh,
    "relu6": _relu6,
    "elu": _elu,
    "selu": _selu,
    "softsign": _softsign,
    "mish": _mish,
    "logsigmoid": _logsigmoid,
    "threshold": _threshold,
    "glu": _glu,
}
