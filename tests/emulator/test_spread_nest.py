"""Cores as loops: the same places as core by core, each once, and an innermost loop that kernels can walk."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.emulator.geometry import Nest
from spyrec.emulator.operations.spread_nest import spread

Integers = npt.NDArray[np.int64]


def places(starts: Integers, loops: Integers) -> list[list[int]]:
    """Return the operands' addresses at every point of the loops, from every start, in order of address."""
    found: Integers = starts.T
    for loop in loops:
        rounds = np.arange(int(loop[0]), dtype=np.int64)[None, :, None]
        found = (found[:, None, :] + rounds * loop[1:]).reshape(-1, len(starts))
    listed: list[list[int]] = found.tolist()
    return sorted(listed)


def cut(choose: random.Random) -> tuple[Integers, Nest]:
    """Return the starts of cores over two dims, each forward or backward, alike for all operands or not, and a nest."""
    operands, rows, columns = choose.choice([2, 3]), choose.choice([1, 2, 4]), choose.choice([1, 2, 4])
    inner = choose.choice([4, 64])
    steps = np.array([[2] * operands, [choose.choice([2 * inner, 4 * inner])] * operands], np.int64)
    loops = np.concatenate([np.array([[inner], [choose.choice([1, 3])]], np.int64), steps], axis=1)
    row = np.array([choose.choice([1, -1]) * choose.choice([16, 640]) for _ in range(operands)], np.int64)
    column = np.array([choose.choice([1, 1, -1]) * choose.choice([2 * inner, 4096]) for _ in range(operands)], np.int64)
    if choose.random() < 0.5:
        row, column = np.sign(row[-1]) * np.abs(row), np.sign(column[-1]) * np.abs(column)
    grid = [base * row + place * column for base, place in product(range(rows), range(columns))]
    if choose.random() < 0.3:
        choose.shuffle(grid)
    starts = 1_000_000 + np.stack(grid, axis=1)
    return starts, Nest(loops, np.zeros(operands, np.int64))


@pytest.mark.parametrize("is_shared", [False, True])
def test_cores_as_loops_go_over_the_same_places_and_never_backward_inside(is_shared: bool) -> None:
    backward = 0
    for seed in range(400):
        starts, nest = cut(random.Random(seed))
        first, loops = spread(starts, nest, is_shared=is_shared)
        assert places(first, loops) == places(starts, nest.loops), seed
        assert (loops[0, 1:] >= 0).all(), (seed, loops.tolist())
        backward += bool((loops[1:, 1:] < 0).any())
    assert backward > 50
