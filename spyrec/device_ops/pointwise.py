"""Operations that work element by element: functions of one input, and formulas of two to five.

Names, operand counts and formats: torch-spyre's op table and its list of operations that take IEEE_FP32.  Where the
device's algorithm is not public, the mathematically exact function, correctly rounded, is meant (D035 of
docs/decisions.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from spyrec.device_ops.expression import Expression
from spyrec.device_ops.record import (
    HALF,
    HALF_OR_SINGLE,
    Constants,
    DeviceOperation,
    Doubles,
    ErrorBehaviour,
    ErrorKind,
    Family,
    Formats,
    Pointwise,
    UnaryFunction,
)

_TABLE_ULPS = 4.0
"""Roundoffs of an elementary function in float32: the reference is correctly rounded, libraries are up to 2 ulp off."""

_GELU_MINIMUM, _GELU_TANH_MINIMUM, _SILU_MINIMUM = -0.7517915246935645, -0.7524614220710162, -1.278464542761074
"""Where the only extremum of each lies (roots of the derivatives)."""


MULTIPLICATION = "mul"
"""What a contraction over one element is."""


def _unary(  # noqa: PLR0913 - the fields of a row, by name
    name: str,
    summary: str,
    function: UnaryFunction,
    error: ErrorBehaviour,
    *,
    formats: Formats = HALF_OR_SINGLE,
    constants: tuple[str, ...] = (),
    padding_mask: float | None = None,
) -> DeviceOperation:
    return DeviceOperation(
        name=name,
        summary=summary,
        family=Family.UNARY,
        outer_name=None,
        inputs=1,
        optional_inputs=0,
        constants=constants,
        accepts=formats,
        gives=formats,
        is_uniform=True,
        vector_passes=1,
        flops=1,
        error=error,
        unary=function,
        pointwise=None,
        fold=None,
        padding_mask=padding_mask,
        window=None,
    )


def _plain(function: Callable[[Doubles], Doubles]) -> UnaryFunction:
    def apply(x: Doubles, _constants: Constants) -> Doubles:
        return function(x)

    return apply


def _shaped(*turning_points: float, ulps: float = 1.0) -> ErrorBehaviour:
    return ErrorBehaviour(ErrorKind.SHAPED, ulps=ulps, turning_points=turning_points)


def _linear(*turning_points: float) -> ErrorBehaviour:
    return ErrorBehaviour(ErrorKind.SHAPED, rounds=False, turning_points=turning_points, has_kinks=True)


_erf = np.frompyfunc(math.erf, 1, 1)


def _sigmoid(x: Doubles) -> Doubles:
    return 1.0 / (1.0 + np.exp(-x))


def _silu(x: Doubles) -> Doubles:
    # -inf * 0 is the limit 0, not NaN.
    return np.where(np.isneginf(x), 0.0, x / (1.0 + np.exp(-x)))


def _gelu(x: Doubles) -> Doubles:
    result = 0.5 * x * (1.0 + np.asarray(_erf(x / math.sqrt(2.0)), np.float64))
    # In the far negative tail 1 + erf cancels; erfc does not.
    tail = np.flatnonzero((x < -1.0).reshape(-1))
    flat = result.reshape(-1)
    for place in tail:
        value = float(x.reshape(-1)[place])
        flat[place] = 0.0 if value == -math.inf else 0.5 * value * math.erfc(-value / math.sqrt(2.0))
    return flat.reshape(x.shape)


def _softplus(x: Doubles, constants: Constants) -> Doubles:
    beta, threshold = constants["softplusBeta"], constants["softplusThresh"]
    return np.where(beta * x > threshold, x, np.log1p(np.exp(np.minimum(beta * x, 700.0))) / beta)


def _clip(x: Doubles, constants: Constants) -> Doubles:
    return np.minimum(np.maximum(x, constants["clipMin"]), constants["clipMax"])


_TABLE = _shaped(ulps=_TABLE_ULPS)
_TWO_TABLES = _shaped(ulps=2 * _TABLE_ULPS)
_EXACT = ErrorBehaviour(ErrorKind.SHAPED, rounds=False)
_FLOOR = ErrorBehaviour(ErrorKind.SHAPED, rounds=False, is_continuous=False)
_SOFTPLUS = ("softplusBeta", "softplusThresh")

_FUNCTIONS = (
    _unary("abs", "absolute value", _plain(np.abs), _linear(0.0)),
    _unary("neg", "negation", _plain(np.negative), _EXACT),
    _unary("exp", "e to the power of x", _plain(np.exp), _TABLE, padding_mask=-math.inf),
    _unary("log", "natural logarithm", _plain(np.log), _TABLE, formats=HALF),
    _unary("sqrt", "square root", _plain(np.sqrt), _shaped()),
    _unary("rsqrt", "1 / sqrt(x)", _plain(lambda x: 1.0 / np.sqrt(x)), _shaped(ulps=2.0)),
    _unary("reciprocal", "1 / x", _plain(lambda x: 1.0 / x), _shaped(0.0)),
    _unary("sigmoid", "1 / (1 + exp(-x))", _plain(_sigmoid), _TWO_TABLES),
    _unary("tanh", "hyperbolic tangent", _plain(np.tanh), _TABLE, formats=HALF),
    _unary("floor", "largest integer not above x", _plain(np.floor), _FLOOR),
    _unary("relufwd", "max(x, 0)", _plain(lambda x: np.maximum(x, 0.0)), _linear()),
    _unary(
        "gelufwd",
        "x times the normal distribution function at x",
        _plain(_gelu),
        _shaped(_GELU_MINIMUM, _GELU_TANH_MINIMUM, ulps=2 * _TABLE_ULPS),
        formats=HALF,
    ),
    _unary("silu", "x sigmoid(x)", _plain(_silu), _shaped(_SILU_MINIMUM, ulps=2 * _TABLE_ULPS), formats=HALF),
    _unary("softplus", "log(1 + exp(beta x)) / beta", _softplus, _TWO_TABLES, formats=HALF, constants=_SOFTPLUS),
    _unary("clip", "x limited to a range", _clip, _linear(), formats=HALF, constants=("clipMin", "clipMax")),
)


def _formula(
    name: str,
    summary: str,
    pointwise: Pointwise,
    error: ErrorBehaviour,
) -> DeviceOperation:
    optional = 0 if pointwise.absent is None else len(pointwise.absent)
    return DeviceOperation(
        name=name,
        summary=summary,
        family=Family.POINTWISE,
        outer_name=None,
        inputs=len(pointwise.formula.operands),
        optional_inputs=optional,
        constants=(),
        accepts=HALF_OR_SINGLE,
        gives=HALF_OR_SINGLE,
        is_uniform=True,
        vector_passes=4 if pointwise.is_double else 1,
        flops=4 if pointwise.is_double else 1,
        error=error,
        unary=None,
        pointwise=pointwise,
        fold=None,
        padding_mask=None,
        window=None,
    )


def _of_two(text: str, by_row: tuple[str, str] | None = None) -> Pointwise:
    formula = Expression(text, ("x", "y"))
    if by_row is None:
        return Pointwise(formula)
    return Pointwise(formula, by_row=(Expression(by_row[0], ("y",)), Expression(by_row[1], ("x", "r"))))


_PAIR = ErrorBehaviour(ErrorKind.PAIR, rounds=False, has_kinks=True)
_COMPARISON = ErrorBehaviour(ErrorKind.COMPARISON, rounds=False, is_continuous=False)

_FORMULAS = (
    _formula("add", "x + y", _of_two("x + y"), ErrorBehaviour(ErrorKind.SUM)),
    _formula("sub", "x - y", _of_two("x - y"), ErrorBehaviour(ErrorKind.SUM)),
    _formula(MULTIPLICATION, "x y", _of_two("x * y"), ErrorBehaviour(ErrorKind.PRODUCT)),
    # A quotient of two 10-bit significands that is no tie lies 2**-21 of itself away from the next one (y and a tie
    # M/2**k of 11 bits differ from x by at least 1/(y * 2**k)), and none is a tie.  Multiplying by the rounded
    # reciprocal errs by 2**-23: it gives the same patterns.  Where the quotient is the least that is kept, the divisor
    # is a power of two.
    _formula("realdiv", "x / y", _of_two("x / y", ("1 / y", "x * r")), ErrorBehaviour(ErrorKind.QUOTIENT)),
    # NaN wins, as in PyTorch.
    _formula("maximum", "the larger of x and y", _of_two("x if x > y or x != x else y"), _PAIR),
    _formula("minimum", "the smaller of x and y", _of_two("x if x < y or x != x else y"), _PAIR),
    *(
        _formula(name, f"whether x {sign} y", _of_two(f"1 if x {sign} y else 0"), _COMPARISON)
        for name, sign in (
            ("equal", "=="),
            ("notequal", "!="),
            ("greaterequal", ">="),
            ("greaterthan", ">"),
            ("lesserequal", "<="),
            ("lesserthan", "<"),
        )
    ),
    _formula(
        "where3",
        "x where the condition is not zero, else y",
        Pointwise(Expression("x if condition != 0 else y", ("condition", "x", "y"))),
        ErrorBehaviour(ErrorKind.CHOICE, rounds=False),
    ),
    # Four steps may cancel: double width keeps the one rounding the only one that counts.
    _formula(
        "layernormnorm",
        "(x - mean) scale weight + bias, the mean from exx2 and the scale from layernormscale",
        Pointwise(
            Expression("(x - mean) * scale * weight + bias", ("x", "mean", "scale", "weight", "bias")),
            is_double=True,
            absent={"weight": 1.0, "bias": 0.0},
        ),
        ErrorBehaviour(ErrorKind.NORMALISATION),
    ),
)

OPERATIONS = (*_FUNCTIONS, *_FORMULAS)
