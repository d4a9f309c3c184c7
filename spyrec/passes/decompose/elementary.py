"""Elementary functions and powers of 16-bit floats, in float32 steps.

A step of float32 errs by 2**-24, a logarithm of the device by 2**-10: what makes more of an error than its one
rounding costs is done in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand
from spyrec.ir.ops.movement import FullAttributes
from spyrec.ir.ops.unary import SHORT_PRODUCTS, PowAttributes
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.steps import Rewrite, Steps


def _operand_and_dtype(builder: NodeBuilder) -> tuple[str, DType]:
    operand = builder.node.inputs[0]
    assert isinstance(operand, str)
    return operand, builder.type_of(operand).dtype


def _exp2(builder: NodeBuilder) -> str:
    """``--> exp(x log 2)``: of a 16-bit result the product is below 24, and errs by 24 2**-24."""
    operand, dtype = _operand_and_dtype(builder)
    single = Steps(builder, DType.FLOAT32)
    return single.given(single.of("exp", single.mul(single.taken(operand), math.log(2.0))), dtype)


_HALF_WIDTH = 0.25
_SERIES = (1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0, 1.0)


def expm1(single: Steps, x: str) -> str:
    """Emit exp(x) - 1 to 14 bits: near 0 the series, farther off the product with an exponential.

    ``a`` is x limited to a quarter around 0, ``e = exp(x - a)``; then ``exp(x) - 1 = (exp(a) - 1) e + (e - 1)``, whose
    terms have one sign: nothing cancels.  ``e - 1`` is exactly 0 inside, and outside its error of 2**-24 is beside a
    result of a fifth and more.  The series leaves out a**4 / 120, which is 2**-15.
    """
    near = single.limited(x, -_HALF_WIDTH, _HALF_WIDTH)
    exponential = single.of("exp", single.sub(x, near))
    series = single.mul(near, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series = single.mul(single.add(series, coefficient), near)
    return single.add(single.mul(series, exponential), single.sub(exponential, 1.0))


def _expm1(builder: NodeBuilder) -> str:
    operand, dtype = _operand_and_dtype(builder)
    single = Steps(builder, DType.FLOAT32)
    return single.given(expm1(single, single.taken(operand)), dtype)


_LEAST_LOG, _MOST_LOG = -80.0, 80.0
_HUGE = 1e30


def logarithm(builder: NodeBuilder, operand: Operand) -> str:
    """Emit the logarithm of a 16-bit float in float32: the device's, corrected by one of Halley's steps.

    ``y = log16(x)``, ``y + 2 (x - exp(y)) / (x + exp(y))``: y errs by 23 2**-10 at most, the step leaves a twelfth of
    its cube, 2**-20, where y is large; the difference errs by 2**-24, which is what is left near x = 1.
    Limits keep the correction a number where x or y is none, so that -inf and inf remain what they are.
    """
    single = Steps(builder, DType.FLOAT32)
    first = single.taken(builder.emit("log", operand))
    value = single.of("minimum", single.taken(operand), _HUGE)
    exponential = single.of("exp", single.limited(first, _LEAST_LOG, _MOST_LOG))
    quotient = single.div(single.sub(value, exponential), single.add(value, exponential))
    return single.add(first, single.mul(quotient, 2.0))


def _to_base(scale: float) -> Rewrite:
    """``--> log(x) scale``, in float32."""

    def rewrite(builder: NodeBuilder) -> str:
        operand, dtype = _operand_and_dtype(builder)
        single = Steps(builder, DType.FLOAT32)
        return single.given(single.mul(logarithm(builder, operand), scale), dtype)

    return rewrite


_LARGE = 4096.0


def _log1p(builder: NodeBuilder) -> str:
    """``--> log(u) + (x - (u - 1)) / u`` with ``u = 1 + x`` rounded to 16 bits.

    What rounding took from u is added as the first term of its series: it is at most 2**-10 of u, so that the next
    term is 2**-21.  u - 1 is exact.  Above 4096 the correction is below 2**-12 of a logarithm above 8, and x is
    limited there so that no infinities are subtracted.  At x = -1, u is 0 and the limit of the divisor counts.
    """
    operand, dtype = _operand_and_dtype(builder)
    half, single = Steps(builder, dtype), Steps(builder, DType.FLOAT32)
    shifted = half.add(operand, 1.0)
    near = half.of("minimum", operand, _LARGE)
    rounded = single.taken(half.add(near, 1.0))
    missing = single.sub(single.taken(near), single.sub(rounded, 1.0))
    correction = single.div(missing, single.of("maximum", rounded, 2.0**-40))
    return single.given(single.add(logarithm(builder, shifted), correction), dtype)


def _pow(builder: NodeBuilder) -> str:
    """x**e: products of few factors as they are, other whole and half powers in float32, else exp(e log x)."""
    operand, dtype = _operand_and_dtype(builder)
    attributes = builder.node.attributes
    assert isinstance(attributes, PowAttributes)
    assert attributes.exponent is not None
    exponent = float(attributes.exponent)
    if exponent == 0:
        return builder.emit("full", attributes=FullAttributes(builder.type_of(operand).shape, 1.0, dtype))
    if exponent in SHORT_PRODUCTS:
        return _product(Steps(builder, dtype), operand, exponent)
    single = Steps(builder, DType.FLOAT32)
    if (2 * exponent).is_integer() and abs(exponent) <= _MOST_FACTORS:
        return single.given(_product(single, single.taken(operand), exponent), dtype)
    power = single.of("exp", single.mul(logarithm(builder, operand), exponent))
    return single.given(power, dtype)


_MOST_FACTORS = 256.0


def _product(steps: Steps, operand: str, exponent: float) -> str:
    """Square and multiply: n factors err by n roundings of the steps."""
    if exponent == -0.5:
        return steps.of("rsqrt", operand)
    magnitude = abs(exponent)
    result = _power(steps, operand, int(magnitude)) if magnitude >= 1 else None
    if magnitude % 1:
        root = steps.of("sqrt", operand)
        result = root if result is None else steps.of("mul", result, root)
    assert result is not None
    return result if exponent > 0 else steps.of("reciprocal", result)


def _power(steps: Steps, operand: str, exponent: int) -> str:
    if exponent == 1:
        return operand
    half = _power(steps, operand, exponent // 2)
    squared = steps.of("mul", half, half)
    return steps.of("mul", squared, operand) if exponent % 2 else squared


REWRITES: Mapping[str, Rewrite] = {
    "exp2": _exp2,
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _to_base(1.0 / math.log(2.0)),
    "log10": _to_base(1.0 / math.log(10.0)),
    "pow": _pow,
}
