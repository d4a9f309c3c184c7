"""Carrying states through data DSCs: elements take theirs along."""

from __future__ import annotations

import numpy as np

from spyrec.bundle.data_dsc import DataDsc
from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.moved_pieces import cells_of, pieces_of
from spyrec.emulator.operations.data_move import DataMove
from spyrec.emulator.sanitizers.kernel_shadow import FIRST_MARK
from spyrec.emulator.sanitizers.propagation import Marks, Outcome, Propagation, Starts, weight_of


class MovePropagation(Propagation):
    """Pieces of states move as those of the tensor do."""

    def __init__(self, setting: Setting, marks: Marks, data_dsc: DataDsc) -> None:
        super().__init__(setting, marks)
        self.work = DataMove(setting, data_dsc, cells_of(data_dsc))
        self.pieces = [piece for piece, _ in pieces_of(data_dsc)]

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        outcome = Outcome()
        held = self.work.load(starts.shadow)
        for position, words in held.items():
            states = words.view(np.uint8).reshape(words.size, -1)
            low = states.min(axis=-1)
            for place in np.flatnonzero(low < FIRST_MARK)[:1].tolist():
                at = int(starts.shadow[position, 0]) + self._offset(position, place)
                outcome.sighting.note(weight_of(int(low[place])), position, 0, at)
            states[:] = self.marked(states)
        for position, words in self.work.put_together(held, is_strict=False).items():
            self.work.store(starts.shadow, position, words)
        return outcome

    def _offset(self, position: int, place: int) -> int:
        geometry, extents = self.setting.geometries[position], self.pieces[position].extents
        offsets = outer_sum([geometry.offsets(dim, np.arange(extent)) for dim, extent in extents.items()])
        return int(offsets[place]) * self.setting.expansion
