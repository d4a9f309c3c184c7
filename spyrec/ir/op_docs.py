"""The catalogue as records and as a page: what ``spyrec ops`` prints and ``docs/ops.md`` holds."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable
from typing import Literal, Union, cast, get_args, get_origin

from spyrec.device_ops.record import ANY_FORMAT
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.ir.attribute_text import attribute_fields, write_value
from spyrec.ir.attributes import Spelling
from spyrec.ir.opdef import OpDef, catalogue

_SPELLINGS = {Spelling.DIMS: "dims", Spelling.SIZE: "size", Spelling.SIZES: "sizes"}


def op_record(definition: OpDef) -> dict[str, JsonValue]:
    """Return what is declared about an op, as JSON data."""
    attributes: list[JsonValue] = []
    for field in attribute_fields(definition.attributes).values():
        entry: dict[str, JsonValue] = {"name": field.name, "type": type_text(field.annotation)}
        if not field.is_required:
            entry["default"] = write_value(field.default)
        attributes.append(entry)
    return {
        "name": definition.name,
        "summary": definition.summary,
        "kind": definition.kind.value,
        "operands": [
            {
                "name": spec.name,
                "optional": spec.is_optional,
                "variadic": spec.is_variadic,
                "number": spec.accepts_number,
            }
            for spec in definition.operands
        ],
        "attributes": attributes,
        "formats": cast("list[JsonValue]", sorted(item.name for item in definition.formats)),
        "device_op": None if definition.device is None else definition.device.op_func,
        "roundings": _roundings_record(definition),
    }


def _roundings_record(definition: OpDef) -> JsonValue:
    stated = definition.roundings
    return None if stated is None else {"result": stated.result, "operands": stated.operands}


def roundings_text(definition: OpDef) -> str:
    """Return how far results may be off where the op is made of others: ``4, and 1 of each operand``."""
    stated = definition.roundings
    if stated is None:
        return ""
    return f"{stated.result:g}" + (f", and {stated.operands:g} of each operand" if stated.operands else "")


def type_text(annotation: object) -> str:
    """Return an attribute's annotation as people read it: ``float or null``."""
    if get_origin(annotation) in (Union, types.UnionType):
        members = cast("tuple[object, ...]", get_args(annotation))
        plain = [member for member in members if member is not type(None)]
        text = type_text(plain[0]) if len(plain) == 1 else "number"
        return text if len(plain) == len(members) else f"{text} or null"
    if get_origin(annotation) is Literal:
        return " or ".join(f'"{choice}"' for choice in cast("tuple[str, ...]", get_args(annotation)))
    spelling = next((item for item in get_args(annotation) if isinstance(item, Spelling)), None)
    if spelling is not None:
        return _SPELLINGS[spelling]
    return "dtype" if annotation is DType else cast("type", annotation).__name__


def signature(definition: OpDef) -> str:
    """Return the op as a call: ``softplus(input; beta=1.0, threshold=20.0)``."""
    operands = [
        f"{spec.name}{'...' if spec.is_variadic else '?' if spec.is_optional else ''}" for spec in definition.operands
    ]
    attributes: list[str] = []
    for field in attribute_fields(definition.attributes).values():
        default = write_value(field.default) if not field.is_required else None
        attributes.append(field.name if field.is_required else f"{field.name}={_default_text(default)}")
    return f"{definition.name}({', '.join(operands)}{'; ' if attributes else ''}{', '.join(attributes)})"


def _default_text(value: JsonValue) -> str:
    return json.dumps(value)


def formats_text(definition: OpDef) -> str:
    """Return which device formats the operands may have: ``16-bit floats, float32``."""
    if definition.formats == ANY_FORMAT:
        return "any"
    return "16-bit, float32" if DeviceFormat.IEEE_FP32 in definition.formats else "16-bit"


def details(definition: OpDef) -> str:
    """Return what ``spyrec ops NAME`` prints about an op."""
    lines = [signature(definition), f"  {definition.summary}", ""]
    for spec in definition.operands:
        notes = [
            text
            for text, holds in (
                ("optional", spec.is_optional),
                ("one or more", spec.is_variadic),
                ("or a number", spec.accepts_number),
                ("bool", spec.is_condition),
            )
            if holds
        ]
        lines.append(f"  operand    {spec.name:18}tensor{''.join(f', {note}' for note in notes)}")
    for field in attribute_fields(definition.attributes).values():
        default = "required" if field.is_required else f"default {_default_text(write_value(field.default))}"
        lines.append(f"  attribute  {field.name:18}{type_text(field.annotation)}, {default}")
    device = "none: decomposed, or a view" if definition.device is None else definition.device.op_func
    lines.extend([f"  formats    {formats_text(definition)}", f"  device op  {device}"])
    if definition.roundings is not None:
        lines.append(f"  roundings  {roundings_text(definition)}")
    return "\n".join(lines)


def public_ops() -> Iterable[OpDef]:
    """Return the ops that a graph file may hold, by name."""
    return [definition for definition in catalogue().values() if definition.is_public]


def docs_page() -> str:
    """Return ``docs/ops.md``."""
    lines = [
        "# The ops of a graph file",
        "",
        "Generated from the catalogue by `make cases`; `spyrec ops NAME` shows one op with its attributes' types.",
        "",
        "Names, argument order and attributes are those of PyTorch's functions. Tensors stand in `inputs`, in the",
        "order given before the `;`: `?` marks an optional one, `...` one or more. What follows the `;` is in `attrs`.",
        "Formats: `16-bit` is float16, bfloat16 and (compared, selected, moved) bool; `any` is plain movement.",
        "An op without a device op is written in terms of others, or is a view that costs nothing.",
        "",
        "Roundings: by how many of its format a result may be off where the op is written in terms of others, which",
        "`--check` holds it to (D185); where operands are named, as if each had been rounded so often. Without a",
        "number the steps are exact but for one, or have bounds of their own.",
        "",
        "| op | what it computes | formats | device op | roundings |",
        "|---|---|---|---|---|",
    ]
    for definition in public_ops():
        device = f"`{definition.device.op_func}`" if definition.device is not None else ""
        row = [
            f"`{signature(definition)}`",
            definition.summary,
            formats_text(definition),
            device,
            roundings_text(definition),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"
