"""Random device layouts whose places are known by construction: each host dim is cut into digits of chosen radices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides

Places = npt.NDArray[np.int64]

LANES = 32
"""Elements of a stick of IEEE_FP32: small layouts have many sticks."""


@dataclass(frozen=True, slots=True)
class SplitLayout:
    """A layout and, computed from the digits alone, the byte place of every element."""

    layout: DeviceLayout
    places: Places


def random_split(random: Random, shape: tuple[int, ...] | None = None) -> SplitLayout:
    """Return a layout of rank 1 to 3 with random cuts, order of device dims, padding and stick dim (or none)."""
    while True:
        try:
            return _attempt(random, shape or tuple(_extent(random) for _ in range(random.randint(1, 3))))
        except SpyrecError:
            continue  # a stride map that can be read in two ways


def _attempt(random: Random, shape: tuple[int, ...]) -> SplitLayout:
    rank = len(shape)
    stick_dim = random.choice([None, *range(rank)])
    digits = [
        (dim, period, radix) for dim in range(rank) for period, radix in _cuts(random, shape[dim], dim == stick_dim)
    ]
    random.shuffle(digits)
    host_strides = row_major_strides(shape)
    sizes = (*(radix for _, _, radix in digits), LANES)
    stride_map = (
        *(period * host_strides[dim] for dim, period, _ in digits),
        -1 if stick_dim is None else host_strides[stick_dim],
    )
    layout = DeviceLayout(sizes, stride_map, DeviceFormat.IEEE_FP32, shape, host_strides)
    places = np.zeros(shape, dtype=np.int64)
    grid = np.indices(shape)
    for place, (dim, period, radix) in enumerate(digits):
        sticks = math.prod(sizes[place + 1 : -1])
        places += grid[dim] // period % radix * sticks * 128
    if stick_dim is not None:
        places += grid[stick_dim] % LANES * 4
    return SplitLayout(layout, places)


def _extent(random: Random) -> int:
    return random.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, random.randint(1, 40)])


def _cuts(random: Random, extent: int, has_lanes: bool) -> list[tuple[int, int]]:
    """Return (elements per step, radix) of the digits of a host dim above the lanes, finest first."""
    if extent == 1:
        return []
    period = LANES if has_lanes else 1
    cuts: list[tuple[int, int]] = []
    while period < extent:
        rest = -(-extent // period)
        if rest == 1 or len(cuts) == 2 or random.random() < 0.5:
            # The outermost digit may have room to spare.
            return [*cuts, (period, rest + random.choice([0, 0, 1]))]
        # A layout that can be copied has dims that its inner cuts divide.
        radices = [radix for radix in (2, 3, 4, 6, 8, 16) if radix < rest and extent % (period * radix) == 0]
        if not radices:
            return [*cuts, (period, rest)]
        radix = random.choice(radices)
        cuts.append((period, radix))
        period *= radix
    return cuts
