"""Which device dims cut which host dim: the one analysis under coordinates, masks and copy loop nests.

A device dim with ``stride_map`` entry M belongs to the host dim whose stride H is the largest not above M; it steps
through that dim by ``M / H`` elements.  The device dims of one host dim form its tiles, coarsest first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor whose last dim is innermost; an extent of 0 counts as 1."""
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * max(shape[dim + 1], 1)
    return tuple(strides)


@dataclass(frozen=True, slots=True)
class HostTensor:
    """Shape and strides (in elements) of a tensor in host memory, dims outermost first."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """One device dim seen from the run of host dims it cuts: one step on it is ``step`` elements of that run."""

    device_dim: int
    step: int


@dataclass(frozen=True, slots=True)
class Run:
    """Host dims ``first`` to ``last`` that one list of tiles cuts together, read as one dim of ``length`` elements.

    More than one host dim is folded only where the outer ones lie densely over the last; ``tiles`` is coarsest first.
    """

    first: int
    last: int
    length: int
    tiles: tuple[Tile, ...]


@lru_cache(maxsize=1024)
def analyse(
    host: HostTensor, device_size: tuple[int, ...], stride_map: tuple[int, ...]
) -> tuple[Run, ...] | Diagnostic:
    """Return the runs of a layout, last host dim first, or why there are none.

    Reasons: SPY0307 where a host dim of several elements has no device dim to hold it, or a step is not whole.
    """
    if 0 in host.shape:
        return ()  # nothing lies anywhere
    owners = _owners(host, device_size, stride_map)
    runs: list[Run] = []
    last = len(host.shape) - 1
    while last >= 0:
        dims = [dim for dim in range(len(device_size)) if owners[dim] == last]
        if not dims:
            if host.shape[last] != 1 and host.strides[last] != 0:
                lacking = f"no device dim holds host dim {last} of {host.shape[last]} elements"
                return _mismatch(host, stride_map, lacking)
            last -= 1
            continue
        first = last
        while first > 0 and first - 1 not in owners and host.strides[first - 1] != 0:
            first -= 1
        run = _run(host, (first, last), dims, stride_map)
        if isinstance(run, Diagnostic):
            return run
        runs.append(run)
        last = first - 1
    return tuple(runs)


def _mismatch(host: HostTensor, stride_map: tuple[int, ...], note: str) -> Diagnostic:
    fact = f"stride_map {list(stride_map)} does not fit host shape {list(host.shape)} with strides {list(host.strides)}"
    return Diagnostic("SPY0307", fact, notes=(note,), hint="give the strides that the layout was made for")


def _run(
    host: HostTensor, dims: tuple[int, int], device_dims: list[int], stride_map: tuple[int, ...]
) -> Run | Diagnostic:
    first, last = dims
    for dim in range(first, last):
        is_dense = host.strides[dim] == host.strides[dim + 1] * host.shape[dim + 1]
        if host.shape[dim] != 1 and not is_dense:
            return _mismatch(host, stride_map, f"host dim {dim} does not lie densely over dim {dim + 1}")
    stride = host.strides[last]
    for device_dim in device_dims:
        if stride_map[device_dim] % stride != 0:
            note = f"stride {stride_map[device_dim]} is no multiple of {stride}, the stride of host dim {last}"
            return _mismatch(host, stride_map, note)
    # Of equal strides the dim closest to the end is the finer one; so the stick comes last, or there is none.
    ordered = sorted(device_dims, key=lambda dim: (-stride_map[dim], dim))
    tiles = tuple(Tile(dim, stride_map[dim] // stride) for dim in ordered)
    if any(finer.step > coarser.step for coarser, finer in pairwise(tiles)):
        return _mismatch(host, stride_map, f"the stick is not the finest of the dims that cut host dim {last}")
    return Run(first, last, math.prod(host.shape[first : last + 1]), tiles)


def _owners(host: HostTensor, device_size: tuple[int, ...], stride_map: tuple[int, ...]) -> list[int | None]:
    """Return for each device dim the host dim it cuts; ``None`` for those of one element, replicated or synthetic."""
    owners = [
        None if extent == 1 else _owner(host, stride) for extent, stride in zip(device_size, stride_map, strict=True)
    ]
    stick = owners[-1]
    if stick is None:
        return owners
    tile_stride = device_size[-1] * stride_map[-1]
    for dim, owner in enumerate(owners[:-1]):
        # The tile index of the stick may run over several host dims that lie densely over one another; its stride
        # then says nothing about the dim it starts in: (40, 60) in 38 sticks of 64 steps over 1.07 rows.
        if owner is None or stride_map[dim] != tile_stride or host.strides[owner] == tile_stride:
            continue
        if _can_fold(host, owner, stick):
            owners[dim] = stick
    return owners


def _can_fold(host: HostTensor, outer: int, inner: int) -> bool:
    return outer < inner and all(
        host.strides[dim] == host.strides[dim + 1] * host.shape[dim + 1] for dim in range(outer, inner)
    )


def _owner(host: HostTensor, stride: int) -> int | None:
    candidates = [dim for dim, size in enumerate(host.shape) if size != 1 and 0 < host.strides[dim] <= stride]
    return max(candidates, key=lambda dim: (host.strides[dim], -dim), default=None)


@dataclass(frozen=True, slots=True)
class Replica:
    """A host dim of stride 0 and the device dims (stride 0 too) that repeat its one element; coarsest first."""

    host_dim: int
    tiles: tuple[Tile, ...]


@lru_cache(maxsize=1024)
def replicas(
    host: HostTensor,
    device_size: tuple[int, ...],
    stride_map: tuple[int, ...],
    owners: tuple[int, ...] | None = None,
) -> tuple[Replica, ...]:
    """Return which device dims follow which expanded host dims: those of ``owners`` (a host dim each), where known.

    Else any choice holds the same numbers; this one takes equal extents first, in order, and the stick with its tile
    index for the dim that remains.
    """
    stick = len(device_size) - 1
    free = [dim for dim in range(stick) if stride_map[dim] == 0 and device_size[dim] > 1]
    expanded = [dim for dim, size in enumerate(host.shape) if size > 1 and host.strides[dim] == 0]
    found: list[Replica] = []
    if owners is not None:
        for host_dim in expanded:
            held = [dim for dim, owner in enumerate(owners) if owner == host_dim]
            # A dim with two device dims is that of the stick: tile index, then lane.
            tiles = tuple(Tile(dim, 1 if dim == held[-1] else device_size[stick]) for dim in held)
            found.append(Replica(host_dim, tiles))
        return tuple(found)
    for host_dim in expanded:
        same = next((dim for dim in free if device_size[dim] == host.shape[host_dim]), None)
        if same is not None:
            free.remove(same)
            found.append(Replica(host_dim, (Tile(same, 1),)))
        elif stride_map[stick] == 0:
            lanes = device_size[stick]
            tile_index = next((dim for dim in free if device_size[dim] * lanes >= host.shape[host_dim]), None)
            outer = () if tile_index is None else (Tile(tile_index, lanes),)
            if outer or host.shape[host_dim] <= lanes:
                found.append(Replica(host_dim, (*outer, Tile(stick, 1))))
    return tuple(found)
