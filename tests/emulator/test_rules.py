"""Each rule V1 to V14, broken by one planted change in a right program, is refused with its own code, at load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.execution_count import execution_count
from spyrec.bundle.program import (
    Add,
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    DeviceMemoryAllocate,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.codes import CODES
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.rules.binding import tile_summands
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import Sanitizer
from tests.emulator.builders import DL16, FP32, Operation, Tensor, program_of, superdsc_of, table_of
from tests.emulator.example_cases import Kernel, load_kernel

ROWS = Tensor(("mb", "out"), "out")
ADD = Operation("add", {"mb": (8, 4), "out": (128, 1)}, (ROWS, ROWS, ROWS))
BASES = (0, 1 << 34, 2 << 34)


def codes_of(program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable, cores: int = 32) -> set[str]:
    """The codes a program is refused with at load; the device holds nothing of it afterwards."""
    device = EmulatedDevice(cores)
    before = device.allocate(128)
    with pytest.raises(SpyrecError) as error:
        device.load(program, superdscs, table)
    assert device.allocate(128) == before + 128
    codes = {item.code for item in error.value.diagnostics}
    assert codes <= set(CODES)
    for item in error.value.diagnostics:
        if "SPY0711" <= item.code <= "SPY0724":
            assert item.to_json()["notes"][-1] == f"rule V{int(item.code[-4:]) - 710}"  # type: ignore[index]
    return codes


def refused(superdsc: SuperDsc, table: ArgumentTable | None = None) -> set[str]:
    return codes_of(program_of(), {"sdsc_0.json": superdsc}, table or table_of(ADD))


def with_operand(superdsc: SuperDsc, position: int, **changes: object) -> SuperDsc:
    operands = list(superdsc.operands)
    operands[position] = replace(operands[position], **changes)  # type: ignore[arg-type]
    return replace(superdsc, operands=tuple(operands))


def shifted_starts(superdsc: SuperDsc, position: int, move: Callable[[int, int], int]) -> SuperDsc:
    starts = superdsc.operands[position].start_addresses
    return with_operand(
        superdsc, position, start_addresses=tuple(move(core, start) for core, start in enumerate(starts))
    )


def test_v1_slices_that_do_not_cover_the_grid() -> None:
    good = superdsc_of(ADD)
    twice = (good.core_work_slices[0], *good.core_work_slices[:3])
    assert refused(replace(good, core_work_slices=twice)) == {"SPY0711"}
    assert refused(replace(good, work_slices={"mb": 8, "out": 1}, core_extent={"mb": 1, "out": 128})) == {"SPY0711"}


def test_v2_slices_that_do_not_make_the_whole() -> None:
    assert refused(replace(superdsc_of(ADD), iteration={"mb": 9, "out": 128})) == {"SPY0712"}


def test_v3_a_core_slice_that_ends_inside_a_stick() -> None:
    operation = replace(ADD, dims={"mb": (8, 1), "out": (320, 2)})
    assert refused(superdsc_of(operation), table_of(operation)) == {"SPY0713"}


def test_v4_a_start_that_contradicts_the_strides() -> None:
    good = superdsc_of(ADD)
    moved = shifted_starts(good, 1, lambda core, start: start + (128 if core == 2 else 0))
    assert refused(moved) == {"SPY0714"}


def test_v5_a_start_inside_a_stick() -> None:
    assert "SPY0715" in refused(shifted_starts(superdsc_of(ADD), 1, lambda _core, start: start + 2))


@pytest.mark.parametrize("device_size", [(8, 2, 64), (2, 4, 64), (2, 16, 64), (2, 8, 32)])
def test_v6_a_buffer_that_the_argument_table_describes_otherwise(device_size: tuple[int, ...]) -> None:
    table = table_of(ADD)
    first = replace(table.entries[0], device_size=device_size, size_bytes=1 << 20)
    assert refused(superdsc_of(ADD), replace(table, entries=(first, *table.entries[1:]))) == {"SPY0716"}


def test_v6_ignores_dims_of_size_one_and_dims_that_are_fused_or_split() -> None:
    table = table_of(ADD)
    for device_size in ((1, 2, 1, 8, 64), (2, 2, 4, 64), (16, 64)):
        first = replace(table.entries[0], device_size=device_size)
        split = replace(table, entries=(first, *table.entries[1:]))
        loaded = EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc_of(ADD)}, split)
        assert loaded.table == split


@pytest.mark.parametrize(("sticks", "is_taken"), [(16, True), (17, True), (40, True), (15, False), (1, False)])
def test_v6_takes_any_tensor_that_fits_into_a_single_row_of_sticks(sticks: int, is_taken: bool) -> None:
    table = table_of(ADD)
    first = replace(table.entries[0], device_size=(sticks, 64), size_bytes=1 << 20)
    row = replace(table, entries=(first, *table.entries[1:]))
    if is_taken:
        EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc_of(ADD)}, row)
    else:
        assert refused(superdsc_of(ADD), row) == {"SPY0716"}


def test_v6_bytes_outside_every_argument() -> None:
    moved = shifted_starts(superdsc_of(ADD), 1, lambda _core, start: start + (1 << 33))
    assert refused(moved) == {"SPY0716"}
    beyond = shifted_starts(superdsc_of(ADD), 1, lambda _core, start: start + 128)
    assert refused(beyond) == {"SPY0716"}


def test_v7_two_cores_that_store_one_byte() -> None:
    # The output does not vary along a split dim that a pointwise operation does not combine over.
    shared = replace(ADD, tensors=(ROWS, ROWS, Tensor(("mb", "out"), "out", {"mb": -1})))
    assert refused(superdsc_of(shared), table_of(shared)) == {"SPY0717"}


def test_v7_a_core_that_loads_what_another_stores() -> None:
    # Both lie in one buffer of 9 rows: the input one row further than the output, so that each core's last row is
    # the next core's first.
    gap = {"mb": 1}
    shifted = (ROWS, replace(ROWS, gap=gap, first={"mb": 1}), replace(ROWS, gap=gap))
    operation = replace(ADD, tensors=shifted)
    superdsc = superdsc_of(operation, bases=(BASES[0], BASES[2], BASES[2]))
    assert refused(superdsc, table_of(operation)) == {"SPY0717"}
    # In place, every core on its own rows, is no race.
    in_place = superdsc_of(ADD, bases=(BASES[2], BASES[1], BASES[2]))
    EmulatedDevice().load(program_of(), {"sdsc_0.json": in_place}, table_of(ADD))


def window_copy(source: int, target: int, op: str = "identity", slices: int = 1) -> SuperDsc:
    """A copy of 8 rows of one argument of 12 rows to other rows of it."""
    rows = [replace(ROWS, gap={"mb": 4}, first={"mb": first}) for first in (source, target)]
    operation = Operation(op, {"mb": (8, slices), "out": (128, 1)}, rows)
    return superdsc_of(operation, bases=(0, 0))


def one_argument(rows: int) -> ArgumentTable:
    return ArgumentTable((TableEntry("t0", 0, (2, rows, 64), DL16, 0, rows * 256),))


@pytest.mark.parametrize("op", ["identity", "abs"])
@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (0, 4), (4, 3)])
def test_v7_a_core_that_loads_what_it_stores_elsewhere(source: int, target: int, op: str) -> None:
    superdsc = window_copy(source, target, op)
    assert refused(superdsc, one_argument(12)) == {"SPY0717"}


def test_work_in_place_and_beside_its_operand_is_legal() -> None:
    for superdsc, rows in ((window_copy(2, 2), 12), (window_copy(2, 2, "abs", 4), 12)):
        loaded = EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc}, one_argument(rows))
        assert execution_count(loaded.program) == 1
    # 8 rows behind 8 rows of the same stick columns touch no byte of theirs.
    rows = [replace(ROWS, gap={"mb": 8}, first={"mb": first}) for first in (0, 8)]
    apart = superdsc_of(Operation("identity", {"mb": (8, 1), "out": (128, 1)}, rows), bases=(0, 0))
    loaded = EmulatedDevice().load(program_of(), {"sdsc_0.json": apart}, one_argument(16))
    assert execution_count(loaded.program) == 1


def test_v7_a_restickify_in_place() -> None:
    dims = {"mb": (64, 1), "out": (64, 1)}
    operation = Operation("ReStickifyOpHBM", dims, (Tensor(("mb", "out"), "out"), Tensor(("out", "mb"), "mb")))
    table = ArgumentTable((TableEntry("t0", 0, (1, 64, 64), DL16, 0, 64 * 128),))
    assert refused(superdsc_of(operation, bases=(0, 0)), table) == {"SPY0717"}


def test_v7_a_broadcast_operand_that_the_result_overwrites() -> None:
    row = Tensor(("mb", "out"), "out", {"mb": -1})
    operation = Operation("add", {"mb": (8, 1), "out": (64, 1)}, (ROWS, row, ROWS))
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation))
    base = device.allocate(4096)
    with pytest.raises(SpyrecError) as error:
        device.launch(loaded, [base, base, base], None)
    (problem,) = error.value.diagnostics  # the first operand is in place, the row is not
    assert problem.code == "SPY0717"
    assert problem.message.startswith("operand 1 ")


@pytest.mark.parametrize(("target", "is_legal"), [(0, True), (2048, True), (128, False), (1024, False)])
def test_v7_overlaps_in_the_scratchpad(target: int, is_legal: bool) -> None:
    dims = {"mb": (32, 4), "out": (128, 1)}
    places = [replace(ROWS, lx_start=start) for start in (0, target)]
    steps = [
        Operation("abs", dims, (ROWS, places[0])),
        Operation("neg", dims, (places[0], places[1])),
        Operation("exp", dims, (places[1], ROWS)),
    ]
    superdscs = {f"sdsc_{i}.json": superdsc_of(item, i, (0, 1 << 34)) for i, item in enumerate(steps)}
    entries = tuple(TableEntry(f"t{i}", i, (2, 32, 64), DL16, i << 34, 2 * 32 * 128) for i in range(2))
    if is_legal:
        EmulatedDevice().load(program_of(3), superdscs, ArgumentTable(entries))
    else:
        assert codes_of(program_of(3), superdscs, ArgumentTable(entries)) == {"SPY0717"}


def test_v7_tiles_that_a_loop_moves_over_each_other() -> None:
    # Both begin apart; the input advances by a tile of 4 rows in each round, the output stands still.
    def program(rounds: int) -> tuple[Program, SuperDsc]:
        tile = [replace(ROWS, gap={"mb": 28}, first={"mb": first}) for first in (0, 16)]
        superdsc = superdsc_of(Operation("identity", {"mb": (4, 1), "out": (64, 1)}, tile), bases=(0, 0))
        for position in range(2):
            superdsc = with_operand(superdsc, position, is_symbolic=True, start_addresses=(-1 - position,))
        body: tuple[Statement, ...] = (
            ArgumentExtract("arg_0", "arg_0_base_addr"),
            Constant("c0", 0),
            Constant("c1", 1),
            Constant("rounds", rounds),
            Constant("target", 16 * 128),
            Add("out", "arg_0", "target"),
            For(
                "i",
                "c0",
                "rounds",
                "c1",
                (
                    AffineApply("in", "map_0", ("i",), "arg_0"),
                    SdscExecute("sdsc_0.json", ("in", "out"), (-1, -2)),
                ),
            ),
        )
        return Program((AffineMap("map_0", (4 * 128,)),), (InputArgument("arg_0_base_addr"),), body), superdsc

    table = ArgumentTable((TableEntry("t0", 0, (1, 32, 64), DL16, 0, 32 * 128),))
    for rounds in (4, 5):  # the fifth tile is the output's own place: in place, and legal
        good, superdsc = program(rounds)
        EmulatedDevice().load(good, {"sdsc_0.json": superdsc}, table)
    good, superdsc = program(5)
    shifted = replace(
        good,
        body=tuple(
            Constant("target", 15 * 128) if item == Constant("target", 16 * 128) else item for item in good.body
        ),
    )
    assert codes_of(shifted, {"sdsc_0.json": superdsc}, table) == {"SPY0717"}


def test_arguments_put_over_each_other_are_refused_at_launch() -> None:
    program, superdsc = symbolic_add()
    device = EmulatedDevice()
    loaded = device.load(program, {"sdsc_0.json": superdsc}, table_of(ADD))
    size = table_of(ADD).entries[0].size_bytes
    base = device.allocate(3 * size)
    device.memory(base, 3 * size)[:] = 0
    device.launch(loaded, [base, base + 128, base + 2 * size], None)  # inputs may share bytes
    device.launch(loaded, [base, base + size, base], None)  # in place
    for addresses in ([base, base + 2 * size, base + 128], [base, base + 128, base], [base + size, base, base + 1024]):
        before = device.memory(base, 3 * size).copy()
        with pytest.raises(SpyrecError) as error:
            device.launch(loaded, addresses, None)
        assert {item.code for item in error.value.diagnostics} == {"SPY0717"}
        np.testing.assert_array_equal(device.memory(base, 3 * size), before)


def chain(
    second_dims: dict[str, tuple[int, int]], start: int = 0, second_start: int | None = None
) -> Sequence[SuperDsc]:
    """abs into LX, then neg out of it."""
    lx = replace(ROWS, lx_start=start)
    first = Operation("abs", {"mb": (8, 4), "out": (256, 1)}, (ROWS, lx))
    second = Operation(
        "neg", second_dims, (replace(lx, lx_start=start if second_start is None else second_start), ROWS)
    )
    return superdsc_of(first), superdsc_of(second, 1, (0, 1 << 34))


def chain_table() -> ArgumentTable:
    return ArgumentTable(tuple(TableEntry(f"t{i}", i, (4, 8, 64), DL16, i << 34, 4 * 8 * 128) for i in range(2)))


def load_chain(superdscs: Sequence[SuperDsc]) -> set[str]:
    return codes_of(program_of(2), {f"sdsc_{i}.json": item for i, item in enumerate(superdscs)}, chain_table())


def test_v8_scratchpad_data_read_under_another_split() -> None:
    assert load_chain(chain({"mb": (8, 1), "out": (256, 4)})) == {"SPY0718"}
    assert load_chain(chain({"mb": (8, 2), "out": (256, 2)})) == {"SPY0718"}


def test_v8_scratchpad_data_that_nobody_wrote() -> None:
    assert load_chain(chain({"mb": (8, 4), "out": (256, 1)}, second_start=4096)) == {"SPY0718"}


def test_v8_a_tensor_that_ends_past_the_scratchpad() -> None:
    assert load_chain(chain({"mb": (8, 4), "out": (256, 1)}, start=(2 << 20) - 128)) == {"SPY0718"}


FOLDED = Tensor(("mb", "out"), "out", {"mb": -1})
PRODUCT = (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), ROWS)


@pytest.mark.parametrize(
    ("operation", "dim"),
    [
        (Operation("sumnonstick", {"mb": (4, 2), "out": (64, 1)}, (ROWS, FOLDED)), "mb"),
        (Operation("maxnonstick", {"mb": (8, 4), "out": (128, 2)}, (ROWS, FOLDED)), "mb"),
        (Operation("batchmatmul", {"mb": (4, 2), "in": (128, 2), "out": (64, 1)}, PRODUCT, unit="pt"), "in"),
    ],
    ids=lambda item: item if isinstance(item, str) else item.op,
)
def test_v8_partial_results_in_the_scratchpads_of_several_cores(operation: Operation, dim: str) -> None:
    *inputs, output = operation.tensors
    into_lx = replace(operation, tensors=(*inputs, replace(output, lx_start=0)))
    device = EmulatedDevice()
    with pytest.raises(SpyrecError) as error:
        device.load(program_of(), {"sdsc_0.json": superdsc_of(into_lx)}, table_of(into_lx))
    (found,) = error.value.diagnostics
    assert found.code == "SPY0718"
    cores = [core for core, of_core in enumerate(superdsc_of(operation).core_work_slices)
             if all(index == 0 for other, index in of_core.items() if other != dim)]  # fmt: skip
    for named in (f"operand {len(inputs)}", f'dim "{dim}"', f"cores {', '.join(map(str, cores))},"):
        assert named in found.message
    device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation))
    undivided = replace(into_lx, dims={**operation.dims, dim: (operation.dims[dim][0], 1)})
    device.load(program_of(), {"sdsc_0.json": superdsc_of(undivided)}, table_of(undivided))


def test_a_chain_through_the_scratchpad_keeps_each_core_to_its_own_slice() -> None:
    superdscs = chain({"mb": (8, 4), "out": (256, 1)}, start=(2 << 20) - 1024)
    device = EmulatedDevice()
    loaded = device.load(program_of(2), {f"sdsc_{i}.json": item for i, item in enumerate(superdscs)}, chain_table())
    addresses = [device.allocate(4096) for _ in range(2)]
    values = np.random.default_rng(0).standard_normal(2048)
    device.memory(addresses[0], 4096).view(np.uint16)[:] = dlfloat.encode(values)
    stats = device.launch(loaded, addresses, None)
    want = dlfloat.encode(values) | 0x8000
    np.testing.assert_array_equal(device.memory(addresses[1], 4096).view(np.uint16), want)
    assert stats.lx_peak_bytes == 2 << 20
    assert [(op.hbm_read_bytes, op.hbm_write_bytes) for op in stats.operations] == [(4096, 0), (0, 4096)]


def symbolic_add(ids: Sequence[int] | None = None, operands: Sequence[str] | None = None) -> tuple[Program, SuperDsc]:
    """ADD with symbol ids -1 .. -12 for 3 operands of 4 cores, bound to argument bases plus constants."""
    good = superdsc_of(ADD)
    body: list[Statement] = [ArgumentExtract(f"arg_{i}", f"arg_{i}_base_addr") for i in range(3)]
    names: list[str] = []
    for position in range(3):
        for core, start in enumerate(good.operands[position].start_addresses):
            offset, name = start - BASES[position], f"addr_{position}_{core}"
            body += [
                Constant(f"offset_{position}_{core}", offset),
                Add(name, f"arg_{position}", f"offset_{position}_{core}"),
            ]
            names.append(name)
    bound = tuple(range(-1, -13, -1)) if ids is None else tuple(ids)
    body.append(SdscExecute("sdsc_0.json", tuple(names if operands is None else operands), bound))
    for position in range(3):
        good = with_operand(
            good, position, is_symbolic=True, start_addresses=tuple(-(4 * position + core + 1) for core in range(4))
        )
    return Program((), tuple(InputArgument(f"arg_{i}_base_addr") for i in range(3)), tuple(body)), good


def test_symbolic_and_baked_addresses_give_the_same_bytes() -> None:
    program, superdsc = symbolic_add()
    results: list[npt.NDArray[np.uint8]] = []
    generator = np.random.default_rng(0)
    data = [dlfloat.encode(generator.standard_normal(1024)) for _ in range(2)]
    for one, sdsc in ((program, superdsc), (program_of(), superdsc_of(ADD))):
        device = EmulatedDevice()
        loaded = device.load(one, {"sdsc_0.json": sdsc}, table_of(ADD))
        addresses = [device.allocate(2048) for _ in range(3)]
        for address, values in zip(addresses, data):
            device.memory(address, 2048).view(np.uint16)[:] = values
        device.launch(loaded, addresses, None)
        results.append(device.memory(addresses[2], 2048).copy())
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("ids", "operands"),
    [
        ([*range(-1, -12, -1)], None),
        ([*range(-1, -12, -1), -1], None),
        ([*range(-1, -12, -1), -99], None),
        ([*range(-1, -13, -1)], ["arg_0"] * 11),
    ],
)
def test_v9_symbols_that_are_not_bound_exactly_once(ids: list[int], operands: list[str] | None) -> None:
    program, superdsc = symbolic_add(ids, operands)
    assert codes_of(program, {"sdsc_0.json": superdsc}, table_of(ADD)) == {"SPY0719"}


def corrected(kernel: Kernel, coefficients: tuple[int, int]) -> Kernel:
    maps = tuple(AffineMap(item.name, coefficients) for item in kernel.program.maps)
    return replace(kernel, program=replace(kernel.program, maps=maps))


def with_constant(program: Program, name: str, value: int) -> Program:
    body = (replace(s, value=value) if isinstance(s, Constant) and s.result == name else s for s in program.body)
    return replace(program, body=tuple(body))


def test_v10_loop_steps_that_are_no_tile_steps() -> None:
    kernel = load_kernel("nested_loop_symbolic")
    assert codes_of(kernel.program, kernel.superdscs, kernel.table) == {"SPY0716", "SPY0720"}
    for wrong in ((65536 + 128, 2097152), (4194304, 2048), (65536, 1048576)):
        other = corrected(kernel, wrong)
        assert "SPY0720" in codes_of(other.program, other.superdscs, other.table)


def test_v10_tiles_that_loops_carry_out_of_their_dim() -> None:
    # 4 rounds along rows and 2 along stick columns, each with the other's step: rows end at 2048 of 1024
    swapped = corrected(load_kernel("nested_loop_symbolic"), (2097152, 65536))
    with pytest.raises(SpyrecError) as error:
        EmulatedDevice().load(swapped.program, swapped.superdscs, swapped.table)
    assert {item.code for item in error.value.diagnostics} == {"SPY0720"}
    assert 'carry it along "mb" to entry 2048 of 1024' in error.value.diagnostics[0].message


@pytest.mark.parametrize("step", [2, 3])
def test_v10_holds_a_coefficient_and_not_what_a_round_advances(step: int) -> None:
    kernel = corrected(load_kernel("nested_loop_symbolic"), (65536, 2097152))
    body = tuple(
        replace(
            item, body=tuple(replace(inner, step="c1s") if isinstance(inner, For) else inner for inner in item.body)
        )
        if isinstance(item, For)
        else item
        for item in (Constant("c1s", step), *kernel.program.body)
    )
    device = EmulatedDevice()
    loaded = device.load(replace(kernel.program, body=body), kernel.superdscs, kernel.table)
    addresses = [device.allocate(entry.size_bytes) for entry in kernel.table.entries]
    assert [op.executions for op in device.launch(loaded, addresses, None).operations] == [4, 4]  # 2 x 2 of 4


def test_a_loop_nest_with_tile_steps_covers_every_tile() -> None:
    kernel = corrected(load_kernel("nested_loop_symbolic"), (65536, 2097152))
    device = EmulatedDevice()
    loaded = device.load(kernel.program, kernel.superdscs, kernel.table)
    size = kernel.table.entries[0].size_bytes
    addresses = [device.allocate(size) for _ in range(4)]
    generator = np.random.default_rng(0)
    a, b, c = (dlfloat.encode(generator.standard_normal(size // 2).astype(np.float32)) for _ in range(3))
    for address, values in zip(addresses, (a, b, c)):
        device.memory(address, size).view(np.uint16)[:] = values
    stats = device.launch(loaded, addresses, None)
    y = dlfloat.encode(dlfloat.decode(a) + dlfloat.decode(b))
    want = dlfloat.encode(dlfloat.decode(y) * dlfloat.decode(c))
    np.testing.assert_array_equal(device.memory(addresses[3], size).view(np.uint16), want)
    assert [op.executions for op in stats.operations] == [8, 8]
    assert stats.operations[0].hbm_read_bytes == 2 * size


@pytest.mark.parametrize(
    ("found", "accepted"),
    [(1000, True), (2 * 1000 + 2 * 96, True), (3 * 1000, True), (2 * 96, True), (1000 + 8, False), (44, False)],
)
def test_an_outer_loop_may_go_several_tiles_along_each_of_two_dims(found: int, accepted: bool) -> None:
    """Loops inside of it walk both: a step is a sum of multiples of theirs, none of them taken away."""
    steps = {"mb": 96, "out": 1000}
    assert (tile_summands(found, steps, [96, 1000]) is not None) is accepted


def test_the_unrolled_example_whose_tiles_overlap_is_refused_by_its_extents() -> None:
    kernel = load_kernel("nested_loop_unrolled")
    assert "SPY0716" in codes_of(kernel.program, kernel.superdscs, kernel.table)


@pytest.mark.parametrize(
    "changes",
    [
        {"word_length": 4},
        {"layout_dim_order": ("mb", "mb")},
        {"scales": {"mb": -2, "out": 1}},
        {"scales": {"mb": 0, "out": 1}},
        {"scales": {"mb": 1}},
        {"back_gap": {"out": 32}},
        {"back_gap": {"mb": -1}},
        {"start_addresses": (0,)},
        {"label": "NONE"},
        {"data_format": FP32},
    ],
)
def test_v11_malformed_operands(changes: dict[str, object]) -> None:
    assert refused(with_operand(superdsc_of(ADD), 0, **changes)) == {"SPY0721"}


def test_v12_a_scratchpad_gap_on_a_split_dim() -> None:
    superdscs = list(chain({"mb": (8, 4), "out": (256, 1)}))
    superdscs[0] = with_operand(superdscs[0], 1, back_gap={"mb": 2})
    assert load_chain(superdscs) == {"SPY0722"}


def test_v13_spans_and_sizes_that_are_too_large() -> None:
    tall = Operation("add", {"mb": (1 << 20, 1), "out": (192, 1)}, (ROWS, ROWS, ROWS))
    assert refused(superdsc_of(tall), table_of(tall)) == {"SPY0723"}
    huge = Operation("add", {"mb": (1 << 40, 1), "out": (64, 1)}, (ROWS, ROWS, ROWS))
    assert refused(superdsc_of(huge), table_of(huge)) == {"SPY0723"}
    # 256 MiB is inclusive.
    edge = Operation("add", {"mb": (1 << 20, 1), "out": (128, 1)}, (ROWS, ROWS, ROWS))
    EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc_of(edge)}, table_of(edge))


def test_v14_what_is_not_executed_is_refused_by_name() -> None:
    good = superdsc_of(ADD)

    def with_compute(**changes: object) -> SuperDsc:
        return replace(good, compute=replace(good.compute, **changes))  # type: ignore[arg-type]

    assert refused(with_compute(op_func_name="maxpoolfwd")) == {"SPY0724"}
    assert refused(with_compute(inputs=(0,))) == {"SPY0724"}
    assert refused(with_compute(outputs=(1, 2))) == {"SPY0724"}
    assert refused(with_compute(op_func_name="clip", inputs=(0,))) == {"SPY0724"}
    masked = replace(good, coordinate_masking={"out": ((100, 28),)})
    assert refused(masked) == {"SPY0724"}
    words = replace(ADD, tensors=(*(replace(ROWS, data_format=DeviceFormat.IEEE_INT32),) * 3,))
    assert refused(superdsc_of(words), table_of(words)) == {"SPY0724"}


def test_programs_that_cannot_be_walked() -> None:
    files = {"sdsc_0.json": superdsc_of(ADD)}
    one = Constant("c1", 1)
    parameters = (InputArgument("arg_0_base_addr"), InputArgument("arg_7_base_addr"), InputArgument("pool_base_addr"))
    two_bases = (ArgumentExtract("a", "arg_0_base_addr"), ArgumentExtract("b", "arg_0_base_addr"), Add("c", "a", "b"))
    bodies: list[tuple[Statement, ...]] = [
        (SdscExecute("sdsc_9.json"),),
        (Add("c", "a", "b"),),
        (ArgumentExtract("a", "arg_1_base_addr"),),
        (ArgumentExtract("a", "arg_7_base_addr"),),
        (ArgumentExtract("a", "pool_base_addr"),),
        two_bases,
        (one, AffineApply("a", "map_0", ("c1",), "c1")),
        (one, Constant("c0", 0), For("i", "c0", "c1", "c0", ())),
        (one, For("i", "c1", "c1", "c1", (For("j", "c1", "i", "c1", ()),))),
    ]
    for body in bodies:
        assert codes_of(Program((), parameters, body), files, table_of(ADD)) == {"SPY0704"}


def test_loops_that_would_execute_too_often_are_refused_and_empty_ones_are_skipped() -> None:
    numbers: tuple[Statement, ...] = (Constant("c0", 0), Constant("c1", 1), Constant("many", 1 << 50))
    files = {"sdsc_0.json": superdsc_of(ADD)}
    busy = Program((), (), (*numbers, For("i", "c0", "many", "c1", (SdscExecute("sdsc_0.json"),))))
    assert codes_of(busy, files, table_of(ADD)) == {"SPY0707"}
    idle = Program((), (), (*numbers, For("i", "c0", "many", "c1", ())))
    device = EmulatedDevice()
    stats = device.launch(device.load(idle, files, ArgumentTable(())), [], None)
    assert stats.operations == ()


@pytest.mark.parametrize("sanitizers", [frozenset[Sanitizer](), frozenset(Sanitizer)], ids=["plain", "watched"])
@pytest.mark.parametrize("is_outer_endless", [True, False])
def test_what_never_runs_is_held_to_no_extent(sanitizers: frozenset[Sanitizer], is_outer_endless: bool) -> None:
    kernel = corrected(load_kernel("nested_loop_symbolic"), (65536, 2097152))
    endless, never = ("loop_bound_0", "loop_bound_1") if is_outer_endless else ("loop_bound_1", "loop_bound_0")
    program = with_constant(with_constant(kernel.program, endless, 10**18), never, 0)
    device = EmulatedDevice(sanitizers=sanitizers)
    loaded = device.load(program, kernel.superdscs, kernel.table)
    addresses = [device.allocate(entry.size_bytes) for entry in kernel.table.entries]
    stats = device.launch(loaded, addresses, None)
    assert [(op.executions, op.roofline) for op in stats.operations] == [(0, None), (0, None)]


@pytest.mark.parametrize("sanitizers", [frozenset[Sanitizer](), frozenset({Sanitizer.BOUNDS})], ids=["plain", "bounds"])
@pytest.mark.parametrize("number", [1 << 62, (1 << 63) - 1, 1 - (1 << 63)])
def test_numbers_beyond_every_memory_are_refused(number: int, sanitizers: frozenset[Sanitizer]) -> None:
    kernel = corrected(load_kernel("nested_loop_symbolic"), (65536, 2097152))
    programs = [
        corrected(kernel, (number, 2097152)).program,
        with_constant(kernel.program, "arg_0_core_offset_2048", number),
        with_constant(with_constant(kernel.program, "c0", -abs(number)), "loop_bound_0", abs(number)),
    ]
    codes: list[set[str]] = []
    for program in programs:
        with pytest.raises(SpyrecError) as error:
            EmulatedDevice(sanitizers=sanitizers, max_executions=100).load(program, kernel.superdscs, kernel.table)
        codes.append({item.code for item in error.value.diagnostics})
    assert "SPY0716" in codes[0]
    assert "SPY0716" in codes[1]
    assert codes[2] == {"SPY0704"}


def test_memory_of_the_program_itself_carries_an_intermediate() -> None:
    first = with_operand(
        superdsc_of(Operation("abs", ADD.dims, (ROWS, ROWS))), 1, is_symbolic=True, start_addresses=(-1, -2, -3, -4)
    )
    second = superdsc_of(Operation("neg", ADD.dims, (ROWS, ROWS)), 1)
    second = with_operand(second, 0, is_symbolic=True, start_addresses=(-5, -6, -7, -8))
    body: list[Statement] = [DeviceMemoryAllocate("m", 2048)]
    for core in range(4):
        body += [Constant(f"o{core}", core * 256), Add(f"a{core}", "m", f"o{core}")]
    names = tuple(f"a{core}" for core in range(4))
    body += [SdscExecute("sdsc_0.json", names, (-1, -2, -3, -4)), SdscExecute("sdsc_1.json", names, (-5, -6, -7, -8))]
    table = ArgumentTable(table_of(ADD).entries[:2])
    device = EmulatedDevice()
    loaded = device.load(Program((), (), tuple(body)), {"sdsc_0.json": first, "sdsc_1.json": second}, table)
    addresses = [device.allocate(2048) for _ in range(2)]
    values = dlfloat.encode(np.random.default_rng(0).standard_normal(1024))
    device.memory(addresses[0], 2048).view(np.uint16)[:] = values
    device.launch(loaded, addresses, None)
    np.testing.assert_array_equal(device.memory(addresses[1], 2048).view(np.uint16), values | 0x8000)
    small = Program((), (), (DeviceMemoryAllocate("m", 1024), *body[1:]))
    assert codes_of(small, {"sdsc_0.json": first, "sdsc_1.json": second}, table) == {"SPY0716"}


def test_memory_is_bounded_and_poisoned() -> None:
    device = EmulatedDevice()
    first, second = device.allocate(100), device.allocate(128)
    assert second == first + 128
    assert np.all(device.memory(first, 128).view(np.uint16) == 0x7FFF)
    for address, size in ((first, 129), (first + 128, 129), (-1, 1), (1 << 40, 1), (first, -1)):
        with pytest.raises(SpyrecError) as error:
            device.memory(address, size)
        assert error.value.diagnostics[0].code == "SPY0702"
    for size in ((16 << 30) + 1, -5):
        with pytest.raises(SpyrecError) as error:
            device.allocate(size)
        assert error.value.diagnostics[0].code == "SPY0701"


def test_a_launch_without_an_argument_or_pool_is_refused() -> None:
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(ADD)}, replace(table_of(ADD), pool_bytes=128))
    addresses = [device.allocate(2048) for _ in range(3)]
    for arguments, pool in ((addresses[:2], addresses[0]), (addresses, None)):
        with pytest.raises(SpyrecError) as error:
            device.launch(loaded, arguments, pool)
        assert error.value.diagnostics[0].code == "SPY0703"


PLAIN = Tensor(("mb", "out"), "out")


@pytest.mark.parametrize("op", ["neg", "sumnonstick"])
def test_v14_a_mask_where_nothing_stands_for_what_it_hides(op: str) -> None:
    masks = {"out": ((200, 56),)}
    dims = {"mb": (8, 1), "out": (256, 1)}
    result = PLAIN if op == "neg" else replace(PLAIN, scale={"mb": -1})
    operation = Operation(op, dims, (PLAIN, result), {"samv-maskvalue": 0xFFFF}, masks)
    assert refused(superdsc_of(operation), table_of(operation)) == {"SPY0724"}
    legal = replace(operation, op="exp", tensors=(PLAIN, PLAIN))
    EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc_of(legal)}, table_of(legal))


def test_v14_an_index_of_what_is_not_computed_by_element() -> None:
    index = Tensor(("mb",), "mb", {}, DeviceFormat.SENUINT32, indirection=Indirection.INDEX)
    table = replace(PLAIN, data_format=FP32, indirection=Indirection.VALUE)
    operation = Operation("fp32todl16", {"mb": (64, 1), "out": (128, 1)}, (index, table, PLAIN))
    assert refused(superdsc_of(operation), table_of(operation)) == {"SPY0724"}
    legal = replace(operation, op="neg")
    EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc_of(legal)}, table_of(legal))


def test_v14_a_selection_of_more_than_there_is() -> None:
    dims = {"mb": (64, 1), "k": (4, 1), "n": (3, 1)}
    operation = Operation("topkvalue", dims, (Tensor(("mb", "n"), "mb"), Tensor(("k", "mb"), "mb")))
    assert refused(superdsc_of(operation), table_of(operation)) == {"SPY0724"}
