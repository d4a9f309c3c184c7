"""Dims of size 1 that coordinates have no symbol for: those of an index, and of a top-k of one element."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import free_label, next_label
from spyrec.codegen.opspec import OpSpec
from spyrec.dataclass import dataclass
from spyrec.device_ops import TOPKS
from spyrec.diagnostics import Location


@dataclass(frozen=True, slots=True)
class UnitDims:
    """The dims of size 1 of one operation, ``None`` where there is none.

    ``row``: the index is one number, and this its only dim.  ``index_stick``: an index with dims has one element per
    stick, along this.  ``taken``: a top-k takes one element, along this.
    """

    row: str | None = None
    index_stick: str | None = None
    taken: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The dims, in the order of the iteration space."""
        return tuple(dim for dim in (self.row, self.index_stick, self.taken) if dim is not None)

    def completed(self, order: Sequence[str], view: ArgumentView, *, is_output: bool, is_exact: bool) -> list[str]:
        """Return the dim order of an operand that is no index with its dims of size 1.

        torch-spyre has the row innermost in every operand (``is_exact``); in a table it is where its rows lie.
        """
        rest = [dim for dim in order if dim != self.row]
        if self.row is not None:
            rest.insert(order.index(self.row) if self.row in view.dim_order and not is_exact else 0, self.row)
        return [*rest, self.taken] if is_output and self.taken is not None else rest


def unit_dims(
    spec: OpSpec,
    views: Sequence[ArgumentView],
    indices: Collection[int],
    reference: Sequence[str],
    location: Location | None,
) -> UnitDims:
    """Return the dims that an operation lacks; ``reference``: those of its reference operand.  Errors: SPY0507."""
    row = index_stick = taken = None
    for position in sorted(indices):
        own = views[position].dim_order
        if views[position].stick_dim is not None:
            continue
        if own:
            index_stick = index_stick or free_label(spec, {*reference, *own}, location)
        else:
            row = row or free_label(spec, reference, location)
    if spec.op in TOPKS and set(views[-1].dim_order) <= set(views[0].dim_order):
        taken = next_label(spec, "one for the element taken", location)
    return UnitDims(row, index_stick, taken)
