"""``spyrecode.json``: written in a fixed key order, read with every problem collected (J1, J10 and the form)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import orjson

from spyrec.bundle.host_compute import HostComputeSpec, read_specification
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.bundle.json_cursor import MALFORMED, Cursor, attempt, describe
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
from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.diagnostics.json_reading import JsonValue, load_json

SCHEMA_VERSION = 1
"""The newest version of ``spyrecode.json`` that is read, and the one that is written."""

MAX_STEPS = 512
"""Most steps of a plan."""

_HINT = "the form is described in docs/program_image.md; write the bundle again"
_VERSION, _PREPARATION, _EXECUTION, _SLOTS = "schemaVersion", "JobPreparationPlan", "JobExecPlan", "correctionSlots"
_OVERLAPS = "correctionOverlapsCode"
_DECIMAL = re.compile(r"[0-9]+")
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
        _SLOTS: [{"dev_ptr": str(slot.dev_ptr), "job_bin_ptr": str(slot.job_bin_ptr)} for slot in artifact.slots],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _command(step: PreparationStep | ExecutionStep) -> dict[str, JsonValue]:
    return {"command": type(step).__name__, "properties": _properties(step)}


def _properties(step: PreparationStep | ExecutionStep) -> dict[str, JsonValue]:
    match step:
        case Allocate(size):
            return {"size": str(size)}
        case InitTransfer(file, pointer, size):
            return {"init_bin_file": file, "dev_ptr": str(pointer), "size": str(size)}
        case ComputeOnHost(output, size, shape, source, specification):
            return {
                "ohandle": output,
                "size": str(size),
                "ishape": [str(extent) for extent in shape],
                "ihandle": source or "",
                "hcm": specification.to_json(),
            }
        case DataTransfer(is_to_host, buffer, pointer, size):
            direction = "true" if is_to_host else "false"
            return {"dirn": direction, "host_handle": buffer, "dev_ptr": str(pointer), "size": str(size)}
        case ComputeOnDevice(pointer):
            return {"job_bin_ptr": str(pointer)}


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
    preparation = _read_steps(fields, _PREPARATION, _PREPARATIONS)
    execution = _read_steps(fields, _EXECUTION, _EXECUTIONS)
    slots = _read_slots(fields)
    may_overlap = fields.flag(_OVERLAPS) if _OVERLAPS in root.object() else False
    fields.warn_of_others()
    if not fields.has_failed:
        _check_preparation(preparation, root.location, fields)
    return PlacedPlan(preparation, execution, slots, may_overlap, not fields.has_failed, root.location)


class _Fields:
    """The members of one object as they are taken; what is wrong with one goes to the sink, and 0 stands for it."""

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

    def number(self, key: str) -> int:
        return self.attempt(lambda: _number(self.member(key))) or 0

    def numbers(self, key: str) -> tuple[int, ...]:
        return self.attempt(lambda: tuple(map(_number, self.member(key).items()))) or ()

    def text(self, key: str) -> str:
        return self.attempt(lambda: self.member(key).text()) or ""

    def flag(self, key: str) -> bool:
        return self.attempt(lambda: _flag(self.member(key))) or False

    def warn_of_others(self) -> None:
        """Warn of the members that were not taken (J10)."""
        for key, value in self.cursor.members():
            if key not in self._taken:
                fact = f'key "{key[:80]}" is not read (rule J10)'
                self.sink.warning(WRONG_VERSION, fact, value.location, hint="remove the key, or correct its spelling")


def _number(cursor: Cursor) -> int:
    """Read a decimal string (J1)."""
    value = cursor.value
    if not isinstance(value, str) or _DECIMAL.fullmatch(value) is None:
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
    version = fields.number(_VERSION)
    if not fields.has_failed and not 1 <= version <= SCHEMA_VERSION:
        fact = f"a plan of version {version}, versions 1 to {SCHEMA_VERSION} are read (rule J10)"
        fields.fail(WRONG_VERSION, fact, where, "write the bundle again with this version of spyrec")


def _read_steps(
    fields: _Fields, key: str, readers: Mapping[str, Callable[[_Fields], Step]]
) -> tuple[Placed[Step], ...]:
    steps: list[Placed[Step]] = []
    for item in fields.attempt(lambda: _items(fields.member(key), MAX_STEPS)) or ():
        step = fields.attempt(lambda item=item: _read_step(item, fields.sink, readers))
        if step is not None:
            steps.append(step)
    return tuple(steps)


def _items(cursor: Cursor, most: int) -> tuple[Cursor, ...]:
    if len(cursor.array()) > most:
        cursor.refuse(MALFORMED, f"{len(cursor.array())} items, at most {most} are read")
    return tuple(cursor.items())


def _read_step(
    cursor: Cursor, sink: DiagnosticSink, readers: Mapping[str, Callable[[_Fields], Step]]
) -> Placed[Step] | None:
    outer = _Fields(cursor, sink)
    command = outer.member("command")
    if command.text() not in readers:
        command.refuse(MALFORMED, f"command {describe(command.value)}, known here are {', '.join(readers)}")
    properties = _Fields(outer.member("properties"), sink)
    step = readers[command.text()](properties)
    properties.warn_of_others()
    outer.warn_of_others()
    return None if properties.has_failed else Placed(step, properties.cursor)


def _read_slots(fields: _Fields) -> tuple[Placed[CorrectionSlot], ...]:
    slots: list[Placed[CorrectionSlot]] = []
    for item in fields.attempt(lambda: _items(fields.member(_SLOTS), MAX_SLOTS)) or ():
        own = _Fields(item, fields.sink)
        slot = CorrectionSlot(own.number("dev_ptr"), own.number("job_bin_ptr"))
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


def _specification(fields: _Fields) -> HostComputeSpec:
    return fields.attempt(lambda: read_specification(fields.member("hcm"))) or HostComputeSpec(())


_PREPARATIONS: dict[str, Callable[[_Fields], PreparationStep]] = {
    "Allocate": lambda fields: Allocate(fields.number("size")),
    "InitTransfer": lambda fields: InitTransfer(
        fields.text("init_bin_file"), fields.number("dev_ptr"), fields.number("size")
    ),
}

_EXECUTIONS: dict[str, Callable[[_Fields], ExecutionStep]] = {
    "ComputeOnHost": lambda fields: ComputeOnHost(
        fields.text("ohandle"),
        fields.number("size"),
        fields.numbers("ishape"),
        fields.text("ihandle") or None,
        _specification(fields),
    ),
    "DataTransfer": lambda fields: DataTransfer(
        fields.flag("dirn"), fields.text("host_handle"), fields.number("dev_ptr"), fields.number("size")
    ),
    "ComputeOnDevice": lambda fields: ComputeOnDevice(fields.number("job_bin_ptr")),
}
