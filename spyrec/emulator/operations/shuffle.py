"""Shuffles as whole tensors, for those who look at what moves: a core's part comes from the scratchpads of others."""

from __future__ import annotations

import numpy as np

from spyrec.bundle.superdsc import Distribution
from spyrec.emulator.engine import Integers, Mover, Patterns, Setting
from spyrec.emulator.geometry import extending_dims, outer_sum


class Shuffle:
    """Loads what every core owns, puts the tensor together, and stores what every core shall own of it.

    Bits are copied.  Of several owners of an element the lowest core counts.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        superdsc = setting.superdsc
        self._source, self._target = setting.inputs[0], setting.output
        self.dims = dims = extending_dims(superdsc.operands[self._target])
        self.shape = tuple(superdsc.iteration[dim] for dim in dims)
        self._places: dict[int, list[list[Integers]]] = {}
        self._movers: dict[int, Mover] = {}
        for position in (self._source, self._target):
            own = superdsc.operands[position].distribution
            assert own is not None
            cores = range(setting.cores)
            self._places[position] = [
                [coordinates_of(own, dim, own.core_slices[core][dim]) for dim in dims] for core in cores
            ]
            extents = {dim: own.core_elements(dim) for dim in dims}
            self._movers[position] = Mover(setting, position, extents)

    def load(self, starts: Integers) -> Patterns:
        """Return what each core owns of the source: [core, element]."""
        return self._movers[self._source].load(starts[self._source])

    def store(self, starts: Integers, owned: Patterns) -> None:
        """Store on each core what it shall own of the tensor whose parts :meth:`load` has returned."""
        whole = np.empty(self.shape, owned.dtype)
        for core in reversed(range(self.setting.cores)):
            part = self.owned_part(core)
            whole[part] = owned[core].reshape(whole[part].shape)
        for core in range(self.setting.cores):
            part = whole[np.ix_(*self._places[self._target][core])]
            self._movers[self._target].store(starts[self._target, core : core + 1], part.reshape(1, -1))

    def owned_part(self, core: int) -> tuple[Integers, ...]:
        """Return which part of the tensor a core owns of the source: coordinates along ``dims``, as an index."""
        return np.ix_(*self._places[self._source][core])

    def source_offsets(self) -> Integers:
        """Return the emulated bytes from a core's start to each element that it owns of the source."""
        geometry, expansion = self.setting.geometries[self._source], self.setting.expansion
        extents = self._movers[self._source].extents.items()
        return expansion * outer_sum([geometry.offsets(dim, np.arange(extent)) for dim, extent in extents])


def coordinates_of(own: Distribution, dim: str, number: int) -> Integers:
    """Return the coordinates of a slice along a dim, in the order in which its elements lie in LX."""
    folds = own.owned_folds(dim)
    assert folds is not None, "checked at load"
    core, *inner = folds
    return core.alpha * number + outer_sum([fold.alpha * np.arange(fold.factor) for fold in inner])
