"""Bugs that show late in a long loop of tiny operations are named with their round, watched together or not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pytest

from spyrec.bundle.program import (
    Add,
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    For,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.opspec import LoopSpec, OpSpec
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import Finding, RuleDiagnostic, Sanitizer
from spyrec.runtime.observer import ArgumentCopy
from tests.codegen.builders import SEGMENT, Along, argument, file_of, space
from tests.emulator.builders import Operation, Tensor, superdsc_of
from tests.emulator.builders import table_of as table_of_operation
from tests.sanitizers.planting import HandMade
from tests.sanitizers.test_loops import table_of
from tests.sanitizers.test_together import one_by_one, together

ROUNDS = 300
TILE_BYTES = 2 * 128


@dataclass(frozen=True)
class Loops:
    """Loops over tiles of rows of one stick, divided among two cores: ``t0`` to ``t1``, ``t1`` to ``t2``."""

    emitted: EmittedProgram
    table: ArgumentTable


def loops(*operations: str, rows: int = 2, tail: int = 0, columns: int = 0, is_chain: bool = True) -> Loops:
    """Return a loop for each operation; its tensors have ``tail`` rows more than the tiles, and more columns.

    Without ``is_chain`` all of them go from ``t0`` to ``t1``.
    """
    axes = [Along("b", tail=columns), Along("a", tail=tail)]
    sizes = {"a": rows * ROUNDS, "b": 64}
    tiles = space({"a": rows, "b": 64}, {"a": 2, "b": 1})
    specs: list[LoopSpec] = []
    for number, op in enumerate(operations):
        args = tuple(argument(axes, "b", sizes, index=number * is_chain + k, is_input=k == 0) for k in range(2))
        specs.append(LoopSpec(ROUNDS, ("a",), (OpSpec(op, False, tiles, args, tiled_symbols=("a",)),)))
    emitted = emit_opspecs(file_of(*specs), CodegenOptions(symbolic_args=True, unroll_loops=False))
    table = table_of([argument(axes, "b", sizes, index=index) for index in range(len(operations) + 1)])
    return Loops(emitted, table)


def with_rounds(program: Program, loop: int, rounds: int) -> Program:
    """Return a program in which one loop goes round another number of times."""
    name = f"loop_bound_{loop}"
    body = [replace(item, value=rounds) if _is_constant(item, name) else item for item in program.body]
    assert body != list(program.body)
    return replace(program, body=tuple(body))


def _is_constant(item: Statement, name: str) -> bool:
    return isinstance(item, Constant) and item.result == name


@dataclass(frozen=True)
class Run:
    """What is launched on a watched device, and which arguments the host gives and takes."""

    program: Program
    superdscs: dict[str, SuperDsc]
    table: ArgumentTable
    given: Sequence[int] = (0,)
    taken: Sequence[int] = ()

    def made(self) -> HandMade:
        """Return a device with the program loaded and the inputs defined."""
        made = HandMade([], self.table)
        made.loaded = made.device.load(self.program, self.superdscs, self.table)
        for index in self.given:
            made.give(index)
        return made

    def findings(self, *, some_together: bool = True) -> tuple[Finding, ...]:
        """Return what is found, the same either way of watching; an access outside of memory ends the launch.

        ``some_together``: whether executions before the fault can be watched together.
        """
        with one_by_one():
            expected = self._found()
        with together(1 << 15) as taken:
            assert self._found() == expected
        assert len(taken) > 0
        with together(100) as taken:
            assert self._found() == expected
        assert any(taken) == some_together
        return expected

    def _found(self) -> tuple[Finding, ...]:
        made = self.made()
        with suppress(SpyrecError):
            made.launch()
        for index in self.taken:
            made.monitor.copied_out(made.copy_of(index, is_to_device=False))
        return made.monitor.findings


def test_right_loops_are_silent() -> None:
    right = loops("abs", "neg")
    assert Run(right.emitted.program, dict(right.emitted.superdscs), right.table, taken=[2]).findings() == ()


def test_a_tile_that_nothing_stored() -> None:
    right = loops("abs", "neg")
    short = with_rounds(right.emitted.program, 0, 250)
    run = Run(short, dict(right.emitted.superdscs), right.table, taken=[2])
    (finding,) = run.findings()
    assert (finding.sanitizer, finding.file, finding.op) == (Sanitizer.INIT, "sdsc_1.json", "neg")
    assert (finding.iteration, finding.core, finding.tensor) == ((250,), 0, "t1")
    assert finding.address == run.made().addresses[1] + 250 * TILE_BYTES


def test_an_access_outside() -> None:
    right = loops("abs")
    long = with_rounds(right.emitted.program, 0, ROUNDS + 1)
    (finding,) = Run(long, dict(right.emitted.superdscs), right.table).findings(some_together=False)[:1]
    assert (finding.sanitizer, finding.iteration, finding.tensor) == (Sanitizer.BOUNDS, (ROUNDS,), "t0")
    assert finding.core == 1


def test_a_window_that_leaves_its_rows() -> None:
    right = loops("abs", rows=4, tail=1, columns=1)
    long = with_rounds(right.emitted.program, 0, ROUNDS + 1)
    run = Run(long, dict(right.emitted.superdscs), right.table)
    found = [item for item in run.findings(some_together=False) if item.sanitizer is Sanitizer.GAP]
    past = run.made().addresses[1] + (4 * ROUNDS + 1) * 128
    assert [(item.iteration, item.core, item.tensor, item.address) for item in found] == [((ROUNDS,), 0, "t1", past)]


def test_a_window_over_another_one_that_nothing_has_read() -> None:
    """Of each operation the latest tile is known: the second loop stores over the first one's at its end."""
    wrong = loops("abs", "neg", tail=1, is_chain=False)
    run = Run(wrong.emitted.program, dict(wrong.emitted.superdscs), wrong.table)
    found = [item for item in run.findings() if item.sanitizer is Sanitizer.GAP]
    facts = [(item.file, item.iteration, item.core, item.tensor, item.address) for item in found]
    address = run.made().addresses[1] + (ROUNDS - 1) * TILE_BYTES
    assert facts == [("sdsc_1.json", (ROUNDS - 1,), 0, "t1", address)]


def test_a_core_that_loads_what_another_one_stores() -> None:
    """The result stays on rows 401 and 402 of its input, which core 1 reaches in round 200, core 0 never on its own."""
    right = loops("abs")
    maps = (*right.emitted.program.maps, AffineMap("still", (0,)))
    body = tuple(_on_rows_of_input(item) for item in right.emitted.program.body)
    body = (Constant("far", 401 * 128), *body)
    run = Run(Program(maps, right.emitted.program.parameters, body), dict(right.emitted.superdscs), right.table)
    found = [item for item in run.findings() if item.sanitizer is Sanitizer.RACE]
    facts = [(item.iteration, item.core, item.tensor, item.file) for item in found]
    assert facts == [((200,), 1, "t0", "sdsc_0.json")]
    assert found[0].address == run.made().addresses[0] + 401 * 128


def _on_rows_of_input(item: Statement) -> Statement:
    if isinstance(item, ArgumentExtract) and item.result == "arg_1":
        return Add("arg_1", "arg_0", "far")
    if isinstance(item, AffineApply) and item.symbol.startswith("arg_1"):
        return replace(item, map_name="still")
    if isinstance(item, For):
        return replace(item, body=tuple(map(_on_rows_of_input, item.body)))
    return item


ROWS = Tensor(("mb", "out"), "out")
DIMS = {"mb": (8, 4), "out": (64, 1)}
LX_BYTES = 2 * 128


def lx(start: int) -> Tensor:
    return replace(ROWS, lx_start=start)


def repeated(count: int, before: int, inside: int) -> Program:
    """Return a program that executes so many SuperDSCs once, then others in a loop."""
    files = [SdscExecute(f"sdsc_{number}.json") for number in range(before + inside)]
    bounds = (Constant("first", 0), Constant("past", count), Constant("step", 1))
    return Program((), (), (*bounds, *files[:before], For("i", "first", "past", "step", tuple(files[before:]))))


def test_lx_that_the_round_before_wrote_over_in_part() -> None:
    """The first round reads what was stored before the loop; its end stores half a slice over that."""
    operations = [
        (Operation("abs", DIMS, (ROWS, lx(0))), (0, 0)),
        (Operation("neg", DIMS, (lx(0), ROWS)), (0, SEGMENT)),
        (Operation("abs", DIMS, (ROWS, lx(LX_BYTES // 2))), (0, 0)),
        (Operation("neg", DIMS, (lx(LX_BYTES // 2), ROWS)), (0, SEGMENT)),
    ]
    superdscs = {
        f"sdsc_{number}.json": superdsc_of(operation, number, bases)
        for number, (operation, bases) in enumerate(operations)
    }
    entries = (TableEntry(f"t{i}", i, (1, 8, 64), DeviceFormat.SEN169_FP16, i * SEGMENT, 8 * 128) for i in range(2))
    run = Run(repeated(ROUNDS, 1, 3), superdscs, ArgumentTable(tuple(entries)))
    found = [item for item in run.findings() if item.sanitizer is Sanitizer.LX]
    assert [(item.file, item.iteration, item.core, item.address) for item in found] == [("sdsc_1.json", (1,), 0, 128)]
    assert '"sdsc_2.json"' in found[0].message


def test_a_row_number_outside_of_its_table_is_named_with_the_round_watched_or_not() -> None:
    """The loop's end puts other row numbers in the place of those that the first round takes."""
    index = DeviceFormat.IEEE_INT32
    gather = Operation(
        "identity",
        {"mb": (32, 1), "out": (64, 1)},
        (Tensor(("mb",), "mb", {}, index, indirection=Indirection.INDEX),
         Tensor(("mb", "out"), "out", indirection=Indirection.VALUE), ROWS),
    )  # fmt: skip
    numbers = Tensor(("mb",), "mb", {}, index)
    other = Operation("identity", {"mb": (32, 1)}, (numbers, numbers))
    superdscs = {"sdsc_0.json": superdsc_of(gather), "sdsc_1.json": superdsc_of(other, 1, (3 * SEGMENT, 0))}
    entries = table_of_operation(gather).entries
    fourth = replace(entries[0], name="arg3", arg_index=3, baked_base=3 * SEGMENT)
    table = ArgumentTable((*entries, fourth))
    wrong = np.arange(32, dtype=np.int32)
    wrong[7] = 32
    for device in (EmulatedDevice(), EmulatedDevice(sanitizers=frozenset(Sanitizer))):
        loaded = device.load(repeated(ROUNDS, 0, 2), superdscs, table)
        addresses = [device.allocate(entry.size_bytes) for entry in table.entries]
        for address, entry, values in zip(addresses, table.entries, (0, 0, 0, wrong), strict=True):
            device.memory(address, entry.size_bytes).view(np.int32)[:] = values
            copy = ArgumentCopy(entry.name, address, entry.size_bytes, entry.device_size, None, is_to_device=True)
            if device.monitor is not None:
                device.monitor.copied_in(copy)
        with pytest.raises(SpyrecError) as error:
            device.launch(loaded, addresses, None)
        (found,) = error.value.diagnostics
        assert isinstance(found, RuleDiagnostic)
        assert (found.code, found.place.iteration, found.place.tensor) == ("SPY0706", (1,), "arg0")
        assert "iteration (1)" in found.render()
