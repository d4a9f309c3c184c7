"""What a shuffle moves over the ring, from who owns what of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.bundle.superdsc import Distribution, SuperDsc
from spyrec.emulator.engine import Integers
from spyrec.emulator.geometry import extending_dims
from spyrec.emulator.operations.shuffle import coordinates_of
from spyrec.emulator.rules.superdsc import input_positions
from spyrec.hardware.work_slices import ring_links

Slots = tuple[int, ...]


def ring_bytes(superdsc: SuperDsc) -> int:
    """Return the bytes that one core receives, each times the links of the ring that it passes; of the core where
    that is most.  Nothing for operations that are no shuffle.

    An element comes from the lowest core that owns it, over the shorter way round.
    """
    target = superdsc.operands[superdsc.compute.outputs[0]]
    if target.distribution is None:
        return 0
    source = superdsc.operands[input_positions(superdsc)[0]]
    assert source.distribution is not None, "checked at load"
    dims = extending_dims(target)
    owners = _lowest_owners(source.distribution, dims, superdsc.core_ids)
    shared = [_shared_elements(source.distribution, target.distribution, dim) for dim in dims]
    most = 0
    for core, slices in zip(superdsc.core_ids, target.distribution.core_slices, strict=True):
        wanted = [slices[dim] for dim in dims]
        received = 0
        for slots, owner in owners.items():
            elements = int(np.prod([own[one, other] for own, one, other in zip(shared, slots, wanted, strict=True)]))
            received += elements * ring_links(core, owner)
        most = max(most, received)
    return most * target.word_length


def _lowest_owners(own: Distribution, dims: Sequence[str], core_ids: Sequence[int]) -> Mapping[Slots, int]:
    """Return the core whose data counts for each combination of slices: the first in the order of the file."""
    found: dict[Slots, int] = {}
    for core, slices in zip(core_ids, own.core_slices, strict=True):
        found.setdefault(tuple(slices[dim] for dim in dims), core)
    return found


def _shared_elements(source: Distribution, target: Distribution, dim: str) -> Integers:
    """Return how many elements along a dim each slice of the source has in common with each of the target."""
    shared = np.zeros((source.slices(dim), target.slices(dim)), np.int64)
    begun = [coordinates_of(source, dim, number) for number in range(source.slices(dim))]
    for number in range(target.slices(dim)):
        ended = coordinates_of(target, dim, number)
        shared[:, number] = [len(np.intersect1d(own, ended, assume_unique=True)) for own in begun]
    return shared
