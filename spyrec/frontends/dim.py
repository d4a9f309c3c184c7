"""Named dims: what ``builder.dim`` returns, and what may stand for an extent."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.layout.symbolic_dim import SymbolicDim


@dataclass(frozen=True, slots=True)
class Dim:
    """A dim by name: ``definition`` is its extent in elements, or the bounds of a symbolic one."""

    name: str
    definition: int | SymbolicDim

    @property
    def extent(self) -> int:
        """Elements along the dim; of a symbolic dim the largest legal number."""
        if isinstance(self.definition, int):
            return self.definition
        return self.definition.maximum // self.definition.multiple_of * self.definition.multiple_of

    @property
    def is_symbolic(self) -> bool:
        """Whether the extent is known at run time only."""
        return isinstance(self.definition, SymbolicDim)


Extent = int | str | Dim
"""An extent in a shape or a size: a number, a dim, or its name (in sizes of attributes also ``"A*64"``)."""
