"""Fused SuperDSCs run block by block of each core's part, and no one can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.emulator.device import EmulatedDevice, EmulatedProgram
from spyrec.emulator.fuse import FusedExecutable, fuse
from spyrec.emulator.units import DispatchUnit, every_unit, units_of
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable
from tests.emulator.builders import Operation, Tensor, entry_of, program_of, superdsc_of
from tests.emulator.loop_programs import Looker, LoopProgram, Member, Tile, launched

CORES, ROWS = 4, 24  # six rows on each core
WHOLE = ("mb", "out")
TENSORS = 4
"""Arguments 0 to 3 are whole tensors, 4 and 5 hold one value per row."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on arguments, the result last; those ``in_lx`` are scratchpad at these addresses instead.

    ``first``: the first row of each operand, of tensors that have ``spare`` rows beside those computed.
    """

    op: str
    arguments: tuple[int, ...]
    is_masked: bool = False
    in_lx: Mapping[int, int] | None = None
    first: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps on tensors of so many columns, on cores that have rows each (or a stick of columns each)."""

    steps: Sequence[Step]
    columns: int = 256
    slices: tuple[int, int] = (CORES, 1)
    spare: int = 0

    def tensor(self, step: Step, place: int) -> Tensor:
        argument = step.arguments[place]
        scale = {} if argument < TENSORS else {"out": -2}
        gap = {"mb": self.spare} if self.spare else {}
        first = {"mb": step.first[place]} if step.first else {}
        start = (step.in_lx or {}).get(argument)
        if start is not None:
            return Tensor(WHOLE, "out", scale, lx_start=start)
        return Tensor(WHOLE, "out", scale, gap=gap, first=first)

    def operation(self, step: Step) -> Operation:
        dims = {"mb": (ROWS, self.slices[0]), "out": (self.columns, self.slices[1])}
        masks = {"out": ((self.columns - 20, 20),)} if step.is_masked else {}
        constants = {"samv-maskvalue": 0x3E00} if step.is_masked else {}
        tensors = [self.tensor(step, place) for place in range(len(step.arguments))]
        return Operation(step.op, dims, tensors, constants, masks)

    def table(self) -> ArgumentTable:
        template = self.operation(Step("where3", tuple(range(TENSORS + 2))))
        return ArgumentTable(tuple(entry_of(template, position) for position in range(TENSORS + 2)))


class Run:
    """A chain on a device of its own, with the memory that ``seed`` says."""

    def __init__(self, chain: Chain, seed: int = 0) -> None:
        self.device = EmulatedDevice()
        files = {
            f"sdsc_{number}.json": superdsc_of(
                chain.operation(step), number, [SEGMENT_BYTES * argument for argument in step.arguments]
            )
            for number, step in enumerate(chain.steps)
        }
        self.table = chain.table()
        loaded = self.device.load(program_of(len(chain.steps)), files, self.table)
        self.loaded: EmulatedProgram = loaded
        self.generator = np.random.default_rng(seed)
        self.addresses = self.filled()

    def filled(self) -> list[int]:
        """Allocate the arguments once more, and fill them."""
        addresses = [self.device.allocate(entry.size_bytes) for entry in self.table.entries]
        for address, entry in zip(addresses, self.table.entries, strict=True):
            count = entry.size_bytes // 2
            signs = self.generator.integers(0, 2, count) << 15
            patterns = (self.generator.integers(0x3800, 0x4400, count) | signs).astype(np.uint16)
            special = self.generator.random(count) < 0.02
            patterns[special] = self.generator.choice([0, 0x8000, 0x7FFF, 0xFFFF, 1], int(special.sum()))
            self.device.memory(address, entry.size_bytes)[:] = patterns.view(np.uint8)
        return addresses

    def units(self, block_bytes: int) -> list[DispatchUnit]:
        grouping = partial(fuse, worthwhile_elements=0, block_bytes=block_bytes)
        return list(every_unit(units_of(self.loaded.schedule, self.loaded.planned, grouping)))

    def fused(self, block_bytes: int) -> EmulatedProgram:
        return replace(self.loaded, units=tuple(self.units(block_bytes)))

    def separate(self) -> EmulatedProgram:
        return replace(self.loaded, units=units_of(self.loaded.schedule, self.loaded.planned))

    def launched(self, program: EmulatedProgram) -> list[bytes]:
        self.device.launch(program, self.addresses, None)
        entries = zip(self.addresses, self.table.entries, strict=True)
        return [self.device.memory(address, entry.size_bytes).tobytes() for address, entry in entries]


def blocks_of(unit: DispatchUnit) -> int | None:
    """Blocks of a core's part in a fused unit: 1 where it is not cut, ``None`` where nothing is fused."""
    if not isinstance(unit.executable, FusedExecutable):
        return None
    return unit.executable.blocks


TENSOR, PER_ROW = st.integers(0, TENSORS - 1), st.integers(TENSORS, TENSORS + 1)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    kind = draw(st.sampled_from(["binary", "unary", "copy", "choice", "fold"]))
    if kind == "binary":
        op = draw(st.sampled_from(["add", "sub", "mul", "realdiv", "maximum", "minimum", "greaterthan"]))
        operands = draw(st.sampled_from([(TENSOR, TENSOR), (TENSOR, PER_ROW), (PER_ROW, TENSOR)]))
        return Step(op, (draw(operands[0]), draw(operands[1]), draw(TENSOR)))
    if kind == "choice":
        return Step("where3", (draw(TENSOR), draw(PER_ROW), draw(TENSOR), draw(TENSOR)))
    if kind == "fold":
        op = draw(st.sampled_from(["sum", "max", "min"]))
        return Step(op, (draw(TENSOR), draw(PER_ROW)), draw(st.booleans()))
    op = "identity" if kind == "copy" else draw(st.sampled_from(["neg", "relufwd", "exp"]))
    return Step(op, (draw(TENSOR), draw(TENSOR)))


@given(
    sequence=st.lists(steps(), min_size=2, max_size=7),
    columns=st.sampled_from([256, 200, 40]),
    block_bytes=st.sampled_from([1, 2000, 5000]),
    seed=st.integers(0, 9),
)
@settings(max_examples=50)
def test_blocks_leave_every_byte_as_whole_operations_do(
    sequence: list[Step], columns: int, block_bytes: int, seed: int
) -> None:
    chain = Chain(sequence, columns)
    cut, separate = Run(chain, seed), Run(chain, seed)
    blocks, whole = cut.fused(block_bytes), separate.separate()
    assert cut.launched(blocks) == separate.launched(whole)
    # Again from what the first launch left, then with every argument elsewhere.
    assert cut.launched(blocks) == separate.launched(whole)
    cut.addresses, separate.addresses = cut.filled(), separate.filled()
    assert cut.launched(blocks) == separate.launched(whole)


SOFTMAX = [Step("max", (0, 4)), Step("sub", (0, 4, 1)), Step("exp", (1, 1)), Step("sum", (1, 5)),
           Step("realdiv", (1, 5, 2))]  # fmt: skip


@pytest.mark.parametrize(("block_bytes", "blocks"), [(1 << 20, 1), (5000, 2), (3100, 3), (1, 6)])
def test_a_cores_part_is_cut_until_its_blocks_fit(block_bytes: int, blocks: int) -> None:
    (unit,) = Run(Chain(SOFTMAX)).units(block_bytes)
    assert blocks_of(unit) == blocks


def test_blocks_in_the_scratchpad_leave_every_byte_as_whole_operations_do() -> None:
    # Arguments 1, 4 and 5 stand in LX, six rows of four sticks and of one.
    in_lx = {1: 0, 4: 1 << 14, 5: 1 << 15}
    chain = Chain([replace(step, in_lx=in_lx) for step in SOFTMAX])
    cut, separate = Run(chain), Run(chain)
    assert [blocks_of(unit) for unit in cut.units(1)] == [6]
    assert cut.launched(cut.fused(1)) == separate.launched(separate.separate())


def test_one_masked_core_of_several_hides_its_own_columns_in_every_block() -> None:
    chain = Chain([Step("neg", (0, 1)), Step("sum", (1, 4), is_masked=True), Step("mul", (0, 4, 2))], 200)
    cut, separate = Run(chain), Run(chain)
    assert [blocks_of(unit) for unit in cut.units(1)] == [6]
    assert cut.launched(cut.fused(1)) == separate.launched(separate.separate())


@pytest.mark.parametrize("shifted", [0, 1])
def test_blocks_that_would_touch_each_others_rows_are_not_cut(shifted: int) -> None:
    # Each core has a stick of columns and all rows: what the second operation reads, a row further on, are other
    # rows of the same core.
    first, following = Step("neg", (0, 1), first=(0, 0)), Step("abs", (1, 2), first=(shifted, 0))
    chain = Chain([first, following], slices=(1, CORES), spare=4)
    cut, separate = Run(chain), Run(chain)
    assert [blocks_of(unit) for unit in cut.units(1)] == [1 if shifted else ROWS]
    assert cut.launched(cut.fused(1)) == separate.launched(separate.separate())


@pytest.mark.parametrize("shifted", [0, 1])
def test_blocks_that_would_touch_each_others_scratchpad_are_not_cut(shifted: int) -> None:
    # The second operation reads from LX, a row further on, what the first one stored there.
    chain = Chain([Step("neg", (2, 1), in_lx={1: 0}), Step("abs", (1, 3), in_lx={1: 128 * shifted})])
    cut, separate = Run(chain), Run(chain)
    assert [blocks_of(unit) for unit in cut.units(1)] == [1 if shifted else 6]
    assert cut.launched(cut.fused(1)) == separate.launched(separate.separate())


def test_operations_that_name_their_rows_differently_are_cut_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DispatchUnit] = []

    def grouped(units: Sequence[DispatchUnit]) -> list[DispatchUnit]:
        made.extend(fuse(units, worthwhile_elements=200 * 192, block_bytes=1))
        return made

    # The scale's rows are its "out" dim; one value per row, it is small beside the others.
    builder = spyrec.GraphBuilder("norm")
    x = builder.input("x", (200, 192))
    builder.output(builder.layer_norm(x, normalized_shape=(192,), name="result"))
    bundle = spyrec.compile(builder)
    inputs = {"x": np.random.default_rng(0).normal(3, 2, (200, 192)).astype(np.float16)}
    expected = spyrec.run(bundle, inputs, spyrec.RunOptions(engine="reference")).outputs["result"]
    monkeypatch.setattr("spyrec.emulator.device.fuse", grouped)
    found = spyrec.run(bundle, inputs).outputs["result"]
    (unit,) = made
    assert [item.setting.superdsc.op_func_name for item in unit.members][-2:] == ["layernormscale", "layernormnorm"]
    assert blocks_of(unit) == unit.members[0].setting.extents["mb"] > 1
    assert found.tobytes() == expected.tobytes()


def test_fused_operations_in_a_loop_follow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyrec.emulator.device.fuse", partial(fuse, worthwhile_elements=0, block_bytes=1))
    advances = frozenset({0})
    members = (
        Member("add", (Tile(0, (0,), advances), Tile(1, (0,), advances), Tile(2, (0,), advances)), 0),
        Member("neg", (Tile(2, (0,), advances), Tile(3, (0,), advances)), 0),
    )
    made = LoopProgram(CORES, (5,), ((0, 5, 1),), members, 4)
    generator = np.random.default_rng(0)
    words = [generator.integers(0x3800, 0x4400, 5 * 64 * CORES).astype(np.uint16) for _ in range(4)]
    fused, stats = launched(made, words)
    apart, expected = launched(made, words, Looker())
    assert [item.tobytes() for item in fused] == [item.tobytes() for item in apart]
    assert stats.operations == expected.operations
