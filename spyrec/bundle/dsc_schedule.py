"""When each core of a SuperDSC runs what: the steps of ``coreIdToDscSchedule``, and the barriers between them.

A core takes its steps in order.  A step runs a data DSC (an entry of ``datadscs_``) and then a DSC (one of ``dscs_``);
either may be missing.  Before and after it the core may wait for the others; two barriers in a row are one.
Between barriers nothing orders the steps of different cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from spyrec.bundle.json_cursor import CONTRADICTORY, MALFORMED, Cursor
from spyrec.dataclass import dataclass

if TYPE_CHECKING:
    from spyrec.bundle.data_dsc import DataDsc
    from spyrec.bundle.superdsc import SuperDsc

MAX_STEPS = 1024
"""Steps of one core."""

_NONE = -1


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """One step of a core: what it runs, ``None`` for nothing, and whether it waits before and after it."""

    data_dsc: int | None
    dsc: int | None
    waits_before: bool
    waits_after: bool


@dataclass(frozen=True, slots=True)
class DscCounts:
    """How many entries the file has to schedule."""

    dscs: int
    data_dscs: int


Steps = tuple[ScheduleStep, ...]


@dataclass(frozen=True, slots=True)
class SharedTensor:
    """Who has which part of a tensor (an entry of ``ldsShareInfo_``): sets of DSCs, each set one part.

    It describes and decides nothing.  ``operand``: which tensor, by its number.  ``repetition``:
    ``repeatHbmLxThroImbalDim`` as JSON text, ``None`` where absent.
    """

    operand: int
    sets: tuple[tuple[int, ...], ...]
    repetition: str | None = None


@dataclass(frozen=True, slots=True)
class DscSchedule:
    """What a SuperDSC has beyond one DSC that each of its cores runs once.

    ``core_ids``: all cores, in the order of the file.  ``own_dscs``: by core its DSC, of those that compute.
    ``steps``: by core.  ``further``: the DSCs behind the first.  ``shares``: what the file says of shared tensors.
    """

    core_ids: tuple[int, ...]
    own_dscs: Mapping[int, int]
    steps: Mapping[int, Steps]
    further: tuple[SuperDsc, ...]
    data_dscs: tuple[DataDsc, ...]
    shares: tuple[SharedTensor, ...] = ()


def stretches(steps: Sequence[ScheduleStep]) -> tuple[Steps, ...]:
    """Return a core's steps between barriers; what stands before the first barrier, or behind the last, may be empty.

    Each border between two stretches is one barrier, so that their number less one is how often the core waits.
    """
    found: list[list[ScheduleStep]] = [[]]
    waited = False
    for step in steps:
        if step.waits_before and not waited:
            found.append([])
        found[-1].append(step)
        waited = step.waits_after
        if waited:
            found.append([])
    return tuple(map(tuple, found))


def read_schedule(
    outer: Cursor, core_ids: Sequence[int], counts: DscCounts, members: Mapping[int, int] | None = None
) -> dict[int, Steps]:
    """Read the steps of each core; where the file has no schedule each core runs the DSC that is its own, once.

    ``members``: by core the DSC that names it as its own; a core of none only moves data.

    Errors: SPY0620 malformed steps; SPY0622 steps that run nothing, or what is not there, or another core's DSC; cores
    of one DSC whose steps differ (dead-locks are among these); cores that never run their DSC.
    """
    own = _own_dscs(outer.optional("coreIdToDsc_"), core_ids, counts)
    if members is not None:
        own = _members_only(outer.optional("coreIdToDsc_"), own, members)
    cursor = outer.optional("coreIdToDscSchedule")
    if cursor is None:
        return {core: () if own[core] is None else (ScheduleStep(None, own[core], False, False),) for core in core_ids}
    rows = {core: member.value for core, member in cursor.entries()}
    unexpected = sorted(rows.keys() - {str(core) for core in core_ids})
    if unexpected:
        cursor.refuse(CONTRADICTORY, f'core "{unexpected[0][:40]}" is not in coreIdsUsed_ (rule V1)')
    schedule: dict[int, Steps] = {}
    firsts: dict[int | None, int] = {}
    for core in core_ids:
        first = firsts.setdefault(own[core], core)
        if first != core and rows.get(str(core)) == rows[str(first)]:  # as a rule: all cores do the same
            schedule[core] = schedule[first]
            continue
        member = cursor.member(str(core))
        schedule[core] = _read_steps(member, counts)
        _check_core(member, schedule[core], own[core], counts)
    _check_alike(cursor, schedule, own)
    return schedule


def _members_only(
    cursor: Cursor | None, listed: Mapping[int, int | None], members: Mapping[int, int]
) -> dict[int, int | None]:
    """Return the DSC that each core is a member of; where the file lists another one it is refused."""
    given = {} if cursor is None else cursor.object()
    for core, number in members.items():
        if cursor is not None and str(core) in given and listed[core] != number:
            fact = f"core {core} is given DSC {listed[core]}, coreIdsUsed_ of DSC {number} lists it"
            cursor.refuse(CONTRADICTORY, fact)
    return {core: members.get(core) for core in listed}


def _own_dscs(cursor: Cursor | None, core_ids: Sequence[int], counts: DscCounts) -> dict[int, int | None]:
    """Return which DSC is each core's."""
    own: dict[int, int | None] = dict.fromkeys(core_ids, 0)
    if cursor is None or all(type(number) is int and number == 0 for number in cursor.object().values()):
        return own
    for core, member in cursor.entries():
        number = member.integer(0)
        if number >= max(1, counts.dscs):
            member.refuse(CONTRADICTORY, f"core {core[:40]} runs DSC {number}, there are {counts.dscs}")
        if core.isascii() and core.isdecimal() and int(core) in own:
            own[int(core)] = number
    return own


def _read_steps(cursor: Cursor, counts: DscCounts) -> Steps:
    items = list(cursor.items())
    if not 1 <= len(items) <= MAX_STEPS:
        cursor.refuse(MALFORMED, f"{len(items)} steps, not 1 to {MAX_STEPS}")
    return tuple(_read_step(item, counts) for item in items)


def _read_step(cursor: Cursor, counts: DscCounts) -> ScheduleStep:
    numbers = cursor.integers(_NONE)
    if len(numbers) != 4 or not set(numbers[2:]) <= {0, 1}:
        cursor.refuse(MALFORMED, f"step {list(numbers)[:8]} where [data DSC, DSC, 0 or 1, 0 or 1] is due")
    data, compute, before, after = numbers
    if data == compute == _NONE:
        cursor.refuse(CONTRADICTORY, "the step runs neither a data DSC nor a DSC")
    for number, count, kind in ((data, counts.data_dscs, "data DSC"), (compute, counts.dscs, "DSC")):
        if number >= count:
            cursor.refuse(CONTRADICTORY, f"the step runs {kind} {number}, there are {count}")
    return ScheduleStep(_given(data), _given(compute), bool(before), bool(after))


def _given(number: int) -> int | None:
    return None if number == _NONE else number


def _check_core(cursor: Cursor, steps: Steps, own: int | None, counts: DscCounts) -> None:
    """Check that a core runs its own DSC, once, and no other's."""
    runs = [step.dsc for step in steps if step.dsc is not None]
    other = next((number for number in runs if number != own), None)
    if other is not None:
        cursor.refuse(CONTRADICTORY, f"the core runs DSC {other}, its own is {own} (coreIdToDsc_)")
    if counts.dscs and own is not None and len(runs) != 1:
        cursor.refuse(CONTRADICTORY, f"the core runs DSC {own} {len(runs)} times, not once")


def _check_alike(cursor: Cursor, schedule: dict[int, Steps], own: Mapping[int, int | None]) -> None:
    """Check that all cores of one DSC have the same steps."""
    firsts: dict[int | None, int] = {}
    for core, steps in schedule.items():
        first = firsts.setdefault(own[core], core)
        if own[core] is None or schedule[first] == steps:
            continue
        waits = [len(stretches(schedule[item])) - 1 for item in (first, core)]
        pairs = enumerate(zip_longest(schedule[first], steps))
        step = next(number for number, (one, other) in pairs if one != other)
        fact = f"cores {first} and {core} of DSC {own[core]} have different steps, from step {step} on"
        if waits[0] != waits[1]:
            fact += f": one waits {waits[0]} times and the other {waits[1]}, which is a dead-lock"
        cursor.member(str(core)).refuse(CONTRADICTORY, fact)
