"""What a model's results are at other extents of its symbolic dims: the oracle for axes that are followed by name.

The model is written out once more with every dim bound.  A result whose axes or known numbers are not what the names
say is refused, so that a name that is lost on the way is never an extent that a run does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.source_graph import HostArray
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.open_numbers import Number, OpenNumber
from spyrec.frontends.value import Value
from spyrec.layout.symbolic_dim import SymbolicDim

Made = Value | HostArray | None
"""A result of a node: a value of the graph, or known numbers; ``None`` for a sequence, or what nothing makes."""


def probed_extents(dims: Mapping[str, SymbolicDim]) -> dict[str, int]:
    """Return an extent of each dim: not its largest, not 1, and no other dim's, as far as it has such ones."""
    found: dict[str, int] = {}
    for name, dim in dims.items():
        legal = range(dim.smallest, dim.largest + 1, dim.multiple_of)
        best = [extent for extent in legal[: len(dims) + 2] if extent not in (1, dim.largest, *found.values())]
        found[name] = best[0] if best else dim.smallest
    return found


@dataclass(frozen=True, slots=True)
class Probe:
    """``made``: by the model's names, each result in the order of its making, at these ``extents`` of the ``dims``."""

    made: Mapping[str, Sequence[Made]]
    extents: Mapping[str, int]
    dims: Mapping[str, SymbolicDim]

    def lost_dims(self, name: str, turn: int, made: Made, shape: Sequence[Number]) -> list[int | str] | None:
        """Hold a result against what it is at the probe's extents.

        ``turn``: how often the name was made before, ``shape``: its extents.  Returns the shape with the dims whose
        names it has lost, ``None`` where it has lost none.
        Errors: :class:`Unsupported` for axes and numbers that are no such ones.
        """
        rows = self.made.get(name, ())
        other = rows[turn] if turn < len(rows) else None
        if made is None or other is None:
            return None
        if not isinstance(made, Value):
            self._compare_numbers(made, other)
        if len(shape) != len(other.shape):
            raise self._refused(f"its result has {len(other.shape)} axes for some extents, and {len(shape)} for others")
        found: list[int | str] = []
        for axis, (extent, wanted) in enumerate(zip(shape, other.shape, strict=True)):
            here = extent.at(self.extents) if isinstance(extent, OpenNumber) else extent
            dim = None if here == wanted else self._dim(extent, wanted)
            if here != wanted and dim is None:
                fact = f"axis {axis} of its result has {wanted} elements at {self._said()}"
                raise self._refused(f"{fact}, which a graph does not follow through it")
            found.append(dim or (str(extent) if isinstance(extent, OpenNumber) else extent))
        return None if all(str(new) == str(old) for new, old in zip(found, shape, strict=True)) else found

    def _dim(self, extent: Number, wanted: int) -> str | None:
        """Return the one dim that is an extent here and ``wanted`` at the probe's."""
        if isinstance(extent, OpenNumber):
            return None
        names = [name for name, dim in self.dims.items() if (dim.largest, self.extents[name]) == (extent, wanted)]
        return names[0] if len(names) == 1 else None

    def _compare_numbers(self, made: HostArray, other: Value | HostArray) -> None:
        if isinstance(other, Value) or made.shape != other.shape:
            return
        here = made
        if made.dtype == object:
            here = np.asarray([it.at(self.extents) if isinstance(it, OpenNumber) else it for it in made.reshape(-1)])
        if here.reshape(-1).tobytes() != other.reshape(-1).astype(here.dtype).tobytes():
            raise self._refused("the numbers that it computes of sizes are other ones for other extents")

    def _said(self) -> str:
        return ", ".join(f"{name}={extent}" for name, extent in self.extents.items())

    def _refused(self, fact: str) -> Unsupported:
        return Unsupported(fact, "bind it: " + " ".join(f"--dim {name}=N" for name in self.dims))
