"""Carrying states through a function of which a mask hides elements."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.operations.hidden import hidden_parts
from spyrec.emulator.operations.pieces import BoxPiece
from spyrec.emulator.sanitizers.propagation import Marks, Outcome, Propagation, Sighting, Starts, run_nest
from spyrec.emulator.sanitizers.touches import Touches, is_small, touch

Integers = npt.NDArray[np.int64]


class MaskedPropagation(Propagation):
    """Element by element where no mask hides them; what is stored for a hidden one is defined, whatever was there."""

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        self._source, self._target = setting.inputs[0], setting.output
        self._parts = hidden_parts(setting)

    @cached_property
    def touches(self) -> Touches | None:
        """What happens where all that no mask hides is defined."""
        setting = self.setting
        if not is_small(setting, (self._source, self._target)):
            return None
        shown = [(part.cores, part.shown) for part in self._parts if part.shown]
        loads = tuple(touch(setting, self._source, self._places(self._source, own), cores) for cores, own in shown)
        whole = BoxPiece(setting, np.zeros((len(setting.geometries), 1), np.int64))
        return Touches(loads, (touch(setting, self._target, self._places(self._target, (whole,))),))

    @staticmethod
    def _places(position: int, pieces: tuple[BoxPiece, ...]) -> Integers:
        """Return the byte offsets of the elements of pieces from the start of a core's box."""
        boxes = ((item.moved[position], [item.setting.offsets(position, dim) for dim in item.setting.extents])
                 for item in pieces)  # fmt: skip
        return np.concatenate([moved + outer_sum(offsets) for moved, offsets in boxes])

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        outcome = Outcome()
        both = (self._source, self._target)
        for part in self._parts:
            own = starts.shadow[:, part.cores]
            for piece in part.shown:
                seen = self._carry(both, own, piece)
                core = int(part.cores[seen.core])
                outcome.sighting.note(seen.weight, both[seen.operand], core, seen.place)
            for piece in part.hidden:
                self._carry(both[1:], own, piece)
        return outcome

    def _carry(self, positions: tuple[int, ...], starts: Integers, piece: BoxPiece) -> Sighting:
        """Carry the states of a piece; an output alone is defined."""
        total = Sighting()
        widths = np.array([self.setting.codec(position).word_bytes for position in positions], np.int64)
        used = (starts + piece.moved)[list(positions)]
        for nest in piece.setting.nests(positions):
            walk = np.ascontiguousarray(used + nest.offsets[:, None]), nest.loops
            seen = run_nest(self, widths, walk, (nest.outer_points, nest.points))
            total.note(seen.weight, seen.operand, seen.core, seen.place)
        return total
