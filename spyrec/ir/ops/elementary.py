"""Elementary functions that the device does not have as they stand.

Of float32 the device has no logarithm, and a float32 result needs more digits than float32 steps leave: the host
computes those.  Of 16-bit floats most are made of float32 steps, see ``spyrec/passes/decompose/elementary.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes, Roundings
from spyrec.ir.operands import Floats, floats
from spyrec.ir.pointwise_definition import ONE, PointwiseRules, define_pointwise, function_result
from spyrec.ir.samples import boolean, f16, f32, i64

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])

_SAMPLES = tuple(
    ((found,), NO_ATTRIBUTES) for found in (f16(3, 5), f16(), f16(2, 1, 3, 70), f32(4, 33), i64(4), boolean(3))
)


def _define(name: str, summary: str, function: Callable[[Floats], Floats], roundings: Roundings | None = None) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    formats = frozenset[DeviceFormat]() if roundings is None else HALF
    rules = PointwiseRules(function_result, reference, formats, roundings=roundings)
    define_pointwise(name, summary, ONE, rules, _SAMPLES)


_define("exp2", "2 to the power of x", np.exp2, Roundings(2.0))
_define("expm1", "exp(x) - 1, exact near 0", np.expm1, Roundings(2.0))
_define("log1p", "log(1 + x), exact near 0", np.log1p, Roundings(3.0))
_define("log2", "logarithm to base 2", np.log2, Roundings(2.0))
_define("log10", "logarithm to base 10", np.log10, Roundings(2.0))
_define("erf", "error function", _erf)
_define("erfc", "1 - erf(x), with all its digits where erf is close to 1", _erfc)
