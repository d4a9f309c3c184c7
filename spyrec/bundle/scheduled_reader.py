"""Reads what a SuperDSC has beyond one DSC: more of them, data DSCs, the schedule of its cores, shared tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.data_dsc_reader import read_data_dsc
from spyrec.bundle.debug_handle import DebugHandle
from spyrec.bundle.dialects import Dialect
from spyrec.bundle.dsc_actions import executed_parts, ordered_nodes
from spyrec.bundle.dsc_schedule import DscCounts, DscSchedule, SharedTensor, read_schedule
from spyrec.bundle.json_cursor import CONTRADICTORY, MALFORMED, NOT_UNDERSTOOD, Cursor, attempt, is_nothing
from spyrec.bundle.superdsc import ComputeOp, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat

MAX_CORES = 32
"""Cores that may share one SuperDSC."""

FALSE_SHARES = "SPY0663"
"""Code of shared tensors that the file does not have, or not so."""

_MOST_DSCS = MAX_CORES
_MOST_DATA_DSCS = 256

ReadDsc = Callable[[Cursor], SuperDsc | None]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """What the root says of a file: number, name, dialect, and where the operation comes from."""

    index: int
    name: str
    dialect: Dialect
    debug_handle: DebugHandle | None


def is_plural(outer: Cursor) -> bool:
    """Whether a file has more, or less, than one DSC, or says anything of shared tensors."""
    dscs = outer.member("dscs_").array()
    return len(dscs) != 1 or any(_holds(outer, key) for key in ("datadscs_", "ldsShareInfo_"))


def _holds(outer: Cursor, key: str) -> bool:
    member = outer.optional(key)
    return member is not None and not is_nothing(member.value)


def read_scheduled(outer: Cursor, named: NamedFile, read_dsc: ReadDsc, sink: DiagnosticSink) -> SuperDsc | None:
    """Read a file of several DSCs or data DSCs; ``read_dsc`` reads an entry of ``dscs_``.

    Errors: SPY0620 malformed, SPY0621 not understood, SPY0622 contradictory; SPY0661 cores that wait for each other, or
    divisions that do not fit together; SPY0662 data operations; SPY0663 shared tensors.
    """
    entries = list(outer.member("dscs_").items())
    moving = list(outer.member("datadscs_").items()) if _holds(outer, "datadscs_") else []
    if len(entries) > _MOST_DSCS or len(moving) > _MOST_DATA_DSCS or not (entries or moving):
        outer.member("dscs_").refuse(MALFORMED, f"{len(entries)} DSCs and {len(moving)} data DSCs")
    members = _members(entries)
    core_ids = _core_ids(outer, members)
    steps = read_schedule(outer, core_ids, DscCounts(len(entries), len(moving)), members)
    read = [attempt(sink, lambda entry=entry: read_dsc(entry)) for entry in entries]
    data = [attempt(sink, lambda item=item: read_data_dsc(item, frozenset(core_ids))) for item in moving]
    dscs, data_dscs = [item for item in read if item is not None], [item for item in data if item is not None]
    if len(dscs) != len(read) or len(data_dscs) != len(data):
        return None
    _require_known_cores(outer, core_ids)
    _require_one_table(entries, dscs)
    own = {core: members[core] for core in core_ids if core in members}
    shares = _read_shares(outer, entries)
    schedule = DscSchedule(core_ids, own, steps, tuple(dscs[1:]), tuple(data_dscs), shares)
    found = replace(dscs[0], schedule=schedule) if dscs else _only_moving(outer, named, schedule)
    _require_sense(outer, found)
    return found


def _members(entries: Sequence[Cursor]) -> dict[int, int]:
    """Return by core the DSC that lists it."""
    found: dict[int, int] = {}
    for number, entry in enumerate(entries):
        cursor = entry.only_member("operation's name")[1].member("coreIdsUsed_")
        for core in cursor.integers(0, MAX_CORES - 1):
            if found.setdefault(core, number) != number:
                cursor.refuse(CONTRADICTORY, f"core {core} stands in DSC {found[core]} and in DSC {number}")
    return found


def _core_ids(outer: Cursor, members: Mapping[int, int]) -> tuple[int, ...]:
    """Return all cores of the schedule, in its order; without one those that compute."""
    cursor = outer.optional("coreIdToDscSchedule")
    found = list(members)
    if cursor is not None:
        names = [name for name, _ in cursor.entries()]
        if not all(name.isascii() and name.isdecimal() and len(name) < 4 for name in names):
            cursor.refuse(MALFORMED, f"cores {names[:8]} are not all numbers")
        found = list(map(int, names))
    missing = sorted(members.keys() - set(found))
    if not found or max(found) >= MAX_CORES or missing or len(set(found)) != len(found):
        where = cursor or outer.member("dscs_")
        fact = f"the schedule has cores {sorted(found)[:40]}, the DSCs {sorted(members)}"
        where.refuse(CONTRADICTORY, f"{fact}, there are {MAX_CORES} (rule V1)")
    count = outer.member("numCoresUsed_")
    if count.integer() != len(found):
        count.refuse(CONTRADICTORY, f"{count.value} cores used, the schedule has {len(found)} (rule V1)")
    return tuple(found)


def _require_known_cores(outer: Cursor, core_ids: Sequence[int]) -> None:
    for key in ("coreIdToWkSlice_", "coreIdToDsc_"):
        cursor = outer.optional(key)
        if cursor is None:
            continue
        unexpected = {name for name, _ in cursor.entries()} - set(map(str, core_ids))
        if unexpected:
            cursor.refuse(CONTRADICTORY, f'core "{min(unexpected)[:40]}" is in no DSC and no schedule (rule V1)')


def _require_one_table(entries: Sequence[Cursor], dscs: Sequence[SuperDsc]) -> None:
    """Check that all DSCs number the same tensors alike, by name: operand 1 of one is operand 1 of each."""
    names = [_tensor_names(entry) for entry in entries]
    for entry, own, dsc in zip(entries, names, dscs, strict=True):
        cursor = entry.only_member("operation's name")[1].member("labeledDs_")
        if own != names[0]:
            fact = f"tensors {list(own)}, the first DSC has {list(names[0])}"
            cursor.refuse(NOT_UNDERSTOOD, f"{fact}: the same ones in one order are understood (rule V14)")
        places = [item.component for item in dsc.operands]
        if places != [item.component for item in dscs[0].operands]:
            cursor.refuse(NOT_UNDERSTOOD, "a tensor lies in LX for one DSC and not for another (rule V14)")
        if dsc.dynamic_dims:
            cursor.refuse(NOT_UNDERSTOOD, "dynamic dims in a file with a schedule are not understood (rule V14)")


def _tensor_names(entry: Cursor) -> tuple[str, ...]:
    items = entry.only_member("operation's name")[1].member("labeledDs_").items()
    named = sorted((item.member("ldsIdx_").integer(), item.member("dsName_").text()) for item in items)
    return tuple(name for _, name in named)


def _read_shares(outer: Cursor, entries: Sequence[Cursor]) -> tuple[SharedTensor, ...]:
    cursor = outer.optional("ldsShareInfo_")
    if cursor is None or is_nothing(cursor.value):
        return ()
    names = _tensor_names(entries[0]) if entries else ()
    found = tuple(_read_share(item, names, len(entries)) for item in cursor.items())
    numbers = [item.operand for item in found]
    if len(set(numbers)) != len(numbers):
        cursor.refuse(FALSE_SHARES, f"a tensor stands twice in {[names[number] for number in numbers]}")
    return found


def _read_share(cursor: Cursor, names: Sequence[str], dscs: int) -> SharedTensor:
    name, sets = cursor.member("dsName_"), cursor.member("sharedDscs")
    if name.text() not in names:
        name.refuse(FALSE_SHARES, f'"{name.text()[:80]}" is no tensor of the DSCs, which have {list(names)}')
    parts = tuple(item.integers(0) for item in sets.items())
    listed = [number for part in parts for number in part]
    if sorted(listed) != list(range(dscs)):
        sets.refuse(FALSE_SHARES, f"sets {list(map(list, parts))} do not have each of {dscs} DSCs once")
    repetition = cursor.optional("repeatHbmLxThroImbalDim")
    return SharedTensor(names.index(name.text()), parts, None if repetition is None else json.dumps(repetition.value))


def _only_moving(outer: Cursor, named: NamedFile, schedule: DscSchedule) -> SuperDsc:
    """Return a file that computes nothing; what it says of a division is kept."""
    slices, by_core = outer.optional("numWkSlicesPerDim_"), outer.optional("coreIdToWkSlice_")
    work = {} if slices is None else {dim: item.integer(1) for dim, item in slices.entries()}
    given = {} if by_core is None else {core: item.integers_by(work) for core, item in by_core.entries()}
    first: DataDsc = schedule.data_dscs[0]
    return SuperDsc(
        index=named.index,
        op_func_name=named.name,
        core_ids=schedule.core_ids,
        iteration={},
        work_slices=work,
        core_extent={},
        core_work_slices=tuple(given.get(str(core), {}) for core in schedule.core_ids),
        labels={},
        operands=(),
        constants=(),
        coordinate_masking={},
        masking_constant_id=-1,
        compute=ComputeOp("", first.op, DeviceFormat.SEN169_FP16, (), ()),
        dialect=named.dialect,
        debug_handle=named.debug_handle,
        schedule=schedule,
    )


def _require_sense(outer: Cursor, found: SuperDsc) -> None:
    """Check that the schedule can be followed and the divisions fit together; refusals say so of this file."""
    try:
        ordered_nodes(found)
        for number in range(len(found.dscs)):
            executed_parts(found, number)
    except SpyrecError as error:
        (item,) = error.diagnostics
        outer.refuse(item.code, item.message, item.hint)
