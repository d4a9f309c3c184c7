"""Data DSCs: pieces of a tensor moved between scratchpads and device memory, element by element against a map."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.data_dsc import DataDsc, MovedTensor, Piece
from spyrec.bundle.dialects import JUNE_2026
from spyrec.bundle.dsc_schedule import DscSchedule
from spyrec.bundle.superdsc import ComputeOp, SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.emulator.operations import data_move
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.emulator.builders import DL16, Operation, Tensor, program_of, superdsc_of
from tests.emulator.test_shuffles import values_in as places_of
from tests.support.both_engines import Launched
from tests.support.pieces import boxes, data_dsc, piece, tensor
from tests.support.unequal import moving_then, rows_of

Bytes = npt.NDArray[np.uint8]
Box = dict[str, tuple[int, int]]

EXTENTS = {"r": 8, "c": 256}
WHOLE: Box = {"r": (0, 8), "c": (0, 256)}
SIZE = 8 * 256 * 2


def only_moving(items: Sequence[DataDsc], rows: Mapping[int, Sequence[Sequence[int]]], index: int = 0) -> SuperDsc:
    """Return a file without DSCs."""
    cores = tuple(rows)
    schedule = DscSchedule(cores, {}, {core: rows_of(own) for core, own in rows.items()}, (), tuple(items))
    return SuperDsc(
        index, "relayout", cores, {}, {}, {}, tuple({} for _ in cores), {}, (), (), {}, -1,
        ComputeOp("", items[0].op, DeviceFormat.SEN169_FP16, (), ()), JUNE_2026, schedule=schedule,
    )  # fmt: skip


def in_hbm(name: str, argument: int, order: Sequence[str] = ("r", "c")) -> MovedTensor:
    """Return the tensor whole, in an argument."""
    return tensor(name, EXTENTS, order, "c", [piece("all", WHOLE, (None, (argument << 34) // 128))])


def pieces(cuts: Mapping[str, Sequence[int]], place: Callable[[int], tuple[int, int]], stick: str = "c") -> list[Piece]:
    """Return the boxes of a grid; ``place``: core and byte by number."""
    assert stick
    return [piece(f"p{number}", box, place(number)) for number, box in enumerate(boxes(cuts))]


def table() -> ArgumentTable:
    sizes = (4, 8, 64)
    return ArgumentTable(tuple(TableEntry(f"t{i}", i, sizes, DL16, i << 34, SIZE) for i in range(2)))


def contents() -> Bytes:
    return np.random.default_rng(0).integers(0, 256, SIZE).astype(np.uint8)


def launched(*superdscs: SuperDsc) -> Launched:
    files: dict[str, SuperDsc] = {}
    for number, superdsc in enumerate(superdscs):
        sink = DiagnosticSink()
        read = parse_superdsc(to_bytes(superdsc), None, sink)
        assert read == superdsc
        assert to_bytes(read) == to_bytes(superdsc)
        assert sink.diagnostics == []
        files[f"sdsc_{number}.json"] = read
    return Launched(program_of(len(files)), files, table(), {0: contents()})


def of_text(text: bytes | str) -> Launched:
    return Launched(program_of(), {"sdsc_0.json": parse_superdsc(text)}, table(), {0: contents()})


def held(launch: Launched) -> Bytes:
    launch.assert_equal()
    return launch.memory("fast")[0]["argument 1"]


def steps(cores: Sequence[int], *rows: Sequence[int]) -> dict[int, Sequence[Sequence[int]]]:
    return dict.fromkeys(cores, rows)


def lx_tensor(
    name: str, cuts: Mapping[str, Sequence[int]], base: int, order: Sequence[str] = ("r", "c")
) -> MovedTensor:
    return tensor(name, EXTENTS, order, "c", pieces(cuts, lambda core: (core, base)))


FOUR = range(4)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"r": (2, 2, 2, 2)}, {"c": (64, 64, 64, 64)}),
        ({"r": (3, 1, 2, 2)}, {"c": (64, 128, 64)}),
        ({"c": (128, 128)}, {"r": (5, 3)}),
        ({"r": (4, 4), "c": (128, 128)}, {"r": (2, 6), "c": (192, 64)}),
        ({"r": (8,)}, {"r": (1, 7)}),
    ],
)
def test_a_relayout_there_and_back(first: Mapping[str, Sequence[int]], then: Mapping[str, Sequence[int]]) -> None:
    """From device memory into pieces, to other pieces at the same bytes of LX, and out again."""
    cuts = [{dim: own.get(dim, (extent,)) for dim, extent in EXTENTS.items()} for own in (first, then)]
    one, other = lx_tensor("one", cuts[0], 0), lx_tensor("other", cuts[1], 0)
    moves = [
        data_dsc(in_hbm("x", 0), one, FOUR),
        data_dsc(one, other, FOUR, 1),
        data_dsc(other, in_hbm("y", 1), FOUR, 2),
    ]
    rows = steps(FOUR, [0, -1, 0, 1], [1, -1, 1, 1], [2, -1, 1, 0])
    assert np.array_equal(held(launched(only_moving(moves, rows))), contents())


def test_each_element_lies_where_the_pieces_say() -> None:
    """Into pieces with columns innermost in sticks, at bases that differ: byte by byte from the text alone."""
    cuts = {"r": (3, 5), "c": (128, 128)}
    source = in_hbm("x", 0)
    order = ("c", "r")
    target = tensor("y", EXTENTS, order, "c", [])
    found = [
        replace(own, places=(replace(own.places[0], core=None, start=((1 << 34) // 128) + start),))
        for own, start in zip(pieces(cuts, lambda core: (core, 0)), (0, 6, 12, 22), strict=True)
    ]
    moved = held(
        launched(
            only_moving([data_dsc(source, replace(target, pieces=tuple(found)), FOUR)], steps(FOUR, [0, -1, 0, 0]))
        )
    )
    x = contents().view(np.uint16).reshape(4, 8, 64)  # [stick of columns, row, lane]
    y = moved.view(np.uint16).reshape(-1, 64)
    firsts = {(0, 0): 0, (0, 1): 6, (1, 0): 12, (1, 1): 22}
    for row, column in product(range(8), range(256)):
        part = (int(row >= 3), int(column >= 128))
        inside_row, inside_column = row - 3 * part[0], column - 128 * part[1]
        stick = firsts[part] + inside_row * 2 + inside_column // 64  # columns innermost: two sticks, then the next row
        assert y[stick, inside_column % 64] == x[column // 64, row, column % 64]


def test_a_piece_at_several_places_is_stored_at_each() -> None:
    one = lx_tensor("one", {"r": (2, 2, 2, 2), "c": (256,)}, 0)
    everywhere = tensor("all", EXTENTS, ("r", "c"), "c", [piece("all", WHOLE, *((core, 8192) for core in FOUR))])
    back = tensor("back", EXTENTS, ("r", "c"), "c", [piece("all", WHOLE, (3, 8192))])
    moves = [
        data_dsc(in_hbm("x", 0), one, FOUR),
        data_dsc(one, everywhere, FOUR, 1),
        data_dsc(back, in_hbm("y", 1), FOUR, 2),
    ]
    rows = steps(FOUR, [0, -1, 0, 1], [1, -1, 0, 1], [2, -1, 0, 0])
    assert np.array_equal(held(launched(only_moving(moves, rows))), contents())


def add_in_lx(slices: int) -> SuperDsc:
    """Return a sum of two operands in LX, divided by columns, into device memory."""
    first = Tensor(("r", "c"), "c", lx_start=0)
    operation = Operation(
        "add", {"r": (8, 1), "c": (256, slices)}, (first, replace(first, lx_start=65536), Tensor(("r", "c"), "c"))
    )
    return superdsc_of(operation, bases=(0, 0, 1 << 34))


def mixed(rows: Mapping[int, Sequence[Sequence[int]]]) -> SuperDsc:
    """Return two data DSCs that bring a tensor into LX twice, and a sum of both."""
    cuts = {"r": (8,), "c": (64, 64, 64, 64)}
    moves = [data_dsc(in_hbm("x", 0), lx_tensor(f"l{n}", cuts, base), FOUR, n) for n, base in enumerate((0, 65536))]
    return moving_then(add_in_lx(4), moves, rows)


MIXED = ([0, -1, 0, 1], [1, -1, 1, 1], [-1, 0, 1, 0])


def test_data_first_then_computation() -> None:
    values = np.random.default_rng(1).integers(-9, 9, SIZE // 2).astype(np.float32)
    launch = replace(launched(mixed(steps(FOUR, *MIXED))), contents={0: dlfloat.encode(values).view(np.uint8)})
    assert np.array_equal(dlfloat.decode(held(launch).view(np.uint16)), 2 * values)


def test_both_in_one_step_moves_first() -> None:
    one_step = mixed(steps(FOUR, [0, -1, 0, 1], [1, 0, 0, 0]))
    apart = mixed(steps(FOUR, *MIXED))
    assert np.array_equal(held(launched(one_step)), held(launched(apart)))


def test_counters_of_a_move() -> None:
    """Sticks of device memory that hold elements which move, once, and once per core that receives any."""
    thirds = lx_tensor("one", {"r": (3, 5), "c": (256,)}, 0)
    part = tensor(
        "part", EXTENTS, ("r", "c"), "c", [piece("p", {"r": (1, 4), "c": (32, 96)}, (None, (1 << 34) // 128))]
    )
    moves = [data_dsc(in_hbm("x", 0), thirds, (0, 1)), data_dsc(thirds, part, (0, 1), 1)]
    launch = launched(only_moving(moves, steps((0, 1), [0, -1, 0, 1], [1, -1, 1, 0])))
    launch.assert_equal()
    (load, store) = launch.memory("fast")[1].operations
    assert (load.hbm_read_bytes, load.hbm_core_read_bytes, load.hbm_write_bytes) == (SIZE, SIZE, 0)
    assert (store.hbm_read_bytes, store.hbm_write_bytes) == (0, 3 * 128)  # 64 columns in one stick, three rows
    assert load.cores == 2
    assert store.simulated_us is not None
    assert store.simulated_us > 0


# What is refused.


def relayout(change: Callable[[DataDsc], DataDsc]) -> SuperDsc:
    one = lx_tensor("one", {"r": (2, 2, 2, 2), "c": (256,)}, 0)
    other = lx_tensor("other", {"r": (8,), "c": (64, 64, 64, 64)}, 8192)
    moves = [
        data_dsc(in_hbm("x", 0), one, FOUR),
        change(data_dsc(one, other, FOUR, 1)),
        data_dsc(other, in_hbm("y", 1), FOUR, 2),
    ]
    return only_moving(moves, steps(FOUR, [0, -1, 0, 1], [1, -1, 1, 1], [2, -1, 1, 0]))


def of_source(change: Callable[[tuple[Piece, ...]], Sequence[Piece]]) -> Callable[[DataDsc], DataDsc]:
    return lambda item: replace(item, source=replace(item.source, pieces=tuple(change(item.source.pieces))))


def of_target(change: Callable[[tuple[Piece, ...]], Sequence[Piece]]) -> Callable[[DataDsc], DataDsc]:
    return lambda item: replace(
        item, destination=replace(item.destination, pieces=tuple(change(item.destination.pieces)))
    )


def of_all(**changes: object) -> Callable[[DataDsc], DataDsc]:
    return lambda item: replace(item, **changes)  # type: ignore[arg-type]


def at(own: Piece, core: int | None, start: int) -> Piece:
    return replace(own, places=(replace(own.places[0], core=core, start=start),))


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        (of_source(lambda p: p[1:]), "SPY0757", "element {'r': 0, 'c': 0} of piece \"p0\" is not covered"),
        (of_source(lambda p: (*p[:2], p[3])), "SPY0757", "element {'r': 4, 'c': 0}"),
        (of_target(lambda p: (*p, at(p[1], 0, 8192 + 512))), "SPY0758", "both stored at byte 8704 of the LX of core 0"),
        (of_target(lambda p: (*p[:3], at(p[3], 3, 8192 + 64))), "SPY0715", "is not 128-byte aligned"),
        (of_target(lambda p: (*p[:3], at(p[3], 3, (2 << 20) - 512))), "SPY0718", "exceeds"),
        (of_target(lambda p: (*p[:3], at(p[3], None, 5 << 27))), "SPY0716", "lies in no argument"),
        (of_target(lambda p: (*p[:3], at(p[3], None, (1 << 27) + 30))), "SPY0716", "touches bytes [3840, 4864)"),
        (of_target(lambda p: (*p[:3], at(p[3], 7, 0))), "SPY0622", "memory 7 of a place in lx"),
        (of_all(op="ReStickifyOpWithPTHBM"), "SPY0662", '"ReStickifyOpWithPTHBM" is not executed'),
        (of_all(core_ids=(0, 1, 2)), "SPY0622", "memory 3 of a place in lx"),
    ],
)  # fmt: skip
def test_what_is_refused(change: Callable[[DataDsc], DataDsc], code: str, fact: str) -> None:
    with pytest.raises(SpyrecError) as found:
        of_text(to_bytes(relayout(change))).memory("fast")
    assert any(item.code == code and fact in item.message for item in found.value.diagnostics), str(found.value)


def twice(same: bool) -> SuperDsc:
    """Return a relayout whose source has row 0 of two cores, which hold the same or not."""
    one = lx_tensor("one", {"r": (2, 2, 2, 2), "c": (256,)}, 0)
    row: Box = {"r": (0, 1), "c": (0, 256)}
    copied = replace(one, pieces=(*one.pieces, piece("copy", row, (3, 16384))))
    filled = (
        copied if same else replace(one, pieces=(*one.pieces, piece("copy", {"r": (1, 2), "c": (0, 256)}, (3, 16384))))
    )
    other = lx_tensor("other", {"r": (8,), "c": (64, 64, 64, 64)}, 8192)
    moves = [
        data_dsc(in_hbm("x", 0), filled, FOUR),
        data_dsc(copied, other, FOUR, 1),
        data_dsc(other, in_hbm("y", 1), FOUR, 2),
    ]
    return only_moving(moves, steps(FOUR, [0, -1, 0, 1], [1, -1, 1, 1], [2, -1, 1, 0]))


def test_two_sources_that_agree_are_one() -> None:
    assert np.array_equal(held(launched(twice(same=True))), contents())


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_two_sources_that_differ_are_refused(engine: str) -> None:
    with pytest.raises(SpyrecError, match="SPY0759") as found:
        launched(twice(same=False)).memory(engine)
    assert 'has another value in piece "copy"' in found.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (
            {**steps((0, 1, 2), *MIXED), 3: ([0, -1, 0, 0], [1, -1, 0, 1], [-1, 0, 1, 0])},
            "one waits 2 times and the other 1",
        ),
        ({**steps((0, 1, 2), *MIXED), 3: ([0, -1, 0, 1], [-1, 0, 1, 0])}, "different steps, from step 1 on"),
    ],
)
def test_cores_of_one_dsc_that_would_wait_for_ever(rows: Mapping[int, Sequence[Sequence[int]]], fact: str) -> None:
    with pytest.raises(SpyrecError, match="SPY0622") as found:
        parse_superdsc(to_bytes(mixed(rows)))
    assert fact in found.value.diagnostics[0].message
    assert "core" in found.value.diagnostics[0].message


THREE = ([0, -1, 0, 1], [1, -1, 1, 1], [2, -1, 1, 0])


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        (
            ([0, -1, 0, 0], [1, -1, 0, 1], [2, -1, 1, 0]),
            "step 1 of core 3 runs data DSC 1 after 0 barriers, core 0 after 1",
        ),
        (([0, -1, 0, 1], [2, -1, 1, 0]), "runs data DSC 2 after 1 barriers"),
        (([0, -1, 0, 1], [1, -1, 1, 1]), "core 3 never comes to data DSC 2"),
    ],
)
def test_cores_that_only_move_and_would_wait_for_ever(row: Sequence[Sequence[int]], fact: str) -> None:
    whole = relayout(lambda item: item)
    assert whole.schedule is not None
    changed = only_moving(whole.schedule.data_dscs, {**steps((0, 1, 2), *THREE), 3: row})
    with pytest.raises(SpyrecError, match="SPY0661") as found:
        parse_superdsc(to_bytes(changed))
    assert fact in found.value.diagnostics[0].message


def test_orders_that_contradict_each_other() -> None:
    whole = relayout(lambda item: item)
    assert whole.schedule is not None
    there, back = ([0, -1, 0, 0], [1, -1, 0, 0], [2, -1, 1, 0]), ([1, -1, 0, 0], [0, -1, 0, 0], [2, -1, 1, 0])
    changed = only_moving(whole.schedule.data_dscs, {**steps((0, 1, 2), *there), 3: back})
    with pytest.raises(SpyrecError, match="SPY0661") as found:
        parse_superdsc(to_bytes(changed))
    assert "contradict each other" in found.value.diagnostics[0].message


def test_a_dropped_piece_in_the_fast_path_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launched(relayout(lambda item: item))
    launch.assert_equal()
    right = data_move.DataMove.load

    def dropped(self: data_move.DataMove, starts: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[np.unsignedinteger]]:
        found = right(self, starts)
        found[max(found)] = found[max(found)] * 0
        return found

    monkeypatch.setattr(data_move.DataMove, "load", dropped)
    with pytest.raises(AssertionError):
        launch.assert_equal()


def test_any_value_of_the_file_replaced_is_refused_or_moves_what_it_says() -> None:
    text = to_bytes(relayout(lambda item: item))
    generator = np.random.default_rng(5)
    outcomes = {"moved": 0, "refused": 0}
    for _ in range(150):
        data = json.loads(text)
        places = list(places_of(data))
        node, key = places[generator.integers(len(places))]
        node[key] = [0, 1, 2, -1, 1 << 39, "x", None, [], {}, 64][generator.integers(10)]  # type: ignore[index, call-overload]
        try:
            of_text(json.dumps(data)).assert_equal()
            outcomes["moved"] += 1
        except SpyrecError:
            outcomes["refused"] += 1
    assert outcomes["moved"] > 3
    assert outcomes["refused"] > 50
