"""What a SuperDSC file must look like beyond being executable: as torch-spyre emits it, or as the public schema says.

Source of the ``spec`` profile: the public ``sdscbundle-schema.json`` 1.2.0, in the points where it differs from what
torch-spyre's writer emits; the other rules of that schema hold for every file that the reader accepts.
"""

from __future__ import annotations

from enum import Enum

from spyrec.bundle.dsc_actions import computing
from spyrec.bundle.json_cursor import Cursor
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_writer import document
from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.diagnostics import DiagnosticSink
from spyrec.diagnostics.json_reading import JsonValue

NOT_AS_EMITTED = "SPY0624"
"""Code of a file that leaves out what torch-spyre's writer always writes."""

NOT_AS_SPECIFIED = "SPY0625"
"""Code of a file that the public schema 1.2.0 does not allow."""

_SPEC_FORMATS = ("SEN169_FP16", "SEN169_BFP16", "SEN169_FP32", "SEN169_INT8", "SEN169_INT16", "SEN169_INT32")
_SPEC_LABELS = ("INPUT", "OUTPUT", "KERNEL", "KERNEL_IDX")
_SPEC_UNITS = ("sfp", "pt")
_SPEC_FORBIDDEN_KEYS = {
    "indexTensorType_": "the schema has no such key",
    "indirectAccessIndexLabeledDs": 'the schema spells it "indirectAccessIndexLabeledDs_"',
}
_SPEC_REQUIRED_KEYS = ("coreFoldProp_", "coreletFoldProp_", "numCoresUsed_", "coreIdToDsc_", "coreIdToDscSchedule")
_SPEC_VALUES = {"dataFormat_": _SPEC_FORMATS, "dsType_": _SPEC_LABELS, "exUnit": _SPEC_UNITS}
_UNCHECKED_PARENTS = ("attributes_",)  # the schema leaves the format of computeOp_ open


class FormatProfile(Enum):
    """Whose rules a SuperDSC file is held against."""

    EMITTED = "emitted"
    SPEC = "spec"
    PREFLIGHT = "pre-flight"


def check_profile(dsc: SuperDsc, root: Cursor, profile: FormatProfile, sink: DiagnosticSink) -> None:
    """Add what a profile finds in a readable file: SPY0624 (warnings, ``emitted``) or SPY0625 (errors, ``spec``).

    What ``pre-flight`` finds depends on the program and the bytes of operands: see ``preflight``.
    """
    match profile:
        case FormatProfile.EMITTED:
            _check_missing(document(dsc), root, sink)
            _check_unit(dsc, root, sink)
        case FormatProfile.SPEC:
            _check_spec(root, sink)
        case FormatProfile.PREFLIGHT:
            pass


def _check_missing(expected: JsonValue, actual: Cursor, sink: DiagnosticSink) -> None:
    """Report keys that the writer always writes; what differs in value is reported by the reader."""
    value = actual.value
    if isinstance(expected, dict) and isinstance(value, dict):
        for key, wanted in expected.items():
            if key not in value:
                fact = f'key "{key}" is missing, torch-spyre always writes it'
                sink.warning(NOT_AS_EMITTED, fact, actual.location)
            elif wanted != value[key]:
                _check_missing(wanted, actual.child(key, value[key]), sink)
    elif isinstance(expected, list) and isinstance(value, list):
        for wanted, item in zip(expected, actual.items()):
            _check_missing(wanted, item, sink)


def _check_unit(dsc: SuperDsc, root: Cursor, sink: DiagnosticSink) -> None:
    """Report a unit that torch-spyre does not write for an operation that is known; it decides no result."""
    for position, item in enumerate(computing(dsc)):
        known, unit = DEVICE_OPERATIONS.get(item.op_func_name), item.compute.execution_unit
        if known is not None and unit != known.unit:
            _, outer = root.only_member("name")
            where = outer.location.child("dscs_").child(position)
            fact = f'exUnit is "{unit[:80]}", torch-spyre writes "{known.unit}" for {item.op_func_name}'
            sink.warning(NOT_AS_EMITTED, fact, where)


def _check_spec(root: Cursor, sink: DiagnosticSink) -> None:
    _, outer = root.only_member("name")
    for key in _SPEC_REQUIRED_KEYS:
        if outer.optional(key) is None:
            sink.error(
                NOT_AS_SPECIFIED, f'key "{key}" is missing', outer.location, hint="the public schema requires it"
            )
    _walk(outer, sink)


def _walk(cursor: Cursor, sink: DiagnosticSink) -> None:
    if isinstance(cursor.value, list):
        for item in cursor.items():
            _walk(item, sink)
    elif isinstance(cursor.value, dict):
        for key, member in cursor.members():
            if key in _SPEC_FORBIDDEN_KEYS:
                fact = f'key "{key}": {_SPEC_FORBIDDEN_KEYS[key]}'
                sink.error(NOT_AS_SPECIFIED, fact, member.location, hint="torch-spyre writes it all the same")
            _check_value(key, member, cursor, sink)
            _walk(member, sink)


def _check_value(key: str, member: Cursor, parent: Cursor, sink: DiagnosticSink) -> None:
    allowed = _SPEC_VALUES.get(key)
    if allowed is None or member.value in allowed or (parent.tokens and parent.tokens[-1] in _UNCHECKED_PARENTS):
        return
    fact = f'{key} is "{member.text()}", the schema allows {", ".join(allowed)}'
    sink.error(NOT_AS_SPECIFIED, fact, member.location, hint="torch-spyre writes more than the schema 1.2.0 lists")
