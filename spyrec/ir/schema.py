"""``schemas/graph.schema.json``: the form from the pydantic models, the ops from the catalogue."""

from __future__ import annotations

import json
from typing import cast

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import NUMBER_SCHEMA, attribute_fields, attribute_schema
from spyrec.ir.graph_model import GraphModel
from spyrec.ir.opdef import OpDef, catalogue
from spyrec.ir.tensor_file import WIDE


def graph_schema() -> str:
    """Return the JSON schema of ``spyrec.graph/1`` as text, ending in a newline.

    It says what a file may hold; what holds between its parts (names, shapes, dtypes) only the reader checks.
    """
    schema = cast("dict[str, JsonValue]", GraphModel.model_json_schema(by_alias=True))
    definitions = cast("dict[str, dict[str, JsonValue]]", schema["$defs"])
    node = definitions["NodeModel"]
    properties = cast("dict[str, JsonValue]", node["properties"])
    public = [definition for definition in catalogue().values() if definition.is_public]
    properties["op"] = {"enum": [definition.name for definition in public]}
    node["allOf"] = [_op_schema(definition) for definition in public]
    dtypes: JsonValue = {"enum": [item.value for item in DType]}
    of_constants: JsonValue = {"enum": [*(item.value for item in DType), WIDE]}
    for model, known in (("InputModel", dtypes), ("ConstantModel", of_constants)):
        cast("dict[str, JsonValue]", definitions[model]["properties"])["dtype"] = known
    result = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "graph.schema.json",
        **schema,
        "title": "spyrec.graph/1",
    }
    return json.dumps(result, indent=2) + "\n"


def _op_schema(definition: OpDef) -> JsonValue:
    """Return what a node of this op holds: how many operands, and which attributes."""
    fields = attribute_fields(definition.attributes)
    attributes: dict[str, JsonValue] = {name: attribute_schema(field.annotation) for name, field in fields.items()}
    attributes.update({spec.name: NUMBER_SCHEMA for spec in definition.operands if spec.accepts_number})
    then: dict[str, JsonValue] = {
        "attrs": {"type": "object", "properties": attributes, "additionalProperties": False},
    }
    if not definition.is_variadic:
        places = {*(spec.name for spec in definition.operands), *definition.number_attributes}
        then["inputs"] = {"maxItems": len(places)}
    # an attribute that may stand among the inputs is not required here
    required = [
        name for name, field in fields.items() if field.is_required and name not in definition.number_attributes
    ]
    result: dict[str, JsonValue] = {"properties": then}
    if required:
        cast("dict[str, JsonValue]", then["attrs"])["required"] = list(required)
        result["required"] = ["attrs"]
    return {"if": {"properties": {"op": {"const": definition.name}}}, "then": result}
