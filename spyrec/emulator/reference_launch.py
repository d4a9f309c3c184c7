"""A launch by the definition (``reference``) on the emulated device: its memory, and the counters of the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from spyrec.bundle.dsc_actions import actions_of
from spyrec.bundle.program import For, SdscExecute, Statement
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Integers
from spyrec.emulator.launch import OperationCounts, Places
from spyrec.emulator.operations.gather import gather_of
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.reference.memory import Machine, Starts
from spyrec.emulator.reference.operands import walked
from spyrec.emulator.reference.program import DefinedLaunch
from spyrec.emulator.resolve import calls_of


def run_reference(
    loaded: EmulatedProgram, machine: Machine, places: Places, values: Mapping[str, int]
) -> dict[int, OperationCounts]:
    """Execute a program by its definition and return how often each call ran, by its identity.

    What rows move depends on the index: the plan counts it before each execution.
    """
    calls = list(calls_of(loaded.schedule))
    numbers: dict[int, int] = {}
    first = 0
    for item in _calls_in(loaded.program.body):
        numbers[id(item)] = first
        superdsc = loaded.superdscs[item.sdsc_filename]
        first += 1 if superdsc.schedule is None else len(actions_of(superdsc))
    executions, moved = Counter[int](), dict[int, DataTraffic]()

    def count(statement: SdscExecute, action: int, starts: Starts) -> None:
        number = numbers[id(statement)] + action
        executions[number] += 1
        planned = loaded.planned[id(calls[number])]
        gather = gather_of(planned.executable)
        if gather is not None:
            found = gather.look_up(_addresses(planned, starts, loaded, places)).traffic
            moved[number] = moved.get(number, NO_DATA_TRAFFIC) + found

    DefinedLaunch(loaded.program, loaded.superdscs, loaded.table, machine, values, count).run()
    return {
        id(call): OperationCounts(executions[number], moved.get(number, NO_DATA_TRAFFIC))
        for number, call in enumerate(calls)
    }


def _calls_in(body: Sequence[Statement]) -> Iterator[SdscExecute]:
    for statement in body:
        if isinstance(statement, For):
            yield from _calls_in(statement.body)
        elif isinstance(statement, SdscExecute):
            yield statement


def _addresses(planned: PlannedCall, starts: Starts, loaded: EmulatedProgram, places: Places) -> Integers:
    """Return the emulated address of each operand and core."""
    entries = {entry.arg_index: entry for entry in loaded.table.entries}
    in_lx = places.scratchpads.addresses if loaded.lx_peak_bytes else None
    rows: list[Integers] = []
    for of_cores in starts:
        region = of_cores[0].region
        offsets = np.array([place.offset for place in of_cores], np.int64)
        if region is None:
            assert in_lx is not None
            origin = in_lx(np.array(planned.call.superdsc.core_ids, np.int64))
        else:
            origin, offsets = places.bases[region], walked(offsets, entries.get(region))
        rows.append(origin + offsets * places.expansion)
    return np.stack(rows)
