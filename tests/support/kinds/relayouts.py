"""Tensors that go through the scratchpads of cores, from owners to other owners, and come back as they were."""

from __future__ import annotations

import math
from random import Random

import numpy as np

from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, FP32
from tests.conformance.op_runner import E4M3
from tests.support.kinds.program import (
    EXACT,
    OWN,
    Doubles,
    Elements,
    RandomProgram,
    elements_of,
    generator_of,
    sixteenths,
)
from tests.support.shuffles import Owners, Shape, chain

_FAR = 66560
_MOST_MOVES = 2


def _owners(source: Random, counts: dict[str, int], cores: int) -> Owners | None:
    """Return a division of dims among all cores, in any order of the dims, or ``None`` where there is none."""
    rest, slices = cores, dict.fromkeys(counts, 1)
    for symbol in source.sample(list(counts), len(counts)):
        slices[symbol] = source.choice([cut for cut in range(1, rest + 1) if rest % cut == counts[symbol] % cut == 0])
        rest //= slices[symbol]
    return Owners(slices, source.sample(list(counts), len(counts))) if rest == 1 else None


def shuffles(source: Random) -> RandomProgram:
    """One to three shuffles of a tensor of up to four dims, of any format, over 2 to 32 cores."""
    data_format = source.choice([FP16, FP16, FP32, DeviceFormat.SEN143_FP8, DeviceFormat.IEEE_INT32])
    lanes = data_format.elements_per_stick or 0
    cores = source.choice([2, 2, 2, 3, 3, 4, 4, 4, 6, 8] * 2 + [16, 32])
    sizes = {
        "y": source.choice([1, 1, 2, 3]),
        "x": source.choice([1, 2, 2, 3, 4]),
        "r": cores * source.choice([1, 1, 2]),
    }
    if cores > 8:
        sizes |= {"x": 1, "y": 1}
    sizes = {symbol: size for symbol, size in sizes.items() if size > 1 or symbol == "r"}
    sizes["c"] = lanes * source.choice([1, 1, 2, 3, cores if cores < 8 else 4])
    counts = sizes | {"c": sizes["c"] // lanes}
    rows = Owners({symbol: cores if symbol == "r" else 1 for symbol in sizes})
    states = [rows]
    while len(states) < 1 + _MOST_MOVES and (len(states) < 2 or source.random() < 0.3):
        drawn = (_owners(source, counts, cores) for _ in range(50))
        found = next((item for item in drawn if item is not None and item.opspec() != states[-1].opspec()), None)
        if found is None:
            break
        states.append(found)
    if len(states) == 1:  # its rows alone can be divided so
        return shuffles(source)
    if states[-1].opspec() != rows.opspec():
        states.append(rows)
    shape = Shape(sizes, data_format)
    starts = [_FAR * (number % 2) for number in range(len(states))]
    specs = chain(shape, list(zip(starts, states, strict=True)))
    values = _numbers(source, data_format, list(sizes.values()))
    first, last = specs[0].args[0], specs[-1].args[-1]
    given = {0: Elements(elements_of(first, list(sizes), sizes), values)}
    wanted = {1: Elements(elements_of(last, list(sizes), sizes), values)}
    return RandomProgram(specs, given, wanted, source.choice([OWN, EXACT]))


def _numbers(source: Random, data_format: DeviceFormat, shape: list[int]) -> Doubles:
    generator = generator_of(source)
    match data_format:
        case DeviceFormat.SEN143_FP8:
            return np.asarray(generator.choice(E4M3[1:0x70], shape))
        case DeviceFormat.IEEE_INT32:
            return np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
        case _:
            return sixteenths(generator, shape)
