"""How much of an operand's buffer the iteration covers: gaps, window offsets, steps between slices.

Strides come from the buffer (``device_size``), extents from the iteration; what does not fit is refused, because the
executor of a SuperDSC has no field that could tell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import EXTENDS, OperandDims
from spyrec.codegen.opspec import AllocationKind
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.target import STICK_BYTES, Target


@dataclass(frozen=True, slots=True)
class Footprint:
    """Where an operand lies relative to its allocation, per core.

    ``back_gap`` is in elements of the dim.  ``offset_bytes`` is the start of core slices 0.  ``slice_bytes`` are the
    steps from one slice to the next along each divided dim; a core starts at the sum.
    """

    back_gap: Mapping[str, int]
    offset_bytes: int
    slice_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FootprintContext:
    """What all operands of one operation share: the space before and after stick padding, and the device.

    ``strides``, of one operand: dims that a window slides along, whose extent is not the iteration's, with the entries
    that a step of the iteration moves there.
    """

    ragged: IterationSpace
    iteration: IterationSpace
    target: Target
    is_restickify: bool
    other_stick_sizes: Mapping[str, int]
    strides: Mapping[str, int] = field(default_factory=dict[str, int])


class FootprintReader:
    """Works out the footprint of one operand.  Errors: SPY0509, SPY0511, SPY0512, SPY0516 to SPY0520, SPY0529."""

    def __init__(
        self, view: ArgumentView, dims: OperandDims, context: FootprintContext, location: Location | None
    ) -> None:
        self._view = view
        self._dims = dims
        self._context = context
        self._location = location
        self._carried = [dim for dim in view.dim_order if dim in view.axes and dims.scales[dim] == EXTENDS]

    def read(self) -> Footprint:
        """Return the footprint."""
        gaps = self._gaps()
        self._check_slices()
        is_lx = self._view.argument.allocation.kind is AllocationKind.LX
        footprint = self._lx_footprint(gaps) if is_lx else self._device_footprint(gaps)
        self._check_clobbering(gaps)
        return footprint

    def _gaps(self) -> dict[str, int]:
        gaps: dict[str, int] = {}
        short: dict[str, int] = {}
        for dim in (dim for dim in self._dims.stride_order if dim in self._view.axes and dim in self._carried):
            if dim in self._context.strides:
                continue
            gap = self._window_gap(dim)
            if gap > 0:
                gaps[dim] = gap
            elif gap < 0:
                short[dim] = -gap
        return gaps | short

    def _window_gap(self, dim: str) -> int:
        """Return what the buffer has beyond the iterated extent; negative for a ragged plain dim of a restickify."""
        view, context = self._view, self._context
        axis = view.axes[dim]
        unit = view.elements_per_stick if dim == view.stick_dim else 1
        covered = _round_up(context.iteration.sizes[dim], unit)
        room, begin = view.extent(dim), axis.offset * unit
        other = context.other_stick_sizes.get(dim, 0) if context.is_restickify and dim != view.stick_dim else 0
        ragged = context.ragged.sizes[dim]
        if other and ragged < covered and room == ragged and begin == 0:
            return room - covered
        if begin < 0 or begin + covered > room:
            raise self._outside(dim, begin, covered, room)
        if other and 0 < room - covered < other and context.iteration.work_slices[dim] == 1:
            raise refuse(
                "SPY0517",
                f'a restickify reads {covered} of {room} entries along "{dim}"; a gap of {room - covered}, less than '
                f"the stick of {other} elements of the other side, would be taken for padding",
                self._location,
                hint="copy the slice into a tensor of its own first",
            )
        return room - covered

    def _outside(self, dim: str, begin: int, covered: int, room: int) -> SpyrecError:
        ragged = self._context.ragged.sizes[dim]
        if begin < 0 or begin + ragged > room:
            fact = f'coordinates {begin} to {begin + ragged - 1} along "{dim}" leave the {room} entries of the operand'
            return refuse("SPY0509", fact, self._location)
        return refuse(
            "SPY0516",
            f'operand has room for {room - begin} elements along "{dim}", the operation iterates {covered}: {ragged} '
            "rounded up to whole sticks",
            self._location,
            hint="allocate the operand up to the same whole sticks as the other operands",
        )

    def _check_slices(self) -> None:
        context = self._context
        if self._dims.is_index:
            self._check_index_slices()
            return
        self._check_pair_slices()
        dim = self._view.stick_dim
        if dim is None or context.iteration.work_slices[dim] == 1 or self._dims.scales.get(dim) != EXTENDS:
            return
        extent, elements = context.iteration.core_extent(dim), self._view.elements_per_stick
        if extent % elements:
            raise refuse(
                "SPY0512",
                f'each core gets {extent} elements along the stick dim "{dim}", no whole number of sticks of '
                f"{elements} elements",
                self._location,
                hint="choose a work division that gives every core whole sticks",
            )

    def _check_pair_slices(self) -> None:
        """Check that no core begins or ends between the rows of a pair, wherever the window lies."""
        if not self._dims.has_pairs:
            return
        dim = self._dims.stick_dims[0]
        axis, extent = self._view.axes.get(dim), self._context.iteration.core_extent(dim)
        first = 0 if axis is None else axis.offset
        if extent % 2 or first % 2:
            raise refuse(
                "SPY0512",
                f'each core gets {extent} rows along "{dim}" from row {first} on, and a stick holds pairs of them',
                self._location,
                hint="choose windows and a work division of whole pairs of rows",
            )

    def _check_index_slices(self) -> None:
        dim = self._dims.stick_dim
        extent, elements = self._context.iteration.core_extent(dim), self._view.elements_per_stick
        if self._context.iteration.work_slices[dim] == 1 or extent % elements == 0:
            return
        axis = self._view.axes.get(dim)
        adjacent = axis is None or self._view.unit_elements(axis.index) == elements
        if elements % extent or not (adjacent or self._context.iteration.sizes[dim] <= elements):
            raise refuse(
                "SPY0512",
                f"each core gets {extent} of the index tensor's elements, which neither fill whole sticks of "
                f"{elements} nor divide one in a single row of sticks",
                self._location,
            )

    def _device_footprint(self, gaps: Mapping[str, int]) -> Footprint:
        view, iteration = self._view, self._context.iteration
        units = {dim: view.unit_elements(view.axes[dim].index) * view.word_bytes for dim in self._carried}
        offset = sum(view.axes[dim].offset * unit for dim, unit in units.items())
        self._check_span(units)
        slices = {dim: self._slice_bytes(dim, unit) for dim, unit in units.items() if iteration.work_slices[dim] > 1}
        return Footprint(gaps, offset, slices)

    def _slice_bytes(self, dim: str, unit_bytes: int) -> int:
        extent = self._context.iteration.core_extent(dim)
        if dim != self._view.stick_dim:
            return extent * self._context.strides.get(dim, 1) * unit_bytes
        if extent % self._view.elements_per_stick:
            # An index tensor divided below one stick: its columns are adjacent only where a stick is not split.
            return extent * self._view.word_bytes
        return extent // self._view.elements_per_stick * unit_bytes

    def _check_span(self, units: Mapping[str, int]) -> None:
        """Check the bytes between the first and the last stick that one core touches."""
        view = self._view
        span = STICK_BYTES
        for dim, unit in units.items():
            # a restickify iterates whole sticks of a dim that the tensor may have less of
            extent = min(self._context.iteration.core_extent(dim), view.extent(dim))
            span += (_ceil(extent, view.elements_per_stick if dim == view.stick_dim else 1) - 1) * unit
        if view.indirect_axis is not None:
            rows = view.argument.device_size[view.indirect_axis]
            span += (rows - 1) * view.unit_elements(view.indirect_axis) * view.word_bytes
        if span > self._context.target.span_limit_bytes:
            raise refuse(
                "SPY0520",
                f"one core touches a span of {span} bytes of the operand, at most "
                f"{self._context.target.span_limit_bytes} are possible",
                self._location,
                hint="divide the outer dims among more cores",
            )

    def _lx_footprint(self, gaps: Mapping[str, int]) -> Footprint:
        """Return the footprint in a core's own memory, which holds the core's slice densely."""
        view, iteration = self._view, self._context.iteration
        offset, unit = 0, STICK_BYTES
        for dim in self._carried:
            if gaps.get(dim) and iteration.work_slices[dim] > 1:
                raise refuse(
                    "SPY0518",
                    f'a window of an LX operand along "{dim}", which {iteration.work_slices[dim]} slices divide, has '
                    "no meaning in the memories of the cores",
                    self._location,
                    hint="divide another dim, or copy the window into a tensor of its own",
                )
            elements = view.elements_per_stick if dim == view.stick_dim else 1
            offset += view.axes[dim].offset * unit
            slid = dim in self._context.strides
            unit *= view.extent(dim) if slid else _ceil(iteration.core_extent(dim) + gaps.get(dim, 0), elements)
        end = view.argument.allocation.start_bytes + unit
        if end > self._context.target.lx_bytes:
            raise refuse(
                "SPY0529",
                f"operand ends at byte {end} of the scratchpad, a core has {self._context.target.lx_bytes}",
                self._location,
            )
        return Footprint(gaps, offset, {})

    def _check_clobbering(self, gaps: Mapping[str, int]) -> None:
        """Check that a store into a window of ragged width does not reach the neighbour's lanes."""
        view = self._view
        dim = view.stick_dim
        if view.argument.is_input or view.argument.ends_in_padding or dim is None or dim not in gaps:
            return
        ragged, begin = self._context.ragged.sizes[dim], view.axes[dim].offset * view.elements_per_stick
        covered = _round_up(self._context.iteration.sizes[dim], view.elements_per_stick)
        if ragged % view.elements_per_stick and begin + covered < view.extent(dim):
            raise refuse(
                "SPY0519",
                f'the output window of {ragged} elements along "{dim}" ends inside a stick of '
                f"{view.elements_per_stick} elements; the rest of that stick belongs to its neighbour and would be "
                "overwritten",
                self._location,
                hint="give the window whole sticks, or let it end in the last stick of the buffer",
            )


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    return _ceil(value, unit) * unit
