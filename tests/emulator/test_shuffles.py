"""Shuffles: the nine validation cases of their contract, further owners, and what is refused at load."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from spyrec.bundle.dialects import AUGUST_2026
from spyrec.bundle.program import SdscExecute
from spyrec.bundle.superdsc import DimFold, Distribution, SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import LoopSpec
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.engine import Integers, KernelExecutable
from spyrec.emulator.operations import shuffle_steps as operation
from spyrec.emulator.reference.memory import Machine
from spyrec.emulator.reference.program import DefinedLaunch
from spyrec.emulator.timeline.shuffle_traffic import ring_bytes
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable
from tests.support.both_engines import Launched
from tests.support.shuffles import (
    Bytes,
    Owners,
    Shape,
    chain,
    copy,
    distribution,
    emitted,
    entry,
    hbm,
    held,
    launched,
    lx,
    patterned,
    shuffle,
    with_distribution,
    with_superdsc,
)

ROWS, COLUMNS = Owners({"r": 8}), Owners({"c": 8})
TENSOR = Shape({"r": 16, "c": 512})
FAR = 66560


def moves(shape: Shape, *states: tuple[int, Owners]) -> None:
    """Assert that a tensor comes through the scratchpads as it was."""
    contents = patterned(shape)
    program = emitted(chain(shape, states))
    assert [item.op_func_name for item in program.superdscs.values()][1:-1] == ["shuffle"] * (len(states) - 1)
    assert np.array_equal(held(launched(program, shape, contents)), contents)


def test_rows_to_columns() -> None:
    """Cases 1 and 3: one to one, and core 0 keeps what it has of both."""
    moves(TENSOR, (0, ROWS), (FAR, COLUMNS))


def test_bases_that_differ_and_are_not_zero() -> None:
    """Case 5."""
    moves(TENSOR, (1024, ROWS), (FAR, COLUMNS))


def test_there_and_back_over_other_orders_of_cores() -> None:
    halves, turned = Owners({"r": 2, "c": 4}, ("c", "r")), Owners({"r": 8}, ("r",))
    moves(TENSOR, (0, ROWS), (FAR, halves), (0, COLUMNS), (FAR, turned))


def test_the_case_of_the_examples() -> None:
    case = Path(__file__).parent.parent / "fixtures" / "examples_2026_08" / "lx_shuffle_chain"
    options = CodegenOptions(dialect=AUGUST_2026, is_exact=True)
    program = emit_opspecs(read_opspecs((case / "opspecs.json").read_bytes()), options)
    shape = Shape({"r": 256, "c": 512})
    table = ArgumentTable(tuple(entry(index, shape) for index in range(3)))
    generator = np.random.default_rng(0)
    factors = [generator.integers(-9, 9, 256 * 512).astype(np.float32) for _ in range(2)]
    contents = {index: dlfloat.encode(values).view(np.uint8) for index, values in enumerate(factors)}
    launch = Launched(program.program, program.superdscs, table, contents)
    launch.assert_equal()
    result = dlfloat.decode(launch.memory("fast")[0]["argument 2"].view(np.uint16))
    assert np.array_equal(result, -(factors[0] * factors[1]))


@pytest.mark.parametrize("numerics", ["ieee", "f32"])
def test_other_numerics_move_the_same(numerics: str) -> None:
    launched(emitted(chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])), TENSOR, patterned(TENSOR)).assert_equal(numerics)


@pytest.mark.parametrize("data_format", [DeviceFormat.IEEE_FP32, DeviceFormat.SEN143_FP8, DeviceFormat.SENUINT32])
def test_formats_are_moved_and_not_looked_at(data_format: DeviceFormat) -> None:
    shape = Shape({"r": 4, "c": 512}, data_format)
    moves(shape, (0, Owners({"r": 4})), (FAR, Owners({"c": 4})))


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_shuffle_in_a_loop_moves_each_tile(rounds: int) -> None:
    """A tile of rows is taken, shuffled and stored in each round."""
    whole = Shape({"r": 16 * rounds, "c": 512})
    load, move, store = chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])
    step = parse_expression(f"{16 * 64}*t")
    source = replace(load.args[0], device_size=whole.device_size, tile_advance=step)
    target = replace(store.args[1], device_size=whole.device_size, tile_advance=step)
    body = (
        replace(load, args=(source, load.args[1]), tiled_levels=(("t",),)),
        replace(move, tiled_levels=((),)),
        replace(store, args=(store.args[0], target), tiled_levels=(("t",),)),
    )
    contents = patterned(whole)
    assert np.array_equal(held(launched(emitted([LoopSpec(rounds, (), body)]), whole, contents)), contents)


def gathered() -> EmittedProgram:
    """Case 2: eight owners of rows to two groups of four, each of whom has its group's half; then four copies of it."""
    wide = Shape({"x": 4, **TENSOR.sizes})
    load, move, _ = chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])
    store = copy(
        wide,
        {"x": 4, "r": 2},
        TENSOR.argument(lx(FAR), is_input=True),
        wide.argument(hbm(1), index=1, is_input=False),
    )
    program = emitted((load, move, store))
    superdsc = program.superdscs["sdsc_1.json"]
    rows = (DimFold(8, 2), DimFold(0, 1), DimFold(0, 1), DimFold(1, 8))
    columns = (DimFold(512, 1), DimFold(0, 1), DimFold(0, 1), DimFold(64, 8), DimFold(1, 64))
    slots = tuple({"mb": core // 4, "out": 0} for core in range(8))
    own = Distribution(slots, {"mb": rows, "out": columns})
    return with_superdsc(program, with_distribution(superdsc, 1, own))


def test_every_core_of_a_group_gets_what_the_group_has() -> None:
    contents = patterned(TENSOR)
    result = held(launched(gathered(), TENSOR, contents, Shape({"x": 4, **TENSOR.sizes})))
    assert np.array_equal(result.reshape(4, -1), np.stack([contents] * 4))


NARROW = Shape({"r": 16, "c": 128})
SPANS_CORE = (DimFold(64, 2), DimFold(1, 64))
SPANS_CORELET = (DimFold(64, 1), DimFold(1, 64))
HALVES = DimFold(64, 2)
ONE_FOLD = (DimFold(1, 128),)


def in_corelets(elements: tuple[DimFold, ...], corelet: DimFold = HALVES, corelets: int = 2) -> EmittedProgram:
    """Case 4: rows in another order of cores, the 128 columns in two corelets; then back."""
    turned = Owners({"r": 8, "c": 1}, ("c", "r"))
    program = emitted(chain(NARROW, [(0, ROWS), (FAR, turned), (0, ROWS)]))
    slots = tuple({"mb": 7 - core, "out": 0} for core in range(8))
    for name, position in (("sdsc_1.json", 1), ("sdsc_2.json", 0)):
        own = distribution(program.superdscs[name], position)
        columns = (DimFold(128, 1), corelet, DimFold(0, 1), *elements)
        cut = Distribution(slots, {"mb": own.folds["mb"], "out": columns}, corelets)
        program = with_superdsc(program, with_distribution(program.superdscs[name], position, cut))
    return program


@pytest.mark.parametrize("elements", [SPANS_CORE, SPANS_CORELET, ONE_FOLD])
def test_a_dim_in_two_corelets(elements: tuple[DimFold, ...]) -> None:
    contents, program = patterned(NARROW), in_corelets(elements)
    assert np.array_equal(held(launched(program, NARROW, contents)), contents)


def test_corelets_are_written_and_read_again() -> None:
    superdsc = in_corelets(SPANS_CORE).superdscs["sdsc_1.json"]
    sink = DiagnosticSink()
    # corelets of one operand only: the other one's are compared with what follows from its own folds
    assert parse_superdsc(to_bytes(superdsc), None, sink) == superdsc
    assert sink.diagnostics == []


def test_interleaved_elements_lie_as_the_folds_count_them() -> None:
    """Rows 0, 4, 8, .. first: the tensor's order in LX is another one, and the way back undoes it."""
    program = emitted(chain(TENSOR, [(0, ROWS), (FAR, COLUMNS), (0, ROWS)]))
    for name, position in (("sdsc_1.json", 1), ("sdsc_2.json", 0)):
        own = distribution(program.superdscs[name], position)
        rows = (*own.folds["mb"][:3], DimFold(1, 4), DimFold(4, 4))
        cut = replace(own, folds={**own.folds, "mb": rows})
        program = with_superdsc(program, with_distribution(program.superdscs[name], position, cut))
    contents = patterned(TENSOR)
    assert np.array_equal(held(launched(program, TENSOR, contents)), contents)


def fold_orders(extent: int, core_slices: int, generator: Random) -> tuple[DimFold, ...]:
    """Return folds that cut a dim among cores, each taking its elements from anywhere: alphas in any order."""
    inner = generator.choice([count for count in (1, 2, 4) if extent // core_slices % count == 0])
    factors = [core_slices, inner, extent // core_slices // inner]
    alphas = [0, 0, 0]
    below = 1
    for place in generator.sample(range(3), 3):
        alphas[place], below = below, below * factors[place]
    core, *elements = (DimFold(alpha, factor) for alpha, factor in zip(alphas, factors, strict=True))
    return core, DimFold(0, 1), DimFold(0, 1), *elements


@pytest.mark.parametrize("seed", range(12))
def test_elements_of_cores_may_be_taken_from_anywhere(seed: int) -> None:
    """Rows in any order among cores and on them: both engines bring all of them through."""
    generator = Random(seed)
    states = [(0, ROWS), (FAR, Owners({"r": 4, "c": 2})), (0, Owners({"r": 2, "c": 4})), (FAR, COLUMNS)]
    program = emitted(chain(TENSOR, states))
    for number in (1, 2):  # what one shuffle leaves, the next one takes
        own = distribution(program.superdscs[f"sdsc_{number}.json"], 1)
        rows = fold_orders(16, own.slices("mb"), generator)
        slices = tuple(own.core_slices[core] for core in generator.sample(range(8), 8))
        cut = Distribution(slices, {**own.folds, "mb": rows})
        for file, position in ((number, 1), (number + 1, 0)):
            superdsc = program.superdscs[f"sdsc_{file}.json"]
            program = with_superdsc(program, with_distribution(superdsc, position, cut))
    contents = patterned(TENSOR)
    assert np.array_equal(held(launched(program, TENSOR, contents)), contents)


def test_a_shuffle_in_a_loop_is_done_by_the_compiled_driver() -> None:
    """One that Python does takes ten times as long as all else that attention by heads does."""
    superdscs = emitted(chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)]))
    device = EmulatedDevice()
    table = ArgumentTable((entry(0, TENSOR), entry(1, TENSOR)))
    loaded = device.load(superdscs.program, superdscs.superdscs, table)
    assert all(isinstance(item.executable, KernelExecutable) for item in loaded.planned.values())


def test_a_program_reaches_the_scratchpads_of_its_own_cores_alone() -> None:
    program = emitted(chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)]))
    table = ArgumentTable((entry(0, TENSOR), entry(1, TENSOR)))
    assert EmulatedDevice().load(program.program, program.superdscs, table).lx_cores == ROWS.slices["r"]


def scratchpads(program: EmittedProgram, shape: Shape, contents: Bytes) -> dict[int, Bytes]:
    """Return what each core's LX holds in the end, by the definition."""
    regions = {0: contents.copy(), 1: np.zeros(shape.size_bytes, np.uint8)}
    memories = {core: np.zeros(1 << 17, np.uint8) for core in range(8)}
    table = ArgumentTable((entry(0, shape), entry(1, shape)))
    DefinedLaunch(program.program, program.superdscs, table, Machine(regions, memories), {}).run()
    return memories


def test_each_element_lies_where_folds_and_layout_say() -> None:
    """Rows interleaved, on cores in falling order: element by element, from the text of the contract alone."""
    turned = Owners({"r": 1, "c": 8})
    program = emitted(chain(TENSOR, [(0, ROWS), (FAR, turned), (0, ROWS)])[:2])
    superdsc = program.superdscs["sdsc_1.json"]
    own = distribution(superdsc, 1)
    rows = (*own.folds["mb"][:3], DimFold(1, 4), DimFold(4, 4))
    slots = tuple({"mb": 0, "out": 7 - core} for core in range(8))
    changed = with_distribution(superdsc, 1, Distribution(slots, {**own.folds, "mb": rows}))
    contents = patterned(TENSOR)
    found = scratchpads(with_superdsc(program, changed), TENSOR, contents)
    tensor = contents.view(np.uint16).reshape(8, 16, 64)  # [stick of columns, row, lane]
    for core in range(8):
        held_rows = found[core][FAR : FAR + 16 * 128].view(np.uint16).reshape(16, 64)
        for row in range(16):
            assert np.array_equal(held_rows[row], tensor[7 - core, row // 4 + 4 * (row % 4)])


@pytest.mark.parametrize("elements", [SPANS_CORE, SPANS_CORELET, ONE_FOLD])
def test_corelets_lie_one_behind_the_other(elements: tuple[DimFold, ...]) -> None:
    program = in_corelets(elements)
    first = {name: program.superdscs[name] for name in ("sdsc_0.json", "sdsc_1.json")}
    statements = [item for item in program.program.body if not isinstance(item, SdscExecute)]
    calls = [item for item in program.program.body if isinstance(item, SdscExecute)][:2]
    begun = replace(program, superdscs=first, program=replace(program.program, body=(*statements, *calls)))
    contents = patterned(NARROW)
    found = scratchpads(begun, NARROW, contents)
    tensor = contents.view(np.uint16).reshape(2, 16, 64)  # [stick of columns, row, lane]
    for core in range(8):
        sticks = found[core][FAR : FAR + 2 * 2 * 128].view(np.uint16).reshape(2, 2, 64)
        assert np.array_equal(sticks, tensor[:, 2 * (7 - core) : 2 * (8 - core)])


def test_an_interleaved_result_is_no_tensor_of_an_ordinary_reader() -> None:
    """Its reader would take the rows in order: cores that own every eighth row hold other rows than it thinks."""
    program = emitted(chain(TENSOR, [(0, COLUMNS), (FAR, ROWS)]))
    superdsc = program.superdscs["sdsc_1.json"]
    own = distribution(superdsc, 1)
    rows = (DimFold(1, 8), DimFold(0, 1), DimFold(0, 1), DimFold(8, 2))
    changed = with_distribution(superdsc, 1, replace(own, folds={**own.folds, "mb": rows}))
    with pytest.raises(SpyrecError, match="SPY0718"):
        held(launched(with_superdsc(program, changed), TENSOR, patterned(TENSOR)))


# What is refused.

Change = Callable[[SuperDsc], SuperDsc]


def owners(position: int, **slots: Callable[[int], int]) -> Change:
    def change(superdsc: SuperDsc) -> SuperDsc:
        own = distribution(superdsc, position)
        cores = tuple(
            {dim: slots[dim](core) if dim in slots else slot for dim, slot in slices.items()}
            for core, slices in enumerate(own.core_slices)
        )
        return with_distribution(superdsc, position, replace(own, core_slices=cores))

    return change


def folds(position: int, **changed: tuple[DimFold, ...]) -> Change:
    def change(superdsc: SuperDsc) -> SuperDsc:
        own = distribution(superdsc, position)
        return with_distribution(superdsc, position, replace(own, folds={**own.folds, **changed}))

    return change


def starts(position: int, start: int) -> Change:
    def change(superdsc: SuperDsc) -> SuperDsc:
        operands = list(superdsc.operands)
        operands[position] = replace(operands[position], start_addresses=(start,) * len(superdsc.core_ids))
        return replace(superdsc, operands=tuple(operands))

    return change


PLAIN = (DimFold(0, 1), DimFold(0, 1))


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        (owners(1, out=lambda core: core // 2), "SPY0726", "nobody owns"),  # case 7
        (owners(0, mb=lambda core: max(core, 1)), "SPY0726", "nobody owns"),  # a piece is dropped
        (owners(1, out=lambda core: core + 1), "SPY0726", "which has 8"),
        (folds(1, out=(DimFold(32, 8), *PLAIN, DimFold(64, 1), DimFold(1, 64))), "SPY0725", "twice"),  # case 8
        (folds(1, out=(DimFold(128, 4), *PLAIN, DimFold(64, 1), DimFold(1, 64))), "SPY0725", "leave elements out"),
        (folds(1, out=(DimFold(64, 4), *PLAIN, DimFold(64, 1), DimFold(1, 64))), "SPY0725", "256 elements, fewer"),
        (folds(0, mb=(DimFold(2, 8), *PLAIN, DimFold(1, 4))), "SPY0725", "twice"),
        (folds(0, mb=(DimFold(2, 16), *PLAIN, DimFold(1, 2))), "SPY0725", "more"),
        (folds(0, mb=(DimFold(2, 8), DimFold(0, 1), DimFold(1, 2), DimFold(1, 1))), "SPY0725", "rows"),
        (folds(0, mb=(DimFold(2, 1 << 40), *PLAIN, DimFold(1, 2))), "SPY0726", "nobody owns"),
        (folds(1, mb=(DimFold(16, 1), DimFold(8, 2), DimFold(0, 1), DimFold(1, 16))), "SPY0725", "corelet"),
        (starts(1, 512), "SPY0717", "overlaps"),  # case 8: S1 and S2 on one core
        (starts(1, (2 << 20) - 1024), "SPY0718", "exceeds"),  # case 9
        (starts(0, 64), "SPY0715", "aligned"),
    ],
)
def test_what_is_refused_at_load(change: Change, code: str, fact: str) -> None:
    program = emitted(chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)]))
    changed = with_superdsc(program, change(program.superdscs["sdsc_1.json"]))
    with pytest.raises(SpyrecError, match=code) as found:
        launched(changed, TENSOR, patterned(TENSOR)).memory("fast")
    assert any(fact in item.message for item in found.value.diagnostics if item.code == code)


@pytest.mark.parametrize(
    ("elements", "corelet", "corelets"),
    [
        (SPANS_CORE, DimFold(64, 4), 2),  # case 6: a cardinality that is not that of the memory
        (SPANS_CORE, DimFold(64, 1), 2),  # left out
        (SPANS_CORE, DimFold(64, 2), 1),
        (SPANS_CORE, DimFold(32, 2), 2),
        ((DimFold(64, 3), DimFold(1, 64)), DimFold(96, 2), 2),
    ],
)
def test_corelets_that_do_not_fit_are_refused(elements: tuple[DimFold, ...], corelet: DimFold, corelets: int) -> None:
    with pytest.raises(SpyrecError, match="SPY0725"):
        launched(in_corelets(elements, corelet, corelets), NARROW, patterned(NARROW)).memory("fast")


def test_sticks_are_not_cut_between_cores() -> None:
    program = emitted(chain(NARROW, [(0, ROWS), (FAR, Owners({"r": 4, "c": 2}))]))
    superdsc = program.superdscs["sdsc_1.json"]
    own = distribution(superdsc, 1)
    cut = {
        "mb": (DimFold(8, 2), *PLAIN, DimFold(1, 8)),
        "out": (DimFold(32, 4), *PLAIN, DimFold(32, 1), DimFold(1, 32)),
    }
    slots = tuple({"mb": core % 2, "out": core // 2} for core in range(8))
    changed = with_distribution(superdsc, 1, replace(own, folds=cut, core_slices=slots))
    with pytest.raises(SpyrecError, match="SPY0713"):
        launched(with_superdsc(program, changed), NARROW, patterned(NARROW)).memory("fast")


def test_a_consumer_that_reads_the_source_is_refused() -> None:
    load, move, store = chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])
    early = replace(store.args[0], allocation=lx(0))
    program = emitted((load, move, replace(store, args=(early, store.args[1]))))
    with pytest.raises(SpyrecError, match="SPY0718"):
        launched(program, TENSOR, patterned(TENSOR)).memory("fast")


def test_a_consumer_before_its_shuffle_is_refused() -> None:
    load, move, store = chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])
    with pytest.raises(SpyrecError, match="SPY0718"):
        launched(emitted((load, store, move)), TENSOR, patterned(TENSOR)).memory("fast")


def test_a_source_in_device_memory_is_refused() -> None:
    program = emitted((shuffle(TENSOR, (0, ROWS), (FAR, COLUMNS)),))
    superdsc = program.superdscs["sdsc_0.json"]
    plain = replace(superdsc.operands[0], distribution=None)
    changed = replace(superdsc, operands=(plain, superdsc.operands[1]))
    with pytest.raises(SpyrecError, match="SPY0724"):
        launched(with_superdsc(program, changed), TENSOR, patterned(TENSOR)).memory("fast")


DEEP = Shape({"x": 4, "r": 8, "c": 64})


def brute_force_ring_bytes(superdsc: SuperDsc) -> int:
    """Element by element: who owns it, who gets it, and how far that is round a ring of 32."""
    source, target = distribution(superdsc, 0), distribution(superdsc, 1)

    def owned(own: Distribution, core: int) -> Iterator[tuple[int, ...]]:
        ranges: list[list[int]] = []
        for dim, (cut, corelet, _, *elements) in own.folds.items():
            inside = [0]
            for fold in elements:
                inside = [at + fold.alpha * number for at in inside for number in range(fold.factor)]
            first = cut.alpha * own.core_slices[core][dim]
            wanted = inside[: corelet.alpha] if corelet.factor > 1 else inside
            ranges.append([first + corelet.alpha * half + at for half in range(corelet.factor) for at in wanted])
        yield from itertools.product(*ranges)

    owners: dict[tuple[int, ...], int] = {}
    for core in superdsc.core_ids:
        for element in owned(source, core):
            owners.setdefault(element, core)
    most = 0
    for core in superdsc.core_ids:
        apart = [abs(core - owners[element]) for element in owned(target, core)]
        most = max(most, sum(min(links, 32 - links) for links in apart))
    return most * superdsc.operands[1].word_length


@pytest.mark.parametrize(
    "program",
    [
        emitted(chain(NARROW, [(0, ROWS), (FAR, Owners({"r": 4, "c": 2}, ("c", "r")))])),
        emitted(chain(DEEP, [(0, Owners({"x": 4, "r": 8})), (FAR, Owners({"r": 8, "x": 4}))])),
        gathered(),
        in_corelets(SPANS_CORE),
    ],
    ids=["halves", "32 cores", "groups", "corelets"],
)
def test_bytes_on_the_ring(program: EmittedProgram) -> None:
    superdsc = program.superdscs["sdsc_1.json"]
    assert ring_bytes(superdsc) == brute_force_ring_bytes(superdsc) > 0


def test_a_bug_planted_in_the_fast_path_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launched(emitted(chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])), TENSOR, patterned(TENSOR))
    launch.assert_equal()
    right = operation.coordinates_of

    def dropped(own: Distribution, dim: str, number: int) -> Integers:
        """Give core 5's columns to core 4 as well."""
        return right(own, dim, 4 if number == 5 and own.slices("out") == 8 else number)

    monkeypatch.setattr(operation, "coordinates_of", dropped)
    with pytest.raises(AssertionError):
        launch.assert_equal()


def values_in(node: JsonValue) -> Iterator[tuple[dict[str, JsonValue] | list[JsonValue], str | int]]:
    """Yield every place of a JSON value that holds something."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, member in items:
        assert isinstance(node, dict | list)
        yield node, key
        yield from values_in(member)


def test_a_damaged_shuffle_is_refused_or_moves_what_it_says() -> None:
    """Any value of the file replaced by any other: no crash, nothing that both engines see differently."""
    program = emitted(chain(NARROW, [(0, ROWS), (FAR, Owners({"r": 4, "c": 2}))]))
    text = to_bytes(program.superdscs["sdsc_1.json"])
    generator = np.random.default_rng(3)
    outcomes: Counter[str] = Counter()
    for _ in range(150):
        data = json.loads(text)
        places = list(values_in(data))
        node, key = places[generator.integers(len(places))]
        node[key] = [0, 1, 2, -1, 1 << 39, "x", None, [], {}, 64][generator.integers(10)]  # type: ignore[index, call-overload]
        try:
            changed = replace(parse_superdsc(json.dumps(data)), index=1)
            launched(with_superdsc(program, changed), NARROW, patterned(NARROW)).assert_equal()
            outcomes["moved"] += 1
        except SpyrecError:
            outcomes["refused"] += 1
    assert outcomes["moved"] > 5
    assert outcomes["refused"] > 50
