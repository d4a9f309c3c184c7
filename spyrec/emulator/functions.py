"""What each device operation computes: one row per ``opFuncName``.

One-input functions are float64 NumPy functions of the values and the operation's decoded constants.  They are written
here and not taken from the op catalogue's ``reference`` so that ``--check`` compares two pens (``docs/decisions.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Constants = Mapping[str, float]
UnaryFunction = Callable[[Doubles, Constants], Doubles]


class Family(Enum):
    """How an operation is executed."""

    UNARY = "unary"
    POINTWISE = "pointwise"
    IDENTITY = "identity"
    RESTICKIFY = "restickify"
    CAST = "cast"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    NORM_STATISTICS = "exx2"
    NORM_SCALE = "layernormscale"
    TOP = "topk"


FOLDS = frozenset({Family.REDUCTION, Family.MATMUL, Family.NORM_STATISTICS})
"""Families whose result combines what cores with different slices of one dim have computed."""


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """One row: family, the number of tensor inputs, the constants it needs, and the function of a one-input op.

    ``optional_inputs`` of the inputs, the last ones, may be absent.
    """

    family: Family
    inputs: int = 1
    constants: tuple[str, ...] = ()
    unary: UnaryFunction | None = None
    optional_inputs: int = 0


_erf = np.frompyfunc(math.erf, 1, 1)


def _sigmoid(x: Doubles, _constants: Constants) -> Doubles:
    return 1.0 / (1.0 + np.exp(-x))


def _silu(x: Doubles, _constants: Constants) -> Doubles:
    # -inf * 0 is the limit 0, not NaN.
    return np.where(np.isneginf(x), 0.0, x / (1.0 + np.exp(-x)))


def _gelu(x: Doubles, _constants: Constants) -> Doubles:
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


def _relu(x: Doubles, _constants: Constants) -> Doubles:
    return np.maximum(x, 0.0)


def _plain(function: Callable[[Doubles], Doubles]) -> UnaryFunction:
    def apply(x: Doubles, _constants: Constants) -> Doubles:
        return function(x)

    return apply


def _unary(function: UnaryFunction, *constants: str) -> DeviceFunction:
    return DeviceFunction(Family.UNARY, 1, constants, function)


_BINARY = (
    "add", "sub", "mul", "realdiv", "maximum", "minimum",
    "equal", "notequal", "greaterequal", "greaterthan", "lesserequal", "lesserthan",
)  # fmt: skip

FUNCTIONS: dict[str, DeviceFunction] = {
    "abs": _unary(_plain(np.abs)),
    "neg": _unary(_plain(np.negative)),
    "exp": _unary(_plain(np.exp)),
    "log": _unary(_plain(np.log)),
    "sqrt": _unary(_plain(np.sqrt)),
    "rsqrt": _unary(_plain(lambda x: 1.0 / np.sqrt(x))),
    "reciprocal": _unary(_plain(lambda x: 1.0 / x)),
    "sigmoid": _unary(_sigmoid),
    "tanh": _unary(_plain(np.tanh)),
    "floor": _unary(_plain(np.floor)),
    "relufwd": _unary(_relu),
    "gelufwd": _unary(_gelu),
    "silu": _unary(_silu),
    "softplus": _unary(_softplus, "softplusBeta", "softplusThresh"),
    "clip": _unary(_clip, "clipMin", "clipMax"),
    **{name: DeviceFunction(Family.POINTWISE, 2) for name in _BINARY},
    "where3": DeviceFunction(Family.POINTWISE, 3),
    "layernormnorm": DeviceFunction(Family.POINTWISE, 5, optional_inputs=2),
    "identity": DeviceFunction(Family.IDENTITY),
    "ReStickifyOpHBM": DeviceFunction(Family.RESTICKIFY),
    "dl16tofp32": DeviceFunction(Family.CAST),
    "fp32todl16": DeviceFunction(Family.CAST),
    "fp8todl16": DeviceFunction(Family.CAST),
    "qfp8ch": DeviceFunction(Family.CAST),
    **{name + end: DeviceFunction(Family.REDUCTION) for name in ("sum", "max", "min") for end in ("", "nonstick")},
    **{name: DeviceFunction(Family.REDUCTION, 1, ("scaling_factor",)) for name in ("mean", "meannonstick")},
    "matmul": DeviceFunction(Family.MATMUL, 2),
    "batchmatmul": DeviceFunction(Family.MATMUL, 2),
    "batchmatmulfp8": DeviceFunction(Family.MATMUL, 2),
    "exx2": DeviceFunction(Family.NORM_STATISTICS, 1, ("exx2scale", "useZeroMean")),
    "layernormscale": DeviceFunction(Family.NORM_SCALE, 1, ("eps",)),
    "topkvalue": DeviceFunction(Family.TOP),
    "topkindex": DeviceFunction(Family.TOP),
}
"""Every operation that the emulator executes, by ``opFuncName``."""
