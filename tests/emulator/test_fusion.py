"""Fusion: consecutive SuperDSCs run core by core, and no one can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.fuse import fuse
from spyrec.emulator.units import every_unit, units_of
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable, LaunchStats
from tests.emulator.builders import Operation, Tensor, entry_of, program_of, superdsc_of

ROWS, COLUMNS = 16, 256
TENSOR = Tensor(("mb", "out"), "out")
TURNED = Tensor(("out", "mb"), "out")
PER_ROW = Tensor(("mb", "out"), "out", {"out": -2})
TENSORS = 4
"""Arguments 0 to 3 are whole tensors, 4 and 5 hold one value per row."""

Bytes = npt.NDArray[np.uint8]
Step = tuple[str, tuple[int, ...], tuple[int, int]]
"""Operation, arguments (the result last), slices of rows and of columns."""


def tensor_of(argument: int) -> Tensor:
    return TENSOR if argument < TENSORS else PER_ROW


def operation_of(step: Step) -> Operation:
    op, arguments, (rows, columns) = step
    width = COLUMNS if min(arguments) < TENSORS else 64
    dims = {"mb": (ROWS, rows), "out": (width, columns)}
    constants = {"exx2scale": 11264, "useZeroMean": 0} if op == "exx2" else {}
    return Operation(op, dims, [tensor_of(argument) for argument in arguments], constants)


def whole_table() -> ArgumentTable:
    template = Operation("where3", {"mb": (ROWS, 1), "out": (COLUMNS, 1)}, [*[TENSOR] * TENSORS, PER_ROW, PER_ROW])
    return ArgumentTable(tuple(entry_of(template, position) for position in range(TENSORS + 2)))


class Chain:
    """A program of steps on a device, loaded; its memory begins as ``seed`` says."""

    def __init__(self, steps: Sequence[Step], numerics: str = "dl16", seed: int = 0) -> None:
        self.device = EmulatedDevice(numerics=numerics)
        superdscs = {
            f"sdsc_{number}.json": superdsc_of(operation_of(step), number, [SEGMENT_BYTES * at for at in step[1]])
            for number, step in enumerate(steps)
        }
        self.table = whole_table()
        loaded = self.device.load(program_of(len(steps)), superdscs, self.table)
        self.loaded: EmulatedProgram = loaded
        self.addresses = [self.device.allocate(entry.size_bytes) for entry in self.table.entries]
        generator = np.random.default_rng(seed)
        for memory in self.memories():
            # Values near one, in every storage: few exponent bits vary.
            values = generator.normal(size=memory.size // 4).astype(np.float32)
            memory[:] = values.view(np.uint8) if numerics == "f32" else self._halves(generator, memory.size // 2)

    @staticmethod
    def _halves(generator: np.random.Generator, count: int) -> Bytes:
        patterns = generator.integers(0x3800, 0x4400, count) | generator.integers(0, 2, count) << 15
        return patterns.astype(np.uint16).view(np.uint8)

    def memories(self) -> list[Bytes]:
        entries = zip(self.addresses, self.table.entries, strict=True)
        return [self.device.memory(address, entry.size_bytes) for address, entry in entries]

    def fused(self) -> EmulatedProgram:
        units = units_of(self.loaded.schedule, self.loaded.planned, partial(fuse, worthwhile_elements=0))
        return replace(self.loaded, units=units)

    def separate(self) -> EmulatedProgram:
        return replace(self.loaded, units=units_of(self.loaded.schedule, self.loaded.planned))

    def group_sizes(self) -> list[int]:
        return [len(unit.members) for unit in every_unit(self.fused().units)]

    def launch(self, program: EmulatedProgram) -> LaunchStats:
        return self.device.launch(program, self.addresses, None)

    def contents(self) -> list[bytes]:
        return [memory.tobytes() for memory in self.memories()]


SPLITS = [(4, 1), (8, 1), (1, 4), (2, 2)]
WHOLE = st.integers(0, TENSORS - 1)
PER_ROWS = st.integers(TENSORS, TENSORS + 1)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    slices = draw(st.sampled_from([*SPLITS[:1] * 6, *SPLITS]))  # mostly one split, so that much is fused
    kind = draw(st.sampled_from(["binary", "binary", "unary", "copy", "choice", "fold"]))
    if kind == "binary":
        op = draw(st.sampled_from(["add", "sub", "mul", "realdiv", "maximum", "minimum", "greaterthan"]))
        operands = draw(st.sampled_from([(WHOLE, WHOLE), (WHOLE, PER_ROWS), (PER_ROWS, WHOLE)]))
        return op, (draw(operands[0]), draw(operands[1]), draw(WHOLE)), slices
    if kind == "choice":
        return "where3", (draw(WHOLE), draw(PER_ROWS), draw(WHOLE), draw(WHOLE)), slices
    if kind == "fold":
        return draw(st.sampled_from(["sum", "max", "min", "exx2"])), (draw(WHOLE), draw(PER_ROWS)), slices
    op = "identity" if kind == "copy" else draw(st.sampled_from(["abs", "neg", "relufwd", "sigmoid", "tanh"]))
    source, target = draw(st.tuples(WHOLE, WHOLE))
    return op, (source, target), slices


@given(
    chain=st.lists(steps(), min_size=2, max_size=8),
    numerics=st.sampled_from(["dl16", "ieee", "f32"]),
    seed=st.integers(0, 9),
)
@settings(max_examples=60)
def test_fused_chains_leave_every_byte_as_separate_ones_do(chain: list[Step], numerics: str, seed: int) -> None:
    fused, separate = Chain(chain, numerics, seed), Chain(chain, numerics, seed)
    got, want = fused.launch(fused.fused()), separate.launch(separate.separate())
    assert fused.contents() == separate.contents()
    assert got == want
    # A second launch starts from what the first one left.
    fused.launch(fused.fused())
    separate.launch(separate.separate())
    assert fused.contents() == separate.contents()


ADD = ("add", (0, 1, 2), (4, 1))


def test_a_softmax_is_one_unit() -> None:
    split = (8, 1)
    chain: list[Step] = [
        ("max", (0, 4), split),
        ("sub", (0, 4, 1), split),
        ("exp", (1, 1), split),
        ("sum", (1, 5), split),
        ("realdiv", (1, 5, 2), split),
    ]
    assert Chain(chain).group_sizes() == [5]


@pytest.mark.parametrize(
    "following",
    [
        ("abs", (2, 3), (1, 4)),  # reads under another split what was stored
        ("abs", (3, 0), (1, 4)),  # stores under another split what was read
        ("abs", (3, 2), (1, 4)),  # stores it again under another split
        ("sum", (2, 4), (1, 4)),  # cores combine their sums
        ("abs", (2, 3), (8, 1)),  # other cores
        ("abs", (2, 3), (1, 1)),  # one core alone
    ],
)
def test_a_hazard_between_cores_prevents_fusion(following: Step) -> None:
    assert Chain([ADD, following]).group_sizes() == [1, 1]


@pytest.mark.parametrize("following", [("abs", (2, 3), (4, 1)), ("abs", (3, 0), (4, 1)), ("abs", (3, 3), (1, 4))])
def test_what_no_core_shares_is_fused(following: Step) -> None:
    assert Chain([ADD, following]).group_sizes() == [2]


def test_a_hazard_with_an_earlier_member_prevents_fusion() -> None:
    chain: list[Step] = [ADD, ("abs", (2, 3), (4, 1)), ("neg", (1, 1), (1, 4))]
    assert Chain(chain).group_sizes() == [2, 1]


def test_small_work_is_left_alone() -> None:
    chain = Chain([ADD, ("abs", (2, 3), (4, 1))])
    assert [len(unit.members) for unit in every_unit(chain.loaded.units)] == [1, 1]


@pytest.mark.parametrize(
    ("large", "sizes"), [((0, 2), [3]), ((0, 1), [2, 1]), ((1, 2), [1, 2]), ((0,), [1, 1, 1]), ((), [1, 1, 1])]
)
def test_small_work_is_fused_where_it_stands_between_large_one(large: Sequence[int], sizes: list[int]) -> None:
    small, whole = ("abs", (4, 5), (4, 1)), ("neg", (0, 1), (4, 1))
    chain = Chain([whole if place in large else small for place in range(3)])
    units = units_of(chain.loaded.schedule, chain.loaded.planned, partial(fuse, worthwhile_elements=ROWS * COLUMNS))
    assert [len(unit.members) for unit in every_unit(units)] == sizes


def test_arguments_put_over_each_other_are_not_fused() -> None:
    chain: list[Step] = [("abs", (0, 1), (4, 1)), ("neg", (2, 3), (4, 1))]
    fused, separate = Chain(chain), Chain(chain)
    assert fused.group_sizes() == [2]
    for one in (fused, separate):
        # Argument 3 begins where row 4 of argument 0 does: core 0 of the second call stores what core 1 of the first
        # one loads.
        whole = one.device.allocate(2 * one.table.entries[0].size_bytes)
        one.addresses[0], one.addresses[3] = whole, whole + 4 * 128
        patterns = np.arange(one.table.entries[0].size_bytes, dtype=np.uint16)
        one.device.memory(whole, 2 * one.table.entries[0].size_bytes)[:] = patterns.view(np.uint8)
    fused.launch(fused.fused())
    separate.launch(separate.separate())
    assert fused.contents() == separate.contents()
