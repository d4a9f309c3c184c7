"""Random graphs compiled for small shapes and run on larger ones: every output within its bound, or a refusal."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.runtime.launch.plan import Mode
from tests.support.larger_inputs import larger_inputs
from tests.support.random_chains import random_small_graph

REFUSALS = {"SPY0953", "SPY0955", "SPY0957", "SPY0958", "SPY0959", "SPY0960", "SPY0962"}


def run_larger(seed: int, seen: Counter[object]) -> None:
    random = Random(seed)
    data = random_small_graph(random)
    bundle = spyrec.compile(
        data, CompileOptions(symbolic_strides=random.random() < 0.4, correction_slots=random.choice([1, 2]))
    )
    inputs = larger_inputs(random, bundle.manifest)
    try:
        # sanitizers see every tile, what is staged too: a right program is silent
        result = spyrec.run(bundle, inputs, RunOptions(check=True, sanitize=random.choice([None, "all"])))
    except SpyrecError as error:
        if error.diagnostics[0].code not in REFUSALS:
            raise
        seen["refused"] += 1
        return
    assert result.is_ok, (data, result.check, result.sanitizer)
    seen["tiled" if result.tiles else "exact"] += 1
    seen.update(item.mode for plan in result.tiles for item in plan.body.arguments)
    seen.update(loop.remainder for plan in result.tiles for loop in plan.loops)


EXAMPLES = max(2, (settings().max_examples or 0) // 20)  # each of them compiles, and is run and evaluated at large


@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32 - 1))
def test_runs_in_tiles_are_within_the_bounds_of_the_graph_at_the_larger_shapes(seed: int) -> None:
    run_larger(seed, Counter())


def test_most_random_runs_are_tiled() -> None:
    seen: Counter[object] = Counter()
    for seed in range(8):
        run_larger(seed, seen)
    assert seen["tiled"] >= 4, seen
    assert seen["refused"] <= 1, seen
    assert seen[Mode.SLAB] >= 2, seen
