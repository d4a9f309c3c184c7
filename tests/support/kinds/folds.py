"""Folds that multiply: over rows, over sticks, over several dims, on cores that each have a part of a product."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from spyrec.codegen.opspec import OpSpec
from tests.codegen.builders import FP16, FP32, Along, argument, space
from tests.support.kinds.program import (
    EXACT,
    OWN,
    ROUNDING,
    Elements,
    RandomProgram,
    cuts_of,
    elements_of,
    generator_of,
)


def products(source: Random) -> RandomProgram:
    """The product over one dim or more, of signs mostly and of some powers of two and others."""
    data_format = source.choice([FP16, FP32])
    lanes = data_format.elements_per_stick or 0
    symbols = ["c", "a", "b"][: source.choice([1, 2, 2, 3])]
    stick = source.choice(symbols)
    sizes = {symbol: source.choice([1, 2, 3, 4, 6, 12]) for symbol in symbols}
    sizes[stick] = source.choice([1, lanes - 1, lanes, lanes + 1, 100, 2 * lanes, 4 * lanes])
    folded = source.sample(symbols, source.choice([1, 1, 1, 2]) if len(symbols) > 1 else 1)
    kept = [symbol for symbol in symbols if symbol not in folded]
    is_whole = sizes[stick] % lanes == 0
    cuts = cuts_of(source, sizes | {stick: sizes[stick] // lanes if is_whole else 1})
    generator = generator_of(source)
    values = generator.choice([1.0, -1.0], list(sizes.values()))
    others = generator.random(values.shape) < 6 / max(6, np.prod([sizes[symbol] for symbol in folded]))
    values[others] *= generator.choice([0.5, 2.0, 1.5, 0.75, 1.0 + 1 / 16], int(others.sum()))
    if source.random() < 0.1:
        values[generator.random(values.shape) < 0.1] = 0.0
    axes = [[*([Along(None)] * max(0, 2 - len(own))), *(Along(symbol) for symbol in source.sample(own, len(own)))]
            for own in (symbols, kept)]  # fmt: skip
    first = argument(axes[0], stick, sizes, index=0, data_format=data_format)
    own_stick = stick if stick in kept else None
    last = argument(axes[1], own_stick, sizes, index=1, is_input=False, data_format=data_format)
    last = replace(last, ends_in_padding=True)
    order = source.sample(kept, len(kept)) + source.sample(folded, len(folded))
    spec = OpSpec("prod", True, space({symbol: sizes[symbol] for symbol in order}, cuts), (first, last))
    want = np.asarray(values.prod(axis=tuple(symbols.index(symbol) for symbol in folded)))
    given = Elements(elements_of(first, symbols, sizes), values)
    wanted = Elements(elements_of(last, kept, sizes), want, relative=1.01 * ROUNDING[data_format])
    return RandomProgram((spec,), {0: given}, {1: wanted}, source.choice([OWN, EXACT]))
