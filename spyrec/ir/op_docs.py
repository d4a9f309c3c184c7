"""The catalogue as records and as a page: what ``spyrec ops`` prints and ``docs/ops.md`` holds."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable
from typing import Literal, Union, cast, get_args, get_origin

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import attribute_fields, write_value
from spyrec.ir.attributes import Spelling
from spyrec.ir.op_places import device_form, error_class, places
from spyrec.ir.opdef import OpDef, catalogue
from spyrec.ir.refused_ops import OTHER_NAMES, PLACEMENT_ARGUMENTS, REFUSED_ARGUMENTS, REFUSED_OPS

_SPELLINGS = {item: item.value for item in Spelling}


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
    return (
        None
        if stated is None
        else {
            "result": stated.result,
            "operands": stated.operands,
            "distance_from": stated.centre and stated.centre.name,
            "has_gate": stated.gated is not None,
        }
    )


def roundings_text(definition: OpDef) -> str:
    """Return how far results may be off where the op is made of others: ``4, and 1 of each operand``.

    All that :class:`Roundings` states is said.
    """
    stated = definition.roundings
    if stated is None:
        return "" if definition.exact_with is None else f"0 with {definition.exact_with}"
    text = f"{stated.result:g}" + (f", and {stated.operands:g} of each operand" if stated.operands else "")
    text += f", of the first its distance from {stated.centre.name}" if stated.centre is not None else ""
    return text + (", and that of a gate below 2**-126" if stated.gated is not None else "")


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


def details(definition: OpDef) -> str:
    """Return what ``spyrec ops NAME`` prints about an op."""
    lines = [signature(definition), f"  {definition.summary}", ""]
    attributes = attribute_fields(definition.attributes).values()
    width = 1 + max((len(item.name) for item in (*definition.operands, *attributes)), default=0)
    width = max(width, 18)
    for spec in definition.operands:
        notes = [
            text
            for text, holds in (
                ("optional", spec.is_optional),
                ("one or more", spec.is_variadic),
                ("or a number", spec.accepts_number),
                ("of a dtype of its own", spec.is_condition),
            )
            if holds
        ]
        lines.append(f"  operand    {spec.name:{width}}tensor{''.join(f', {note}' for note in notes)}")
    for field in attributes:
        default = "required" if field.is_required else f"default {_default_text(write_value(field.default))}"
        lines.append(f"  attribute  {field.name:{width}}{type_text(field.annotation)}, {default}")
    lines.extend(
        [f"  where      {places_text(definition).replace('`', '')}", f"  error      {error_class(definition)}"]
    )
    if definition.name in REFUSED_ARGUMENTS:
        lines.append(f"  refused    {', '.join(REFUSED_ARGUMENTS[definition.name])}")
    if roundings_text(definition):
        lines.append(f"  roundings  {roundings_text(definition)}")
    return "\n".join(lines)


def public_ops() -> Iterable[OpDef]:
    """Return the ops that a graph file may hold, by name."""
    return [definition for definition in catalogue().values() if definition.is_public]


def places_text(definition: OpDef) -> str:
    """Return where an op is computed, by dtype: ``16-bit, float32: `exp`; int, bool: host``."""
    by_place: dict[tuple[str, ...], list[str]] = {}
    for name, found in places(definition).items():
        by_place.setdefault(found, []).append(name)
    if not by_place:
        return device_form(definition)
    return "; ".join(f"{', '.join(names)}: {' or '.join(found)}" for found, names in by_place.items())


def docs_page() -> str:
    """Return ``docs/ops.md``."""
    lines = [
        "# The ops of a graph file",
        "",
        "Generated from the catalogue by `make cases`; `spyrec ops NAME` shows one op with its attributes' types.",
        "",
        "[What models call of them](model_calls.md), and how much of it is right, has a page of its own.",
        "",
        "Names, argument order and attributes are those of PyTorch's functions. Tensors stand in `inputs`, in the",
        "order given before the `;`: `?` marks an optional one, `...` one or more. What follows the `;` is in `attrs`.",
        "",
        "* *Where*: by the dtype of the first tensor that is no condition and no index. A device operation stands in",
        "  backquotes; what is `decomposed` is written in terms of others, a `view` costs nothing, a `copy` moves",
        "  elements, and the `host` computes between two programs what the device has no form of. `16-bit`",
        "  is float16 and bfloat16, `int` is int64, int32, int16, int8 and uint8. Of two places attributes decide, or",
        "  whether a weight of few bits is a constant. On a target that has them (`--target 2026-08`) average pools,",
        "  convolutions and `topk` of 16 bits are operations of the device where they have its form (D200, D208); the",
        "  largest of windows are maxima of shifted slices, which are exact: no file shows the device's own operation.",
        "* *Error*: how `--check` bounds a result; every store rounds once in its format besides.",
        "* *Roundings*: by how many of its format a result may be off where the op is made of others, which",
        "  `--check` holds it to (D185); where operands are named, as if each had been rounded so often. Besides each",
        "  operand may be off by 16 roundings of float32, which is what arithmetic inside may cost. A *gate* is a",
        "  float32 factor inside that goes to 0: below 2\\*\\*-126 a rounding is absolute, and the result may be off",
        "  by 2\\*\\*-150 times what the gate multiplies (`silu(-100)` by 1.9 %), but never by more than all of it.",
        "  Of 0 the result is the op at the operands that the device holds, to the last digit.",
        "  Without a number the steps are exact but for one, or have bounds of their own. A bound of `clamp` and",
        "  `beta` and `threshold` of `softplus` are constants of the device's operation, which rounds them to 16 bits:",
        "  with a `beta` of 0.1 results far below 0 are off by abs(beta x) / 2 roundings, 5 at x = -120.",
        "  Where roundings are those of a distance, it is the distance from a mean or largest element that was found",
        "  by arithmetic inside: what that rounded is taken out again, and roundings of it are left. Below the",
        "  least number of the 16 bits, 2\\*\\*-31, a rounding is absolute, 2\\*\\*-32 of each distance:",
        "  `layer_norm` of bfloat16 rows of 2\\*\\*-30 may be off by 2\\*\\*-32 / sqrt(eps), which is 7e-8, where",
        "  its results are 3e-7 (D252).",
        "* *Range*: what is squared inside is held in float32, of `layer_norm` and `rms_norm` in the format of the",
        "  operand. A square is an infinity beyond 1.8e19 (9.2e4 of bfloat16), and rows of the norms that divide by",
        "  the root of their mean are 0 then, which `--check` reports. `norm`, `var` and `std` add squares up: they",
        "  are an infinity where the sum passes 3.4e38, that is for 1000 numbers from 5.8e17; `--check` forgives it",
        "  of `norm`, and of `var` where the result itself is beyond float32. Below 2.6e-23 a square is 0, so that",
        "  `norm` and `std` of float32 rows smaller than that are 0; it forgives that of `norm`. `log_softmax` is a",
        "  difference of float32 numbers: near 0, where one element outweighs its row, it is off by roundings of",
        "  float32 of the row's largest distances, not by some of its own size, as PyTorch's is. `add`, `sub` and",
        "  `rsub` form alpha times an operand in float32: beyond 3.4e38 it is an infinity, and so is a float32",
        "  result that lies within, which `--check` reports; PyTorch adds the product before it rounds it.",
        "* *NaN*: of 16 bits the device has one class for NaN and the infinities, and what it makes of either comes",
        "  back as an infinity, to operations of the host, too; float32 tells them apart. `--check` takes one for the",
        "  other in graphs of 16 bits.",
        "  What is brought to the device lies within its 16 bits: an input or constant of bfloat16 beyond",
        "  8,573,157,376 becomes that number, so that masks stay numbers, and `clone` and all that moves it return",
        "  it. What the device computes overflows to an infinity, conversions too: `to(float32 1e10 -> bfloat16)`",
        "  is one (D250). `pow` of -inf to a negative fraction, which is 0, is an infinity here, since roots of it",
        "  are none; `--check` reports it (D293).",
        "* *Dtypes*: of results are PyTorch's, of all mixtures of tensors and numbers. Where no tensor tells,",
        "  floats are float16 in place of PyTorch's default, as in `where(c, 1, 2.0)`; `where(c, 1, 2)` is int64.",
        "  `full` without `dtype` is float16 whatever the number is. Arithmetic of int32, int16, int8 and",
        "  uint8 wraps around as PyTorch's. Operands are converted to the dtype that an op computes in before it does,",
        "  so that the int64 16777217 equals the float 16777216, and the 0-d int64 300 beside int8 is 44 (D290).",
        "  int64 is held in 32 bits: a constant, an input or a result that does",
        "  not fit is refused with the value, as is a conversion to int32 that does not (SPY0318), of which PyTorch",
        "  promises nothing.",
        "* *Beyond PyTorch*: computed here, though PyTorch 2.13 refuses it on a CPU: `mean` of integers and bools,",
        "  which is float32; `histc` of integers; whole quotients by 0, which are 0, and their remainders; `cdist`,",
        "  `pdist` and `avg_pool3d` of 16 bits; `pad` by reflection or replication, `bucketize` and `searchsorted`",
        "  of bools; `round` of integers to 0 decimals; numbers that IEEE half does not hold, as attributes beside",
        "  float16.",
        "* *Refused*: what PyTorch takes and a graph does not; it is refused by name. Refused of every op: dtypes",
        "  that *where* does not name; two float dtypes in one op (SPY0203: a cast that nobody asked for would",
        "  round); a number that is no value of the dtype beside it (SPY0215), but for bools that are filled; true",
        "  and false where an attribute is a number (SPY0122); the largest, smallest or median of no elements",
        "  (SPY0222); a tensor where an attribute is a number, since shapes are known when a graph is compiled;",
        "  what",
        f"  says where a result lies, and how ({', '.join(f'`{name}`' for name in PLACEMENT_ARGUMENTS)}).",
        "",
        "Graphs that there were before these ops compile no slower and move no more: of 21 (the examples, a decoder,",
        "layers, the workloads that plans are judged by, the Granite block) each takes 0.52 to 0.99 of the processor",
        "time per SuperDSC that it took, with the same bytes of traffic (AMD EPYC Zen 4, AVX-512, two cores, in turns,",
        "minima).",
        "",
        "| op | what it computes | where | error | roundings | refused |",
        "|---|---|---|---|---|---|",
    ]
    for definition in public_ops():
        refused = ", ".join(f"`{name}`" for name in REFUSED_ARGUMENTS.get(definition.name, ()))
        row = [
            f"`{signature(definition)}`",
            definition.summary,
            places_text(definition),
            error_class(definition),
            roundings_text(definition).replace("**", r"\*\*"),
            refused,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    lines += [
        "",
        "## Ops that are refused",
        "",
        "Together with the table above and the names below these are all that PyTorch 2.13 tags as core ATen, and some",
        "more.",
        "",
        "| op | why |",
        "|---|---|",
        *(f"| `{name}` | {reason} |" for name, reason in sorted(REFUSED_OPS.items())),
        "",
        "## Other names",
        "",
        "| PyTorch's name | the op here |",
        "|---|---|",
        *(f"| `{name}` | {_quoted(OTHER_NAMES[name])} |" for name in sorted(OTHER_NAMES)),
    ]
    return "\n".join(lines) + "\n"


def _quoted(names: Iterable[str]) -> str:
    public = {definition.name for definition in public_ops()}
    return ", ".join(f"`{name}`" for name in names if name in public)
