"""Compares what a SuperDSC file repeats with what follows from the rest of it.

Nothing here decides execution: folds, names, memory organisation and schedules are verified and never computed from.
A differing value is a warning (SPY0623); a key that no writer known to us puts there is refused (SPY0621), because it
might change the meaning.
"""

from __future__ import annotations

from spyrec.bundle.json_cursor import NOT_UNDERSTOOD, Cursor, describe
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_writer import document
from spyrec.diagnostics import DiagnosticSink
from spyrec.diagnostics.json_reading import JsonValue

DISAGREES = "SPY0623"
"""Code of a repeated field that disagrees with the rest of the file."""

MASK_CONSTANT = "samv-maskvalue"
"""Name by which the mask constant is found (semantics: the name decides, not ``maskingConstId_``)."""

MAX_WARNINGS = 20
"""Warnings of one file: the same fold error is repeated for every operand."""

_INERT_KEYS = frozenset(
    {
        "indirectAccessIndexLabeledDs_",
        "name_",
        "isStartAddrSymbolic_",
        "indirectAllocType_",
        "isPadded",
        "isZeroPadded",
        "interimLabeledDs_",
        "dimToSymbolMapping_",
        "dimToSymbolMappingOpcodeCorrection_",
        "inputSymbolsAndTags_",
        "symbolDefinitions_",
        "backGapCore_",
    }
)
"""Keys of the public schema that may stand where torch-spyre leaves them out; not inert if they hold anything."""

_DERIVED_OBJECTS = ("data_", "memOrg_", "hbm", "lx")
"""Objects whose keys depend on the writer: a further key in them is a difference and no unknown field."""


def check_derived(dsc: SuperDsc, root: Cursor, sink: DiagnosticSink) -> None:
    """Add a warning for each repeated field that disagrees and an error for each key that is not understood."""
    found = DiagnosticSink()
    expected = document(dsc)
    if expected != root.value:
        _compare(expected, root, found)
    _check_mask_constant(dsc, root, found)
    warnings = len(found.diagnostics) - len(found.errors)
    for item in [*found.errors, *(item for item in found.diagnostics if item not in found.errors)][
        : len(found.errors) + MAX_WARNINGS
    ]:
        sink.add(item)
    if warnings > MAX_WARNINGS:
        sink.warning(
            DISAGREES, f"{warnings - MAX_WARNINGS} further differences of this kind are not shown", root.location
        )


def _compare(expected: JsonValue, actual: Cursor, sink: DiagnosticSink) -> None:
    value = actual.value
    if isinstance(expected, dict) and isinstance(value, dict):
        _compare_objects(expected, actual, sink)
    elif isinstance(expected, list) and isinstance(value, list) and len(expected) == len(value):
        for wanted, item in zip(expected, actual.items(), strict=True):
            if wanted != item.value:
                _compare(wanted, item, sink)
    elif expected != value and not _is_same_number(expected, value):
        fact = f"{describe(value)} where the rest of the file gives {describe(expected)}"
        sink.warning(DISAGREES, fact, actual.location)


def _is_same_number(expected: JsonValue, value: JsonValue) -> bool:
    return isinstance(expected, str) and isinstance(value, int) and expected == str(value)


def _compare_objects(expected: dict[str, JsonValue], actual: Cursor, sink: DiagnosticSink) -> None:
    for key, member in actual.members():
        if key in expected:
            if expected[key] != member.value:
                _compare(expected[key], member, sink)
        elif actual.tokens and actual.tokens[-1] in _DERIVED_OBJECTS:
            sink.warning(DISAGREES, f'"{key[:80]}" does not follow from the rest of the file', member.location)
        elif key not in _INERT_KEYS:
            sink.error(NOT_UNDERSTOOD, f'key "{key[:80]}" is not understood (rule V14)', member.location)


def _check_mask_constant(dsc: SuperDsc, root: Cursor, sink: DiagnosticSink) -> None:
    if not dsc.coordinate_masking:
        return
    names = [constant.name for constant in dsc.constants]
    by_id = names[dsc.masking_constant_id] if 0 <= dsc.masking_constant_id < len(names) else None
    if MASK_CONSTANT in names and by_id != MASK_CONSTANT:
        place = root.child(f"{dsc.index}_{dsc.op_func_name}", None).child("dscs_", None).child(0, None)
        where = place.child(dsc.op_func_name, None).child("maskingConstId_", None).location
        fact = (
            f"maskingConstId_ {dsc.masking_constant_id} is {by_id!r}, the mask is constant {names.index(MASK_CONSTANT)}"
        )
        sink.warning(DISAGREES, f'{fact} ("{MASK_CONSTANT}"); the name decides', where)
