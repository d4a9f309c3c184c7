"""Sizes are numbers in a graph's text: whatever they are, the answer or the refusal comes soon, and takes no memory."""

from __future__ import annotations

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions
from spyrec.diagnostics import SpyrecError
from tests.support.cpu_limit import cpu_seconds
from tests.support.examples import examples
from tests.support.huge_graphs import huge_graph

_SECONDS = 8
_BYTES = 1 << 28


@examples(60)
@given(seed=st.integers(0, 1 << 40))
def test_any_extents_are_answered_or_refused_with_a_place_soon(seed: int) -> None:
    options = _options(seed)
    with cpu_seconds(_SECONDS):
        try:
            assert spyrec.compile(huge_graph(seed), options).programs is not None
        except SpyrecError as error:
            first = error.diagnostics[0]
            # where loops are unrolled, it is all of them together that are too many
            assert first.location is not None or first.code == "SPY0527"


@examples(15)
@given(seed=st.integers(0, 1 << 40))
def test_any_extents_take_little_memory(seed: int) -> None:
    tracemalloc.start()
    try:
        spyrec.compile(huge_graph(seed), _options(seed))
    except SpyrecError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < _BYTES


def _options(seed: int) -> CompileOptions:
    rng = random.Random(seed)
    return CompileOptions(
        loops=rng.choice(["keep", "keep", "unroll"]),
        auto_tile=rng.random() < 0.8,
        lx_planner=rng.choice(["best-fit", "none"]),
        tile_reductions=rng.random() < 0.3,
    )
