"""The kinds of operations that came with August 2026, by name: a random program of each from a source of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.support.kinds import dynamic, eight_bits, folds, relayouts, rows, selections, sliding, walks
from tests.support.kinds.program import RandomProgram

PROGRAMS = 300
"""How many programs of each kind are tried by default; ``benchmarks/properties.py`` tries ten times as many."""

KINDS: Mapping[str, Callable[[Random], RandomProgram]] = {
    "windows": walks.windows,
    "loops": walks.loops,
    "masked exp": selections.exponentials,
    "gather": rows.gathers,
    "scatter": rows.scatters,
    "8-bit weights": eight_bits.weights,
    "8-bit products": eight_bits.products,
    "dynamic sizes": dynamic.sizes,
    "pool": sliding.pools,
    "convolution": sliding.convolutions,
    "depthwise convolution": sliding.depthwise,
    "product of elements": folds.products,
    "top-k": selections.largest,
    "shuffle": relayouts.shuffles,
}
