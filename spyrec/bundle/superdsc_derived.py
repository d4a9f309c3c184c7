"""Compares what a SuperDSC file repeats with what follows from the rest of it.

Nothing here decides execution: folds (but those of a shuffle), names and memory organisation are verified and never
computed from.
A differing value is a warning (SPY0623).  A key that no writer known to us puts there is refused (SPY0621), because it
might change the meaning; where it holds nothing it changes none, and is a warning (SPY0626).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from spyrec.bundle.json_cursor import NOT_UNDERSTOOD, Cursor, describe, is_nothing
from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.bundle.superdsc_writer import document
from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location
from spyrec.diagnostics.json_reading import JsonValue

DISAGREES = "SPY0623"
"""Code of a repeated field that disagrees with the rest of the file."""

IGNORED = "SPY0626"
"""Code of a key that is not known and holds nothing."""

STRICT = frozenset({IGNORED})
"""Codes of the warnings that are errors to whoever asks for strict reading."""

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
        "datadscs_",
        "opFuncsUsed_",
        "ldsShareInfo_",
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
    _check_pages(dsc, root, found)
    differences = [item for item in found.diagnostics if item.code == DISAGREES]
    for item in (*found.errors, *_counted(found), *differences[:MAX_WARNINGS]):
        sink.add(item)
    if len(differences) > MAX_WARNINGS:
        fact = f"{len(differences) - MAX_WARNINGS} further differences of this kind are not shown"
        sink.warning(DISAGREES, fact, root.location)


def _counted(found: DiagnosticSink) -> Iterator[Diagnostic]:
    """Yield one warning for each name of keys that are ignored, at the first of its places."""
    ignored = [item for item in found.diagnostics if item.code == IGNORED]
    counts = Counter(item.message for item in ignored)
    for item in {item.message: item for item in reversed(ignored)}.values():
        count = counts[item.message]
        yield replace(item, notes=(f"it stands in {count} places of the file",)) if count > 1 else item


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
        elif key in _INERT_KEYS:
            continue
        elif is_nothing(member.value):
            sink.warning(IGNORED, f'key "{key[:80]}" is not known and holds nothing', member.location)
        elif actual.tokens and actual.tokens[-1] in _DERIVED_OBJECTS:
            sink.warning(DISAGREES, f'"{key[:80]}" does not follow from the rest of the file', member.location)
        else:
            sink.error(NOT_UNDERSTOOD, f'key "{key[:80]}" is not understood (rule V14)', member.location)


def _check_mask_constant(dsc: SuperDsc, root: Cursor, sink: DiagnosticSink) -> None:
    where = _dsc_place(dsc, root).child("maskingConstId_")
    names = [constant.name for constant in dsc.constants]
    if not dsc.coordinate_masking:
        if dsc.masking_constant_id >= len(names):
            count = f"there {'is' if len(names) == 1 else 'are'} {len(names) or 'none'}"
            sink.warning(DISAGREES, f"maskingConstId_ {dsc.masking_constant_id} names a constant, {count}", where)
        return
    by_id = names[dsc.masking_constant_id] if 0 <= dsc.masking_constant_id < len(names) else None
    if MASK_CONSTANT in names and by_id != MASK_CONSTANT:
        fact = (
            f"maskingConstId_ {dsc.masking_constant_id} is {by_id!r}, the mask is constant {names.index(MASK_CONSTANT)}"
        )
        sink.warning(DISAGREES, f'{fact} ("{MASK_CONSTANT}"); the name decides', where)


def _check_pages(dsc: SuperDsc, root: Cursor, sink: DiagnosticSink) -> None:
    """Report sizes of pages where nothing is paged: only operations that go by an index have any."""
    is_paged = any(operand.indirection is not Indirection.NONE for operand in dsc.operands)
    due = "a size or -1" if is_paged else "-1"
    for position, operand in enumerate(dsc.operands if dsc.schedule is None else ()):
        for dim, size in operand.max_dim_sizes.items():
            if size == -1 or (is_paged and size > 0):
                continue
            where = _dsc_place(dsc, root).child("scheduleTree_").child(position).child("maxDimSizes_")
            sink.warning(DISAGREES, f"maxDimSizes_ of {dim} is {size} where the rest of the file gives {due}", where)


def _dsc_place(dsc: SuperDsc, root: Cursor) -> Location:
    first = root.location.child(f"{dsc.index}_{dsc.op_func_name}").child("dscs_").child(0)
    return first.child(dsc.op_func_name)
