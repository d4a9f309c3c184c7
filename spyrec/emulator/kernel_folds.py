"""The folds of a reduction: what each begins with, how runs are folded into float64, how lanes are merged."""

from __future__ import annotations

import numpy as np

from spyrec.emulator.jit import doubles_at, floats_at, inlined
from spyrec.emulator.linked import linked

SUM = 0
SUM_OF_SQUARES = 1
MAXIMUM = 2
MINIMUM = 3

LANES = 64
"""Longest run of adjacent elements."""

ROWS = 32
"""Results of one task of ``reduce_lanes``: their sticks lie side by side."""


@inlined
def begin(kind: int, sums: int, count: int) -> None:
    """Fill ``count`` float64 at ``sums`` with what a fold begins with (inside kernels only)."""
    first = 0.0
    if kind == MAXIMUM:
        first = -np.inf
    elif kind == MINIMUM:
        first = np.inf
    values = doubles_at(sums, count)
    for i in range(count):
        values[i] = first


@linked
def _sum(count: int, source: int, target: int) -> None:
    values, sums = floats_at(source, count), doubles_at(target, count)
    for i in range(count):
        sums[i] += np.float64(values[i])


@linked
def _sum_of_squares(count: int, source: int, target: int) -> None:
    values, sums = floats_at(source, count), doubles_at(target, count)
    for i in range(count):
        sums[i] += np.float64(values[i]) * np.float64(values[i])


@linked
def _maximum(count: int, source: int, target: int) -> None:
    values, sums = floats_at(source, count), doubles_at(target, count)
    for i in range(count):
        value = np.float64(values[i])
        sums[i] = value if value > sums[i] or value != value else sums[i]


@linked
def _minimum(count: int, source: int, target: int) -> None:
    values, sums = floats_at(source, count), doubles_at(target, count)
    for i in range(count):
        value = np.float64(values[i])
        sums[i] = value if value < sums[i] or value != value else sums[i]


FOLDS = (_sum, _sum_of_squares, _maximum, _minimum)
"""By kind: ``(count, source, sums)`` folds float32 into as many float64, both by address."""


@linked
def merge_lanes(kind: int, sums: int, rows: int, target: int) -> None:
    """Merge the lanes of each of ``rows`` rows in order; the rows side by side, for none waits for another."""
    lanes = doubles_at(sums, rows * LANES)
    out = doubles_at(target, rows)
    for q in range(rows):
        out[q] = lanes[q * LANES]
    for lane in range(1, LANES):
        for q in range(rows):
            left, right = out[q], lanes[q * LANES + lane]
            if kind == MAXIMUM:
                out[q] = right if right > left or right != right else left
            elif kind == MINIMUM:
                out[q] = right if right < left or right != right else left
            else:
                out[q] = left + right
