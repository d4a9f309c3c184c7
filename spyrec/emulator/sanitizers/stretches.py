"""Races between the steps of a SuperDSC with a schedule: what one core stores and another touches with no barrier
between them.

A core loads and stores its own scratchpad; pieces of data DSCs are loaded and stored by the core that receives them.
Device memory and other cores' scratchpads, reached by data DSCs, are where cores meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.dsc_actions import DscNode
from spyrec.dataclass import dataclass
from spyrec.emulator.footprint import merge
from spyrec.emulator.moved_pieces import cell_offsets, cells_of, pieces_of
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.sanitizers.places import NamedPlaces, Spot
from spyrec.emulator.sanitizers.report import Report
from spyrec.runtime.findings import Sanitizer

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Access:
    """Emulated bytes that a core touches; ``place``: its position among the cores of the call."""

    core: int
    place: int
    position: int
    is_store: bool
    runs: Integers


@dataclass(frozen=True, slots=True)
class _Done:
    """What was executed in a stretch."""

    node: DscNode
    accesses: tuple[_Access, ...]


class StretchDetector:
    """Keeps what the steps since the last barrier have touched, and holds the next one against it."""

    def __init__(self, report: Report, places: NamedPlaces) -> None:
        self._report = report
        self._places = places
        self._stretch: tuple[object, ...] = ()
        self._done: list[_Done] = []

    def begin(self) -> None:
        """A launch begins."""
        self._stretch, self._done = (), []

    def execute(self, planned: PlannedCall, starts: Integers, iteration: tuple[int, ...]) -> None:
        """Watch one execution whose operands lie at emulated ``starts[operand, core]``."""
        place = planned.call.place
        if place is None:
            if self._done:
                self.begin()
            return
        stretch = (place.group, place.node.stretch, iteration)
        if stretch != self._stretch:
            self._stretch, self._done = stretch, []
        accesses = tuple(self._accesses(planned, starts))
        for earlier in self._done:
            self._compare(planned, _Done(place.node, accesses), earlier)
        self._done.append(_Done(place.node, accesses))

    def _accesses(self, planned: PlannedCall, starts: Integers) -> Iterator[_Access]:
        data_dsc = planned.call.data_dsc
        if data_dsc is not None:
            yield from self._pieces(planned, data_dsc, starts)
            return
        superdsc, expansion = planned.call.superdsc, self._places.shadow.expansion
        loads = (*planned.setting.inputs, *superdsc.compute.indirect_access_indices)
        for position in dict.fromkeys((*loads, *superdsc.compute.outputs)):
            runs = merge(planned.binding.runs[position]) * expansion
            for place, (core, start) in enumerate(zip(superdsc.core_ids, starts[position].tolist(), strict=True)):
                is_store = position in superdsc.compute.outputs
                yield _Access(core, place, position, is_store, runs + start)

    def _pieces(self, planned: PlannedCall, data_dsc: DataDsc, starts: Integers) -> Iterator[_Access]:
        placed, expansion = pieces_of(data_dsc), self._places.shadow.expansion
        width = data_dsc.source.word_length
        for cell in cells_of(data_dsc):
            for position in (cell.source, cell.target):
                offsets = cell_offsets(planned.setting.geometries[position], placed[position][0], cell.box)
                runs = merge(np.stack([offsets, offsets + width], axis=1)) * expansion + int(starts[position, 0])
                yield _Access(cell.receiver, 0, position, position == cell.target, runs)

    def _compare(self, planned: PlannedCall, own: _Done, earlier: _Done) -> None:
        """Report the first byte that two cores touch and one of them stores."""
        for one in own.accesses:
            for other in earlier.accesses:
                if one.core == other.core or not (one.is_store or other.is_store):
                    continue
                byte = _first_common(one.runs, other.runs)
                if byte is not None:
                    self._add(planned, (own.node, one), (earlier.node, other), byte)
                    return

    def _add(
        self, planned: PlannedCall, own: tuple[DscNode, _Access], other: tuple[DscNode, _Access], byte: int
    ) -> None:
        (node, access), (before, known) = own, other
        here, there = node.step_of(access.core), before.step_of(known.core)
        deeds = ["stores" if item.is_store else "loads" for item in (access, known)]
        message = f"core {access.core} {deeds[0]} this byte in step {here} ({node.name}), which core {known.core}"
        message += f" {deeds[1]} in step {there} ({before.name}): no barrier stands between"
        field = "coreIdToDscSchedule"
        found = self._places.finding(Sanitizer.RACE, planned, Spot(access.position, access.place, byte), message, field)
        self._report.add(replace(found, core=access.core))


def _first_common(one: Integers, other: Integers) -> int | None:
    """Return the first byte of both; runs are sorted and do not touch."""
    if not len(one) or not len(other) or one[0, 0] >= other[-1, 1] or other[0, 0] >= one[-1, 1]:
        return None
    following = np.searchsorted(other[:, 1], one[:, 0], side="right")
    inside = following < len(other)
    hits = np.flatnonzero(inside & (other[np.minimum(following, len(other) - 1), 0] < one[:, 1]))
    if not len(hits):
        return None
    hit = int(hits[0])
    return int(max(one[hit, 0], other[following[hit], 0]))


def is_scheduled(calls: Sequence[PlannedCall]) -> bool:
    """Whether any of the calls is part of a schedule, which has to be looked at step by step."""
    return any(planned.call.place is not None for planned in calls)
