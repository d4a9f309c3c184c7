"""Part of the sanitizer ``lx``: elements that several cores own of the source of a shuffle are the same on all.

Every owner's copy is meant to be the element; a shuffle takes that of the lowest core (D142).  Where states are watched
too (``init``, ``gap``), an element that one of its owners has not defined, such as a padding lane, does not count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.operations.shuffle import Shuffle
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.rules.fault_places import operand_field
from spyrec.emulator.rules.shuffles import is_shuffle
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.runtime.findings import Sanitizer

Integers = npt.NDArray[np.int64]


class ReplicaChecker:
    """Compares what the owners of an element hold, before a shuffle takes it."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._known: dict[int, tuple[PlannedCall, Shuffle | None]] = {}

    def concerns(self, planned: PlannedCall) -> bool:
        """Whether several cores own one element of what the call takes: its data are to be looked at before it."""
        return self._replicated(planned) is not None

    def execute(self, planned: PlannedCall, starts: Integers, *, has_states: bool) -> None:
        """Look at one execution before it; ``starts``: emulated; ``has_states``: undefined elements do not count."""
        work = self._replicated(planned)
        if work is None:
            return
        owned = work.load(starts)
        cores, counts = range(len(owned)), np.ones(owned.shape, np.bool_)
        if has_states:
            words = work.load(self._places.shadow.starts(starts))
            counts = (words.view(np.uint8).reshape(*words.shape, -1) == DEFINED).all(axis=-1)
        whole, owner = np.zeros(work.shape, owned.dtype), np.full(work.shape, -1, np.int64)
        for core in reversed(cores):
            part = work.owned_part(core)
            is_counted = counts[core].reshape(owner[part].shape)
            whole[part] = np.where(is_counted, owned[core].reshape(is_counted.shape), whole[part])
            owner[part] = np.where(is_counted, core, owner[part])
        for core in cores:
            part = work.owned_part(core)
            shape = owner[part].shape
            differs = counts[core].reshape(shape) & (owned[core].reshape(shape) != whole[part])
            if differs.any():
                self._add(planned, work, (core, int(np.flatnonzero(differs)[0])), starts, owner[part])
                return

    def _add(
        self, planned: PlannedCall, work: Shuffle, found: tuple[int, int], starts: Integers, owner: Integers
    ) -> None:
        """Report one element of one core; ``owner``: of each element of its part the lowest core that owns it."""
        (core, place), source, ids = found, planned.setting.inputs[0], planned.call.superdsc.core_ids
        at = np.unravel_index(place, owner.shape)
        axes = zip(work.dims, work.owned_part(core), at, strict=True)
        named = ", ".join(f"{dim} {int(axis.reshape(-1)[index])}" for dim, axis, index in axes)
        message = f"cores {ids[int(owner[at])]} and {ids[core]} both own element ({named}) of the source of a shuffle,"
        message += " and hold different values; the shuffle takes that of the lower core"
        emulated = int(starts[source, core]) + int(work.source_offsets().reshape(-1)[place])
        spot, field = Spot(source, core, emulated), operand_field(source, "coordinates_.coreIdToWkSlice_")
        self._report.add(self._places.finding(Sanitizer.LX, planned, spot, message, field))

    def _replicated(self, planned: PlannedCall) -> Shuffle | None:
        known = self._known.get(id(planned))
        if known is None:
            known = self._known[id(planned)] = planned, _with_replicas(planned)
        return known[1]


def _with_replicas(planned: PlannedCall) -> Shuffle | None:
    """Return the work of a shuffle whose source several cores own elements of."""
    superdsc = planned.call.superdsc
    if not is_shuffle(superdsc):
        return None
    work = Shuffle(planned.setting)
    owners = np.zeros(work.shape, np.int64)
    for core in range(planned.setting.cores):
        owners[work.owned_part(core)] += 1
    return work if owners.max() > 1 else None
