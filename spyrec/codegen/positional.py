"""Where operands lie as upstream counts: by the place of a dim in its walk, whatever device dim that is.

Nothing is checked here.  What upstream writes may reach beyond a buffer (Q14), begin inside of a stick (Q15) or drop a
window in LX (Q12); ``--compat`` asks for the files as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import EXTENDS, OperandDims
from spyrec.codegen.opspec import AllocationKind
from spyrec.codegen.unit_dims import UnitDims
from spyrec.dataclass import dataclass
from spyrec.device_ops import RESTICKIFY
from spyrec.device_ops.record import WindowForm


@dataclass(frozen=True, slots=True)
class PositionalFootprint:
    """Where an operand lies relative to its allocation, per core.

    ``spans``: elements of all slices of a divided dim, and how many slices there are.
    """

    back_gap: Mapping[str, int]
    offset_bytes: int
    spans: Mapping[str, tuple[int, int]]
    word_bytes: int

    def offset_of(self, slices: Mapping[str, int]) -> int:
        """Return the bytes from the allocation to the start of a core with these slices."""
        steps = (slices[dim] * span // count for dim, (span, count) in self.spans.items())
        return self.offset_bytes + self.word_bytes * sum(steps)


@dataclass(frozen=True, slots=True)
class Positional:
    """What all operands of one operation share: its space before and after the padding of sticks, and what it is.

    ``form``: of a sliding window; convolutions have no gaps.  ``unpadded``: but for what products pad before.
    """

    op: str
    form: WindowForm | None
    unit: UnitDims
    unpadded: IterationSpace
    iteration: IterationSpace

    def footprint(self, view: ArgumentView, dims: OperandDims) -> PositionalFootprint:
        """Return the footprint of an operand."""
        device_size, coordinates = view.argument.device_size, view.argument.device_coordinates
        gaps: dict[str, int] = {}
        spans: dict[str, tuple[int, int]] = {}
        offset = 0
        for place, dim in enumerate(item for item in dims.stride_order if item != self.unit.row):
            axis = len(device_size) - place - 2
            size = self.unpadded.sizes[dim]
            room = device_size[axis] if axis >= 0 else size
            span = prod(device_size[max(axis, 0) :])
            if dim == dims.stick_dim:
                room, size = room * view.elements_per_stick, _whole_sticks(size, view.elements_per_stick)
            if self._is_window(view, dims, dim, axis) and room > size:
                offset += coordinates[axis].offset * prod(device_size[axis + 1 :])
                span = span // room * size
                if self.form in (None, WindowForm.POOL):
                    gaps[dim] = room - size
            if dims.scales[dim] == EXTENDS and self.iteration.work_slices[dim] > 1:
                spans[dim] = span, self.iteration.work_slices[dim]
        if self.op == RESTICKIFY:
            gaps |= self._short(view)
        if view.argument.allocation.kind is AllocationKind.LX:
            return PositionalFootprint(gaps, 0, {}, view.word_bytes)
        return PositionalFootprint(gaps, offset * view.word_bytes, spans, view.word_bytes)

    def _is_window(self, view: ArgumentView, dims: OperandDims, dim: str, axis: int) -> bool:
        """Return whether a dim may be part of a larger one: not rows that an index names, nor dims made up."""
        is_made_up = dims.is_index and dim == self.unit.index_stick
        return axis >= 0 and axis != view.indirect_axis and not is_made_up

    def _short(self, view: ArgumentView) -> dict[str, int]:
        """Return how much a restickify's plain dims lack of whole sticks of the other side: also a gap."""
        found: dict[str, int] = {}
        for dim, axis in view.axes.items():
            lacking = self.iteration.sizes[dim] - view.argument.device_size[axis.index]
            if dim != view.stick_dim and lacking > 0:
                found[dim] = lacking
        return found


def _whole_sticks(size: int, elements: int) -> int:
    return -(-size // elements) * elements
