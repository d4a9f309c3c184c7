"""Where a host element lies in device memory: read from ``device_size`` and ``stride_map`` alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from spyrec.ir.device_access import DeviceAccess, DeviceDim, Variable, VariablePart
from spyrec.layout.device_layout import DeviceLayout


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def element_address(layout: DeviceLayout, shape: Sequence[int], index: Sequence[int]) -> int:
    """Return the place, in elements, of one element of a row-major host tensor.

    A device dim of stride s belongs to the host dim with the largest stride up to s; within that host dim the device
    dims are the digits of the index, the one with the largest stride takes what is left.
    """
    strides = _strides(shape)
    steps: dict[int, list[int]] = {}
    owners: list[tuple[int, int] | None] = []
    for extent, stride in zip(layout.device_size, layout.stride_map, strict=True):
        fitting = [dim for dim, size in enumerate(shape) if size > 1 and 0 < strides[dim] <= stride]
        if not fitting or extent == 1:
            owners.append(None)
            continue
        owner = max(fitting, key=lambda dim: strides[dim])
        assert stride % strides[owner] == 0
        owners.append((owner, stride // strides[owner]))
        steps.setdefault(owner, []).append(stride // strides[owner])
    place = 0
    for extent, owner in zip(layout.device_size, owners, strict=True):
        position = 0
        if owner is not None:
            dim, step = owner
            coarser = min((other for other in steps[dim] if other > step), default=None)
            position = index[dim] // step if coarser is None else index[dim] % coarser // step
        assert 0 <= position < extent, (str(layout), shape, index)
        place = place * extent + position
    return place


def accessed_address(form: DeviceAccess, variables: Sequence[Variable], index: Sequence[int]) -> int:
    """Return the place, in elements, that an operand in device form touches at one iteration index."""
    values = {number: index[item.dim] // item.divisor % item.size for number, item in enumerate(variables)}
    place = 0
    for dim in form.dims:
        position = dim.offset + _walked(dim, values, form.lane_extent)
        assert 0 <= position < dim.extent, (form, variables, index)
        place = place * dim.extent + position
    return place


def _walked(dim: DeviceDim, values: Mapping[int, int], lanes: int) -> int:
    if dim.variable is None:
        return 0
    value = values[dim.variable]
    return {VariablePart.WHOLE: value, VariablePart.TILE: value // lanes, VariablePart.LANE: value % lanes}[dim.part]
