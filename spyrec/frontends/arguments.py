"""The arguments of a call on a builder, brought into the form of the graph file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.call_site import CallSite
from spyrec.frontends.dim import Dim
from spyrec.frontends.value import Value, ValueOwner, is_number
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import attribute_fields, write_number
from spyrec.ir.opdef import OpDef
from spyrec.layout.device_layout import DeviceLayout

DTypeLike = str | DType | np.dtype[np.generic] | type[np.generic]
"""A dtype: PyTorch's name (``"bfloat16"``), or NumPy's own where NumPy has it."""

Layout = DeviceLayout | Mapping[str, Sequence[int]]
"""A pinned layout: ``{"dim_order": ...}``, ``{"device_size": ..., "stride_map": ...}``, or both lists as a layout."""

WorkDivision = Mapping[str | Dim, int]
"""A pinned split: slices by dim, or by position (``"out.0"``, ``"reduce.0"``)."""


def bind(
    definition: OpDef, operands: Sequence[object], keywords: Mapping[str, object], site: CallSite
) -> tuple[list[object], dict[str, object]]:
    """Return (operands, attributes) of a call.

    Operands may be given by name.  An op of several tensors takes them in a list as well.  After the operand of an op
    of one, attributes may follow by position, as in PyTorch.  Errors: SPY0120 an operand twice.
    """
    given, attributes = list(operands), dict(keywords)
    if definition.is_variadic:
        return _bind_list(definition, given, attributes)
    count = len(definition.operands)
    if count <= 1:
        rest = given[count:]
        _attributes_by_position(definition, rest, attributes)
        given = [*given[:count], *rest]
    for index, spec in enumerate(definition.operands):
        if spec.name in attributes:
            if index < len(given) and given[index] is None and spec.name in definition.number_attributes:
                given[index] = attributes.pop(spec.name)  # a number in the place that was left free for it
                continue
            if index < len(given):
                message = f'operand {index} ("{spec.name}") of {definition.name} is given twice'
                raise refuse("SPY0120", message, site, hint="give it by position or by name")
            given.extend([None] * (index - len(given)))
            given.append(attributes.pop(spec.name))
    while given and given[-1] is None:
        given.pop()
    return given, attributes


def _bind_list(
    definition: OpDef, given: list[object], attributes: dict[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Bind an op of several tensors: a list, or one after the other; behind a tensor a list counts as its items."""
    if given and isinstance(given[0], list | tuple):
        rest = given[1:]
        _attributes_by_position(definition, rest, attributes)
        return [*cast("Sequence[object]", given[0]), *rest], attributes
    named = attributes.pop(definition.operands[-1].name, [])
    given = [
        item for one in given for item in (cast("Sequence[object]", one) if isinstance(one, list | tuple) else [one])
    ]
    return [*given, *(cast("Sequence[object]", named) if isinstance(named, list | tuple) else [named])], attributes


def _attributes_by_position(definition: OpDef, rest: list[object], attributes: dict[str, object]) -> None:
    """Move values from ``rest`` to ``attributes``, as long as there are names; what is left counts as operands."""
    for name in attribute_fields(definition.attributes):
        if not rest or name in attributes:
            return
        attributes[name] = rest.pop(0)


def operand_json(value: object, owner: ValueOwner, site: CallSite) -> JsonValue:
    """Return an operand as ``inputs`` of a node have it.

    Errors: SPY0103 NaN, SPY0110 neither value nor number, SPY0143 a value of another builder.
    """
    if value is None:
        return None
    if isinstance(value, Value):
        if value.owner is not owner:
            raise refuse("SPY0143", f'"{value.name}" belongs to another builder', site)
        return value.name
    if is_number(value):
        number = cast("float", value.item()) if isinstance(value, np.generic) else value
        if number != number:  # noqa: PLR0124 -- NaN
            raise refuse("SPY0103", "an operand is NaN", site)
        return number
    is_array = isinstance(value, np.ndarray | list | tuple)
    hint = "declare it first: builder.constant(name, numbers)" if is_array else "give a value of this builder"
    raise refuse("SPY0110", f"an operand is {_kind(value)}, no value and no number", site, hint=hint)


def attribute_json(value: object, site: CallSite) -> JsonValue:
    """Return an attribute as ``attrs`` of a node have it.  Errors: SPY0122."""
    match value:
        case Dim():
            return value.name
        case None | bool() | int() | str():
            return value
        case float():
            return write_number(value)
        case np.number() | np.bool_():
            return attribute_json(cast("object", value.item()), site)
        case list() | tuple() | range():
            return [attribute_json(item, site) for item in cast("Sequence[object]", value)]
        case DType() | np.dtype() | type():
            return dtype_name(cast("DTypeLike", value), site)
        case _:
            raise refuse("SPY0122", f"an attribute is {_kind(value)}", site, hint="give numbers, names or lists")


def dtype_name(dtype: DTypeLike, site: CallSite) -> str:
    """Return the name of a dtype, which need not be known yet.  Errors: SPY0140 no dtype at all."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, DType):
        return dtype.value
    try:
        return np.dtype(dtype).name
    except TypeError:
        raise refuse("SPY0140", f"{dtype!r:.60} is no dtype", site, hint='write its name: "float16"') from None


def layout_json(layout: Layout, site: CallSite) -> JsonValue:
    """Return a pinned layout as the graph file has it.  Errors: SPY0136."""
    if isinstance(layout, DeviceLayout):
        return {"device_size": list(layout.device_size), "stride_map": list(layout.stride_map)}
    try:
        pairs = cast("Mapping[object, Iterable[object]]", layout).items()
        return {str(key): [attribute_json(item, site) for item in entries] for key, entries in pairs}
    except (AttributeError, TypeError, SpyrecError):
        hint = 'write {"dim_order": [...]}, or a spyrec.DeviceLayout'
        raise refuse("SPY0136", f"the layout is {_kind(layout)}", site, hint=hint) from None


def division_json(division: WorkDivision, site: CallSite) -> JsonValue:
    """Return a pinned work division as the graph file has it.  Errors: SPY0135."""
    try:
        pairs = cast("Mapping[object, object]", division).items()
    except AttributeError:
        raise refuse("SPY0135", f"the work division is {_kind(division)}", site, hint="write {dim: slices}") from None
    return {dim_name(key): attribute_json(count, site) for key, count in pairs}


def requests_json(requests: Mapping[str, object], site: CallSite) -> dict[str, JsonValue]:
    """Return what a call asks for beside the op, without what it does not ask for."""
    result: dict[str, JsonValue] = {}
    if requests["outputs"] is not None:
        result["outputs"] = attribute_json(requests["outputs"], site)
    if requests["layout"] is not None:
        result["layout"] = layout_json(cast("Layout", requests["layout"]), site)
    if requests["work_division"] is not None:
        result["work_division"] = division_json(cast("WorkDivision", requests["work_division"]), site)
    return result


def dim_name(dim: object) -> str:
    """Return the name of a dim given as such or by its name."""
    return dim.name if isinstance(dim, Dim) else str(dim)


def _kind(value: object) -> str:
    """Return what an object is, as messages say it."""
    name = type(value).__name__
    return f'"{value[:60]}"' if isinstance(value, str) else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
