"""The manifest of a bundle that has none, made from a ``spyrec.args/1`` table."""

from __future__ import annotations

from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.bundle.manifest_json import ForeignArgument, ForeignTable
from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.hardware.target import Target

CONTRADICTORY_TABLE = "SPY0617"
"""Code of an argument table that contradicts itself."""


def manifest_of_table(name: str, table: ForeignTable, where: Location) -> Manifest:
    """Return the manifest of a one-program bundle; errors SPY0617."""
    sink = DiagnosticSink()
    _check(table, where, sink)
    sink.raise_if_errors()
    arguments = tuple(_argument(item) for item in sorted(table.arguments, key=lambda item: item.arg_index))
    target = Target()
    return Manifest(
        name=name,
        target=target,
        arguments=arguments,
        inputs=tuple(item.name for item in arguments if item.role in {Role.INPUT, Role.INOUT}),
        outputs=tuple((item.name, item.name) for item in arguments if item.role in {Role.OUTPUT, Role.INOUT}),
        plan=(PlanStep(".", tuple(item.name for item in arguments), table.pool_bytes, values=table.values),),
        pool_bytes=table.pool_bytes,
        graph_sha256=None,
    )


def _check(table: ForeignTable, where: Location, sink: DiagnosticSink) -> None:
    names = [item.name for item in table.arguments]
    indices = sorted(item.arg_index for item in table.arguments)
    if indices != list(range(len(indices))):
        fact = f"arg_index values {indices[:16]} do not number the {len(indices)} arguments from 0"
        sink.error(CONTRADICTORY_TABLE, fact, where.child("arguments"), hint="describe every argument of the program")
    for index, item in enumerate(table.arguments):
        place = where.child("arguments", index)
        if names.count(item.name) > 1:
            hint = "give every argument a name of its own"
            sink.error(CONTRADICTORY_TABLE, f'the name "{item.name}" stands twice', place.child("name"), hint=hint)
        _check_argument(item, place, sink)


def _check_argument(item: ForeignArgument, place: Location, sink: DiagnosticSink) -> None:
    eps = item.device_dtype.elements_per_stick
    if item.device_size[-1] != eps:
        fact = (
            f"the last extent of device_size is {item.device_size[-1]}, a stick of {item.device_dtype.name} has {eps}"
        )
        hint = "device_size is outermost first and ends with the stick"
        sink.error(CONTRADICTORY_TABLE, fact, place.child("device_size"), hint=hint)
    given = [key for key in ("shape", "dtype", "stride_map") if getattr(item, key) is not None]
    if len(given) not in {0, 3}:
        fact = f"of shape, dtype and stride_map only {', '.join(given)} is given"
        hint = "give all three, or none: the argument is then given and returned in device form"
        sink.error(CONTRADICTORY_TABLE, fact, place, hint=hint)
    if item.stride_map is not None and len(item.stride_map) != len(item.device_size):
        fact = f"stride_map has {len(item.stride_map)} entries, device_size {len(item.device_size)}"
        hint = "stride_map has one host stride, in elements, per device dim"
        sink.error(CONTRADICTORY_TABLE, fact, place.child("stride_map"), hint=hint)


def _argument(item: ForeignArgument) -> Argument:
    return Argument(
        name=item.name,
        role=Role(item.role),
        arg_index=item.arg_index,
        address=item.address,
        shape=item.shape,
        dtype=item.dtype,
        host_strides=None,
        device_size=item.device_size,
        stride_map=item.stride_map,
        device_dtype=item.device_dtype,
    )
