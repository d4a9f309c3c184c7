"""What code generation must know about device operations by name: families and operand counts.

Source of names and counts: the device op tables of torch-spyre (pointwise ``SpyreOpFuncs``, reductions).
"""

from __future__ import annotations

MATMULS = frozenset({"matmul", "batchmatmul", "batchmatmulfp8"})
CASTS = frozenset({"dl16tofp32", "fp32todl16", "fp8todl16", "qfp8ch"})
TOPKS = frozenset({"topkvalue", "topkindex"})
COMBINING_REDUCTIONS = frozenset({"sum", "mean", "exx2", "max", "min"})
"""Reductions whose partial results cores may combine (see ``docs/decisions.md``); matmuls combine too."""

RESTICKIFY = "ReStickifyOpHBM"
IDENTITY = "identity"
LAYERNORM_SCALE = "layernormscale"

_UNARY = (
    "abs neg exp sqrt rsqrt reciprocal sigmoid floor log tanh relufwd gelufwd silu softplus clip identity "
    "layernormscale sum max min mean exx2 topkvalue topkindex"
)
_BINARY = (
    "add sub mul realdiv maximum minimum equal notequal greaterequal greaterthan lesserequal lesserthan "
    "matmul batchmatmul batchmatmulfp8"
)

INPUT_COUNTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_UNARY.split(), (1, 1)),
    **dict.fromkeys(_BINARY.split(), (2, 2)),
    **dict.fromkeys((RESTICKIFY, *sorted(CASTS)), (1, 1)),
    "where3": (3, 3),
    "layernormnorm": (3, 5),
}
"""Least and most inputs of each known operation, index tensors of a gather apart."""
