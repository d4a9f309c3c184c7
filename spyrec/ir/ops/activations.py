"""Activations that are made of others: the functions of torch.nn.functional, by their names there.

What each becomes stands in ``spyrec/passes/decompose/activations.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF, HALF_OR_SINGLE, Formats
from spyrec.ir import special
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, OperandTypes, OpError, Roundings, Sample, rule
from spyrec.ir.operands import Floats, array, first_operand, floats, infinite_on_host, require_number, tensor
from spyrec.ir.pointwise_definition import ONE, PointwiseRules, define_pointwise, float_result, whole_result
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.types import TensorType

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
"""Of Klambauer et al. 2017, as PyTorch has them."""


def _samples(*attributes: Attributes) -> tuple[Sample, ...]:
    return tuple(((found,), item) for item in attributes for found in (f16(3, 5), f16(), f16(2, 1, 3, 70), f32(4, 33)))


def _define(
    name: str,
    summary: str,
    function: Callable[[Floats], Floats],
    formats: Formats = HALF_OR_SINGLE,
    roundings: Roundings | None = None,
) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    define_pointwise(
        name,
        summary,
        ONE,
        PointwiseRules(float_result, reference, formats, roundings=roundings),
        _samples(NO_ATTRIBUTES),
    )


def _hardsigmoid(x: Floats) -> Floats:
    return np.clip(x + 3.0, 0.0, 6.0) / 6.0


def _hardswish(x: Floats) -> Floats:
    return x * _hardsigmoid(x)


def _softsign(x: Floats) -> Floats:
    return x / (1.0 + np.abs(x))


def _logsigmoid(x: Floats) -> Floats:
    return -np.logaddexp(0.0, -x)


def _selu(x: Floats) -> Floats:
    return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0.0)))


_define("hardsigmoid", "(x + 3) / 6, limited to 0 and 1", _hardsigmoid)
_define("hardswish", "x hardsigmoid(x)", _hardswish)
_define("softsign", "x / (1 + abs(x))", _softsign, roundings=Roundings(3.0))
_define("mish", "x tanh(softplus(x))", special.mish, roundings=Roundings(2.0, gated=first_operand))
_define("logsigmoid", "log(sigmoid(x))", _logsigmoid, HALF, Roundings(2.0))
_define("selu", "elu with the scale and the alpha that keep mean and variance", _selu, HALF, Roundings(2.0))


@dataclass(frozen=True, slots=True)
class EluAttributes:
    """``alpha`` scales the negative side, ``scale`` both sides, ``input_scale`` the exponent."""

    alpha: float = 1.0
    scale: float = 1.0
    input_scale: float = 1.0


def _elu(operands: Sequence[Array | None], attributes: EluAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    below = attributes.alpha * np.expm1(np.minimum(x, 0.0) * attributes.input_scale)
    return (attributes.scale * np.where(x < 0, below, x),)


define_pointwise(
    "elu",
    "x above 0, alpha (exp(x) - 1) below",
    ONE,
    PointwiseRules(float_result, rule(EluAttributes, _elu), HALF, infinite_on_host, roundings=Roundings(2.0)),
    _samples(EluAttributes(), EluAttributes(0.5, 2.0, 0.25)),
    EluAttributes,
)


@dataclass(frozen=True, slots=True)
class LeakyReluAttributes:
    """``negative_slope`` below 0."""

    negative_slope: float = 0.01


def _leaky_relu(operands: Sequence[Array | None], attributes: LeakyReluAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    return (np.where(x > 0, x, attributes.negative_slope * x),)


define_pointwise(
    "leaky_relu",
    "x above 0, negative_slope x below",
    ONE,
    PointwiseRules(float_result, rule(LeakyReluAttributes, _leaky_relu), HALF_OR_SINGLE, infinite_on_host),
    _samples(LeakyReluAttributes(), LeakyReluAttributes(0.3)),
    LeakyReluAttributes,
)


@dataclass(frozen=True, slots=True)
class HardtanhAttributes:
    """The limits."""

    min_val: float = -1.0
    max_val: float = 1.0


def _require_whole(operands: OperandTypes, name: str, number: float) -> None:
    """Refuse what whole numbers cannot be, and PyTorch would cut off or refuse.  Errors: SPY0215."""
    dtype = tensor(operands).dtype
    if not dtype.is_float:
        require_number(dtype, number, name)


def _infer_hardtanh(operands: OperandTypes, attributes: HardtanhAttributes) -> tuple[TensorType, ...]:
    if attributes.min_val > attributes.max_val:
        message = f"min_val {attributes.min_val} is above max_val {attributes.max_val}"
        raise OpError("SPY0209", message, attribute="min_val")
    _require_whole(operands, "min_val", attributes.min_val)
    _require_whole(operands, "max_val", attributes.max_val)
    return whole_result(operands, attributes)


def _hardtanh(operands: Sequence[Array | None], attributes: HardtanhAttributes) -> tuple[Array, ...]:
    return (np.clip(floats(operands), attributes.min_val, attributes.max_val),)


def _relu6(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (np.clip(floats(operands), 0.0, 6.0),)


define_pointwise(
    "hardtanh",
    "x limited to the range from min_val to max_val",
    ONE,
    PointwiseRules(rule(HardtanhAttributes, _infer_hardtanh), rule(HardtanhAttributes, _hardtanh), HALF_OR_SINGLE),
    (*_samples(HardtanhAttributes(), HardtanhAttributes(-0.5, 2.0)), ((i64(4),), HardtanhAttributes())),
    HardtanhAttributes,
)
define_pointwise(
    "relu6",
    "x limited to the range from 0 to 6",
    ONE,
    PointwiseRules(whole_result, _relu6, HALF_OR_SINGLE),
    (*_samples(NO_ATTRIBUTES), ((i64(4),), NO_ATTRIBUTES)),
)


@dataclass(frozen=True, slots=True)
class ThresholdAttributes:
    """``value`` stands where x is not above ``threshold``."""

    threshold: float
    value: float


def _infer_threshold(operands: OperandTypes, attributes: ThresholdAttributes) -> tuple[TensorType, ...]:
    _require_whole(operands, "threshold", attributes.threshold)
    _require_whole(operands, "value", attributes.value)
    return whole_result(operands, attributes)


def _threshold(operands: Sequence[Array | None], attributes: ThresholdAttributes) -> tuple[Array, ...]:
    x = array(operands)
    return (np.where(floats(operands) <= attributes.threshold, np.asarray(attributes.value, x.dtype), x),)


define_pointwise(
    "threshold",
    "x above threshold, value elsewhere",
    ONE,
    PointwiseRules(rule(ThresholdAttributes, _infer_threshold), rule(ThresholdAttributes, _threshold), HALF),
    (*_samples(ThresholdAttributes(0.5, -3.0)), ((i64(4),), ThresholdAttributes(2.0, 7.0))),
    ThresholdAttributes,
)
