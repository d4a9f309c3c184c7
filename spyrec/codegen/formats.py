"""Which operations the device has, and on which formats: the records' word, held against an OpSpec."""

from __future__ import annotations

from collections.abc import Collection

from spyrec.codegen.opspec import OpSpec
from spyrec.device_ops import DEVICE_OPERATIONS, device_operation
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.diagnostics import Location, refuse
from spyrec.hardware.dtypes import DeviceFormat


def check_operation(spec: OpSpec, location: Location | None) -> None:
    """Check that the device has the operation.  Errors: SPY0530."""
    # an OpSpec names a reduction alike whatever dim it folds
    if spec.op not in DEVICE_OPERATIONS or device_operation(spec.op).name != spec.op:
        at = None if location is None else location.child("op")
        hint = "the device has " + ", ".join(sorted({record.name for record in DEVICE_OPERATIONS.values()}))
        raise refuse("SPY0530", f'operation "{spec.op}" is not known', at, hint=hint)


def check_formats(spec: OpSpec, indices: Collection[int], location: Location | None) -> None:
    """Check the formats of all operands but index tensors.  Errors: SPY0531."""
    record = device_operation(spec.op)
    last = len(spec.args) - 1
    first_format: DeviceFormat | None = None
    for position, argument in enumerate(spec.args):
        found = argument.device_dtype
        if position in indices:
            continue
        at = None if location is None else location.child("args", position, "device_dtype")
        allowed = record.gives if position == last else record.accepts
        if allowed != ANY_FORMAT and found not in allowed:
            takes = ", ".join(sorted(item.name for item in allowed))
            hint = f"{'it gives' if position == last else 'it takes'} {takes}"
            raise refuse("SPY0531", f'"{spec.op}" on {found.name}', at, hint=hint)
        if not record.is_uniform or (position == last and record.gives != record.accepts):
            continue
        first_format = first_format or found
        if found is not first_format:
            fact = f'"{spec.op}" on {first_format.name} and {found.name} together'
            raise refuse("SPY0531", fact, at, hint="convert one of them: dl16tofp32 and fp32todl16 do")
