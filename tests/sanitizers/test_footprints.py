"""``race``, ``gap`` and ``bounds``: planted in hand-made operations and named with core, address and element."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import load_foreign
from spyrec.emulator.device import EmulatedDevice
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import Sanitizer, findings_of_refusal
from tests.emulator.builders import DL16, Operation, Tensor, program_of, superdsc_of, table_of
from tests.foreign import argument_table, copy_example, write_table
from tests.sanitizers.planting import HandMade, moved

ROWS = Tensor(("mb", "out"), "out")
ADD = Operation("add", {"mb": (8, 4), "out": (128, 1)}, (ROWS, ROWS, ROWS))
SEGMENT = 1 << 34


def test_two_cores_that_store_one_byte() -> None:
    shared = replace(ADD, tensors=(ROWS, ROWS, Tensor(("mb", "out"), "out", {"mb": -1})))
    made = HandMade([superdsc_of(shared)], table_of(shared), "race")
    (finding,) = made.run([0, 1])
    assert (finding.sanitizer, finding.file, finding.op, finding.core) == (Sanitizer.RACE, "sdsc_0.json", "add", 1)
    assert (finding.tensor, finding.address) == ("arg2", made.addresses[2])
    assert finding.device_coordinate is None or finding.device_coordinate == (0, 0, 0)
    assert "cores 0 and 1" in finding.message


def test_a_core_that_loads_what_another_stores() -> None:
    gap = {"mb": 2}
    shifted = (ROWS, replace(ROWS, gap=gap, first={"mb": 2}), replace(ROWS, gap=gap))
    operation = replace(ADD, tensors=shifted)
    made = HandMade([superdsc_of(operation, 0, (0, 2 * SEGMENT, 2 * SEGMENT))], table_of(operation), "race")
    (finding,) = made.run([0, 2])
    # each core's two input rows are those that the next core stores
    assert (finding.core, finding.address) == (0, made.addresses[2] + 2 * 128)
    assert finding.operand == "operand 1 (LABEL1, hbm)"


def test_one_buffer_bound_to_two_arguments() -> None:
    # the rules at load see two arguments; only the launch shows that they are one
    operation = Operation("ReStickifyOpHBM", {"mb": (128, 2), "out": (128, 1)}, (ROWS, Tensor(("out", "mb"), "mb")))
    made = HandMade([superdsc_of(operation)], table_of(operation), "race")
    assert made.run([0], [1]) == ()
    made.addresses[1] = made.addresses[0]
    with pytest.raises(spyrec.SpyrecError) as error:
        made.launch()
    (finding,) = findings_of_refusal(error.value, frozenset({Sanitizer.RACE}))
    assert (finding.sanitizer, finding.file) == (Sanitizer.RACE, "sdsc_0.json")
    assert "operand 0 (LABEL0, hbm)" in finding.message
    assert findings_of_refusal(error.value, frozenset({Sanitizer.INIT})) == ()


def test_partial_sums_of_one_result_are_no_race() -> None:
    a, b, c = Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), ROWS
    matmul = Operation("batchmatmul", {"mb": (8, 2), "out": (128, 2), "in": (256, 4)}, (a, b, c))
    assert HandMade([superdsc_of(matmul)], table_of(matmul)).run([0, 1], [2]) == ()
    total = Operation("sum", {"mb": (8, 2), "out": (256, 4)}, (ROWS, Tensor(("mb", "out"), "out", {"out": -2})))
    own = superdsc_of(total)
    listed = replace(own, compute=replace(own.compute, inputs=(0, 1)))  # the output among the inputs is no read
    assert HandMade([listed], table_of(total)).run([0], [1]) == ()


def test_a_start_on_another_cores_data_is_a_race_and_contradicts_the_strides(tmp_path: Path) -> None:
    folder = copy_example("add", tmp_path)
    bundle = load_foreign(folder, write_table(folder, argument_table("add")))
    (program,) = bundle.programs
    (item,) = program.superdscs.values()
    starts = item.operands[2].start_addresses
    operands = (*item.operands[:2], replace(item.operands[2], start_addresses=(starts[1], *starts[1:])))
    wrong = replace(bundle, programs=(replace(program, superdscs={"sdsc_0.json": replace(item, operands=operands)}),))
    data = {a.name: np.zeros(a.device_size, np.float32) for a in bundle.manifest.arguments if a.role.value == "input"}
    result = spyrec.run(wrong, data, spyrec.RunOptions(sanitize="race"))
    (finding,) = result.sanitizer
    assert "cores 0 and 1 both store" in finding.message
    assert {item.code for item in result.warnings} == {"SPY0714"}
    with pytest.raises(spyrec.SpyrecError):
        spyrec.run(wrong, data, spyrec.RunOptions(sanitize="init"))


def window(first: int, width: int, buffer: int) -> Tensor:
    return replace(ROWS, gap={"out": buffer - width}, first={"out": first})


def copy_into(first: int, width: int, index: int) -> tuple[Operation, int]:
    return Operation("identity", {"mb": (8, 4), "out": (width, 1)}, (ROWS, window(first, width, 256))), index


TABLE = ArgumentTable(
    (
        TableEntry("left", 0, (2, 8, 64), DL16, 0, 2 * 8 * 128),
        TableEntry("right", 1, (2, 8, 64), DL16, SEGMENT, 2 * 8 * 128),
        TableEntry("both", 2, (4, 8, 64), DL16, 2 * SEGMENT, 4 * 8 * 128),
    )
)


def joined(*pieces: tuple[Operation, int]) -> HandMade:
    items = [superdsc_of(piece, i, (source * SEGMENT, 2 * SEGMENT)) for i, (piece, source) in enumerate(pieces)]
    return HandMade(items, TABLE)


def test_windows_side_by_side_are_silent() -> None:
    assert joined(copy_into(0, 128, 0), copy_into(128, 128, 1)).run([0, 1], [2]) == ()


def test_a_window_over_another_windows_data() -> None:
    found = joined(copy_into(0, 128, 0), copy_into(64, 128, 1)).run([0, 1])
    (finding,) = (item for item in found if item.sanitizer is Sanitizer.GAP)
    assert (finding.file, finding.tensor, finding.device_coordinate) == ("sdsc_1.json", "both", None)
    assert finding.field == "scheduleTree_[1].backGapCore_, N_"
    assert '"sdsc_0.json"' in finding.message


def test_a_window_whose_padding_lanes_clobber_its_neighbour() -> None:
    # right is stored first, then 100 valid columns of left as 128: 28 undefined lanes lie over right's first ones
    made = joined(copy_into(64, 128, 1), copy_into(0, 128, 0))
    made.give(0)
    made.give(1)
    for row in range(8):
        made.monitor.forgotten(made.addresses[0] + (8 + row) * 128 + 36 * 2, 28 * 2)
    made.launch()
    made.monitor.copied_out(made.copy_of(2, is_to_device=False))
    assert {item.file for item in made.monitor.findings} == {"sdsc_1.json"}
    assert made.monitor.findings[0].sanitizer is Sanitizer.GAP


def test_clobbered_lanes_are_reported_where_they_count_and_only_there() -> None:
    # as above, but nothing of the overlap was stored as a window: what counts is whether the lanes are read
    whole = Operation("identity", {"mb": (8, 4), "out": (256, 1)}, (ROWS, ROWS))
    part = Operation("identity", {"mb": (8, 4), "out": (128, 1)}, (ROWS, window(0, 128, 256)))
    total = Operation("sum", {"mb": (8, 4), "out": (256, 1)}, (ROWS, Tensor(("mb", "out"), "out", {"out": -2})))
    entries = (
        TableEntry("base", 0, (4, 8, 64), DL16, 0, 4 * 8 * 128),
        TableEntry("left", 1, (2, 8, 64), DL16, SEGMENT, 2 * 8 * 128),
        TableEntry("both", 2, (4, 8, 64), DL16, 2 * SEGMENT, 4 * 8 * 128),
        TableEntry("sums", 3, (1, 8, 64), DL16, 3 * SEGMENT, 8 * 128),
    )
    items = [
        superdsc_of(whole, 0, (0, 2 * SEGMENT)),
        superdsc_of(part, 1, (SEGMENT, 2 * SEGMENT)),
        superdsc_of(total, 2, (2 * SEGMENT, 3 * SEGMENT)),
    ]
    for count, expected in ((2, 0), (3, 1)):
        made = HandMade(items[:count], ArgumentTable(entries))
        made.give(0)
        made.give(1)
        made.monitor.forgotten(made.addresses[1] + 8 * 128 + 72, 56)
        made.launch()
        assert len(made.monitor.findings) == expected
    finding = made.monitor.findings[0]
    assert (finding.sanitizer, finding.op) == (Sanitizer.GAP, "sum")
    assert '"sdsc_1.json" stored over defined data beside its window' in finding.message


def test_a_window_that_runs_past_the_end_of_a_row() -> None:
    # two of ten rows are the gap; a start two rows further is still inside the buffer but for the last column
    dims = {"mb": (8, 4), "out": (64, 1)}
    narrow = replace(ROWS, gap={"mb": 2, "out": 64})
    operation = Operation("identity", dims, (ROWS, narrow))
    table = ArgumentTable(
        (TableEntry("x", 0, (1, 8, 64), DL16, 0, 8 * 128), TableEntry("y", 1, (2, 10, 64), DL16, SEGMENT, 20 * 128))
    )
    right = HandMade([moved(1, 2 * 128)(superdsc_of(operation))], table, "gap")
    assert right.run([0]) == ()
    wrong = HandMade([moved(1, 3 * 128)(superdsc_of(operation))], table, "gap")
    (finding,) = wrong.run([0])
    assert (finding.core, finding.tensor, finding.address) == (3, "y", wrong.addresses[1] + 10 * 128)


def test_bounds_name_the_first_execution_outside_and_warn_of_the_step(tmp_path: Path) -> None:
    folder = copy_example("nested_loop_symbolic", tmp_path)
    bundle = load_foreign(folder, write_table(folder, argument_table("nested_loop_symbolic")))
    data = {a.name: np.zeros(a.device_size, np.float32) for a in bundle.manifest.arguments if a.role.value == "input"}
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(bundle, data)
    assert {item.code for item in error.value.diagnostics} == {"SPY0716", "SPY0720"}
    result = spyrec.run(bundle, data, spyrec.RunOptions(sanitize="bounds"))
    assert result.outputs == {}
    assert {item.code for item in result.warnings} == {"SPY0720"}
    first = result.sanitizer[0]
    assert (first.sanitizer, first.file, first.tensor) == (Sanitizer.BOUNDS, "sdsc_0.json", "t0")
    assert first.field is not None
    assert "affine_map" in first.field
    assert "8388608 bytes" in first.message
    assert first.iteration == (0, 1)


def test_bounds_of_layouts_that_contradict_the_table_are_findings_too(tmp_path: Path) -> None:
    folder = copy_example("nested_loop_unrolled", tmp_path)
    bundle = load_foreign(folder, write_table(folder, argument_table("nested_loop_unrolled")))
    data = {a.name: np.zeros(a.device_size, np.float32) for a in bundle.manifest.arguments if a.role.value == "input"}
    result = spyrec.run(bundle, data, spyrec.RunOptions(sanitize="all"))
    assert {item.sanitizer for item in result.sanitizer} == {Sanitizer.BOUNDS}
    assert "contradict" in result.sanitizer[0].message


def test_without_sanitizers_nothing_is_deferred() -> None:
    shared = replace(ADD, tensors=(ROWS, ROWS, Tensor(("mb", "out"), "out", {"mb": -1})))
    device = EmulatedDevice()
    assert device.monitor is None
    with pytest.raises(spyrec.SpyrecError):
        device.load(program_of(), {"sdsc_0.json": superdsc_of(shared)}, table_of(shared))
