"""Which device formats an operation computes on.

Source: the dtype gate of torch-spyre (its op table and its list of operations that take IEEE_FP32).  It differs in
three points: operands of one operation have one format, which torch-spyre checks one by one; ``batchmatmulfp8`` takes
FP8, though that gate refuses it; and a restickify moves any format, since the alternative is to refuse every transposed
float32 tensor (``docs/decisions.md``).
"""

from __future__ import annotations

from collections.abc import Collection

from spyrec.codegen.device_ops import IDENTITY, INPUT_COUNTS, RESTICKIFY
from spyrec.codegen.opspec import OpSpec
from spyrec.diagnostics import Location, refuse
from spyrec.dtypes import DeviceFormat

Formats = frozenset[DeviceFormat]

_HALF: Formats = frozenset({DeviceFormat.SEN169_FP16})
_SINGLE: Formats = frozenset({DeviceFormat.IEEE_FP32})
_FP8: Formats = frozenset({DeviceFormat.SEN143_FP8, DeviceFormat.SEN152_FP8})

_SINGLE_NAMES = (
    "add sub mul realdiv relufwd reciprocal mean sum max min layernormscale abs neg exp sigmoid exx2 layernormnorm "
    "sqrt rsqrt topkvalue topkindex floor maximum minimum"
)
_TAKES_SINGLE = frozenset(_SINGLE_NAMES.split())
"""Operations that run on IEEE_FP32 as well; all others of the table run on SEN169_FP16 alone."""

_CONVERSIONS: dict[str, tuple[Formats, Formats]] = {
    "dl16tofp32": (_HALF, _SINGLE),
    "fp32todl16": (_SINGLE, _HALF),
    "fp8todl16": (_FP8, _HALF),
    "qfp8ch": (_HALF, _FP8),
    "batchmatmulfp8": (_FP8, _HALF),
}
"""Formats of the inputs and of the output, where they differ."""


def check_operation(spec: OpSpec, location: Location | None) -> None:
    """Check that the device has the operation.  Errors: SPY0530."""
    if spec.op not in INPUT_COUNTS:
        at = None if location is None else location.child("op")
        hint = "the device has " + ", ".join(sorted(INPUT_COUNTS))
        raise refuse("SPY0530", f'operation "{spec.op}" is not known', at, hint=hint)


def check_formats(spec: OpSpec, indices: Collection[int], location: Location | None) -> None:
    """Check the formats of all operands but index tensors.  Errors: SPY0531."""
    if spec.op == IDENTITY:
        return
    last = len(spec.args) - 1
    first_format: DeviceFormat | None = None
    for position, argument in enumerate(spec.args):
        found = argument.device_dtype
        if position in indices:
            continue
        at = None if location is None else location.child("args", position, "device_dtype")
        allowed = _formats_of(spec.op, is_output=position == last)
        if allowed is not None and found not in allowed:
            takes = ", ".join(sorted(item.name for item in allowed))
            hint = f"{'it gives' if position == last else 'it takes'} {takes}"
            raise refuse("SPY0531", f'"{spec.op}" on {found.name}', at, hint=hint)
        if spec.op in _CONVERSIONS or (spec.op == "topkindex" and position == last):
            continue
        first_format = first_format or found
        if found is not first_format:
            fact = f'"{spec.op}" on {first_format.name} and {found.name} together'
            raise refuse("SPY0531", fact, at, hint="convert one of them: dl16tofp32 and fp32todl16 do")


def _formats_of(op: str, *, is_output: bool) -> Formats | None:
    """Return the formats of an operation's inputs or output; ``None``: any."""
    if op == RESTICKIFY:
        return None
    if op in _CONVERSIONS:
        return _CONVERSIONS[op][is_output]
    formats = _HALF | _SINGLE if op in _TAKES_SINGLE else _HALF
    if op == "topkindex" and is_output:
        return formats | {DeviceFormat.IEEE_INT32}
    return formats
