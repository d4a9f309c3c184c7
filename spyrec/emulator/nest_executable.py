"""What operations that work element by element have in common: their tasks are points of loop nests, in any order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from spyrec.emulator.engine import Executable, Integers, Setting


class NestExecutable(Executable):
    """An operation on the elements of nests over the operands at ``positions``, the result last."""

    def __init__(self, setting: Setting, positions: tuple[int, ...]) -> None:
        self.setting = setting
        self.positions = positions
        self.nests = setting.nests(positions)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        cores = starts.shape[1]
        for nest, part in zip(self.nests, self._parts(starts), strict=True):
            self.setting.threads.run(cores * nest.outer_points, cores * nest.points, part)

    @abstractmethod
    def _parts(self, starts: Integers) -> list[Callable[[int, int], None]]:
        """Return what runs tasks ``first <= t < past`` of each nest."""


class KernelNestExecutable(NestExecutable):
    """One that kernels alone compute, so that it can be bound to addresses and run core by core."""

    @property
    def is_bindable(self) -> bool:
        """Kernels do it all."""
        return True

    @property
    def has_core_parts(self) -> bool:
        """Elements are independent."""
        return True

    @property
    def is_separable(self) -> bool:
        """Elements are independent."""
        return True

    @property
    def core_ids(self) -> Sequence[int]:
        """The cores used."""
        return self.setting.superdsc.core_ids
