"""The JSON schema of ``spyrecode.json``, as far as a schema can say it; generated into ``schemas/``.

Extra keys are allowed, as they are when a plan is read (J10 warns of them).  What steps have to do with each other,
with files and with images (J2 to J9, J11) is the reader's to check.
"""

from __future__ import annotations

import json

from spyrec.bundle.correction_word import word_schema
from spyrec.bundle.host_compute import specification_schema
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.bundle.json_members import Schema, object_schema, schema_of
from spyrec.bundle.launch_plan import Allocate, CorrectionSlot, InitTransfer
from spyrec.bundle.spyrecode_json import EXECUTIONS, MAX_STEPS, PROPERTIES, SCHEMA_VERSION
from spyrec.diagnostics.json_reading import JsonValue


def spyrecode_schema() -> str:
    """Return the text of ``schemas/spyrecode.schema.json``."""
    execution: list[JsonValue] = [_command(step) for step in EXECUTIONS]
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spyrecode.json of a launch artefact",
        "description": "How one job is loaded and launched. Sizes in bytes; pointers are device addresses.",
        **object_schema(
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
            "specification": specification_schema(),
            "word": word_schema(),
        },
    }
    return json.dumps(schema, indent=2) + "\n"


def _command(step: type[object]) -> Schema:
    return object_schema({"command": {"const": step.__name__}, "properties": _properties(step)})


def _properties(step: type[object]) -> Schema:
    return schema_of(PROPERTIES[step])
