"""Watching many executions at once finds what watching one by one finds: the same faults, at the same places."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.emulator import launch, portion
from spyrec.emulator.sanitizers import monitor
from spyrec.runtime.findings import Finding
from tests.sanitizers.mutations import mutated
from tests.support.random_loops import looped_graph

Data = Mapping[str, npt.NDArray[np.generic]]
Found = tuple[tuple[Finding, ...], tuple[str, ...]]


def _never(_monitor: monitor.Monitor, _portion: portion.Portion) -> bool:
    return False


@contextmanager
def one_by_one() -> Generator[None]:
    """Every execution is watched by itself, in every round of every loop."""
    with (
        patch.object(monitor.Monitor, "passes", _never),
        patch.object(monitor, "_LAST_TELLING_ROUND", 1 << 40),
    ):
        yield


@contextmanager
def together(most: int) -> Generator[list[bool]]:
    """As many executions as can be are watched at once, ``most`` of them; yields whether each portion could be."""
    taken: list[bool] = []
    passes = monitor.Monitor.passes

    def noted(self: monitor.Monitor, some: portion.Portion) -> bool:
        taken.append(passes(self, some))
        return taken[-1]

    with (
        patch.object(portion, "_WORTH_PROVING", 0),
        patch.object(launch, "_MOST_TRACED", most),
        patch.object(monitor.Monitor, "passes", noted),
    ):
        yield taken


def found(bundle: Bundle, data: Data) -> Found:
    """Return findings and messages of a run under all sanitizers, of a refused one too."""
    try:
        result = spyrec.run(bundle, data, spyrec.RunOptions(sanitize="all"))
    except SpyrecError as error:
        return (), tuple(item.render() for item in error.diagnostics)
    return result.sanitizer, tuple(item.render() for item in result.warnings)


@pytest.mark.parametrize("part", range(4))
def test_random_bugs_in_random_loops_are_found_alike(part: int) -> None:
    buggy = taken_at_once = 0
    for seed in range(part * 8, part * 8 + 8):
        rng = random.Random(seed)
        graph, data = looped_graph(seed, steps=rng.randint(4, 6))
        bundle = spyrec.compile(graph, spyrec.CompileOptions(cores=rng.choice((1, 2, 8, 32))))
        for _ in range(3):
            wrong = mutated(bundle, rng)
            with one_by_one():
                expected = found(wrong, data)
            with together(rng.choice((5, 40, 1 << 15))) as taken:
                assert found(wrong, data) == expected, seed
            buggy += bool(expected[0])
            taken_at_once += any(taken)
    assert buggy > 0
    assert taken_at_once > 5
