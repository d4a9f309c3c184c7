"""Pointwise ops of one tensor.  Device names and formats: torch-spyre's op table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF, HALF_OR_SINGLE, SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir import special
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes, Real
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
    Roundings,
    register,
    rule,
)
from spyrec.ir.operands import (
    Floats,
    alike,
    array,
    common_dtype,
    first_operand,
    floats,
    function_dtype,
    require_float,
    require_number,
    tensor,
)
from spyrec.ir.pointwise_definition import arithmetic_result, broadcast_shape, broadcast_sources
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import broadcast_axes
from spyrec.ir.types import TensorType

DL16_MAXIMUM = 8573157376.0
"""Largest finite DLFloat16 (Agrawal et al., ARITH 2019): the bound of ``clip`` on a side that clamp leaves open."""

_INPUT = (OperandSpec("input"),)


def _function_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """The result of a function that gives fractions."""
    return (TensorType(tensor(operands).shape, function_dtype(tensor(operands))),)


def _same_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """The result of a function that keeps whole numbers whole; bools are no numbers."""
    if tensor(operands).dtype is DType.BOOL:
        require_float(tensor(operands), 0)
    return (tensor(operands),)


def _axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


def _reciprocal_root(x: Floats) -> Floats:
    return 1.0 / np.sqrt(x)


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


def _float_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """The result of a function that PyTorch has of floats alone."""
    require_float(tensor(operands), 0)
    return (tensor(operands),)


_WHOLE = frozenset({"abs", "neg", "floor", "relu"})
"""Functions that give whole numbers of whole numbers."""


_IN_STEPS = frozenset({"silu"})
"""Functions that the device has of 16 bits, and of float32 in a few steps."""


def _plain(name: str, summary: str, op_func: str, function: Callable[[Floats], Floats]) -> None:
    device = DeviceOp(op_func)
    formats = HALF_OR_SINGLE if name in _IN_STEPS else device.record.accepts

    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    samples = (((f16(3, 5),), NO_ATTRIBUTES), ((f16(),), NO_ATTRIBUTES), ((f16(2, 1, 3, 70),), NO_ATTRIBUTES))
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.POINTWISE,
            operands=_INPUT,
            attributes=NoAttributes,
            infer=_same_result if name in _WHOLE else _float_result if name == "silu" else _function_result,
            reference=reference,
            axes=_axes,
            device=device,
            formats=formats,
            roundings=Roundings(2.0, gated=first_operand) if name in _IN_STEPS else None,
            is_promoted=True,
            samples=(*samples, ((f32(4, 33),), NO_ATTRIBUTES)) if formats >= SINGLE else samples,
        )
    )


_plain("abs", "absolute value", "abs", np.abs)
_plain("neg", "negation", "neg", np.negative)
_plain("exp", "e to the power of x", "exp", np.exp)
_plain("log", "natural logarithm", "log", np.log)
_plain("sqrt", "square root", "sqrt", np.sqrt)
_plain("rsqrt", "1 / sqrt(x)", "rsqrt", _reciprocal_root)
_plain("reciprocal", "1 / x", "reciprocal", np.reciprocal)
_plain("sigmoid", "1 / (1 + exp(-x))", "sigmoid", special.sigmoid)
_plain("tanh", "hyperbolic tangent", "tanh", np.tanh)
_plain("floor", "largest integer not above x", "floor", np.floor)
_plain("relu", "max(x, 0)", "relufwd", _relu)
_plain("silu", "x sigmoid(x)", "silu", special.silu)


@dataclass(frozen=True, slots=True)
class GeluAttributes:
    """``approximate`` chooses the exact function or its tanh approximation."""

    approximate: Literal["none", "tanh"] = "none"


def _gelu(operands: Sequence[Array | None], attributes: GeluAttributes) -> tuple[Array, ...]:
    function = special.gelu if attributes.approximate == "none" else special.gelu_tanh
    return (function(floats(operands)),)


register(
    OpDef(
        name="gelu",
        summary="x times the normal distribution function at x; approximate: none or tanh",
        kind=OpKind.POINTWISE,
        operands=_INPUT,
        attributes=GeluAttributes,
        infer=_float_result,
        reference=rule(GeluAttributes, _gelu),
        axes=_axes,
        device=DeviceOp("gelufwd"),
        roundings=Roundings(2.0),
        is_promoted=True,
        samples=(((f16(3, 5),), GeluAttributes()), ((f16(2, 65),), GeluAttributes("tanh"))),
    )
)


@dataclass(frozen=True, slots=True)
class SoftplusAttributes:
    """``beta`` scales the input; above ``threshold`` (of beta x) the function is x itself."""

    beta: float = 1.0
    threshold: float = 20.0


def _infer_softplus(operands: OperandTypes, attributes: SoftplusAttributes) -> tuple[TensorType, ...]:
    if attributes.beta == 0:
        raise OpError("SPY0209", "beta is 0, and softplus divides by it", attribute="beta")
    return _float_result(operands, attributes)


def _softplus(operands: Sequence[Array | None], attributes: SoftplusAttributes) -> tuple[Array, ...]:
    return (special.softplus(floats(operands), attributes.beta, attributes.threshold),)


def _softplus_constants(_: OperandTypes, attributes: SoftplusAttributes) -> Mapping[str, float]:
    return {"softplusBeta": attributes.beta, "softplusThresh": attributes.threshold}


register(
    OpDef(
        name="softplus",
        summary="log(1 + exp(beta x)) / beta, x where beta x > threshold",
        kind=OpKind.POINTWISE,
        operands=_INPUT,
        attributes=SoftplusAttributes,
        infer=rule(SoftplusAttributes, _infer_softplus),
        reference=rule(SoftplusAttributes, _softplus),
        axes=_axes,
        device=DeviceOp("softplus", rule(SoftplusAttributes, _softplus_constants), rounded=("beta", "threshold")),
        is_promoted=True,
        samples=(((f16(3, 5),), SoftplusAttributes()), ((f16(7),), SoftplusAttributes(2.0, 1.0))),
    )
)


@dataclass(frozen=True, slots=True)
class ClampAttributes:
    """The bounds that are numbers; at least one bound is given, as a number or as a tensor."""

    min: Real | None = None
    max: Real | None = None


def _infer_clamp(operands: OperandTypes, attributes: ClampAttributes) -> tuple[TensorType, ...]:
    bounds = (*operands[1:], None, None)[:2]
    for index, (name, number) in enumerate((("min", attributes.min), ("max", attributes.max))):
        if bounds[index] is not None and number is not None:
            raise OpError("SPY0209", f"clamp has two bounds {name}", operand=index + 1, attribute=name)
    if attributes.min is None and attributes.max is None and bounds == (None, None):
        raise OpError("SPY0209", "clamp has neither min nor max", hint='give "min", "max" or both in attrs')
    result = TensorType(broadcast_shape(operands), _clamp_dtype(operands, attributes))
    for name, number in (("min", attributes.min), ("max", attributes.max)):
        if number is not None and not result.dtype.is_float:
            require_number(result.dtype, number, name)
    return (result,)


def _clamp_dtype(operands: OperandTypes, attributes: ClampAttributes) -> DType:
    """Bounds that are floats make floats of whole numbers, and whole ones integers of bools, as in PyTorch."""
    bounds = [bound for bound in (attributes.min, attributes.max) if bound is not None]
    dtype = common_dtype(operands)
    if any(isinstance(bound, float) for bound in bounds) and not dtype.is_float:
        return DType.FLOAT32
    return DType.INT64 if bounds and dtype is DType.BOOL else dtype


def _bools_on_host(operands: OperandTypes, _: Attributes) -> str | None:
    return "the device limits floats alone" if tensor(operands).dtype is DType.BOOL else None


def _complete_clamp(operands: OperandTypes, attributes: ClampAttributes) -> ClampAttributes:
    """Bounds of floats are floats, however they are written."""
    low, high = (None if bound is None else float(bound) for bound in (attributes.min, attributes.max))
    return ClampAttributes(low, high) if common_dtype(operands).is_float else attributes


def _clamp(operands: Sequence[Array | None], attributes: ClampAttributes) -> tuple[Array, ...]:
    low, high = (*operands[1:], None, None)[:2]
    are_bools = all(item is None or item.dtype == np.bool_ for item in operands)
    x = floats(operands)
    for bound in (attributes.min, low):
        x = x if bound is None else np.maximum(x, np.asarray(bound, np.float64))
    # the upper bound wins where the bounds cross, as in PyTorch
    for bound in (attributes.max, high):
        x = x if bound is None else np.minimum(x, np.asarray(bound, np.float64))
    return (x.astype(np.bool_) if are_bools and attributes == ClampAttributes() else x,)


def _clamp_constants(_: OperandTypes, attributes: ClampAttributes) -> Mapping[str, float]:
    return {
        "clipMin": -DL16_MAXIMUM if attributes.min is None else attributes.min,
        "clipMax": DL16_MAXIMUM if attributes.max is None else attributes.max,
    }


register(
    OpDef(
        name="clamp",
        summary="x limited to the range from min to max, numbers or tensors",
        kind=OpKind.POINTWISE,
        operands=(*_INPUT, OperandSpec("min", is_optional=True), OperandSpec("max", is_optional=True)),
        attributes=ClampAttributes,
        infer=rule(ClampAttributes, _infer_clamp),
        reference=rule(ClampAttributes, _clamp),
        axes=broadcast_sources,
        formats=HALF_OR_SINGLE,
        number_attributes=("min", "max"),
        complete=rule(ClampAttributes, _complete_clamp),
        device=DeviceOp("clip", rule(ClampAttributes, _clamp_constants), rounded=("min", "max")),
        host_when=_bools_on_host,
        is_promoted=True,
        samples=(
            ((f16(3, 5), None, None), ClampAttributes(-0.5, 0.5)),
            ((f16(9), None, None), ClampAttributes(min=0.0)),
            ((f16(9), None, None), ClampAttributes(max=1.0)),
            ((f32(4, 33), None, None), ClampAttributes(-0.5, 0.5)),
            ((i64(5), None, None), ClampAttributes(2, 50)),
            ((i64(5), None, None), ClampAttributes(2.0)),
            ((f16(3, 5), f16(5), f16(3, 1)), ClampAttributes()),
            ((boolean(5), None, None), ClampAttributes(0)),
            ((boolean(5), boolean(5), None), ClampAttributes()),
            ((f16(3, 5), None, f16(5)), ClampAttributes(min=-0.5)),
            ((i64(3, 5), i64(5), None), ClampAttributes()),
        ),
    )
)


def _infer_square(operands: OperandTypes, attributes: Attributes) -> tuple[TensorType, ...]:
    """Squares of bools are int64, as in PyTorch: ``x ** 2``."""
    operand = tensor(operands)
    is_bool = operand.dtype is DType.BOOL
    return (TensorType(operand.shape, DType.INT64),) if is_bool else _same_result(operands, attributes)


def _square(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    (x,) = alike(operands, 0)
    return (np.square(x),)


register(
    OpDef(
        name="square",
        summary="x times x",
        kind=OpKind.COMPOSITE,
        operands=_INPUT,
        attributes=NoAttributes,
        infer=_infer_square,
        reference=_square,
        axes=_axes,
        formats=HALF_OR_SINGLE,
        is_promoted=True,
        samples=tuple(((found,), NO_ATTRIBUTES) for found in (f16(3, 5), f32(4), i64(4), boolean(4))),
    )
)


def _infer_not(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(tensor(operands).shape, DType.BOOL),)


def _logical_not(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (array(operands) == 0,)


register(
    OpDef(
        name="logical_not",
        summary="whether x is false or zero",
        kind=OpKind.COMPOSITE,
        operands=_INPUT,
        attributes=NoAttributes,
        infer=_infer_not,
        reference=_logical_not,
        axes=_axes,
        formats=HALF,
        is_promoted=True,
        samples=(((boolean(3, 5),), NO_ATTRIBUTES), ((f16(4),), NO_ATTRIBUTES)),
    )
)


@dataclass(frozen=True, slots=True)
class PowAttributes:
    """The exponent where it is a number; a graph file may also write it after the tensor."""

    exponent: Real | None = None


SHORT_PRODUCTS = frozenset({0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, 3.0, 4.0})
"""Exponents whose power is a product of few factors, each step rounded: three roundings at most."""

MOST_EXPONENT = 256.0
"""Largest exponent whose power float32 steps give to 16 bits: of a larger one they lose more digits than they have."""


def _infer_pow(operands: OperandTypes, attributes: PowAttributes) -> tuple[TensorType, ...]:
    exponent = (*operands[1:], None)[0]
    if (exponent is None) == (attributes.exponent is None):
        message = "pow has two exponents" if exponent is not None else 'pow needs the attribute "exponent"'
        raise OpError("SPY0121", message, hint="give a number, or a tensor as the second input", attribute="exponent")
    if attributes.exponent is None:
        return arithmetic_result(operands, attributes)
    base = tensor(operands)
    if base.dtype.is_float or isinstance(attributes.exponent, float):
        return _function_result(operands, attributes)
    if attributes.exponent < 0:
        message = f"whole numbers to the power of {attributes.exponent} are fractions"
        raise OpError("SPY0209", message, hint="write the exponent with a point: -1.0", attribute="exponent")
    dtype = DType.INT64 if base.dtype is DType.BOOL else base.dtype
    require_number(dtype, attributes.exponent, "exponent")
    return (TensorType(base.shape, dtype),)


def _complete_pow(operands: OperandTypes, attributes: PowAttributes) -> PowAttributes:
    """The exponent of floats is a float, however it is written."""
    if attributes.exponent is None or not tensor(operands).dtype.is_float:
        return attributes
    return PowAttributes(float(attributes.exponent))


def _pow(operands: Sequence[Array | None], attributes: PowAttributes) -> tuple[Array, ...]:
    base, number = array(operands), attributes.exponent
    if number is None:
        exponent = array(operands, 1)
        is_whole = "f" not in (base.dtype.kind, exponent.dtype.kind)
        return (_whole_power(base, exponent) if is_whole else np.power(floats(operands), floats(operands, 1)),)
    if base.dtype.kind == "f" or isinstance(number, float):
        return (np.power(floats(operands), number),)
    return (_whole_power(base, np.asarray(number)),)


def _whole_power(base: Array, exponent: Array) -> Array:
    """Return powers that wrap around in 64 bits, as in PyTorch: negative ones are 1, -1 and otherwise 0."""
    base, exponent = base.astype(np.int64), exponent.astype(np.int64)
    power = np.power(base, np.maximum(exponent, 0))
    sign = np.where(exponent % 2 == 0, 1, base)
    return np.where(exponent >= 0, power, np.where(np.abs(base) == 1, sign, 0))


def _pow_on_host(operands: OperandTypes, attributes: PowAttributes) -> str | None:
    exponent = attributes.exponent
    if exponent is None:
        return "a base may be negative, of which the device takes no logarithm"
    if exponent in SHORT_PRODUCTS:
        return None
    if tensor(operands).dtype is DType.FLOAT32:
        return f"float32 steps would leave less than float32 digits of a power of {exponent}"
    is_near = abs(exponent) <= MOST_EXPONENT
    return None if is_near else f"float32 steps would leave less than 16 bits of a power of {exponent}"


register(
    OpDef(
        name="pow",
        summary="x to the power of a number or a tensor",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input", accepts_number=True), OperandSpec("exponent", is_optional=True)),
        attributes=PowAttributes,
        infer=rule(PowAttributes, _infer_pow),
        reference=rule(PowAttributes, _pow),
        axes=broadcast_sources,
        formats=HALF_OR_SINGLE,
        host_when=rule(PowAttributes, _pow_on_host),
        roundings=Roundings(3.0),
        number_attributes=("exponent",),
        complete=rule(PowAttributes, _complete_pow),
        is_promoted=True,
        samples=(
            ((f16(3, 5), None), PowAttributes(2.0)),
            ((f16(4), None), PowAttributes(-1.5)),
            ((f16(4), None), PowAttributes(0.3)),
            ((f32(4), None), PowAttributes(3.0)),
            ((f32(4), None), PowAttributes(0.3)),
            ((i64(4), None), PowAttributes(2)),
            ((i64(4), None), PowAttributes(2.0)),
            ((f16(3, 5), f16(5)), PowAttributes()),
            ((i64(3, 5), i64(5)), PowAttributes()),
        ),
    )
)
