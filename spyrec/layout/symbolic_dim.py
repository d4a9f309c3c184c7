"""A dim whose extent is known at run time only."""

from __future__ import annotations

from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.files.json_form import COUNT, SIZE, json


@dataclass(frozen=True, slots=True)
class SymbolicDim:
    """The extents that a dim may have in a run: ``minimum`` to ``maximum`` elements, multiples of ``multiple_of``."""

    minimum: int = field(metadata=json(COUNT, "min"))
    maximum: int = field(metadata=json(SIZE, "max"))
    multiple_of: int = field(default=1, metadata=json(SIZE))

    @property
    def largest(self) -> int:
        """The largest extent that a run may have: what memory and layouts are made for."""
        return self.maximum // self.multiple_of * self.multiple_of

    @property
    def smallest(self) -> int:
        """The smallest extent that a run may have, at least 1."""
        return -(-max(self.minimum, 1) // self.multiple_of) * self.multiple_of

    def admits(self, extent: int) -> bool:
        """Whether a run may have this extent."""
        return self.minimum <= extent <= self.maximum and extent % self.multiple_of == 0

    def __str__(self) -> str:
        if self.minimum == self.maximum:
            return str(self.maximum)
        steps = "" if self.multiple_of == 1 else f", a multiple of {self.multiple_of}"
        return f"{self.minimum} to {self.maximum}{steps}"
