"""Chains: dispatches without waits in between leave what one call after the other leaves, or are none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import spyrec
from spyrec.bundle.program import Constant, Program
from spyrec.bundle.program_image import read_image
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import SpyrecError
from spyrec.emulator import core_chains, device, dispatch_table, launch
from spyrec.emulator.backend import table_of
from spyrec.emulator.chain import Chain, CoreParts
from spyrec.emulator.core_chains import chained
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.dispatch_table import stretches
from spyrec.emulator.engine import Integers
from spyrec.emulator.units import Units, every_unit
from spyrec.runtime import ExecutionPlan
from spyrec.runtime.device import LaunchStats
from tests.emulator.loop_programs import Looker, LoopProgram, Member, Tile, Words, launched
from tests.emulator.test_loops import random_program, random_words
from tests.support.examples import seeds


@dataclass(frozen=True, slots=True)
class RotatedProgram(LoopProgram):
    """A program in which core c does, of some members by number, what is core c + 1's of the others."""

    rotated: frozenset[int] = frozenset()

    def superdsc(self, member: Member) -> SuperDsc:
        made = LoopProgram.superdsc(self, member)
        if not any(self.members[number] is member for number in self.rotated):
            return made
        slices = made.core_work_slices
        return replace(made, core_work_slices=(*slices[1:], slices[0]))

    def program(self) -> Program:
        made = LoopProgram.program(self)
        own = {item.result: item.value for item in made.body if isinstance(item, Constant)}
        moved = {
            f"a{member}_{t}_{core}o": own[f"a{member}_{t}_{(core + 1) % self.cores}o"]
            for member in self.rotated for t in range(len(self.members[member].tiles)) for core in range(self.cores)
        }  # fmt: skip
        body = tuple(
            Constant(item.result, moved.get(item.result, item.value)) if isinstance(item, Constant) else item
            for item in made.body
        )
        return replace(made, body=body)


def attempted(made: LoopProgram, words: list[Words]) -> tuple[list[Words], LaunchStats] | None:
    try:
        return launched(made, words, Looker())
    except SpyrecError:
        return None  # a program that loads what it stores


def never(_elements: int) -> bool:
    return False


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make chains of the few cores that the programs use; the result gets how many there are in each program."""
    counts: list[int] = []

    def of_four(units: Units, _cores: int) -> Units:
        found = chained(units, 4)
        counts.append(len({unit.chain for unit in every_unit(found)}))
        return found

    monkeypatch.setattr(device, "chained", of_four)
    monkeypatch.setattr(core_chains, "is_worth_sharing", never)
    monkeypatch.setattr(launch, "_WORTH_DRIVING", 1)
    return counts


def rotated(generator: np.random.Generator) -> RotatedProgram:
    made = random_program(generator)
    chosen = frozenset(number for number in range(len(made.members)) if generator.random() < 0.4)
    return RotatedProgram(4, made.extents, made.bounds, made.members, made.arguments, rotated=chosen)


@pytest.mark.parametrize("uncut_parts", [1, 4], ids=["parts for threads", "a part for each core"])
def test_chains_leave_the_bytes_and_counters_of_one_call_after_the_other(
    monkeypatch: pytest.MonkeyPatch, chains: list[int], uncut_parts: int
) -> None:
    def uncut(_members: object) -> int:
        return uncut_parts

    monkeypatch.setattr(core_chains, "_uncut_parts", uncut)
    generator = np.random.Generator(np.random.PCG64(8))
    compared = several = 0
    for _ in seeds(80):
        made = rotated(generator)
        words = random_words(generator, made)
        watched = attempted(made, words)
        if watched is None:
            continue
        plain, plain_stats = watched
        fast, fast_stats = launched(made, words)
        assert all(np.array_equal(mine, other) for mine, other in zip(fast, plain, strict=True))
        assert fast_stats == plain_stats
        compared += 1
        several += chains[-1] > 1
    assert compared >= 16
    assert 2 <= several <= compared - 2


def exchanged(members: frozenset[int]) -> RotatedProgram:
    """Return a loop in which one member stores a tile that stays and the next one loads it."""
    here = frozenset({0})
    scratch = Tile(2, (0,), frozenset())
    body = (
        Member("add", (Tile(0, (0,), here), Tile(1, (0,), here), scratch), 0),
        Member("identity", (scratch, Tile(0, (0,), here)), 0),
    )
    return RotatedProgram(4, (30,), ((0, 30, 1),), body, 3, rotated=members)


@pytest.mark.parametrize(("members", "together"), [((), True), ((1,), False), ((0,), False), ((0, 1), True)])
def test_units_share_a_chain_unless_a_core_loads_what_another_one_stores(
    monkeypatch: pytest.MonkeyPatch, chains: list[int], members: tuple[int, ...], together: bool
) -> None:
    stages: list[int] = []

    def counted(chains_of_dispatches: Integers, parts: Integers) -> Integers:
        found = stretches(chains_of_dispatches, parts)
        stages.append(len(found))
        return found

    monkeypatch.setattr(dispatch_table, "stretches", counted)
    made = exchanged(frozenset(members))
    words = random_words(np.random.Generator(np.random.PCG64(3)), made)
    watched = attempted(made, words)
    assert watched is not None
    found, _ = launched(made, words)
    assert all(np.array_equal(mine, other) for mine, other in zip(found, watched[0], strict=True))
    assert stages == [1 if together else 60]
    assert chains[-1] == (1 if together else 2)


def test_a_chain_is_cut_for_its_threads_and_no_finer_than_it_was_proved() -> None:
    whole, columns = Chain(CoreParts(4, 32), alone=1), Chain(CoreParts(32, 32), alone=32)
    assert [whole.on(threads).count for threads in (1, 2, 3, 4, 64)] == [1, 2, 4, 4, 4]
    assert [columns.on(threads).count for threads in (1, 2, 64)] == [32, 32, 32]
    parts = CoreParts(2, 32).positions((0, 15, 16, 31))
    assert [item.tolist() for item in parts] == [[0, 1], [2, 3]]


def added(rows: int, columns: int, tile_rows: int) -> dict[str, object]:
    inputs = [{"name": name, "shape": ["A", "B"], "dtype": "float16"} for name in "ab"]
    return {
        "format": "spyrec.graph/1", "name": "added", "dims": {"A": rows, "B": columns}, "inputs": inputs,
        "nodes": [{"name": "y", "op": "add", "inputs": ["a", "b"]}, {"name": "z", "op": "mul", "inputs": ["y", "b"]}],
        "loops": [{"dim": "A", "tile_size": tile_rows, "body": ["y", "z"]}], "outputs": ["z"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "columns", "tile_rows", "alone"),
    [(128, 512, 32, 1), (24, 4096, 3, 32), (64, 2048, 16, 2)],
    ids=["rows of a column of sticks", "columns of sticks", "rows of halves"],
)
def test_cores_that_touch_one_run_of_bytes_stay_in_one_part(
    rows: int, columns: int, tile_rows: int, alone: int
) -> None:
    graph = added(rows, columns, tile_rows)
    bundle = spyrec.compile(graph)
    (job,) = ExecutionPlan(bundle).jobs
    assert job.binary is not None
    image = read_image(job.binary.image_bytes)
    loaded = EmulatedDevice(bundle.manifest.target.cores).load(image.program, image.superdscs, table_of(image))
    chains = {unit.chain for unit in every_unit(loaded.units)}
    assert [None if chain is None else chain.alone for chain in chains] == [alone]
    generator = np.random.default_rng(3)
    inputs = {name: generator.standard_normal((rows, columns)).astype(np.float16) for name in "ab"}
    tiled = spyrec.run(bundle, inputs).outputs["z"]
    plain = spyrec.run(spyrec.compile({**graph, "loops": list[object]()}), inputs).outputs["z"]
    assert tiled.tobytes() == plain.tobytes()
