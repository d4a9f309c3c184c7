"""Stick strides of a launch: a program that walks its arguments at other distances computes the same sticks."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec import CompileOptions
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import PlanStep
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.restriding import WalkDigit, digits_of
from spyrec.runtime.device import ArgumentTable
from tests.support.graphs import graph_data, node, tensor
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.runs import kept_memory, program_tables, ready

Bytes = npt.NDArray[np.uint8]
Strides = tuple[int, ...]
GAP = 0xA5


def sticks_of(device_size: tuple[int, ...], strides: Strides) -> npt.NDArray[np.int64]:
    """Where the sticks of an argument lie, in the order of its compiled layout."""
    places = np.zeros((), np.int64)
    for count, stride in zip(device_size, strides, strict=False):
        places = places[..., None] + np.arange(count) * stride
    return places.reshape(-1)


def compiled_strides(device_size: tuple[int, ...]) -> Strides:
    return tuple(math.prod(device_size[dim + 1 : -1]) for dim in range(len(device_size) - 1))


def random_strides(random: Random, device_size: tuple[int, ...]) -> Strides:
    """Distances at which no two sticks meet: dims in any order, gaps between them."""
    order = list(range(len(device_size) - 1))
    if random.random() < 0.3:
        random.shuffle(order)
    found = [0] * len(order)
    reach = 1
    for dim in reversed(order):
        reach *= random.choice([1, 1, 2, 3])
        found[dim] = reach
        reach *= device_size[dim]
    return tuple(found)


class Spread:
    """A bundle's arguments at distances of their own, in memory of one device."""

    def __init__(self, bundle: Bundle, memories: dict[str, Bytes], random: Random) -> None:
        self.device = EmulatedDevice(bundle.manifest.target.cores)
        self.bundle = bundle
        self.sizes = {item.name: item.device_size for item in bundle.manifest.arguments if item.name in memories}
        self.strides = {
            name: random_strides(random, size) if random.random() < 0.7 else None for name, size in self.sizes.items()
        }
        self.addresses: dict[str, int] = {}
        for name, memory in memories.items():
            sticks = self.sticks(name)
            self.addresses[name] = self.device.allocate(128 * (int(sticks.max()) + 1))
            whole = self.memory(name)
            whole[:] = GAP
            whole.reshape(-1, 128)[sticks] = memory.reshape(-1, 128)

    def sticks(self, name: str) -> npt.NDArray[np.int64]:
        strides = self.strides[name]
        return sticks_of(self.sizes[name], compiled_strides(self.sizes[name]) if strides is None else strides)

    def memory(self, name: str) -> Bytes:
        return self.device.memory(self.addresses[name], 128 * (int(self.sticks(name).max()) + 1))

    def table(self, step: PlanStep) -> ArgumentTable:
        plain = program_tables(self.bundle)[step.program]
        entries = tuple(replace(entry, stick_strides=self.strides[entry.name]) for entry in plain.entries)
        return replace(plain, entries=entries)

    def run(self) -> None:
        programs = {program.directory: program for program in self.bundle.programs}
        for step in self.bundle.manifest.plan:
            program = programs[step.program]
            loaded = self.device.load(program.program, program.superdscs, self.table(step))
            pool = self.device.allocate(step.pool_bytes) if step.pool_bytes else None
            self.device.launch(loaded, [self.addresses[name] for name in step.arguments], pool)


def check_spread(bundle: Bundle, inputs: dict[str, npt.NDArray[np.generic]], random: Random) -> None:
    names = list(dict.fromkeys(name for step in bundle.manifest.plan for name in step.arguments))
    with ready(bundle) as run, kept_memory(run) as kept:
        run.run(inputs)
    written = [item.name for item in bundle.manifest.arguments if item.role.value in ("output", "intermediate")]
    results = {name: kept[name] for name in names}
    before = {name: np.full_like(data, GAP) if name in written else data for name, data in results.items()}
    spread = Spread(bundle, before, random)
    spread.run()
    for name in names:
        memory, sticks = spread.memory(name).reshape(-1, 128), spread.sticks(name)
        is_other = results[name] != memory[sticks].reshape(-1)
        # what no program wrote keeps what the two memories held before
        assert not np.any(is_other & (memory[sticks].reshape(-1) != GAP)), name
        outside = np.ones(len(memory), bool)
        outside[sticks] = False
        assert np.all(memory[outside] == GAP), name


@pytest.mark.parametrize(("kind", "seeds"), [("straight", 9), ("looped", 4)])
def test_programs_compute_the_same_sticks_at_random_distances(kind: str, seeds: int) -> None:
    random = Random(3)
    for seed in range(seeds):
        data, inputs = random_graph(seed, 3) if kind == "straight" else looped_graph(seed, 3)
        bundle = spyrec.compile(data)
        for _ in range(2):
            check_spread(bundle, inputs, random)


def negation() -> tuple[EmulatedDevice, Bundle, ArgumentTable]:
    data = graph_data([tensor("x", 64, 128)], [node("y", "neg", "x")], ["y"])
    bundle = spyrec.compile(data, CompileOptions(cores=1))
    return EmulatedDevice(), bundle, program_tables(bundle)[bundle.manifest.plan[0].program]


@pytest.mark.parametrize(("strides", "is_possible"), [((128, 8, 1), True), ((128, 16, 1), False), ((128, 1, 8), False)])
def test_a_dim_that_covers_two_device_dims_is_walked_only_where_they_go_on_evenly(
    strides: Strides, is_possible: bool
) -> None:
    device, bundle, table = negation()
    # the program has one dim of 64 rows; the argument's memory has 8 x 8
    entries = tuple(replace(entry, device_size=(2, 8, 8, 64), stick_strides=strides) for entry in table.entries)
    program = bundle.programs[0]
    if is_possible:
        device.load(program.program, program.superdscs, replace(table, entries=entries))
        return
    with pytest.raises(SpyrecError, match="SPY0983") as caught:
        device.load(program.program, program.superdscs, replace(table, entries=entries))
    assert "it goes on to entry 63 of a device dim of 8" in str(caught.value)


def test_digits_are_the_device_dims_that_do_not_go_on_evenly() -> None:
    assert digits_of((2, 1, 8, 8, 64), (999, 7, 8, 1)) == (WalkDigit(64, 1, 1), WalkDigit(2, 64, 999))
    assert digits_of((2, 8, 64), (1, 2)) == (WalkDigit(8, 1, 2), WalkDigit(2, 8, 1))
