"""Shuffles under the sanitizers: right ones are silent, and what goes wrong between scratchpads is named."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.program import SdscExecute
from spyrec.bundle.superdsc import DimFold
from spyrec.codegen.emit_opspecs import EmittedProgram
from spyrec.codegen.opspec import OpSpec
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.engine import StepRequest
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.shuffle_steps import ShuffleExecutable
from spyrec.runtime.device import ArgumentTable
from spyrec.runtime.findings import Finding, Sanitizer, sanitizers_named
from spyrec.runtime.observer import ArgumentCopy
from spyrec.runtime.threads import Threads
from tests.support.shuffles import Owners, Shape, chain, distribution, emitted, entry, with_distribution, with_superdsc

Integers = npt.NDArray[np.int64]

ROWS, COLUMNS = Owners({"r": 8}), Owners({"c": 8})
TENSOR = Shape({"r": 16, "c": 512})
FAR = 66560
CHAIN = chain(TENSOR, [(0, ROWS), (FAR, COLUMNS)])


def findings(program: EmittedProgram, sanitize: str, *, is_given: bool = True) -> tuple[Finding, ...]:
    """Run a program of two arguments on a watched device; ``is_given``: the first one holds something."""
    device = EmulatedDevice(sanitizers=sanitizers_named(sanitize))
    assert device.monitor is not None
    loaded = device.load(program.program, program.superdscs, ArgumentTable((entry(0, TENSOR), entry(1, TENSOR))))
    addresses = [device.allocate(TENSOR.size_bytes) for _ in range(2)]
    if is_given:
        device.memory(addresses[0], TENSOR.size_bytes)[:] = 1
        device.monitor.copied_in(copy_of(addresses[0], 0, is_to_device=True))
    device.launch(loaded, addresses, None)
    device.monitor.copied_out(copy_of(addresses[1], 1, is_to_device=False))
    return device.monitor.findings


def copy_of(address: int, index: int, *, is_to_device: bool) -> ArgumentCopy:
    size = TENSOR.size_bytes
    return ArgumentCopy(f"t{index}", address, size, TENSOR.device_size, None, is_to_device=is_to_device)


@pytest.mark.parametrize("sanitize", ["lx", "init", "race", "gap", "bounds", "all"])
def test_a_right_shuffle_is_silent(sanitize: str) -> None:
    assert findings(emitted(CHAIN), sanitize) == ()


def in_order(specs: Sequence[OpSpec], order: Sequence[int]) -> EmittedProgram:
    return emitted([specs[number] for number in order])


def without(file: str) -> EmittedProgram:
    program = emitted(CHAIN)
    body = tuple(
        item for item in program.program.body if not (isinstance(item, SdscExecute) and item.sdsc_filename == file)
    )
    return replace(program, program=replace(program.program, body=body))


def test_a_consumer_before_its_shuffle() -> None:
    found = findings(in_order(CHAIN, (0, 2, 1)), "lx")
    assert [item.sanitizer for item in found] == [Sanitizer.LX] * len(found)
    assert "reads LX that nothing wrote on this core" in found[0].message
    assert (found[0].file, found[0].core, found[0].address) == ("sdsc_1.json", 0, FAR)


def test_a_shuffle_left_out() -> None:
    found = findings(without("sdsc_1.json"), "lx")
    assert any("reads LX that nothing wrote" in item.message and item.file == "sdsc_2.json" for item in found)


def test_a_shuffle_of_other_owners_than_the_producers() -> None:
    """Rows are stored in order of the cores; the shuffle takes them to be in falling order."""
    program = emitted(CHAIN)
    superdsc = program.superdscs["sdsc_1.json"]
    own = distribution(superdsc, 0)
    turned = tuple({**slots, "mb": 7 - slots["mb"]} for slots in own.core_slices)
    changed = with_distribution(superdsc, 0, replace(own, core_slices=turned))
    found = findings(with_superdsc(program, changed), "lx")
    assert [(item.file, item.core, item.field) for item in found] == [("sdsc_1.json", 0, "coreIdToWkSlice_")]
    assert "under another split" in found[0].message


def test_a_consumer_that_reads_the_source() -> None:
    load, move, store = CHAIN
    early = replace(store.args[0], allocation=move.args[0].allocation)
    found = findings(emitted((load, move, replace(store, args=(early, store.args[1])))), "lx")
    assert ("sdsc_2.json", "coreIdToWkSlice_") in [(item.file, item.field) for item in found]
    assert any("is read by nothing" in item.message and item.file == "sdsc_1.json" for item in found)


def test_undefined_elements_move_with_their_states() -> None:
    found = findings(emitted(CHAIN), "init", is_given=False)
    assert [item.sanitizer for item in found] == [Sanitizer.INIT]
    assert "reads memory that nothing wrote" in found[0].message
    assert found[0].file == "sdsc_0.json"


def test_states_reach_the_core_that_elements_reach() -> None:
    """Only row 3 of column 70 is undefined: what is stored of it, and nothing else, is."""
    device = EmulatedDevice(sanitizers=sanitizers_named("init"))
    assert device.monitor is not None
    program = emitted(CHAIN)
    loaded = device.load(program.program, program.superdscs, ArgumentTable((entry(0, TENSOR), entry(1, TENSOR))))
    addresses = [device.allocate(TENSOR.size_bytes) for _ in range(2)]
    device.memory(addresses[0], TENSOR.size_bytes)[:] = 1
    device.monitor.copied_in(copy_of(addresses[0], 0, is_to_device=True))
    at = (1 * 16 + 3) * 128 + 6 * 2
    device.monitor.states_of(addresses[0], TENSOR.size_bytes)[at : at + 2] = 0
    device.launch(loaded, addresses, None)
    states = device.monitor.states_of(addresses[1], TENSOR.size_bytes)
    assert [int(place) for place in (states != 255).nonzero()[0]] == [at, at + 1]


def replicated() -> EmittedProgram:
    """Columns, then rows, four on both cores of each pair, then columns: the second source has replicas."""
    program = emitted(chain(TENSOR, [(0, COLUMNS), (FAR, ROWS), (2 * FAR, COLUMNS)]))
    first, second = program.superdscs["sdsc_1.json"], program.superdscs["sdsc_2.json"]
    own = distribution(first, 1)
    halves = tuple({**slots, "mb": slots["mb"] // 2} for slots in own.core_slices)
    folds = {**own.folds, "mb": four_slices(own.folds["mb"])}
    both = replace(own, core_slices=halves, folds=folds)
    program = with_superdsc(program, with_distribution(first, 1, both))
    return with_superdsc(program, with_distribution(second, 0, both))


def four_slices(folds: tuple[DimFold, ...]) -> tuple[DimFold, ...]:
    """Return the folds of 16 rows in four slices of four."""
    core, corelet, row, *elements = folds
    assert (core, [item.factor for item in elements]) == (DimFold(2, 8), [2])
    return DimFold(4, 4), corelet, row, DimFold(1, 4)


@pytest.mark.parametrize("sanitize", ["lx", "all"])
def test_replicas_that_agree_are_silent(sanitize: str) -> None:
    assert findings(replicated(), sanitize) == ()


@pytest.mark.parametrize("sanitize", ["lx", "all"])
def test_replicas_that_differ_are_found(sanitize: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Core 5 gets another number into row 2 of its four, column 70: cores 4 and 5 own rows 8 to 11."""
    steps = ShuffleExecutable.steps

    def planted(self: ShuffleExecutable, request: StepRequest) -> BoundCalls:
        found = steps(self, request)
        if self.setting.superdsc.index != 1:
            return found
        stick = (70 // 64) * 4 + 2
        place = int(request.starts[self.setting.output, 5]) + 128 * stick + 2 * (70 % 64)

        def flipping(moved: Integers, threads: Threads) -> None:
            BoundCalls.run(found, moved, threads)
            ctypes.c_uint16.from_address(place).value ^= 1

        monkeypatch.setattr(found, "run", flipping)
        return found

    monkeypatch.setattr(ShuffleExecutable, "steps", planted)
    (found,) = findings(replicated(), sanitize)
    assert (found.sanitizer, found.file, found.core) == (Sanitizer.LX, "sdsc_2.json", 5)
    assert found.address == FAR + 128 * 6 + 12
    assert "cores 4 and 5 both own element" in found.message
    assert "mb 10" in found.message
    assert "out 70" in found.message
