"""The tile-major layout: whole tiles one after the other, each as the program was compiled for it."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.bundle.tile_contract import TileArgument
from spyrec.diagnostics import Diagnostic, answered
from spyrec.layout.device_layout import DeviceLayout, layout_holding
from spyrec.layout.tiling import HostTensor, analyse, row_major_strides
from spyrec.runtime.launch.address_levels import address_runs, are_alike


def tile_major_layout(argument: TileArgument, shape: Sequence[int], order: Sequence[str]) -> DeviceLayout | None:
    """Return the device layout of a tensor of ``shape`` in which a tiled launch only moves the base of this argument.

    ``order``: the loops by name, outermost first, in which tiles lie.  ``None`` where the tile does not divide
    the shape, its last stick is padded, or no stride map says so.
    """
    compiled = argument.layout
    if argument.axes is None or any(whole % tile for whole, tile in zip(shape, argument.shape, strict=True)):
        return None
    cut = [dim for dim, (whole, tile) in enumerate(zip(shape, argument.shape, strict=True)) if whole > tile]
    if any(argument.whole_sticks(dim) > argument.shape[dim] for dim in cut):
        return None
    host = row_major_strides(tuple(shape))
    # a device dim that no host dim of the tile fills holds one element, and no copies of it
    stride_map = [0 if stride == 0 else -1 for stride in compiled.stride_map]
    for run in answered(analyse(compiled.host_tensor, compiled.device_size, compiled.stride_map)):
        if sum(argument.shape[dim] > 1 for dim in range(run.first, run.last + 1)) > 1:
            return None
        for tile in run.tiles:
            stride_map[tile.device_dim] = tile.step * host[run.last]
    outer = [
        (shape[dim] // argument.shape[dim], argument.shape[dim] * host[dim])
        for dim in (argument.axes.index(name) for name in order if name in argument.axes)
        if shape[dim] > argument.shape[dim]
    ]
    sizes = (*(trips for trips, _ in outer), *compiled.device_size)
    strides = (*(stride for _, stride in outer), *_unit_strides(stride_map, compiled))
    layout = layout_holding(HostTensor(tuple(shape), host), argument.dtype, sizes, strides, compiled.device_dtype)
    if isinstance(layout, Diagnostic):
        return None
    # A stride map can mean two cuts where strides coincide: only what was meant is worth a hint.
    return layout if are_alike(address_runs(layout), address_runs(compiled), argument.shape) else None


def _unit_strides(stride_map: Sequence[int], compiled: DeviceLayout) -> list[int]:
    """Return the stride map with device dims of one element as they were: they lie nowhere else."""
    return [
        before if extent == 1 else stride
        for stride, before, extent in zip(stride_map, compiled.stride_map, compiled.device_size, strict=True)
    ]
