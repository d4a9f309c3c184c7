"""One execution of a call as observers see it: where each element of an operand lies, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Mover
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.plan import PlannedCall

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EmulatedExecution:
    """Implements :class:`spyrec.runtime.observer.Execution`.

    ``starts[operand, core]`` are emulated addresses, ``moved`` the part of them that the loops around have added.
    ``is_last``: whether this call is executed no more in its launch.
    """

    planned: PlannedCall
    starts: Integers
    moved: Integers
    iteration: tuple[int, ...]
    is_last: bool

    @property
    def file(self) -> str:
        """The file's name inside its program."""
        return self.planned.call.file

    @property
    def superdsc(self) -> SuperDsc:
        """What is executed."""
        return self.planned.call.superdsc

    def dims_of(self, position: int) -> tuple[str, ...]:
        """Return the dims that an operand extends along."""
        setting = self.planned.setting
        return tuple(dim for dim in setting.extents if setting.extends(position, dim))

    def base_of(self, position: int) -> int | None:
        """Return the argument that an operand lies in, a negative number for other memory, ``None`` for LX."""
        return self.planned.binding.bases[position]

    def addresses(self, position: int, dims: Sequence[str]) -> Integers:
        """Return device bytes from the base, ``[core, *extents of dims]``, at 0 of other dims."""
        setting, expansion = self.planned.setting, self.planned.setting.expansion
        parts = [setting.offsets(position, dim) for dim in dims]
        firsts = self.planned.binding.offsets[position] * expansion + self.moved[position]
        places = (firsts[:, None] + outer_sum(parts)[None, :]) // expansion
        return places.reshape(setting.cores, *(setting.extents[dim] for dim in dims))

    def patterns(self, position: int, dims: Sequence[str], lane: int = 0) -> npt.NDArray[np.unsignedinteger]:
        """Return the bits that stand there, or ``lane`` elements behind."""
        setting = self.planned.setting
        extents = {dim: setting.extents[dim] for dim in dims}
        ahead = lane * self.superdsc.operands[position].word_length * setting.expansion
        found = Mover(setting, position, extents).load(self.starts[position] + ahead)
        return found.reshape(setting.cores, *extents.values())
