"""What it takes to bring a tensor in the scratchpads (LX) from one share to another."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from spyrec.hardware.target import RING_CORES, STICK_BYTES
from spyrec.passes.planning.shares import Share


@lru_cache(maxsize=1 << 14)
def moved_ring_bytes(source: Share, target: Share) -> int:
    """Return the bytes that one core gets from others, each as often as there are links of the ring on its way.

    Of the core where that is most.  Every part of ``source`` has one core; the shorter way round the ring is taken.
    """
    own, wanted = np.array(source.slices, np.int64), np.array(target.slices, np.int64)
    shared = np.full((len(wanted), len(own)), STICK_BYTES, np.int64)
    for dim, (before, after) in enumerate(zip(source.extents, target.extents, strict=True)):
        first, begin = own[None, :, dim] * before, wanted[:, None, dim] * after
        shared *= np.maximum(0, np.minimum(first + before, begin + after) - np.maximum(first, begin))
    apart = np.abs(np.arange(len(wanted))[:, None] - np.arange(len(own)))
    return int((shared * np.minimum(apart, RING_CORES - apart)).sum(axis=1).max())
