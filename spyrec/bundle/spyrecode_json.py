"""``spyrecode.json``: written in a fixed key order, read with every problem collected (J1, J10 and the form)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any, Generic, TypeVar

import orjson

from spyrec.bundle.host_compute import HostComputeSpec, read_specification
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.bundle.json_cursor import MALFORMED, Cursor, attempt, describe
from spyrec.bundle.json_members import Member, Members, written
from spyrec.bundle.launch_plan import (
    Allocate,
    ComputeOnDevice,
    ComputeOnHost,
    CorrectionSlot,
    DataTransfer,
    ExecutionStep,
    InitTransfer,
    LaunchArtifact,
    PreparationStep,
)
from spyrec.bundle.spyrecode_codes import MALFORMED_PLAN, NOT_DECIMAL, WRONG_VERSION
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.diagnostics.json_reading import JsonValue, load_json

SCHEMA_VERSION = 1
"""The newest version of ``spyrecode.json`` that is read, and the one that is written."""

MAX_STEPS = 512
"""Most steps of a plan."""

_HINT = "the form is described in docs/program_image.md; write the bundle again"
_VERSION, _PREPARATION, _EXECUTION, _SLOTS = "schemaVersion", "JobPreparationPlan", "JobExecPlan", "correctionSlots"
_OVERLAPS = "correctionOverlapsCode"
_DIGITS = re.compile(r"[0-9]+")
_LONGEST_DECIMAL = 20

Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class Placed(Generic[Step]):
    """A step or slot with the place of its properties."""

    step: Step
    properties: Cursor

    def at(self, key: str) -> Location:
        """Return the place of one property."""
        return self.properties.location.child(key)


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """What could be read of a plan; ``is_complete``: all of it.  ``may_overlap``: corrections may lie in code."""

    preparation: tuple[Placed[PreparationStep], ...]
    execution: tuple[Placed[ExecutionStep], ...]
    slots: tuple[Placed[CorrectionSlot], ...]
    may_overlap: bool
    is_complete: bool
    location: Location


def write_plan(artifact: LaunchArtifact) -> bytes:
    """Return the bytes of ``spyrecode.json``."""
    content = {
        _VERSION: str(SCHEMA_VERSION),
        _PREPARATION: [_command(step) for step in artifact.preparation],
        _EXECUTION: [_command(step) for step in artifact.execution],
        _SLOTS: [_properties(slot) for slot in artifact.slots],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _command(step: PreparationStep | ExecutionStep) -> dict[str, JsonValue]:
    return {"command": type(step).__name__, "properties": _properties(step)}


def _properties(step: PreparationStep | ExecutionStep | CorrectionSlot) -> dict[str, JsonValue]:
    return written(PROPERTIES[type(step)], (getattr(step, item.name) for item in dataclass_fields(step)))


def read_plan(text: bytes, file: str, sink: DiagnosticSink) -> PlacedPlan | None:
    """Read ``spyrecode.json``; ``None`` where nothing can be made of it.  All problems go to ``sink``.

    Errors: SPY0101 to SPY0104 for the text, SPY0640 for its form, SPY0641 (J1), SPY0650 (J10, keys that are not read
    only a warning), SPY0656 for a host computation.
    """
    own = DiagnosticSink()
    plan = attempt(own, lambda: _read_root(text, file, own))
    for item in own.diagnostics:
        sink.add(replace(item, code=MALFORMED_PLAN, hint=_HINT) if item.code == MALFORMED else item)
    return plan


def _read_root(text: bytes, file: str, sink: DiagnosticSink) -> PlacedPlan:
    data, source = load_json(text, file)
    root = Cursor(data, Location(file, "", source=source))
    fields = _Fields(root, sink)
    _check_version(fields)
    preparation = _read_steps(fields, _PREPARATION, PREPARATIONS)
    execution = _read_steps(fields, _EXECUTION, EXECUTIONS)
    slots = _read_slots(fields)
    may_overlap = fields.take(_OVERLAPS, _FLAG) if _OVERLAPS in root.object() else False
    fields.warn_of_others()
    if not fields.has_failed:
        _check_preparation(preparation, root.location, fields)
    return PlacedPlan(preparation, execution, slots, may_overlap, not fields.has_failed, root.location)


class _Fields:
    """The members of one object as they are taken; what is wrong with one goes to the sink."""

    def __init__(self, cursor: Cursor, sink: DiagnosticSink) -> None:
        self.cursor = cursor
        self.sink = sink
        self.has_failed = False
        self._taken: set[str] = set()

    def member(self, key: str) -> Cursor:
        self._taken.add(key)
        return self.cursor.member(key)

    def attempt(self, read: Callable[[], Step]) -> Step | None:
        found = attempt(self.sink, read)
        self.has_failed |= found is None
        return found

    def fail(self, code: str, fact: str, where: Location, hint: str = _HINT) -> None:
        self.sink.error(code, fact, where, hint=hint)
        self.has_failed = True

    def take(self, key: str, member: Member) -> Any:  # noqa: ANN401 -- what the member is
        """Return what a member is, or what stands for it."""
        found = self.attempt(lambda: (member.read(self.member(key)),))
        return member.otherwise if found is None else found[0]

    def warn_of_others(self) -> None:
        """Warn of the members that were not taken (J10)."""
        for key, value in self.cursor.members():
            if key not in self._taken:
                fact = f'key "{key[:80]}" is not read (rule J10)'
                self.sink.warning(WRONG_VERSION, fact, value.location, hint="remove the key, or correct its spelling")


def _number(cursor: Cursor) -> int:
    """Read a decimal string (J1)."""
    value = cursor.value
    if not isinstance(value, str) or _DIGITS.fullmatch(value) is None:
        cursor.refuse(NOT_DECIMAL, f"{describe(value)} where decimal digits in a string are due (rule J1)")
    digits = value.lstrip("0") or "0"
    if len(digits) > _LONGEST_DECIMAL or int(digits) >= 1 << 64:
        cursor.refuse(NOT_DECIMAL, f"{describe(value)} does not fit 64 bits (rule J1)")
    return int(digits)


def _flag(cursor: Cursor) -> bool:
    if cursor.text() not in {"true", "false"}:
        cursor.refuse(MALFORMED, f'{describe(cursor.value)} is neither "true" nor "false"')
    return cursor.text() == "true"


def _check_version(fields: _Fields) -> None:
    where = fields.cursor.location.child(_VERSION)
    if _VERSION not in fields.cursor.object():
        fields.fail(WRONG_VERSION, f'key "{_VERSION}" is missing (rule J10)', fields.cursor.location)
        return
    version = fields.take(_VERSION, _DECIMAL)
    if not fields.has_failed and not 1 <= version <= SCHEMA_VERSION:
        fact = f"a plan of version {version}, versions 1 to {SCHEMA_VERSION} are read (rule J10)"
        fields.fail(WRONG_VERSION, fact, where, "write the bundle again with this version of spyrec")


def _read_steps(fields: _Fields, key: str, steps: Sequence[type[Step]]) -> tuple[Placed[Step], ...]:
    known = {step.__name__: step for step in steps}
    found: list[Placed[Step]] = []
    for item in fields.attempt(lambda: _items(fields.member(key), MAX_STEPS)) or ():
        step = fields.attempt(lambda item=item: _read_step(item, fields.sink, known))
        if step is not None:
            found.append(step)
    return tuple(found)


def _items(cursor: Cursor, most: int) -> tuple[Cursor, ...]:
    if len(cursor.array()) > most:
        cursor.refuse(MALFORMED, f"{len(cursor.array())} items, at most {most} are read")
    return tuple(cursor.items())


def _read_step(cursor: Cursor, sink: DiagnosticSink, known: Mapping[str, type[Step]]) -> Placed[Step] | None:
    outer = _Fields(cursor, sink)
    command = outer.member("command")
    if command.text() not in known:
        command.refuse(MALFORMED, f"command {describe(command.value)}, known here are {', '.join(known)}")
    properties = _Fields(outer.member("properties"), sink)
    kind = known[command.text()]
    step = _built(kind, properties)
    properties.warn_of_others()
    outer.warn_of_others()
    return None if properties.has_failed else Placed(step, properties.cursor)


def _built(kind: type[Step], properties: _Fields) -> Step:
    return kind(*(properties.take(key, member) for key, member in PROPERTIES[kind].items()))


def _read_slots(fields: _Fields) -> tuple[Placed[CorrectionSlot], ...]:
    slots: list[Placed[CorrectionSlot]] = []
    for item in fields.attempt(lambda: _items(fields.member(_SLOTS), MAX_SLOTS)) or ():
        own = _Fields(item, fields.sink)
        slot = _built(CorrectionSlot, own)
        if not own.has_failed:
            own.warn_of_others()
            slots.append(Placed(slot, item))
        fields.has_failed |= own.has_failed
    return tuple(slots)


def _check_preparation(steps: tuple[Placed[PreparationStep], ...], where: Location, fields: _Fields) -> None:
    """Check that the preparation is one allocation and then one transfer or more."""
    kinds = [isinstance(placed.step, Allocate) for placed in steps]
    if len(kinds) < 2 or kinds != [True] + [False] * (len(kinds) - 1):
        names = [type(placed.step).__name__ for placed in steps[:8]]
        fact = f"the preparation is {', '.join(names) or 'empty'}, not one Allocate and then InitTransfers"
        fields.fail(MALFORMED_PLAN, fact, where.child(_PREPARATION))


_DECIMAL_SCHEMA: dict[str, JsonValue] = {"$ref": "#/$defs/decimal"}
_TEXT_SCHEMA: dict[str, JsonValue] = {"type": "string"}

_DECIMAL = Member(_number, str, _DECIMAL_SCHEMA, 0)
_DECIMALS = Member(
    lambda cursor: tuple(map(_number, cursor.items())),
    lambda values: [str(value) for value in values],
    {"type": "array", "items": _DECIMAL_SCHEMA},
    (),
)
_TEXT = Member(Cursor.text, schema=_TEXT_SCHEMA, otherwise="")
_NAME = Member(Cursor.text, schema={**_TEXT_SCHEMA, "minLength": 1}, otherwise="")
_TEXT_OR_NONE = Member(lambda cursor: cursor.text() or None, lambda text: text or "", _TEXT_SCHEMA)
_FLAG = Member(_flag, lambda flag: "true" if flag else "false", {"enum": ["false", "true"]}, False)
_SPECIFICATION = Member(
    read_specification, HostComputeSpec.to_json, {"$ref": "#/$defs/specification"}, HostComputeSpec(())
)

PREPARATIONS: tuple[type[PreparationStep], ...] = (Allocate, InitTransfer)
EXECUTIONS: tuple[type[ExecutionStep], ...] = (ComputeOnHost, DataTransfer, ComputeOnDevice)

PROPERTIES: dict[type[object], Members] = {
    Allocate: {"size": _DECIMAL},
    InitTransfer: {"init_bin_file": _NAME, "dev_ptr": _DECIMAL, "size": _DECIMAL},
    ComputeOnHost: {
        "ohandle": _NAME,
        "size": _DECIMAL,
        "ishape": _DECIMALS,
        "ihandle": _TEXT_OR_NONE,
        "hcm": _SPECIFICATION,
    },
    DataTransfer: {"dirn": _FLAG, "host_handle": _TEXT, "dev_ptr": _DECIMAL, "size": _DECIMAL},
    ComputeOnDevice: {"job_bin_ptr": _DECIMAL},
    CorrectionSlot: {"dev_ptr": _DECIMAL, "job_bin_ptr": _DECIMAL},
}
"""What the fields of each step, and of a slot, are in the file, in the order of the fields."""
