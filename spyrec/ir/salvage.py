"""Keeps what has the right form of a graph file whose other parts have not, so that its meaning can be checked too.

A field without the right form is *lost*: a stand-in takes its place, and whoever reads the item looks at
:class:`~spyrec.ir.graph_text.GraphForm` before drawing a conclusion from it.  Items keep their positions: locations
stay right.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import cast

from pydantic import ValidationError

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.graph_model import (
    ConstantModel,
    GraphModel,
    InputModel,
    LoopModel,
    Model,
    NodeModel,
    SymbolicDimModel,
    as_text,
)
from spyrec.ir.graph_text import NAMELESS, GraphForm, is_name

_MOST_COMPARED = 1000
"""Unknown keys that are compared with those that are absent."""

_DECLARING_SECTIONS = frozenset({"dims", "inputs", "constants", "prologue", "nodes"})
_STAND_INS: dict[str, object] = {
    "name": NAMELESS, "shape": [], "dtype": "float16", "op": "", "inputs": [], "attrs": {}, "body": [], "dim": [],
}  # fmt: skip


def salvage(data: dict[str, JsonValue]) -> GraphForm:
    """Return what of a graph object can be read; the object has been refused as a whole."""
    lost: dict[tuple[str, int], frozenset[str]] = {}
    sections: dict[str, object] = {}
    for section, model in (("inputs", InputModel), ("constants", ConstantModel), ("prologue", NodeModel),
                           ("nodes", NodeModel), ("loops", LoopModel)):  # fmt: skip
        found = data.get(section)
        items: list[Model] = []
        for index, item in enumerate(found if isinstance(found, list) else []):
            kept, lost[section, index] = _item(model, item)
            items.append(kept)
        sections[section] = items
    dims, lost_dims = _dims(data.get("dims"))
    outputs = data.get("outputs")
    names = [name if is_name(name) else NAMELESS for name in outputs] if isinstance(outputs, list) else []
    name = data.get("name")
    model = GraphModel.model_construct(
        None, format=data.get("format"), name=name if is_name(name) else "graph", dims=dims, outputs=names, **sections
    )
    return GraphForm(as_text(model), lost, lost_dims, _has_all_names(data))


def _has_all_names(data: dict[str, JsonValue]) -> bool:
    known = {item.alias or name for name, item in GraphModel.model_fields.items()}
    absent = [section for section in _DECLARING_SECTIONS if section not in data]
    unknown = data.keys() - known
    # among so many any word may be meant, and to compare them all takes long
    if len(unknown) > _MOST_COMPARED or any(get_close_matches(key, absent, n=1) for key in unknown):
        return False
    kinds = {section: dict if section == "dims" else list for section in _DECLARING_SECTIONS}
    return all(
        isinstance(data[section], kind) and not _holds_nameless(data[section])
        for section, kind in kinds.items()
        if section in data
    )


def _holds_nameless(section: JsonValue) -> bool:
    """Whether an item of a section has no name at all (one without the right form cannot be meant elsewhere)."""
    return isinstance(section, list) and any(not isinstance(item, dict) or "name" not in item for item in section)


def _dims(found: JsonValue) -> tuple[dict[str, int | SymbolicDimModel], frozenset[str]]:
    dims: dict[str, int | SymbolicDimModel] = {}
    lost: set[str] = set()
    for name, value in found.items() if isinstance(found, dict) else ():
        try:
            part = {"format": "spyrec.graph/1", "dims": {name: value}, "outputs": ["x"]}
            dims |= GraphModel.model_validate(part).dims
        except ValidationError:
            lost.add(name)
    return dims, frozenset(lost)


def _item(model: type[Model], item: JsonValue) -> tuple[Model, frozenset[str]]:
    """Return one item with stand-ins for what is lost, and the names of the lost fields."""
    fields = model.model_fields
    given = item if isinstance(item, dict) else {}
    # an unknown key may be meant as any field that is absent
    lost: set[str] = set(fields) - given.keys() if given.keys() - fields.keys() or given is not item else set()
    try:
        return model.model_validate({key: value for key, value in given.items() if key in fields}), frozenset(lost)
    except ValidationError as error:
        lost |= {str(detail["loc"][0]) for detail in error.errors(include_url=False, include_context=False)}
    rest = {key: value for key, value in given.items() if key in fields and key not in lost}
    stand_ins = {key: _STAND_INS[key] for key, info in fields.items() if key not in rest and info.is_required()}
    names = given.get("outputs") if model is NodeModel and "outputs" in lost else None
    if isinstance(names, list):
        stand_ins["outputs"] = [name for name in names if is_name(name)]
    sound = _validated(model, rest, stand_ins)
    return model.model_construct(None, **sound), frozenset(lost)


def _validated(model: type[Model], rest: Mapping[str, JsonValue], stand_ins: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of ``rest`` as the model holds them, the stand-ins beside them."""
    legal: dict[str, object] = {"name": "x", "op": "x", "dim": "x", "body": ["x"]}
    filled = {key: legal.get(key, value) for key, value in stand_ins.items()}
    parsed = model.model_validate({**filled, **rest})
    values = {key: cast("object", getattr(parsed, key)) for key in model.model_fields}
    return {**values, **stand_ins}
