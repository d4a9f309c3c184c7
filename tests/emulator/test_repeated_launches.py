"""What a launch keeps for the next one is never seen: neither at other places nor from other threads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from spyrec.emulator.launch import Launch
from spyrec.emulator.units import units_of
from tests.emulator.test_fusion import Bytes, Chain, Step

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
