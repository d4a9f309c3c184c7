"""The JSON schema of ``spyrecode.json``, as far as a schema can say it; generated into ``schemas/``.

Extra keys are allowed, as they are when a plan is read (J10 warns of them).  What steps have to do with each other,
with files and with images (J2 to J9, J11) is the reader's to check.
"""

from __future__ import annotations

import json

from spyrec.bundle.correction_word import MAX_WORDS, WordKind
from spyrec.bundle.host_compute import SPECIFICATION_VERSION
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.bundle.launch_plan import Allocate, CorrectionSlot, InitTransfer
from spyrec.bundle.spyrecode_json import EXECUTIONS, MAX_STEPS, PROPERTIES, SCHEMA_VERSION
from spyrec.diagnostics.json_reading import JsonValue

Schema = dict[str, JsonValue]

_COUNT: Schema = {"type": "integer", "minimum": 0}


def spyrecode_schema() -> str:
    """Return the text of ``schemas/spyrecode.schema.json``."""
    execution: list[JsonValue] = [_command(step) for step in EXECUTIONS]
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spyrecode.json of a launch artefact",
        "description": "How one job is loaded and launched. Sizes in bytes; pointers are device addresses.",
        **_object(
            {
                "schemaVersion": {"enum": [str(version) for version in range(1, SCHEMA_VERSION + 1)]},
                "JobPreparationPlan": {
                    "type": "array",
                    "prefixItems": [_command(Allocate)],
                    "items": _command(InitTransfer),
                    "minItems": 2,
                    "maxItems": MAX_STEPS,
                },
                "JobExecPlan": {"type": "array", "items": {"oneOf": execution}, "maxItems": MAX_STEPS},
                "correctionSlots": {"type": "array", "items": _properties(CorrectionSlot), "maxItems": MAX_SLOTS},
            }
        ),
        "$defs": {
            "decimal": {"type": "string", "pattern": "^[0-9]+$"},
            "specification": _specification(),
            "word": _word(),
        },
    }
    return json.dumps(schema, indent=2) + "\n"


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _command(step: type[object]) -> Schema:
    return _object({"command": {"const": step.__name__}, "properties": _properties(step)})


def _properties(step: type[object]) -> Schema:
    return _object({key: kind.schema for key, kind in PROPERTIES[step].items()})


def _specification() -> Schema:
    words: Schema = {"type": "array", "items": {"$ref": "#/$defs/word"}, "maxItems": MAX_WORDS}
    own = _object({"version": {"const": SPECIFICATION_VERSION}, "words": words})
    return _object({"spyrec": own})


def _word() -> Schema:
    kinds: dict[WordKind, Schema] = {
        WordKind.ARGUMENT: {"index": _COUNT},
        WordKind.POOL: {},
        WordKind.VALUE: {"name": {"type": "string", "minLength": 1}},
        WordKind.STICK_STRIDE: {"index": _COUNT, "dim": _COUNT},
    }
    return {"oneOf": [_object({"kind": {"const": kind.value}, **names}) for kind, names in kinds.items()]}
