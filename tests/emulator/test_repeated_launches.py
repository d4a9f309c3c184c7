"""What a launch keeps for the next one is never seen: neither at other places nor from other threads."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.emulator import device as emulated
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.dispatch_table import DispatchTable
from spyrec.emulator.launch import Launch
from spyrec.emulator.operations.bound_calls import Integers, KernelStep
from spyrec.emulator.units import units_of
from spyrec.runtime.threads import Threads
from tests.emulator.loop_programs import LoopProgram, Words, launched
from tests.emulator.test_fusion import Bytes, Chain, Step
from tests.emulator.test_loops import random_program, random_words

CHAIN: list[Step] = [
    ("add", (0, 1, 2), (4, 1)),
    ("mul", (2, 1, 3), (4, 1)),
    ("sum", (3, 4), (4, 1)),
    ("sub", (3, 4, 2), (4, 1)),
]
LAUNCHES = 20


class TwoPlaces(Chain):
    """The chain's memory twice, its operands different at each place; both were launched one after the other."""

    def __init__(self) -> None:
        super().__init__(CHAIN)
        self.places = [self.addresses, [self.device.allocate(entry.size_bytes) for entry in self.table.entries]]
        for place, source in zip(self.memories_at(1), self.memories_at(0), strict=True):
            place[:] = source.reshape(-1, 2)[::-1].reshape(-1)  # halves stay halves
        self.program = self.fused()

    def memories_at(self, place: int) -> list[Bytes]:
        entries = zip(self.places[place], self.table.entries, strict=True)
        return [self.device.memory(address, entry.size_bytes) for address, entry in entries]

    def results(self, place: int) -> list[bytes]:
        return [memory.tobytes() for memory in self.memories_at(place)]

    def clear(self, place: int) -> None:
        for argument in (2, 3, 4):
            self.memories_at(place)[argument][:] = 0

    def run(self, place: int) -> list[bytes]:
        self.device.launch(self.program, self.places[place], None)
        return self.results(place)

    def expected(self, place: int) -> list[bytes]:
        units = units_of(self.loaded.schedule, self.loaded.planned)
        self.clear(place)
        self.device.launch(replace(self.loaded, units=units), self.places[place], None)
        return self.results(place)


def test_launches_at_two_places_by_turns_compute_each_place() -> None:
    machine = TwoPlaces()
    expected = [machine.expected(place) for place in (0, 1)]
    assert expected[0] != expected[1]
    for place in (0, 1, 1, 0, 1):
        machine.clear(place)
        assert machine.run(place) == expected[place]


def has_tasks(step: KernelStep) -> bool:
    """Whether threads could share a step."""
    return step.tasks >= 2


def more_than_one(threads: Threads, tasks: int, elements: int) -> bool:
    """Whether there is a thread to share with, however little there is to do."""
    return threads.count > 1 and tasks > 0 and elements > 0


def driven_units(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return what the driver is given from now on: the units of each call."""
    found: list[list[int]] = []
    drive = DispatchTable.run

    def noted(table: DispatchTable, units: Integers, moved: Integers) -> None:
        found.append(units.tolist())
        drive(table, units, moved)

    monkeypatch.setattr(DispatchTable, "run", noted)
    return found


def test_the_driver_of_repeated_launches_finds_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = TwoPlaces()
    expected = [machine.expected(place) for place in (0, 1)]
    machine.program = replace(machine.loaded, units=units_of(machine.loaded.schedule, machine.loaded.planned))
    monkeypatch.setattr(KernelStep, "is_shared", property(has_tasks))
    monkeypatch.setattr(Threads, "shares", more_than_one)
    driven = driven_units(monkeypatch)
    for place in (0, 1, 1, 0, 1):
        machine.clear(place)
        assert machine.run(place) == expected[place]
    assert driven == [[0, 1, 2, 3]] * (4 if (os.cpu_count() or 1) > 1 else 0)


def test_every_launch_of_the_same_counts_itself_alone() -> None:
    machine = TwoPlaces()
    counted = [machine.device.launch(machine.program, machine.addresses, None) for _ in range(3)]
    assert counted[0] == counted[1] == counted[2]
    assert [item.executions for item in counted[2].operations] == [1] * len(CHAIN)


def test_launches_from_two_threads_take_turns_and_compute_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = TwoPlaces()
    expected = [machine.expected(place) for place in (0, 1)]
    running: list[Launch] = []
    most: list[int] = []
    run = Launch.run

    def slow_run(launch: Launch) -> None:
        running.append(launch)
        time.sleep(0.001)  # lets the other thread come
        run(launch)
        most.append(len(running))
        running.remove(launch)

    def wrong(place: int) -> int:
        found = 0
        for _ in range(LAUNCHES):
            machine.clear(place)
            found += machine.run(place) != expected[place]
        return found

    monkeypatch.setattr(Launch, "run", slow_run)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(wrong, (0, 1))) == [0, 0]
    assert max(most) == 1


class ManyPlaces:
    """A program with loops on one device, its arguments in an order of their own at each of some places."""

    def __init__(self, made: LoopProgram, contents: list[list[Words]], generator: np.random.Generator) -> None:
        self.device = EmulatedDevice()
        files = {f"sdsc_{number}.json": made.superdsc(member) for number, member in enumerate(made.members)}
        self.program = self.device.load(made.program(), files, made.table())
        self.size_bytes = made.table().entries[0].size_bytes
        self.places: list[list[int]] = []
        for words in contents:
            addresses = [self.device.allocate(self.size_bytes) for _ in words]
            self.places.append([addresses[int(at)] for at in generator.permutation(len(addresses))])
            for address, word in zip(self.places[-1], words, strict=True):
                self.device.memory(address, self.size_bytes)[:] = word.view(np.uint8)

    def launch(self, place: int) -> list[Words]:
        self.device.launch(self.program, self.places[place], None)
        memories = [self.device.memory(address, self.size_bytes) for address in self.places[place]]
        return [memory.view(np.uint16).copy() for memory in memories]


def test_a_program_that_is_launched_elsewhere_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Launch] = []

    def counted(*arguments: object) -> Launch:
        prepared.append(Launch(*arguments))  # type: ignore[arg-type]
        return prepared[-1]

    monkeypatch.setattr(emulated, "Launch", counted)
    generator = np.random.Generator(np.random.PCG64(7))
    compared = 0
    for _ in range(60):
        made = random_program(generator)
        contents = [random_words(generator, made) for _ in range(4)]
        try:
            once = [launched(made, words)[0] for words in contents]
            twice = [launched(made, words)[0] for words in once]
        except SpyrecError:  # it would load what it stores
            continue
        machine = ManyPlaces(made, contents, generator)
        prepared.clear()
        for expected in (once, twice):
            for place in map(int, generator.permutation(len(contents))):
                found = machine.launch(place)
                assert all(np.array_equal(mine, other) for mine, other in zip(found, expected[place], strict=True))
        assert len(prepared) == 1
        compared += 1
    assert compared >= 20


def test_threads_stay_together_from_the_second_launch_on_and_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = spyrec.GraphBuilder("feed_forward")
    x, up, down = builder.input("x", (197, 768)), builder.input("up", (768, 512)), builder.input("down", (512, 768))
    hidden = builder.gelu(builder.layer_norm(x, normalized_shape=[768]) @ up)
    builder.output(builder.softmax(x + hidden @ down, -1))
    bundle, random = spyrec.compile(builder), np.random.default_rng(3)
    driven = driven_units(monkeypatch)
    with spyrec.load(bundle) as model:
        for launch in range(3):
            given = {name: random.normal(0, 0.1, size).astype(np.float16)
                     for name, size in (("x", (197, 768)), ("up", (768, 512)), ("down", (512, 768)))}  # fmt: skip
            found = model(**given)
            before = len(driven)
            assert (before > 0) == (launch > 0 and (os.cpu_count() or 1) > 1)
            expected = spyrec.run(bundle, given).outputs  # of a device of its own, launched once
            assert len(driven) == before
            assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert all(len(units) >= 2 for units in driven)
