"""The JSON schema of ``spyrecode.json``, as far as a schema can say it; generated into ``schemas/``.

Extra keys are allowed, as they are when a plan is read (J10 warns of them).  What steps have to do with each other,
with files and with images (J2 to J9, J11) is the reader's to check.
"""

from __future__ import annotations

import json

from spyrec.bundle.correction_word import MAX_WORDS, WordKind
from spyrec.bundle.host_compute import SPECIFICATION_VERSION
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.bundle.spyrecode_json import MAX_STEPS, SCHEMA_VERSION
from spyrec.diagnostics.json_reading import JsonValue

Schema = dict[str, JsonValue]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"$ref": "#/$defs/decimal"}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def spyrecode_schema() -> str:
    """Return the text of ``schemas/spyrecode.schema.json``."""
    computing = _command("ComputeOnDevice", {"job_bin_ptr": _NUMBER})
    execution: list[JsonValue] = [_compute_on_host(), _data_transfer(), computing]
    transfer: Schema = {"init_bin_file": {"type": "string", "minLength": 1}, "dev_ptr": _NUMBER, "size": _NUMBER}
    slot = _object({"dev_ptr": _NUMBER, "job_bin_ptr": _NUMBER})
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spyrecode.json of a launch artefact",
        "description": "How one job is loaded and launched. Sizes in bytes; pointers are device addresses.",
        **_object(
            {
                "schemaVersion": {"enum": [str(version) for version in range(1, SCHEMA_VERSION + 1)]},
                "JobPreparationPlan": {
                    "type": "array",
                    "prefixItems": [_command("Allocate", {"size": _NUMBER})],
                    "items": _command("InitTransfer", transfer),
                    "minItems": 2,
                    "maxItems": MAX_STEPS,
                },
                "JobExecPlan": {"type": "array", "items": {"oneOf": execution}, "maxItems": MAX_STEPS},
                "correctionSlots": {"type": "array", "items": slot, "maxItems": MAX_SLOTS},
            }
        ),
        "$defs": {"decimal": {"type": "string", "pattern": "^[0-9]+$"}, "word": _word()},
    }
    return json.dumps(schema, indent=2) + "\n"


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _command(name: str, properties: Schema) -> Schema:
    return _object({"command": {"const": name}, "properties": _object(properties)})


def _compute_on_host() -> Schema:
    words: Schema = {"type": "array", "items": {"$ref": "#/$defs/word"}, "maxItems": MAX_WORDS}
    own = _object({"version": {"const": SPECIFICATION_VERSION}, "words": words})
    return _command(
        "ComputeOnHost",
        {
            "ohandle": {"type": "string", "minLength": 1},
            "size": _NUMBER,
            "ishape": {"type": "array", "items": _NUMBER},
            "ihandle": _TEXT,
            "hcm": _object({"spyrec": own}),
        },
    )


def _data_transfer() -> Schema:
    direction: Schema = {"enum": ["false", "true"]}
    return _command("DataTransfer", {"dirn": direction, "host_handle": _TEXT, "dev_ptr": _NUMBER, "size": _NUMBER})


def _word() -> Schema:
    kinds: dict[WordKind, Schema] = {
        WordKind.ARGUMENT: {"index": _COUNT},
        WordKind.POOL: {},
        WordKind.VALUE: {"name": {"type": "string", "minLength": 1}},
        WordKind.STICK_STRIDE: {"index": _COUNT, "dim": _COUNT},
    }
    return {"oneOf": [_object({"kind": {"const": kind.value}, **names}) for kind, names in kinds.items()]}
