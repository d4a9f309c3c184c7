"""sin, cos and tan, computed by the host.

The device has no such function.  What it has would do for small angles; models ask for the angles of positions, up to
1e5 and beyond, where a float32 product of the turns with 2 pi has lost every digit, and the range of DLFloat16 goes
to 8.6e9.  Reducing those takes a product of more digits than float32 has, so a decomposition would be right for some
inputs only, and which ones is not known when a program is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import Array, Attributes
from spyrec.ir.operands import Floats, floats
from spyrec.ir.pointwise_definition import ONE, PointwiseRules, define_pointwise, function_result
from spyrec.ir.samples import boolean, f16, f32, i64

_SAMPLES = tuple(
    ((found,), NO_ATTRIBUTES) for found in (f16(3, 5), f16(), f32(2, 1, 3, 70), i64(4), boolean(3), f32(0, 2))
)


def _define(
    name: str, summary: str, function: Callable[[Floats], Floats], poles: Callable[[Floats], Floats] | None = None
) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(floats(operands)),)

    define_pointwise(name, summary, ONE, PointwiseRules(function_result, reference, poles=poles), _SAMPLES)


def _tangent_poles(x: Floats) -> Floats:
    return (np.floor(x / np.pi) + 0.5) * np.pi


_define("sin", "sine of x in radians", np.sin)
_define("cos", "cosine of x in radians", np.cos)
_define("tan", "tangent of x in radians", np.tan, _tangent_poles)
