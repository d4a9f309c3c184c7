"""``exp`` that is masked behind ragged dims, and the largest elements in order."""

from __future__ import annotations

from random import Random

import numpy as np

from spyrec.codegen.opspec import OpSpec
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, FP32, Along, argument, space
from tests.support.kinds.program import (
    EXACT,
    OWN,
    ROUNDING,
    Doubles,
    Elements,
    RandomProgram,
    cuts_of,
    elements_of,
    generator_of,
    sixteenths,
)


def exponentials(source: Random) -> RandomProgram:
    """``exp`` of one to three dims, zero behind the elements of the ragged one."""
    data_format = source.choice([FP16, FP32])
    lanes = data_format.elements_per_stick or 0
    symbols = ["c", "a", "b"][: source.choice([1, 2, 2, 3])]
    stick = source.choice(symbols)
    sizes = {symbol: source.choice([1, 2, 4, 6]) for symbol in symbols}
    sizes[stick] = source.choice([1, lanes - 1, lanes, lanes + 1, 100, 200])
    cuts = cuts_of(source, sizes | {stick: -(-sizes[stick] // lanes)})
    axes = [[Along(None)] * (len(symbols) == 1) + [Along(symbol) for symbol in source.sample(symbols, len(symbols))]
            for _ in range(2)]  # fmt: skip
    args = tuple(
        argument(own, stick, sizes, index=at, is_input=at == 0, data_format=data_format) for at, own in enumerate(axes)
    )
    order = source.sample(symbols, len(symbols))
    spec = OpSpec("exp", False, space({symbol: sizes[symbol] for symbol in order}, cuts), args)
    padded = sizes | {stick: -(-sizes[stick] // lanes) * lanes}
    values = np.full(list(padded.values()), -np.inf)
    values[tuple(slice(size) for size in sizes.values())] = sixteenths(generator_of(source), list(sizes.values()))
    inside = values[tuple(slice(size) for size in sizes.values())]
    given = Elements(elements_of(args[0], symbols, sizes), inside)
    wanted = Elements(elements_of(args[1], symbols, padded), np.exp(values), relative=ROUNDING[data_format] * 1.01)
    return RandomProgram((spec,), {0: given}, {1: wanted}, source.choice([OWN, EXACT]))


def largest(source: Random) -> RandomProgram:
    """Up to 128 largest elements of rows of up to 200, or their places, the taken ones divided among cores."""
    op = source.choice(["topkvalue", "topkindex"])
    searched = source.choice([1, 2, 5, 40, 130, 200])
    taken = source.choice([count for count in (1, 2, 3, 4, 6, 8, 16, 20, 128) if count <= searched])
    cores = source.choice([cut for cut in (1, 2, 3, 4, 5, 8, 16, 32) if taken % cut == 0 and taken // cut <= 4])
    sizes = {"m": source.choice([1, 2, 63, 64, 100]), "n": searched} | ({"k": taken} if taken > 1 else {})
    if taken > 16:
        sizes["m"] = source.choice([1, 3])
    order = source.sample(list(sizes), len(sizes))
    result = DeviceFormat.IEEE_INT32 if op == "topkindex" else FP16
    axes = source.sample([Along("m"), Along("k" if taken > 1 else None)], 2)
    # the rows' elements fill sticks of either format
    rounded = {"m": -(-sizes["m"] // 64) * 64}
    first = argument(source.sample([Along("m"), Along("n")], 2), "m", sizes | rounded, index=0)
    last = argument(axes, "m", sizes | rounded, index=1, is_input=False, data_format=result)
    splits = {"k": cores} if taken > 1 else {}
    spec = OpSpec(op, True, space({symbol: sizes[symbol] for symbol in order}, splits), (first, last))
    generator = generator_of(source)
    values = sixteenths(generator, [sizes["m"], searched])
    if source.random() < 0.3:
        values[generator.random(values.shape) < 0.2] = source.choice([0.0, -3.0, 3.0])  # many that are equal
    ordered = np.argsort(-values, axis=1, kind="stable")[:, :taken]
    want: Doubles = np.full([rounded["m"], taken], np.nan)  # rows behind the last are in its stick, or the next
    want[: sizes["m"]] = ordered if op == "topkindex" else np.take_along_axis(values, ordered, axis=1)
    given = Elements(elements_of(first, ("m", "n"), sizes), values)
    if taken == 1:
        wanted = Elements(elements_of(last, ("m",), rounded), want[:, 0])
    else:
        wanted = Elements(elements_of(last, ("m", "k"), sizes | rounded), want)
    return RandomProgram((spec,), {0: given}, {1: wanted}, source.choice([OWN, EXACT]))
