"""Which bytes each core touches, as sorted runs: the ground of rules V6, V7, V13 and of the traffic counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
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
    load_runs = shifted(*loads)
    readers = np.repeat(np.arange(len(loads[1])), len(loads[0]))
    own = np.asarray(owner_of_core)[readers]
    low, high, foreign = _reaching_others((store_runs, owners), (load_runs, own))
    hits = np.flatnonzero(foreign)
    if len(hits) == 0:
        return None
    hit = int(hits[0])
    store = int(low[hit]) + int(np.flatnonzero(owners[low[hit] : high[hit]] != own[hit])[0])
    return int(readers[hit]), int(owners[store]), int(max(load_runs[hit, 0], store_runs[store, 0]))


def _reaching_others(
    stores: tuple[Integers, Integers], touches: tuple[Integers, Integers]
) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Return of each run that is touched which stores ``[low, high)`` it meets, and whether one is another owner's.

    Both are runs and the owner of each; stores are sorted, and no two share a byte.
    """
    (store_runs, owners), (runs, own) = stores, touches
    low = np.searchsorted(store_runs[:, 1], runs[:, 0], side="right")
    high = np.searchsorted(store_runs[:, 0], runs[:, 1], side="left")
    if len(owners) == 0:
        return low, high, np.zeros(len(runs), np.bool_)
    changes = np.concatenate([[0], np.cumsum(owners[1:] != owners[:-1])])
    first, last = np.minimum(low, len(owners) - 1), np.maximum(high - 1, 0)
    return low, high, (high > low) & ((owners[first] != own) | (changes[first] != changes[last]))


def loading_conflict(
    stores: tuple[Integers, Integers],
    touched: Sequence[tuple[Integers, Sequence[int]]],
    starts: Integers,
    owners: Sequence[int],
) -> tuple[int, int, int] | None:
    """Return (loading core, storing owner, byte) where a core loads what another owner stores, or ``None``.

    ``stores``: runs and one start per owner; ``touched``: runs and the cores that load them; ``starts``: of each core.
    """
    for runs, cores in touched:
        own = [owners[core] for core in cores]
        conflict = first_conflict(stores, (runs, starts[list(cores)]), own) if len(runs) else None
        if conflict is not None:
            return cores[conflict[0]], conflict[1], conflict[2]
    return None


@dataclass(frozen=True, slots=True, eq=False)
class ByteFootprint:
    """What each owner (a core, a block) touches of an operand in one round of the loops around it.

    ``base``: its memory.  ``steps``: how far a round of each loop goes on, by number.  ``starts``: of each owner;
    ``stored``: the runs there where it is stored.  ``touched``: runs, and the owners that touch these.
    """

    base: int | None
    steps: Mapping[int, int]
    starts: Integers
    stored: Integers | None
    touched: Sequence[tuple[Integers, Sequence[int]]]

    @property
    def is_disjoint(self) -> bool:
        """Whether no two owners store one byte."""
        return self.stored is None or first_overlap(self.stored, self.starts) is None

    def keeps_out_of(self, store: ByteFootprint) -> bool:
        """Whether each owner touches at most its own part of what is stored, in every round of the loops.

        Owners of both are the same, and the store is disjoint.
        """
        if self.base != store.base:
            return True
        # Distances hold in every round only where both go on alike.
        if self.steps != store.steps:
            return False
        if store.stored is None or len(store.stored) == 0:
            return True
        owners = range(len(self.starts))
        return loading_conflict((store.stored, store.starts), self.touched, self.starts, owners) is None


Owned = Integers
"""Runs of bytes and who has them: ``[run, (first, past, owner)]``, sorted, those of one owner merged."""


def are_apart(stores: Owned, touches: Owned) -> bool:
    """Whether no owner touches what another one stores."""
    if (stores[1:, 0] < stores[:-1, 1]).any():  # of one owner they are merged: these are of two
        return False
    return not _reaching_others((stores[:, :2], stores[:, 2]), (touches[:, :2], touches[:, 2]))[2].any()
