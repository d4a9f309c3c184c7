"""Weights packed into two-dimensional sticks of 8-bit floats, and products of packed operands."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from spyrec.codegen.opspec import OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, SEGMENT, Along, argument, space
from tests.support.kinds.program import (
    EXACT,
    OWN,
    Doubles,
    Elements,
    Places,
    RandomProgram,
    a_cut,
    elements_of,
    generator_of,
    stored,
)

FP8 = DeviceFormat.SEN143_FP8
FINITE = np.array(
    [fraction / 512 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
     for exponent in range(16) for fraction in range(8)][:127]
)  # fmt: skip
"""The magnitudes of E4M3."""


def rounded(values: Doubles) -> Doubles:
    """Round to E4M3: to the nearest magnitude, of two the even one, and what is too large to the last."""
    magnitude = np.minimum(np.abs(values), FINITE[-1])
    above = np.searchsorted(FINITE, magnitude)
    below = np.maximum(above - 1, 0)
    down, up = magnitude - FINITE[below], FINITE[above] - magnitude
    is_below = (down < up) | ((down == up) & (below % 2 == 0))
    return np.copysign(np.where(is_below, FINITE[below], FINITE[above]), values)


def _operand(index: int, sizes: dict[str, int], symbols: str, *, packed: str | None = None) -> TensorArgument:
    """Return a tensor over two symbols, its sticks along the last; ``packed``: its arrangement, of 8-bit floats."""
    row, column = symbols
    made = argument([Along(column), Along(row)], column, sizes, index=index, data_format=FP8 if packed else FP16)
    if packed is None:
        return made
    assert packed in ("QFP8CH", "QFP8WT")
    return replace(made, element_arrangement=packed)


def _in_halves(rows: int, columns: int) -> Places:
    """Return where the elements of ``QFP8CH`` lie: of each 128 columns eight of the first half, eight of the second."""
    row, column = np.indices((rows, columns)).reshape(2, -1)
    half, inside = column % 128 // 64, column % 64
    return column // 128, row, inside // 8 * 16 + half * 8 + inside % 8


def _in_pairs(rows: int, columns: int) -> Places:
    """Return where the elements of ``QFP8WT`` lie: two rows of 64 columns to a stick, element by element."""
    row, column = np.indices((rows, columns)).reshape(2, -1)
    return column // 128, row // 2 * 2 + column % 128 // 64, 2 * (column % 64) + row % 2


def _output(item: TensorArgument) -> TensorArgument:
    return replace(item, is_input=False)


def _numbers(source: Random, shape: tuple[int, int]) -> Doubles:
    """Return numbers of all magnitudes of the narrow format, some beyond it, some zero."""
    generator = generator_of(source)
    values = generator.standard_normal(shape) * np.exp2(generator.integers(-3, source.choice([1, 1, 9]), shape))
    values[generator.random(shape) < 0.05] = 0.0
    return stored(values, FP16)


def weights(source: Random) -> RandomProgram:
    """Weights rounded and packed, over cores along both dims of their sticks."""
    sizes = {symbol: 128 * source.choice([1, 1, 1, 2, 3]) for symbol in "kn"}
    cuts = {symbol: a_cut(source, sizes[symbol] // 128) for symbol in "kn"}
    values = _numbers(source, (sizes["k"], sizes["n"]))
    args = (_operand(0, sizes, "kn"), _output(_operand(1, sizes, "kn", packed="QFP8WT")))
    order = source.sample("kn", 2)
    spec = OpSpec("qfp8wt", False, space({symbol: sizes[symbol] for symbol in order}, cuts), args)
    given = {0: Elements(elements_of(args[0], "kn", sizes), values)}
    wanted = {1: Elements(_in_pairs(sizes["k"], sizes["n"]), rounded(values))}
    return RandomProgram((spec,), given, wanted, source.choice([OWN, EXACT]))


def products(source: Random) -> RandomProgram:
    """``x @ w`` in 8 bits, both packed before; x, w, x in 8 bits, w in 8 bits, the product."""
    sizes = {
        "m": source.choice([1, 1, 2, 3, 4]),
        "k": 128 * source.choice([1, 1, 1, 2]),
        "n": 128 * source.choice([1, 1, 1, 2]),
    }
    if sizes["k"] * sizes["n"] > 1 << 15:
        sizes["m"] = min(sizes["m"], 2)
    cuts = {symbol: a_cut(source, sizes[symbol] // (1 if symbol == "m" else 128)) for symbol in sizes}
    x, w = (_numbers(source, (sizes[a], sizes[b])) for a, b in ("mk", "kn"))
    narrow_x, narrow_w = rounded(x), rounded(w)
    x8, w8 = _operand(2, sizes, "mk", packed="QFP8CH"), _operand(3, sizes, "kn", packed="QFP8WT")
    wide = _operand(0, sizes, "mk"), _operand(1, sizes, "kn")
    product = (x8, w8, _output(_operand(4, sizes, "mn")))
    specs = (
        OpSpec("qfp8ch", False, space({s: sizes[s] for s in "mk"}, {"m": cuts["m"]}), (wide[0], _output(x8))),
        OpSpec("qfp8wt", False, space({s: sizes[s] for s in "kn"}, cuts), (wide[1], _output(w8))),
        OpSpec("batchmatmulfp8", True, space({s: sizes[s] for s in "mnk"}, cuts), product),
    )  # fmt: skip
    magnitude = np.abs(narrow_x) @ np.abs(narrow_w)
    wanted = {
        2: Elements(_in_halves(sizes["m"], sizes["k"]), narrow_x),
        3: Elements(_in_pairs(sizes["k"], sizes["n"]), narrow_w),
        # sums in float32, rounded to 9 bits behind the point once
        4: Elements(elements_of(product[2], "mn", sizes), narrow_x @ narrow_w, 2.0**-9, 1e-5 * magnitude),
    }
    if source.random() < 0.3:  # the packed operands are given; upstream's file of the first cast says nothing of halves
        given = {at: wanted.pop(at) for at in (2, 3)}
        numbered = (replace(x8, arg_index=0), replace(w8, arg_index=1), replace(product[2], arg_index=2))
        args = tuple(
            replace(item, allocation=replace(item.allocation, start_bytes=at * SEGMENT))
            for at, item in enumerate(numbered)
        )
        alone = replace(specs[2], args=args)
        return RandomProgram((alone,), {0: given[2], 1: given[3]}, {2: wanted[4]}, source.choice([OWN, EXACT]))
    given = {0: Elements(elements_of(wide[0], "mk", sizes), x), 1: Elements(elements_of(wide[1], "kn", sizes), w)}
    return RandomProgram(specs, given, wanted)
