"""Where a window that slides along an axis of an operand takes its elements, in pools and in convolutions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import PaddingKind, SuperDsc
from spyrec.dataclass import dataclass

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SlidAxis:
    """What the windows of one core take along one axis: arrays with an axis per dim of the box.

    They are as long as the box along the axis and along its window's dim, and 1 long along others.

    ``elements``: places behind the one that the core starts at, for padding that of the axis's first element.
    ``is_inside``: whether the axis has such an element; what it has not is padding, and counts as zero.
    """

    elements: Integers
    is_inside: Flags


def slid_axis(superdsc: SuperDsc, axis: str, extent: int, core: int, box: Mapping[str, int]) -> SlidAxis:
    """Return what the windows of the ``core``th core take along an axis of ``extent`` elements in memory.

    Element k of the window at output o is element ``o * stride + k * dilation - pad_front`` of the axis.  A core starts
    at the element of its first output's step, wherever its first window reaches: windows of neighbours overlap, and
    each core reads what its own ones need, on both sides of its start.  What lies before or behind the axis is padding.
    Where memory holds the padding (``padded_wzeropad``) the axis begins with it, and windows read what is there.
    """
    sizes = superdsc.padding_sizes[axis]
    outputs, taps = (
        np.arange(box[counted]).reshape([-1 if dim == counted else 1 for dim in box])
        for counted in (axis, sizes.window_dim)
    )
    place = outputs * sizes.stride + taps * sizes.dilation
    if superdsc.operands[superdsc.compute.inputs[0]].padding.get(axis) is not PaddingKind.WITH_ZEROS:
        place = place - sizes.pad_front
    elif sizes.unneeded is not None:
        place = place + sizes.unneeded.front
    start = superdsc.core_work_slices[core][axis] * superdsc.core_extent[axis] * sizes.stride
    is_inside = (start + place >= 0) & (start + place < extent)
    return SlidAxis(np.where(is_inside, place, -start), is_inside)
