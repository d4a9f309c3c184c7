"""``init``: bugs planted in a compiled chain are named at the place they were planted, and ragged tails are silent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable
from spyrec.runtime.findings import Finding, Sanitizer
from tests.emulator.builders import FP32, Operation, Tensor, entry_of, program_of, superdsc_of, table_of
from tests.sanitizers.planting import HandMade, findings, moved, planted, reordered, with_operand, without
from tests.support.runs import monitor_of, ready

SHAPE = (96, 100)
GRAPH = {
    "format": "spyrec.graph/1",
    "name": "chain",
    "inputs": [
        {"name": "x", "shape": list(SHAPE), "dtype": "float16"},
        {"name": "w", "shape": [100, 70], "dtype": "float16"},
    ],
    "nodes": [
        {"name": "s", "op": "sigmoid", "inputs": ["x"]},
        {"name": "m", "op": "matmul", "inputs": ["s", "w"]},
        {"name": "y", "op": "softmax", "inputs": ["m"], "attrs": {"dim": -1}},
        {"name": "c", "op": "cat", "inputs": ["y", "m"], "attrs": {"dim": 0}},
    ],
    "outputs": ["c"],
}
Data = dict[str, npt.NDArray[np.generic]]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return spyrec.compile(GRAPH, spyrec.CompileOptions(cores=4, symbolic_args=False, lx_planner="none"))


@pytest.fixture(scope="module")
def data() -> Data:
    generator = np.random.default_rng(1)
    return {
        "x": generator.standard_normal(SHAPE).astype(np.float16),
        "w": generator.standard_normal((100, 70)).astype(np.float16),
    }


def file_of(bundle: Bundle, op: str, number: int = 0) -> str:
    (program,) = bundle.programs
    return [name for name, item in program.superdscs.items() if item.op_func_name == op][number]


def named(found: tuple[Finding, ...], file: str) -> Finding:
    mine = [item for item in found if item.file == file and item.sanitizer is Sanitizer.INIT]
    assert mine, found
    return mine[0]


@pytest.mark.parametrize("numerics", ["dl16", "ieee", "f32"])
def test_a_ragged_chain_is_silent(bundle: Bundle, data: Data, numerics: str) -> None:
    result = spyrec.run(bundle, data, spyrec.RunOptions(sanitize="all", numerics=numerics, check=True))
    assert result.sanitizer == ()
    assert result.is_ok


def test_a_second_run_does_not_take_the_first_ones_results_for_its_own(bundle: Bundle, data: Data) -> None:
    broken = reordered(bundle, without(file_of(bundle, "identity", 2)))
    with ready(broken, spyrec.RunOptions(sanitize="init")) as run:
        run.run(data)
        first = len(monitor_of(run).findings)
        assert first
        run.run(data)
        assert len(monitor_of(run).findings) == first, "the same bug is the same finding"


def test_a_dropped_producer_is_named_by_its_first_reader(bundle: Bundle, data: Data) -> None:
    finding = named(
        findings(reordered(bundle, without(file_of(bundle, "sigmoid"))), data), file_of(bundle, "batchmatmul")
    )
    assert (finding.tensor, finding.op) == ("pool", "batchmatmul")
    assert (finding.operand or "").startswith("operand 0 ")
    assert finding.field == "scheduleTree_[0].startAddressCoreCorelet_"


def test_an_output_that_nobody_stores_is_named_by_its_host_index(bundle: Bundle, data: Data) -> None:
    last = file_of(bundle, "identity", 3)
    found = findings(reordered(bundle, without(last)), data)
    (finding,) = found
    assert (finding.tensor, finding.element) == ("c", (96, 0))
    assert f"{96 * 70 + 4 * 70 - 1} more" in finding.message or "more" in finding.message


def test_swapped_operations_are_named_by_the_one_that_runs_too_early(bundle: Bundle, data: Data) -> None:
    one, other = file_of(bundle, "batchmatmul"), file_of(bundle, "max")

    def swap(names: list[str]) -> list[str]:
        return [{one: other, other: one}.get(name, name) for name in names]

    finding = named(findings(reordered(bundle, swap), data), other)
    assert finding.tensor == "pool"


def test_a_moved_start_is_named_with_operand_and_address(bundle: Bundle, data: Data) -> None:
    file = file_of(bundle, "sub")
    (program,) = bundle.programs
    unwritten = bundle.manifest.plan[0].pool_bytes - 96 * 128 * 2
    own = program.superdscs[file].operands[0].start_addresses[0]
    found = findings(planted(bundle, file, moved(0, unwritten - own)), data)
    assert any(item.file == file and "operand 0" in (item.operand or "") for item in found), found


def test_too_small_an_extent_leaves_an_element_undefined(bundle: Bundle, data: Data) -> None:
    file = file_of(bundle, "identity", 3)

    def halved(item: SuperDsc) -> SuperDsc:
        changed = replace(item, iteration={**item.iteration, "mb": 48}, core_extent={**item.core_extent, "mb": 12})
        for position, gap in ((0, 48), (1, 144)):
            starts = tuple(
                item.operands[position].start_addresses[0] + core * 12 * 128 for core in range(len(item.core_ids))
            )
            changed = with_operand(changed, position, back_gap={"mb": gap}, start_addresses=starts)
        return changed

    (finding,) = findings(planted(bundle, file, halved), data)
    assert (finding.file, finding.tensor, finding.element) == (file, "c", (144, 0))
    assert finding.field is not None
    assert "N_" in finding.field


def test_a_dropped_mask_is_named_at_the_reduction(bundle: Bundle, data: Data) -> None:
    file = file_of(bundle, "max")
    finding = named(findings(planted(bundle, file, lambda item: replace(item, coordinate_masking={})), data), file)
    assert (finding.op, finding.field) == ("max", "coordinateMasking_")
    assert "a max over sticks" in finding.message
    assert finding.core is not None
    assert finding.address is not None


def test_k_padding_that_is_not_zero_is_named_at_the_matmul(bundle: Bundle, data: Data) -> None:
    finding = named(
        findings(reordered(bundle, without(file_of(bundle, "identity", 1))), data), file_of(bundle, "batchmatmul")
    )
    assert "a sum over K" in finding.message
    assert finding.field == "N_"


def test_a_scale_that_reads_past_lane_zero_is_named(bundle: Bundle, data: Data) -> None:
    # the reduction's result holds one value per stick; read as a whole tensor it is mostly unwritten
    file = file_of(bundle, "sub")
    found = findings(
        planted(bundle, file, lambda item: with_operand(item, 1, scales={**item.operands[1].scales, "out": 1})), data
    )
    assert any(item.file == file and "operand 1" in (item.operand or "") for item in found), found
    assert any(item.file == file and "it reaches a sum over sticks" in item.message for item in found), found


TABLE = Tensor(("mb", "out"), "out", indirection=Indirection.VALUE)
INDEX = Tensor(("mb",), "mb", data_format=DeviceFormat.SENUINT32, indirection=Indirection.INDEX)


def test_an_undefined_index_is_named() -> None:
    operation = Operation("identity", {"mb": (64, 2), "out": (128, 1)}, (INDEX, TABLE, Tensor(("mb", "out"), "out")))
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    made.give(1)
    with pytest.raises(spyrec.SpyrecError) as error:
        made.launch()  # poison is no row
    assert {item.code for item in error.value.diagnostics} == {"SPY0706"}
    finding = made.monitor.findings[0]
    assert (finding.sanitizer, finding.tensor, finding.core) == (Sanitizer.INIT, "arg0", 0)
    assert "an index" in finding.message


def test_defined_indices_carry_the_states_of_their_rows() -> None:
    operation = Operation("identity", {"mb": (64, 2), "out": (128, 1)}, (INDEX, TABLE, Tensor(("mb", "out"), "out")))
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    rows = np.arange(64, dtype=np.int32)[::-1]
    made.give(0, rows)
    made.give(1)
    copy = made.copy_of(1, is_to_device=True)
    made.monitor.forgotten(copy.address + 5 * 128, 128)  # row 5, first stick: taken by index 58
    made.launch()
    made.monitor.copied_out(made.copy_of(2, is_to_device=False))
    (finding,) = made.monitor.findings
    assert (finding.operand, finding.address) == ("operand 1 (LABEL1, hbm)", copy.address + 5 * 128)


@pytest.mark.parametrize("op", ["identity", "exp"])
def test_a_scattered_row_carries_its_states_and_other_rows_keep_theirs(op: str) -> None:
    target = replace(TABLE, indirection=Indirection.VALUE)
    operation = Operation(op, {"mb": (64, 1), "out": (128, 1)}, (INDEX, Tensor(("mb", "out"), "out"), target))
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    rows = np.arange(64, dtype=np.int32)
    rows[[3, 9, 11]] = 5, 5, 10  # row 5 is stored twice more, 3, 9 and 11 never
    made.give(0, rows)
    made.give(1)
    source = made.copy_of(1, is_to_device=True)
    for row in (5, 3, 11):  # what indices 3 and 5 store in row 5 is stored over by index 9
        made.monitor.forgotten(source.address + row * 128, 128)
    made.launch()
    states = made.monitor.states_of(made.addresses[2], entry_of(operation, 2).size_bytes)
    undefined = np.argwhere((states.reshape(2, 64, 128) != 255).any(axis=2)).tolist()
    assert undefined == [[0, 3], [0, 9], [0, 10], [0, 11], [1, 3], [1, 9], [1, 11]]


def test_a_selection_among_undefined_candidates_is_named() -> None:
    source = Tensor(("mb", "in"), "in")
    result = Tensor(("mb", "out"), "mb")
    operation = Operation("topkvalue", {"mb": (64, 1), "in": (128, 1), "out": (4, 1)}, (source, result))
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    assert made.run([0], [1]) == ()
    copy = made.copy_of(0, is_to_device=True)
    made.monitor.forgotten(copy.address + 128 * 7 + 6, 2)
    made.launch()
    finding = made.monitor.findings[0]
    assert (finding.address, finding.op) == (copy.address + 128 * 7 + 6, "topkvalue")
    assert "a selection" in finding.message


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("op", ["exx2", "layernormscale", "meannonstick", "fp32todl16", "ReStickifyOpHBM"])
def test_one_undefined_element_reaches_exactly_the_results_computed_from_it(op: str, slices: int) -> None:
    operation = _one_input(op, slices)
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    made.give(0)
    entry = entry_of(operation, 0)
    lane = 1 if op == "layernormscale" else 37
    made.monitor.forgotten(made.addresses[0] + 128 * 3 + lane * (128 // entry.device_size[-1]), 2)
    _fill(made, 1)
    made.launch()
    states = made.monitor.states_of(made.addresses[1], entry_of(operation, 1).size_bytes)
    words = states.reshape((*entry_of(operation, 1).device_size[:-1], -1))
    undefined = {tuple(place) for place in np.argwhere(words != 255).tolist()}
    assert undefined == _expected(op)
    mixed = [finding.address for finding in made.monitor.findings]
    assert mixed == ([made.addresses[0] + 128 * 3 + 74] if op == "exx2" else [])


@pytest.mark.parametrize("data_format", [DeviceFormat.SEN169_FP16, FP32])
@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("rows", [4, 8192])
def test_what_a_mask_hides_is_stored_defined_whatever_was_there(
    data_format: DeviceFormat, slices: int, rows: int
) -> None:
    tensor = Tensor(("mb", "out"), "out", {}, data_format)
    dims = {"mb": (rows, 2), "out": (256, slices)}
    masks = {"out": ((200, 56),)}
    operation = Operation("exp", dims, (tensor, tensor), {"samv-maskvalue": 0xFFFF}, masks)
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    made.give(0)
    size = 128 // entry_of(operation, 0).device_size[-1]
    lanes = 128 // size
    for column in (37, 210):  # one element of row 3 that counts, and one that does not
        place = (column // lanes * rows + 3) * 128 + column % lanes * size
        made.monitor.forgotten(made.addresses[0] + place, size)
    made.launch()
    states = made.monitor.states_of(made.addresses[1], entry_of(operation, 1).size_bytes)
    words = states.reshape(256 // lanes, rows, lanes, size)
    assert {tuple(place[:3]) for place in np.argwhere(words != 255).tolist()} == {(37 // lanes, 3, 37 % lanes)}
    assert made.monitor.findings == ()


def _one_input(op: str, slices: int) -> Operation:
    rows = Tensor(("mb", "out"), "out")
    sparse = Tensor(("mb", "out"), "out", {"out": -2})
    dims = {"mb": (8, slices), "out": (64, 1)}
    constants = {"exx2scale": 15872, "useZeroMean": 0} if op == "exx2" else {}
    if op == "layernormscale":
        return Operation(op, dims, (sparse, rows), {"eps": 11264})
    if op == "meannonstick":
        return Operation(op, dims, (rows, Tensor(("mb", "out"), "out", {"mb": -1})), {"scaling_factor": 15872})
    if op == "fp32todl16":
        return Operation(op, dims, (replace(rows, data_format=FP32), rows))
    if op == "ReStickifyOpHBM":
        return Operation(op, {"mb": (64, 1), "out": (64 * slices, slices)}, (rows, Tensor(("out", "mb"), "mb")))
    return Operation(op, dims, (rows, sparse), constants)


def _fill(made: HandMade, argument: int) -> None:
    copy = made.copy_of(argument, is_to_device=True)
    made.monitor.copied_in(copy)


def _expected(op: str) -> set[tuple[int, ...]]:
    """Bytes [.., lane byte] of the output that depend on the element of row 3 (and lane 37 or 1)."""
    match op:
        case "exx2":
            # lanes 0 and 1 are stored; the others hold nothing, whatever the row
            # the mix itself is reported at once, and its result counts as defined from then on
            return {(0, row, byte) for row in range(8) for byte in range(4, 128)}
        case "layernormscale":
            return {(0, 3, byte) for byte in range(128)}
        case "meannonstick":
            return {(0, 0, byte) for byte in (74, 75)}
        case "fp32todl16":
            # 32 float32 per stick: lane 37 of row 3 is lane 5 of row 4
            return {(0, 4, byte) for byte in (10, 11)}
        case _:
            return {(0, 37, byte) for byte in (6, 7)}


@pytest.mark.parametrize("dim", ["mb", "out"])
def test_an_undefined_element_of_any_core_of_a_cohort_reaches_the_result(dim: str) -> None:
    # four cores fold one result; the last one's slice holds the element
    rows = Tensor(("mb", "out"), "out")
    extents = {"mb": (8, 4 if dim == "mb" else 1), "out": (256, 4 if dim == "out" else 1)}
    operation = Operation("sum" + "nonstick" * (dim == "mb"), extents, (rows, replace(rows, scale={dim: -1})))
    if dim == "out":
        operation = replace(operation, tensors=(rows, replace(rows, scale={"out": -2})))
    made = HandMade([superdsc_of(operation)], table_of(operation), "init")
    made.give(0)
    made.monitor.forgotten(made.addresses[0] + 128 * (3 * 8 + 7), 2)
    made.launch()
    made.monitor.copied_out(made.copy_of(1, is_to_device=False))
    (finding,) = made.monitor.findings
    assert (finding.op, finding.address) == (operation.op, made.addresses[0] + 128 * (3 * 8 + 7))


@pytest.mark.parametrize("memory", ["pool", "lx"])
def test_what_an_earlier_launch_left_behind_counts_as_unwritten(memory: str) -> None:
    rows = Tensor(("mb", "out"), "out")
    between = replace(rows, lx_start=0) if memory == "lx" else rows
    dims = {"mb": (8, 4), "out": (128, 1)}
    inside = 0 if memory == "pool" else 1 << 34
    entries = tuple(
        replace(entry_of(Operation("abs", dims, (rows, rows)), i), baked_base=(i + 1) << 34) for i in range(2)
    )
    table = ArgumentTable(entries, 4096 if memory == "pool" else 0)
    write = superdsc_of(Operation("abs", dims, (rows, between)), 0, (1 << 34, inside))
    read = superdsc_of(Operation("neg", dims, (between, rows)), 1, (inside, 2 << 34))
    made = HandMade([write, read], table, "init")
    assert made.run([0], [1]) == ()
    if memory == "lx":
        # the rule at load refuses a reader alone, unless a sanitizer watches it
        made = HandMade([write, read], table, "init,lx")
        assert made.run([0], [1]) == ()
    made.loaded = made.device.load(program_of(1), {"sdsc_0.json": read}, table)
    made.launch()
    made.monitor.copied_out(made.copy_of(1, is_to_device=False))
    assert Sanitizer.INIT in {item.sanitizer for item in made.monitor.findings}
