"""Operations that move elements: copies, restickifies, casts, and the two that sort.

Formats: torch-spyre's gate, but for a restickify, which moves any format here: the alternative is to refuse every
transposed float32 tensor (D098 of ``docs/decisions.md``).
"""

from __future__ import annotations

from spyrec.device_ops.record import (
    ANY_FORMAT,
    FP8,
    HALF,
    HALF_OR_SINGLE,
    SINGLE,
    DeviceOperation,
    ErrorBehaviour,
    ErrorKind,
    Family,
    Formats,
)
from spyrec.hardware.dtypes import DeviceFormat


def _move(name: str, summary: str, family: Family, accepts: Formats, gives: Formats) -> DeviceOperation:
    return DeviceOperation(
        name=name,
        summary=summary,
        family=family,
        outer_name=None,
        inputs=1,
        optional_inputs=0,
        constants=(),
        accepts=accepts,
        gives=gives,
        is_uniform=family in {Family.RESTICKIFY, Family.SHUFFLE, Family.TOP},
        vector_passes=1,
        flops=0,
        error=ErrorBehaviour(ErrorKind.MOVED, rounds=family in {Family.CAST, Family.PACK}),
        unary=None,
        pointwise=None,
        fold=None,
        padding_mask=None,
        window=None,
    )


OPERATIONS = (
    _move("identity", "a copy", Family.IDENTITY, ANY_FORMAT, ANY_FORMAT),
    _move("shuffle", "a copy in LX from the cores that own a tensor to others", Family.SHUFFLE, ANY_FORMAT, ANY_FORMAT),
    _move("ReStickifyOpHBM", "a copy whose sticks run along another dim", Family.RESTICKIFY, ANY_FORMAT, ANY_FORMAT),
    _move("dl16tofp32", "DLFloat16 to float32", Family.CAST, HALF, SINGLE),
    _move("fp32todl16", "float32 to DLFloat16", Family.CAST, SINGLE, HALF),
    _move("fp8todl16", "8-bit float to DLFloat16", Family.CAST, FP8, HALF),
    _move("qfp8ch", "DLFloat16 to 8-bit float", Family.CAST, HALF, FP8),
    # no cast to a writer: it injects no row, and looks at the output alone for padding
    _move("qfp8wt", "DLFloat16 to 8-bit float weights, in sticks of two rows", Family.PACK, HALF, FP8),
    _move("topkvalue", "the largest elements, in order", Family.TOP, HALF_OR_SINGLE, HALF_OR_SINGLE),
    _move(
        "topkindex",
        "the places of the largest elements, in their order",
        Family.TOP,
        HALF_OR_SINGLE,
        HALF_OR_SINGLE | {DeviceFormat.IEEE_INT32},
    ),
)
