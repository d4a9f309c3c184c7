"""The compiled driver of loops: its steps, moved and shared by threads, do what one execution after the other does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.program import Constant, For, Program, SdscExecute
from spyrec.bundle.superdsc import SuperDsc
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.dispatch_table import DispatchTable
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.engine import KernelExecutable
from spyrec.emulator.operations import bound_calls
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.units import DispatchUnit
from spyrec.hardware import dlfloat
from spyrec.runtime import threads as threads_module
from spyrec.runtime.threads import Threads
from tests.emulator.builders import FP32, Operation, Tensor, program_of, superdsc_of, table_of
from tests.emulator.test_weight_cache import OVERWRITE, PRODUCT, Machine, kept, tiled

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

PLACES = 3
"""Places that every operand moves to."""

X = Tensor(("mb", "out"), "out")
ROW = Tensor(("mb", "out"), "out", {"out": -2})
COLUMN = Tensor(("out",), "out")
SINGLE = replace(X, data_format=FP32)
SINGLE_ROW = replace(ROW, data_format=FP32)
SINGLE_COLUMN = replace(COLUMN, data_format=FP32)
A, B, C = Tensor(("m", "k"), "k"), Tensor(("k", "n"), "n"), Tensor(("m", "n"), "n")
BATCH_A, BATCH_B, BATCH_C = (Tensor((*item.order, "x"), item.stick) for item in (A, B, C))

SUM_SCALE = {"exx2scale": 0x3801, "useZeroMean": 0}
EPS = {"eps": 0x2C00}


def sized(rows: int, columns: int, row_slices: int, column_slices: int) -> dict[str, tuple[int, int]]:
    return {"mb": (rows, row_slices), "out": (columns, column_slices)}


def product_of(m: int, n: int, k: int, batch: int = 0) -> Operation:
    dims = {"m": (64, m), "n": (192, n), "k": (128, k)}
    if batch:
        return Operation("batchmatmul", {"x": (2 * batch, batch), **dims}, [BATCH_A, BATCH_B, BATCH_C], unit="pt")
    return Operation("batchmatmul", dims, [A, B, C], unit="pt")


OPERATIONS: Mapping[str, Operation] = {
    "add": Operation("add", sized(16, 256, 4, 2), [X, X, X]),
    "add of a column": Operation("add", sized(16, 256, 4, 1), [X, ROW, X]),
    "add of float32": Operation("add", sized(16, 96, 2, 1), [SINGLE, SINGLE, SINGLE]),
    "cast": Operation("dl16tofp32", sized(16, 128, 8, 1), [X, SINGLE]),
    "copy": Operation("identity", sized(16, 128, 8, 2), [X, X]),
    "neg": Operation("neg", sized(16, 128, 16, 1), [X, X]),
    "sum of lanes": Operation("sum", sized(64, 128, 8, 1), [X, ROW]),
    "maximum on few cores": Operation("max", sized(64, 128, 2, 1), [X, ROW]),
    "sum over cores": Operation("sum", sized(8, 512, 2, 4), [X, ROW]),
    "minimum over cores": Operation("min", sized(8, 512, 2, 4), [X, ROW]),
    "masked maximum": Operation(
        "max", sized(16, 128, 8, 1), [X, ROW], {"samv-maskvalue": 0xFFFF}, {"out": ((100, 28),)}
    ),
    "mean of rows": Operation("meannonstick", sized(16, 512, 1, 8), [X, COLUMN], {"scaling_factor": 0x3801}),
    "sum of rows over cores": Operation("sumnonstick", sized(16, 128, 4, 2), [X, COLUMN]),
    "sum of float32": Operation("sumnonstick", sized(16, 64, 2, 2), [SINGLE, SINGLE_COLUMN]),
    "maximum of float32 over cores": Operation("maxnonstick", sized(16, 64, 2, 2), [SINGLE, SINGLE_COLUMN]),
    "statistics": Operation("exx2", sized(64, 128, 8, 1), [X, ROW], SUM_SCALE),
    "scale": Operation("layernormscale", sized(64, 64, 8, 1), [ROW, ROW], EPS),
    "norm": Operation("layernormnorm", sized(16, 128, 8, 1), [X, ROW, ROW, X]),
    "product": product_of(2, 3, 1),
    "product over cores": product_of(1, 3, 2),
    "product of batches": product_of(2, 1, 1, 2),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """One operation, planned, with memory for every operand at PLACES places."""

    device: EmulatedDevice
    loaded: EmulatedProgram
    planned: PlannedCall

    @classmethod
    def of(cls, operation: Operation, numerics: str) -> Bench:
        device = EmulatedDevice(numerics=numerics)
        loaded = device.load(program_of(1), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation))
        (planned,) = loaded.planned.values()
        return cls(device, loaded, planned)

    def sizes(self) -> list[int]:
        expansion = self.device.expansion
        return [entry.size_bytes * expansion for entry in self.loaded.table.entries]

    def memory(self, seed: int) -> list[npt.NDArray[np.uint16]]:
        """Return PLACES tensors for every operand: numbers, zeros, rows of zeros and infinities."""
        generator = np.random.Generator(np.random.PCG64(seed))
        is_single = [self.planned.setting.codec(t).word_bytes == 4 for t in range(len(self.sizes()))]
        return [words(generator, PLACES * size, single=single) for size, single in zip(self.sizes(), is_single)]

    def starts(self, memory: Sequence[npt.NDArray[np.uint16]]) -> Integers:
        rows = [
            own.ctypes.data + offsets * self.device.expansion
            for own, offsets in zip(memory, self.planned.binding.offsets)
        ]
        return np.stack(rows)


def words(generator: np.random.Generator, size_bytes: int, *, single: bool) -> npt.NDArray[np.uint16]:
    raw = np.zeros(size_bytes + 128, np.uint8)
    skip = -raw.ctypes.data % 128
    values = generator.standard_normal(size_bytes // (4 if single else 2)).astype(np.float32)
    values[generator.random(values.size) < 0.05] = 0
    values[generator.random(values.size) < 0.002] = np.inf
    for _ in range(6):  # sticks of zeros: rows of a second operand that may be K padding
        first = 64 * int(generator.integers(0, values.size // 64))
        values[first : first + 64] = 0
    found = raw[skip : skip + size_bytes].view(np.uint16)
    found[:] = values.view(np.uint16) if single else dlfloat.encode(values)
    return found


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share however little there is to do."""
    monkeypatch.setattr(threads_module, "_SHARED_WORK", 1)
    monkeypatch.setattr(bound_calls, "_SHARED_ELEMENTS", 1)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("numerics", ["dl16", "f32"])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_steps_leave_the_bytes_of_one_execution_after_the_other(name: str, numerics: str, count: int) -> None:
    bench = Bench.of(OPERATIONS[name], numerics)
    if not isinstance(bench.planned.executable, KernelExecutable):
        pytest.skip("the host computes it")
    sizes = bench.sizes()
    generator = np.random.Generator(np.random.PCG64(len(name)))
    moved = generator.integers(0, PLACES, (9, len(sizes))) * np.array(sizes)
    bound_anew, moved_on, driven = (bench.memory(7) for _ in range(3))
    bench.device.weights.begin_launch(np.zeros((0, 2), np.int64), [])
    for movement in moved:
        alone = Bench.of(OPERATIONS[name], numerics)
        alone.planned.executable.run(alone.starts(bound_anew) + movement[:, None])
        bench.planned.executable.run(bench.starts(moved_on) + movement[:, None])
    unit = DispatchUnit((bench.planned,), bench.planned.executable)
    table = DispatchTable([unit], [bench.starts(driven)], Threads(count))
    table.run(np.zeros(len(moved), np.int64), moved)
    for mine, moved_there, expected in zip(driven, moved_on, bound_anew, strict=True):
        assert np.array_equal(moved_there, expected)
        assert np.array_equal(mine, expected)


@pytest.mark.parametrize(("numerics", "of_the_host"), [("dl16", []), ("ieee", []), ("f32", ["neg"])])
def test_steps_of_every_operation_are_there(numerics: str, of_the_host: list[str]) -> None:
    executables = {name: Bench.of(operation, numerics).planned.executable for name, operation in OPERATIONS.items()}
    assert [name for name, item in executables.items() if not isinstance(item, KernelExecutable)] == of_the_host


def test_infinities_over_padding_of_k_count_where_the_tile_of_b_has_numbers_and_only_there() -> None:
    """A stays, so that it is packed once; what of it is padding depends on where B is."""
    bench = Bench.of(product_of(2, 3, 1), "dl16")
    memory = bench.memory(3)
    a, b = memory[0].reshape(PLACES, 2, 64, 64), memory[1].reshape(PLACES, 3, 128, 64)
    a &= np.uint16(0x3FFF)
    b &= np.uint16(0x3FFF)
    a[:, 1, :, 40:] = dlfloat.encode(np.array([np.inf], np.float32))
    b[1, :, 104:] = 0
    bench.device.weights.begin_launch(np.zeros((0, 2), np.int64), [])
    unit = DispatchUnit((bench.planned,), bench.planned.executable)
    table = DispatchTable([unit], [bench.starts(memory)], Threads(1))
    sizes = bench.sizes()
    order = [0, 1, 0, 1, 2]
    moved = np.array([[0, place * sizes[1], place * sizes[2]] for place in order], np.int64)
    table.run(np.zeros(len(moved), np.int64), moved)
    is_finite = np.abs(dlfloat.decode(memory[2].reshape(PLACES, -1))) < np.inf
    assert is_finite.all(axis=1).tolist() == [False, True, False]


def looped(rounds: int, files: int) -> Program:
    head = (Constant("low", 0), Constant("high", rounds), Constant("step", 1))
    body = tuple(SdscExecute(f"sdsc_{number}.json") for number in range(files))
    return Program((), (), (*head, For("i", "low", "high", "step", body)))


class Looped(Machine):
    """The same operations in a loop of so many rounds."""

    def __init__(self, superdscs: Sequence[SuperDsc], rounds: int) -> None:
        super().__init__(superdscs)
        assert isinstance(self.loaded, EmulatedProgram)
        self.files = {f"sdsc_{number}.json": item for number, item in enumerate(superdscs)}
        self.table = self.loaded.table
        self.repeat(rounds)
        for seed, name in enumerate(("a", "b", "other")):
            self.give(name, seed)

    def repeat(self, rounds: int) -> None:
        self.loaded = self.device.load(looped(rounds, len(self.files)), self.files, self.table)


def test_an_operand_that_a_loop_comes_back_to_is_kept_at_once() -> None:
    machine = Looped((PRODUCT,), 1)
    machine.launch()
    assert kept(machine) == 0
    machine.give("b", 9)
    machine.repeat(8)
    machine.launch()
    assert kept(machine) == 6
    machine.assert_product_of("b")


@pytest.mark.parametrize("rounds", [2, 9])
def test_an_operand_that_the_loop_overwrites_is_decoded_again(rounds: int) -> None:
    machine = Looped((PRODUCT, OVERWRITE), rounds)
    machine.launch()
    machine.assert_product_of("other")
    assert kept(machine) == 0


def test_what_was_padding_of_k_before_the_loop_overwrote_it_is_none_afterwards() -> None:
    machine = Looped((PRODUCT, OVERWRITE), 8)
    a, b = (dlfloat.decode(machine.values[name]) for name in ("a", "b"))
    a[:, 104:], b[104:] = np.inf, 0
    for name, values in (("a", a), ("b", b)):
        machine.view(name)[:] = tiled(dlfloat.encode(values)).reshape(-1).view(np.uint8)
    machine.launch()
    assert not np.isfinite(dlfloat.decode(machine.view("c").view(np.uint16))).any()


def test_a_first_operand_that_the_loop_overwrites_is_packed_again() -> None:
    """The loop negates A in place after every product: after an even number of rounds it was negative last."""
    negate = superdsc_of(Operation("neg", {"m": (64, 2), "k": (128, 1)}, [A, A]), 1, [0, 0])
    machine = Looped((PRODUCT, negate), 8)
    machine.launch()
    machine.values["a"] = dlfloat.encode(-dlfloat.decode(machine.values["a"]))
    machine.assert_product_of("b")


class Alone(Threads):
    """Threads of which only the caller comes, and one more when everything is done."""

    def run_together(self, function: Callable[[int], None]) -> None:
        """Call it for the caller, then for the one who is late."""
        function(0)
        function(self.count - 1)


@pytest.mark.usefixtures("eager")
def test_nobody_waits_for_a_thread_that_does_not_come_and_one_that_is_late_does_nothing() -> None:
    bench = Bench.of(Operation("add", sized(16, 256, 4, 2), [X, X, X]), "dl16")
    memory = bench.memory(1)
    total, addend = (dlfloat.decode(item[: len(item) // PLACES]) for item in (memory[0], memory[1]))
    at = bench.starts(memory)
    at[2] = at[0]  # in place, so that what is done twice shows
    table = DispatchTable([DispatchUnit((bench.planned,), bench.planned.executable)], [at], Alone(3))
    table.run(np.zeros(3, np.int64), np.zeros((3, 3), np.int64))
    for _ in range(3):
        total = dlfloat.decode(dlfloat.encode(total + addend))
    assert np.array_equal(dlfloat.decode(memory[0][: total.size]), total)
