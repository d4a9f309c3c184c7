"""Adjacent runs of a box: against a walk over its points, and the same however many points are looked at together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.emulator import engine
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from tests.emulator.test_pieces import COMBINED, executed, fold


def walked(offsets: list[int], element_bytes: int, limit: int) -> list[tuple[int, int, int]]:
    """Return the runs that a walk from element to element finds."""
    runs: list[tuple[int, int, int]] = []
    for place, offset in enumerate(offsets):
        if runs and runs[-1][1] < limit and offset == offsets[place - 1] + element_bytes:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, runs[-1][2])
        else:
            runs.append((place, 1, offset))
    return runs


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0, 2, 4, 6, 16, 18])), min_size=1, max_size=4),
    st.sampled_from([1, 3, 64]),
)
def test_runs_are_those_of_a_walk(dims: list[tuple[int, int]], limit: int) -> None:
    parts = [np.arange(extent, dtype=np.int64) * step for extent, step in dims]
    points = [sum(int(item) for item in point) for point in product(*parts)]
    found = adjacent_runs(outer_sum(parts), 2, limit)
    assert [tuple(row) for row in found.tolist()] == walked(points, 2, limit)


@pytest.mark.parametrize("numerics", ["dl16", "f32"])
@pytest.mark.parametrize("op", ["sum", "max", "sumnonstick", "exx2"])
def test_a_fold_has_the_same_bytes_however_many_points_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch, op: str, numerics: str
) -> None:
    whole = executed(fold(op, COMBINED), numerics)
    for most in (1, 50, 64, 129):
        monkeypatch.setattr(engine, "_POINTS_AT_ONCE", most)
        assert executed(fold(op, COMBINED), numerics) == whole
