"""Schedules under the sanitizers: right ones are silent, and a barrier that is missing is a race with core and step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from spyrec.bundle.dsc_schedule import DscSchedule
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.device import EmulatedDevice
from spyrec.runtime.device import ArgumentTable
from spyrec.runtime.findings import Finding, Sanitizer, sanitizers_named
from spyrec.runtime.observer import ArgumentCopy
from tests.emulator.builders import Operation, program_of, superdsc_of, table_of
from tests.emulator.test_data_dscs import FOUR, MIXED, in_hbm, lx_tensor, mixed, only_moving, steps
from tests.emulator.test_data_dscs import table as table_of_moves
from tests.emulator.test_several_dscs import MATRIX, PRODUCT, add
from tests.support.pieces import data_dsc, piece, tensor
from tests.support.unequal import Shares, divided, rows_of, with_dsc, with_schedule

ALL = ["race", "init", "lx", "gap", "bounds", "all"]


def findings(superdscs: Sequence[SuperDsc], table: ArgumentTable, sanitize: str) -> tuple[Finding, ...]:
    """Run files whose last argument is the result; all others hold something."""
    device = EmulatedDevice(sanitizers=sanitizers_named(sanitize))
    assert device.monitor is not None
    files = {f"sdsc_{number}.json": superdsc for number, superdsc in enumerate(superdscs)}
    loaded = device.load(program_of(len(files)), files, table)
    addresses = [device.allocate(entry.reach_bytes) for entry in table.entries]
    for entry, address in zip(table.entries[:-1], addresses, strict=False):
        device.memory(address, entry.size_bytes)[:] = 1
        sizes = (entry.size_bytes, entry.device_size, None)
        device.monitor.copied_in(ArgumentCopy(entry.name, address, *sizes, is_to_device=True))
    device.launch(loaded, addresses, None)
    last = table.entries[-1]
    sizes = (last.size_bytes, last.device_size, None)
    device.monitor.copied_out(ArgumentCopy(last.name, addresses[-1], *sizes, is_to_device=False))
    return device.monitor.findings


@pytest.mark.parametrize("sanitize", ALL)
@pytest.mark.parametrize(
    ("operation", "shares"),
    [
        (add(7, 192), {"rows": (3, 2, 2)}),
        (add(7, 192), {"rows": (2, 3, 2), "cols": (64, 128)}),
        (PRODUCT, {"m": (4, 3)}),
    ],
)
def test_right_divisions_are_silent(operation: Operation, shares: Shares, sanitize: str) -> None:
    assert findings([divided(superdsc_of(operation), shares)], table_of(operation), sanitize) == ()


@pytest.mark.parametrize("sanitize", ALL)
def test_a_chain_through_the_scratchpads_is_silent(sanitize: str) -> None:
    held = replace(MATRIX, lx_start=256)
    first = superdsc_of(replace(add(7, 192), tensors=(MATRIX, MATRIX, held)))
    second = superdsc_of(Operation("mul", add(7, 192).dims, (held, MATRIX, MATRIX)), 1, (0, 1 << 34, 2 << 34))
    files = [divided(item, {"rows": (2, 3, 2)}) for item in (first, second)]
    assert findings(files, table_of(add(7, 192)), sanitize) == ()


@pytest.mark.parametrize("sanitize", ALL)
def test_data_first_and_then_computation_is_silent(sanitize: str) -> None:
    assert findings([mixed(steps(FOUR, *MIXED))], table_of_moves(), sanitize) == ()


def relayout(*rows: Sequence[int]) -> SuperDsc:
    one = lx_tensor("one", {"r": (2, 2, 2, 2), "c": (256,)}, 0)
    other = lx_tensor("other", {"r": (8,), "c": (64, 64, 64, 64)}, 8192)
    moves = [
        data_dsc(in_hbm("x", 0), one, FOUR),
        data_dsc(one, other, FOUR, 1),
        data_dsc(other, in_hbm("y", 1), FOUR, 2),
    ]
    return only_moving(moves, steps(FOUR, *rows))


WHOLE = ([0, -1, 0, 1], [1, -1, 1, 1], [2, -1, 1, 0])


@pytest.mark.parametrize("sanitize", ALL)
def test_a_relayout_is_silent(sanitize: str) -> None:
    assert findings([relayout(*WHOLE)], table_of_moves(), sanitize) == ()


@pytest.mark.parametrize(
    "rows",
    [
        ([0, -1, 0, 0], [1, -1, 0, 0], [2, -1, 0, 0]),
        ([0, -1, 0, 0], [1, -1, 0, 1], [2, -1, 1, 0]),
    ],
)
def test_a_barrier_left_out_is_a_race_with_cores_and_steps(rows: Sequence[Sequence[int]]) -> None:
    """What rows brought is read by other cores in the same stretch; each core stores its own columns."""
    found = findings([relayout(*rows)], table_of_moves(), "race")
    assert [item.sanitizer for item in found] == [Sanitizer.RACE] * len(found)
    assert found[0].message == (
        "core 0 loads this byte in step 1 (data DSC 1), which core 1 stores in step 0 (data DSC 0): "
        "no barrier stands between"
    )
    assert (found[0].core, found[0].tensor, found[0].address, found[0].file) == (0, "lx", 0, "sdsc_0.json")
    assert found[0].field == "coreIdToDscSchedule"


def test_a_barrier_that_nobody_needs_may_be_left_out() -> None:
    """The last step reads on each core what the step before has brought there."""
    assert findings([relayout([0, -1, 0, 1], [1, -1, 1, 0], [2, -1, 0, 0])], table_of_moves(), "race") == ()


def test_without_the_sanitizer_a_race_has_the_order_of_the_lists() -> None:
    device = EmulatedDevice()
    results: list[bytes] = []
    for rows in (WHOLE, ([0, -1, 0, 0], [1, -1, 0, 0], [2, -1, 0, 0])):
        loaded = device.load(program_of(), {"sdsc_0.json": relayout(*rows)}, table_of_moves())
        addresses = [device.allocate(4096) for _ in range(2)]
        device.memory(addresses[0], 4096)[:] = np.arange(4096).astype(np.uint8)
        device.launch(loaded, addresses, None)
        results.append(device.memory(addresses[1], 4096).tobytes())
    assert results[0] == results[1]


def reading_others(rows: Mapping[int, Sequence[Sequence[int]]]) -> SuperDsc:
    """Return a sum whose second DSC adds rows 0 to 2 of the result, which the first one stores, to rows 4 to 6."""

    def of_result(dsc: SuperDsc) -> SuperDsc:
        operands = list(dsc.operands)
        operands[1] = replace(operands[1], start_addresses=(2 << 34,))
        return replace(dsc, operands=tuple(operands))

    found = with_dsc(divided(superdsc_of(add(7, 192)), {"rows": (4, 3)}), 1, of_result)
    return with_schedule(found, steps={core: rows_of(own) for core, own in rows.items()})


def test_dscs_that_touch_the_same_device_memory_race_without_a_barrier() -> None:
    found = findings([reading_others({0: ([-1, 0, 0, 0],), 1: ([-1, 1, 0, 0],)})], table_of(add(7, 192)), "race")
    assert [item.message for item in found] == [
        "core 1 loads this byte in step 0 (DSC 1), which core 0 stores in step 0 (DSC 0): no barrier stands between"
    ]
    assert (found[0].core, found[0].tensor, found[0].operand) == (1, "arg2", "operand 1 (LABEL1, hbm)")


def test_a_barrier_between_dscs_orders_them() -> None:
    """The first stores before the barrier, the second one reads behind it."""
    ordered = reading_others({0: ([-1, 0, 0, 1],), 1: ([-1, 1, 1, 0],)})
    assert findings([ordered], table_of(add(7, 192)), "race") == ()


def test_a_missing_piece_is_undefined_where_it_arrives() -> None:
    """Rows 6 and 7 are never brought: what leaves the scratchpads holds nothing there, and says where from."""
    one = lx_tensor("one", {"r": (2, 2, 2, 2), "c": (256,)}, 0)
    brought = replace(one, pieces=one.pieces[:3])
    other = lx_tensor("other", {"r": (8,), "c": (64, 64, 64, 64)}, 8192)
    moves = [
        data_dsc(in_hbm("x", 0), brought, FOUR),
        data_dsc(one, other, FOUR, 1),
        data_dsc(other, in_hbm("y", 1), FOUR, 2),
    ]
    superdsc = only_moving(moves, steps(FOUR, *WHOLE))
    with pytest.raises(SpyrecError, match="SPY0718"):
        findings([superdsc], table_of_moves(), "race")
    found = findings([superdsc], table_of_moves(), "lx")
    assert "reads LX that nothing wrote on this core" in found[0].message
    assert (found[0].core, found[0].address) == (3, 0)


def test_undefined_elements_move_as_undefined() -> None:
    part = tensor("part", {"r": 8, "c": 256}, ("r", "c"), "c", [piece("p", {"r": (0, 4), "c": (0, 256)}, (0, 0))])
    back = tensor(
        "back", {"r": 8, "c": 256}, ("r", "c"), "c", [piece("p", {"r": (0, 4), "c": (0, 256)}, (None, 1 << 27))]
    )
    moves = [data_dsc(in_hbm("x", 0), part, (0,)), data_dsc(part, back, (0,), 1)]
    found = findings([only_moving(moves, steps((0,), [0, -1, 0, 1], [1, -1, 0, 0]))], table_of_moves(), "init")
    assert found
    assert found[0].sanitizer is Sanitizer.INIT


def test_schedules_are_written_for_messages() -> None:
    schedule = relayout(*WHOLE).schedule
    assert isinstance(schedule, DscSchedule)
    assert [step.data_dsc for step in schedule.steps[0]] == [0, 1, 2]
