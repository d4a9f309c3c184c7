"""The names of the operations that the emulator executes, for whoever refuses another one (rule V14)."""

from __future__ import annotations

DEVICE_OPERATIONS = frozenset(
    [
        "ReStickifyOpHBM",
        "abs",
        "add",
        "batchmatmul",
        "batchmatmulfp8",
        "clip",
        "dl16tofp32",
        "equal",
        "exp",
        "exx2",
        "floor",
        "fp32todl16",
        "fp8todl16",
        "gelufwd",
        "greaterequal",
        "greaterthan",
        "identity",
        "layernormnorm",
        "layernormscale",
        "lesserequal",
        "lesserthan",
        "log",
        "matmul",
        "max",
        "maximum",
        "maxnonstick",
        "mean",
        "meannonstick",
        "min",
        "minimum",
        "minnonstick",
        "mul",
        "neg",
        "notequal",
        "qfp8ch",
        "realdiv",
        "reciprocal",
        "relufwd",
        "rsqrt",
        "sigmoid",
        "silu",
        "softplus",
        "sqrt",
        "sub",
        "sum",
        "sumnonstick",
        "tanh",
        "topkindex",
        "topkvalue",
        "where3",
    ]
)
"""Every ``opFuncName`` that is executed; what each computes says ``spyrec.emulator.functions``."""


def known_operations(found: str) -> str | None:
    """Return the hint that lists the known operations, ``None`` where ``found`` is one of them."""
    return None if found in DEVICE_OPERATIONS else f"known operations: {', '.join(sorted(DEVICE_OPERATIONS))}"
