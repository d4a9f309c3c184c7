"""Decoded weights that are kept never outlive the bytes they were decoded from, and stay within their limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.superdsc import SuperDsc
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.operations.weight_cache import PanelKey, WeightCache
from spyrec.hardware import dlfloat
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.emulator.builders import DL16, Operation, Tensor, program_of, superdsc_of

ROWS, DEPTH, COLUMNS = 64, 128, 192
Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint16]

NAMES = {"a": (ROWS, DEPTH), "b": (DEPTH, COLUMNS), "c": (ROWS, COLUMNS), "other": (DEPTH, COLUMNS)}


def tiled(values: Words) -> Words:
    """The device form of a matrix: sticks outermost, [columns / 64, rows, 64]."""
    rows, columns = values.shape
    return np.ascontiguousarray(values.reshape(rows, columns // 64, 64).transpose(1, 0, 2))


class Machine:
    """``c = a b`` on a device, with ``other`` to write over ``b``."""

    def __init__(self, superdscs: Sequence[SuperDsc], limit_bytes: int = 1 << 20) -> None:
        self.device = EmulatedDevice()
        self.device.weights.limit_bytes = limit_bytes
        sizes = [2 * rows * columns for rows, columns in NAMES.values()]
        entries = tuple(
            TableEntry(name, i, (columns // 64, rows, 64), DL16, i * SEGMENT_BYTES, 2 * rows * columns)
            for i, (name, (rows, columns)) in enumerate(NAMES.items())
        )
        files = {f"sdsc_{i}.json": item for i, item in enumerate(superdscs)}
        self.loaded = self.device.load(program_of(len(superdscs)), files, ArgumentTable(entries))
        self.addresses = [self.device.allocate(size) for size in sizes]
        self.sizes = sizes
        self.values: dict[str, Words] = {}

    def view(self, name: str) -> npt.NDArray[np.uint8]:
        place = list(NAMES).index(name)
        return self.device.memory(self.addresses[place], self.sizes[place])

    def give(self, name: str, seed: int) -> None:
        generator = np.random.Generator(np.random.PCG64(seed))
        self.values[name] = dlfloat.encode(generator.standard_normal(NAMES[name]).astype(np.float32))
        self.view(name)[:] = tiled(self.values[name]).reshape(-1).view(np.uint8)

    def launch(self) -> None:
        self.device.launch(self.loaded, self.addresses, None)

    def assert_product_of(self, b: str) -> None:
        """Compare ``c`` with float64: a stale operand would be off by whole numbers, rounding by thousandths."""
        left, right = (dlfloat.decode(self.values[name]).astype(np.float64) for name in ("a", b))
        found = dlfloat.decode(self.view("c").view(np.uint16).reshape(COLUMNS // 64, ROWS, 64)).transpose(1, 0, 2)
        expected = left @ right
        assert np.abs(found.reshape(ROWS, COLUMNS) - expected).max() < 0.01 * np.abs(expected).max()


MATMUL = Operation(
    "batchmatmul",
    {"m": (ROWS, 1), "n": (COLUMNS, 3), "k": (DEPTH, 2)},
    [Tensor(("m", "k"), "k"), Tensor(("k", "n"), "n"), Tensor(("m", "n"), "n")],
    unit="pt",
)
COPY = Operation("identity", {"k": (DEPTH, 1), "n": (COLUMNS, 1)}, [Tensor(("k", "n"), "n")] * 2)
PRODUCT = superdsc_of(MATMUL, 0, [0, SEGMENT_BYTES, 2 * SEGMENT_BYTES])
OVERWRITE = superdsc_of(COPY, 1, [3 * SEGMENT_BYTES, SEGMENT_BYTES])


def ready(superdscs: Sequence[SuperDsc] = (PRODUCT,), limit_bytes: int = 1 << 20) -> Machine:
    machine = Machine(superdscs, limit_bytes)
    for seed, name in enumerate(("a", "b", "other")):
        machine.give(name, seed)
    return machine


def kept(machine: Machine) -> int:
    return len(machine.device.weights)


def test_a_weight_is_kept_from_its_second_use_on_and_gives_the_same_bytes() -> None:
    machine = ready()
    machine.launch()
    first = machine.view("c").copy()
    assert kept(machine) == 0
    for _ in range(3):
        machine.launch()
        assert np.array_equal(machine.view("c"), first)
    assert kept(machine) == 6  # three slices of n times two of k
    machine.assert_product_of("b")


def test_a_weight_written_by_the_host_between_launches_counts() -> None:
    machine = ready()
    for seed in range(4):
        machine.give("b", 10 + seed // 2)
        machine.launch()
        machine.launch()
        machine.launch()
        machine.assert_product_of("b")


def test_a_view_that_the_host_kept_may_be_written_at_any_time() -> None:
    machine = ready()
    held = machine.view("b")[:].view(np.uint16)
    for seed in range(4):
        machine.values["b"] = dlfloat.encode(
            np.random.Generator(np.random.PCG64(20 + seed)).standard_normal(NAMES["b"]).astype(np.float32)
        )
        held[:] = tiled(machine.values["b"]).reshape(-1)
        machine.launch()
        machine.assert_product_of("b")


def test_a_weight_overwritten_between_two_products_of_one_launch_counts_in_the_second() -> None:
    machine = ready((PRODUCT, PRODUCT, OVERWRITE, PRODUCT))
    for seed in range(3):
        machine.give("b", 30 + seed)
        machine.give("other", 40 + seed)
        machine.launch()
        machine.assert_product_of("other")


def test_a_weight_overwritten_by_another_program_counts_afterwards() -> None:
    machine = ready()
    for _ in range(3):
        machine.launch()
    assert kept(machine) == 6
    overwrite = Machine((OVERWRITE,))
    loaded = machine.device.load(program_of(1), {"sdsc_0.json": OVERWRITE}, overwrite.loaded.table)
    machine.device.launch(loaded, machine.addresses, None)
    machine.launch()
    machine.assert_product_of("other")


def test_arguments_that_share_memory_share_its_changes() -> None:
    """The program writes the weight under another argument's name."""
    store = superdsc_of(COPY, 1, [SEGMENT_BYTES, 3 * SEGMENT_BYTES])
    machine = ready((PRODUCT, store))
    machine.addresses[3] = machine.addresses[1]
    for seed in range(3):
        machine.launch()
        machine.assert_product_of("b")
        machine.give("b", 50 + seed)


@pytest.mark.parametrize("limit_bytes", [0, DEPTH * COLUMNS * 4 - 1])
def test_what_exceeds_the_limit_is_not_kept(limit_bytes: int) -> None:
    machine = ready(limit_bytes=limit_bytes)
    for _ in range(3):
        machine.launch()
        machine.assert_product_of("b")
    assert kept(machine) == 0


def test_the_least_recently_used_is_given_up_first() -> None:
    cache = WeightCache(3 * 4096)
    cache.begin_launch(np.zeros((0, 2), np.int64), ())

    def use(name: int) -> bool:
        """Use an operand of 4,096 bytes; whether it was kept."""
        for _ in range(2):
            panel = cache.panel(PanelKey(name, b""), (name, name + 1), (1024,))
            if panel is not None:
                was_kept, panel.is_filled = panel.is_filled, True
                return was_kept
        raise AssertionError

    assert [use(name) for name in (1, 2, 3)] == [False] * 3
    assert use(1)
    assert not use(4)
    assert cache.used_bytes == 3 * 4096
    assert [use(name) for name in (1, 3, 4)] == [True] * 3
    assert not use(2)


@pytest.mark.parametrize("most_stores", [3, 40])
def test_what_is_kept_was_written_by_nobody_since_whatever_the_order_of_launches(most_stores: int) -> None:
    """Beside the plainest account of it: the number of the last write of every byte."""
    random = np.random.default_rng(most_stores)
    cache = WeightCache(limit_bytes=4 * 8 * 12)  # a dozen of the operands below
    bytes_written, filled_at = np.zeros(400, np.int64), dict[int, int]()
    kept = 0
    for launch in range(1, 600):
        starts = random.integers(0, 380, random.integers(0, most_stores))
        stores = np.stack([starts, starts + random.integers(1, 20, len(starts))], axis=1).reshape(-1, 2)
        first = int(random.integers(0, 390))
        host_writes = [(first, first + 5)] if random.random() < 0.3 else []
        cache.begin_launch(stores, host_writes)
        for low, past in [*stores.tolist(), *host_writes]:
            bytes_written[low:past] = launch
        for start in random.integers(0, 20, 6).tolist():
            extent = 20 * start, 20 * start + 12
            is_stored = any(low < extent[1] and extent[0] < past for low, past in stores.tolist())
            assert cache.may_keep(np.array([extent], np.int64)).tolist() == [not is_stored]
            panel = None if is_stored else cache.panel(PanelKey(start, b""), extent, (8,))
            if panel is None:
                continue
            if panel.is_filled:
                kept += 1
                assert bytes_written[slice(*extent)].max() <= filled_at[start], (launch, start)
            panel.is_filled, filled_at[start] = True, launch
    assert kept > 100
    assert cache.used_bytes <= cache.limit_bytes
