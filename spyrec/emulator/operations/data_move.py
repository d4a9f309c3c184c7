"""Data DSCs on the host: pieces of a tensor are read, put together, and stored where its other pieces lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.bundle.data_dsc import DataDsc, Piece
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Integers, Mover, Patterns, Setting
from spyrec.emulator.moved_pieces import Box, Cell, pieces_of
from spyrec.emulator.reference.moves import different_sources


class DataMove:
    """Loads all places of the source, puts each piece of the destination together, then stores them.

    Bits are copied.  Implements ``host.HostWork``.
    """

    def __init__(self, setting: Setting, data_dsc: DataDsc, cells: Sequence[Cell]) -> None:
        self.setting = setting
        self.cells = cells
        self._data_dsc = data_dsc
        self._pieces = [piece for piece, _ in pieces_of(data_dsc)]
        self._movers = [Mover(setting, position, piece.extents) for position, piece in enumerate(self._pieces)]

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once; errors SPY0759 an element that two places of the source hold differently."""
        for target, whole in self.put_together(self.load(starts), is_strict=True).items():
            self.store(starts, target, whole)
        return NO_DATA_TRAFFIC

    def load(self, starts: Integers) -> dict[int, Patterns]:
        """Return by operand what each place of the source holds, an axis per dim."""
        used = dict.fromkeys(cell.source for cell in self.cells)
        return {t: self._movers[t].load(starts[t]).reshape(_shape(self._pieces[t])) for t in used}

    def put_together(self, held: dict[int, Patterns], *, is_strict: bool) -> dict[int, Patterns]:
        """Return by operand what each place of the destination is to hold; the first source of an element counts."""
        found: dict[int, Patterns] = {}
        for cell in reversed(self.cells):
            wanted, piece = self._pieces[cell.target], self._pieces[cell.source]
            values = held[cell.source][_inside(piece, cell.box)]
            whole = found.setdefault(cell.target, np.zeros(_shape(wanted), values.dtype))
            whole[_inside(wanted, cell.box)] = values
        for cell in self.cells if is_strict else ():
            wanted, piece = self._pieces[cell.target], self._pieces[cell.source]
            taken = found[cell.target][_inside(wanted, cell.box)]
            differing = np.argwhere(taken != held[cell.source][_inside(piece, cell.box)])
            if len(differing):
                place = {dim: first + int(at) for (dim, (first, _)), at in zip(cell.box.items(), differing[0])}
                raise self._refusal(place, piece)
        return found

    def store(self, starts: Integers, target: int, whole: Patterns) -> None:
        """Store a piece of the destination."""
        self._movers[target].store(starts[target], whole.reshape(1, -1))

    def _refusal(self, place: dict[str, int], piece: Piece) -> SpyrecError:
        return different_sources(self.setting.file, self._data_dsc.name, place, piece.key)


def _shape(piece: Piece) -> tuple[int, ...]:
    return tuple(piece.extents.values())


def _inside(piece: Piece, box: Box) -> tuple[slice, ...]:
    """Return where a box lies in a piece."""
    return tuple(slice(first - piece.first[dim], past - piece.first[dim]) for dim, (first, past) in box.items())
