"""A bundle as a ``spyrec.inspect/1`` object: the facts of ``spyrec inspect`` for programs; sizes are in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.compare.bundle_reading import LoopReading, OperationReading
from spyrec.compare.bundle_text import Shown, constant_value, core_steps, device_address
from spyrec.compare.core_shares import core_share
from spyrec.hardware.target import STICK_BYTES

if TYPE_CHECKING:
    from spyrec.bundle.manifest import Argument
    from spyrec.compare.bundle_reading import Body, BundleReading, ProgramReading
    from spyrec.compare.core_shares import OperandShare

JsonObject = dict[str, object]


def to_json(reading: BundleReading, shown: Shown) -> JsonObject:
    """Return the object; of a chosen operation the loops around it stay."""
    manifest = reading.manifest
    figures = None if manifest is None else manifest.figures
    return {
        "format": "spyrec.inspect/1",
        "path": str(reading.path),
        "name": None if manifest is None else manifest.name,
        "predicted_us": None if figures is None else figures.simulated_us,
        "predicted_us_uncertainty": None if figures is None else figures.simulated_us_uncertainty,
        "arguments": [] if manifest is None else [_argument(item) for item in manifest.arguments],
        "programs": [_program(item, shown) for item in reading.programs],
    }


def _argument(item: Argument) -> JsonObject:
    size_bytes = STICK_BYTES
    for extent in item.device_size[:-1]:
        size_bytes *= extent
    return {
        "name": item.name,
        "role": item.role.value,
        "dtype": None if item.dtype is None else item.dtype.value,
        "shape": None if item.shape is None else list(item.shape),
        "device_size": list(item.device_size),
        "stride_map": None if item.stride_map is None else list(item.stride_map),
        "device_dtype": item.device_dtype.name,
        "address": item.address,
        "size_bytes": size_bytes,
    }


def _program(program: ProgramReading, shown: Shown) -> JsonObject:
    return {
        "directory": program.directory,
        "arguments": list(program.arguments),
        "pool_bytes": program.pool_bytes,
        "body": _body(program.body, shown),
    }


def _body(body: Body, shown: Shown) -> list[JsonObject]:
    found: list[JsonObject] = []
    for item in body:
        if isinstance(item, LoopReading):
            inner = _body(item.body, shown)
            if inner:
                found.append(_loop(item, inner))
        elif shown.numbers is None or item.number in shown.numbers:
            found.append(_operation(item, shown.core))
    return found


def _loop(item: LoopReading, body: list[JsonObject]) -> JsonObject:
    values = item.loop.values
    bounds = {"first": values.start, "past": values.stop, "step": values.step, "parameter": item.loop.parameter}
    return {"loop": item.name, "number": item.loop.number, **bounds, "body": body}


def _operation(item: OperationReading, core: int | None) -> JsonObject:
    dsc = item.superdsc
    figures = item.figures
    found: JsonObject = {
        "number": item.number,
        "op": dsc.op_func_name,
        "file": item.call.file,
        "part": item.call.subject or None,
        "execution_unit": dsc.compute.execution_unit,
        "cores": list(item.call.core_ids),
        "from": dsc.provenance,
        "predicted_us": None if figures is None else figures.simulated_us,
        "predicted_us_uncertainty": None if figures is None else figures.simulated_us_uncertainty,
        "executions": None if figures is None else figures.executions,
        "dims": {
            dim: {"extent": extent, "parts": dsc.work_slices[dim], "per_core": dsc.core_extent[dim]}
            for dim, extent in dsc.iteration.items()
        },
        "constants": {entry.name: constant_value(entry) for entry in dsc.constants},
        "masks": {dim: [list(part) for part in parts] for dim, parts in dsc.coordinate_masking.items()},
        "operands": [_operand(item, position) for position in range(len(item.operands))],
    }
    if core is not None:
        found["core"] = _core(item, core)
    return found


def _operand(item: OperationReading, position: int) -> JsonObject:
    operand = item.operands[position]
    geometry = operand.geometry
    first = operand.places[0]
    return {
        "tensor": operand.name,
        "access": "write" if operand.is_written else "read" if operand.is_read else None,
        "memory": operand.memory,
        "argument": first.base if operand.memory == "argument" else None,
        "first_byte": None if first.parameter is not None else first.offset,
        "core_first_bytes": [None if place.parameter is not None else place.offset for place in operand.places],
        "bytes_per_part": core_steps(item, operand),
        "bytes_per_round": {str(loop): step for loop, step in first.steps.items() if step},
        "buffer_bytes": geometry.buffer_bytes,
        "device_dims": [
            {
                "dim": dim,
                "extent": geometry.extents[dim],
                "elements": geometry.stick_size if dim == geometry.stick_dim else 1,
            }
            for dim in reversed(operand.operand.layout_dim_order)
            if dim in geometry.extents
        ],
        "stick_dim": geometry.stick_dim,
        "stick_size": geometry.stick_size,
        "device_dtype": operand.operand.data_format.name,
        "label": operand.operand.label,
        "scales": dict(operand.operand.scales),
        "gaps": {dim: gap for dim, gap in operand.operand.back_gap.items() if gap},
        "indirection": operand.operand.indirection.value,
    }


def _core(item: OperationReading, core: int) -> JsonObject | None:
    share = core_share(item, core)
    if share is None:
        return None
    ranges = {dim: [own.first, own.past] for dim, own in share.iteration.items()}
    return {"core": core, "dims": ranges, "operands": [_share(item, at, own) for at, own in enumerate(share.operands)]}


def _share(item: OperationReading, position: int, own: OperandShare) -> JsonObject:
    box = own.host
    first = own.first_bytes
    return {
        "tensor": item.operands[position].name,
        "elements": own.elements,
        "first_byte": first,
        "past_byte": own.past_bytes,
        "address": None if first is None else device_address(item.operands[position], first),
        "host_ranges": None if box is None else [[part.first, part.past, part.step] for part in box.ranges],
        "is_every_index": None if box is None else box.is_full,
        "rows_of_operand": own.rows_of,
    }
