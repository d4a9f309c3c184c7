"""Which bytes each core touches, as sorted runs: the ground of rules V6, V7, V13 and of the traffic counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.emulator.geometry import OperandGeometry, build_nests
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]


def box_runs(geometry: OperandGeometry, extents: Mapping[str, int], written_lanes: int = 1) -> Integers:
    """Return the byte runs ``[first, past)`` that one core touches, relative to its start, sorted and merged.

    ``written_lanes``: elements touched where the operand has one value per stick.
    """
    touched = {dim: extent for dim, extent in extents.items() if dim in geometry.stride_sticks}
    parts: list[Integers] = []
    for nest in build_nests(touched, [geometry]):
        firsts = np.zeros(1, np.int64)
        width = geometry.element_bytes * written_lanes
        for extent, step in nest.loops.tolist():
            if step == width and len(firsts) == 1:
                width = extent * step
            elif step != 0 and extent > 1:
                firsts = (firsts[None, :] + np.arange(extent, dtype=np.int64)[:, None] * step).reshape(-1)
        firsts = np.sort(firsts) + int(nest.offsets[0])
        parts.append(np.stack([firsts, firsts + width], axis=1))
    return merge(np.concatenate(parts)) if parts else np.zeros((0, 2), np.int64)


def merge(runs: Integers) -> Integers:
    """Return the union of runs as sorted runs that do not touch."""
    if len(runs) == 0:
        return runs
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    reach = np.maximum.accumulate(runs[:, 1])
    first_of_group = np.concatenate([[True], runs[1:, 0] > reach[:-1]])
    groups = np.flatnonzero(first_of_group)
    lasts = np.concatenate([groups[1:], [len(runs)]]) - 1
    return np.stack([runs[groups, 0], reach[lasts]], axis=1)


def shifted(runs: Integers, starts: Integers) -> Integers:
    """Return the runs of all cores, core by core: shape [cores * runs, 2]."""
    return (runs[None, :, :] + starts[:, None, None]).reshape(-1, 2)


def whole_sticks(runs: Integers) -> Integers:
    """Return the sticks that runs touch, as merged runs of whole sticks."""
    first = runs[:, 0] // STICK_BYTES * STICK_BYTES
    past = -(-runs[:, 1] // STICK_BYTES) * STICK_BYTES
    return merge(np.stack([first, past], axis=1))


def length(runs: Integers) -> int:
    """Return the bytes that merged runs cover."""
    return int((runs[:, 1] - runs[:, 0]).sum())


def first_overlap(runs: Integers, starts: Integers) -> tuple[int, int, int] | None:
    """Return (core position, core position, byte) of one overlap between different cores' runs, or ``None``."""
    everything = shifted(runs, starts)
    owners = np.repeat(np.arange(len(starts)), len(runs))
    order = np.argsort(everything[:, 0], kind="stable")
    everything, owners = everything[order], owners[order]
    hits = np.flatnonzero(everything[1:, 0] < everything[:-1, 1])
    if len(hits) == 0:
        return None
    hit = int(hits[0])
    return int(owners[hit]), int(owners[hit + 1]), int(everything[hit + 1, 0])


def first_conflict(
    stores: tuple[Integers, Integers], loads: tuple[Integers, Integers], owner_of_core: Sequence[int]
) -> tuple[int, int, int] | None:
    """Return (loading core, storing owner, byte) where a core loads what another owner stores, or ``None``.

    ``stores``: runs and one start per owner, disjoint between owners; ``loads``: runs and one start per core;
    ``owner_of_core``: the owner that each core belongs to.
    """
    store_runs = shifted(*stores)
    owners = np.repeat(np.arange(len(stores[1])), len(stores[0]))
    order = np.argsort(store_runs[:, 0], kind="stable")
    store_runs, owners = store_runs[order], owners[order]
    changes = np.concatenate([[0], np.cumsum(owners[1:] != owners[:-1])])
    load_runs = shifted(*loads)
    readers = np.repeat(np.arange(len(loads[1])), len(loads[0]))
    own = np.asarray(owner_of_core)[readers]
    low = np.searchsorted(store_runs[:, 1], load_runs[:, 0], side="right")
    high = np.searchsorted(store_runs[:, 0], load_runs[:, 1], side="left")
    touched = high > low
    first, last = np.minimum(low, len(owners) - 1), np.maximum(high - 1, 0)
    foreign = touched & ((owners[first] != own) | (changes[first] != changes[last]))
    hits = np.flatnonzero(foreign)
    if len(hits) == 0:
        return None
    hit = int(hits[0])
    store = int(low[hit]) + int(np.flatnonzero(owners[low[hit] : high[hit]] != own[hit])[0])
    return int(readers[hit]), int(owners[store]), int(max(load_runs[hit, 0], store_runs[store, 0]))
