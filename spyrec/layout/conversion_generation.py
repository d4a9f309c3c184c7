"""Making the loop nests of a copy from a layout (the algorithm of torch-spyre's ``generate_dci``).

Two things differ from torch-spyre, both of which copied wrongly there: the tile index of the stick follows the strides
of the tensor in host memory, not only those the layout was made for, and what does not divide is refused.
"""

from __future__ import annotations

import math
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, answered
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo, Direction
from spyrec.layout.tiling import HostTensor, Run, analyse, row_major_strides


@dataclass(frozen=True, slots=True)
class _Remainder:
    """The last, shorter pass over a tile: the sizes it sets, and where it starts (elements)."""

    sizes: tuple[tuple[int, int], ...]
    host_offset: int
    device_offset: int


class _Nest:
    """A nest under construction, dims outermost first; ``host`` has the strides the layout was made for."""

    def __init__(
        self, host: HostTensor, device_size: tuple[int, ...], stride_map: tuple[int, ...], runs: tuple[Run, ...]
    ) -> None:
        self.host = host
        self.device_size = device_size
        self.stride_map = stride_map
        self.runs = runs
        self.device_strides = row_major_strides(device_size)
        self.host_strides = [1 if stride == -1 else stride for stride in stride_map]
        # A stride of 0 in the layout replicates: every copy on the device is written, each read gives the element.
        self.sizes = [extent if stride == 0 else 1 for extent, stride in zip(device_size, stride_map, strict=True)]
        self.remainders: list[_Remainder] = []

    def follow(self, memory_strides: tuple[int, ...]) -> Diagnostic | None:
        """Replace the strides of the layout by those the tensor really has in host memory, or say why none will do."""
        for dim, stride in enumerate(self.stride_map):
            if stride > 0 and stride in self.host.strides:
                self.host_strides[dim] = memory_strides[self.host.strides.index(stride)]
        for run in self.runs:
            uneven = _unevenness(self.host, memory_strides, run)
            if uneven is not None:
                return uneven
            for tile in run.tiles:
                self.host_strides[tile.device_dim] = tile.step * memory_strides[run.last]
        return None

    def fill(self, run: Run) -> Diagnostic | None:
        """Set the loop sizes of one run's tiles, coarsest first, or say why they do not take its elements."""
        done = 1
        tiles = run.tiles
        position = 0
        while position < len(tiles):
            tile = tiles[position]
            if run.length % done != 0:
                return self.no_fit(run)
            current = run.length // done
            is_finest = position + 1 == len(tiles)
            if current < tile.step and not is_finest:  # over-padded: all of it lies in the first of these tiles
                self.sizes[tile.device_dim] = 1
                position += 1
                continue
            # Never less than what is left: finer tiles would fill up the count, with elements that have a place.
            if not tile.step <= current < (self.device_size[tile.device_dim] + 1) * tile.step:
                return self.no_fit(run)
            if current % tile.step == 0:
                self.sizes[tile.device_dim] = current // tile.step
                done *= self.sizes[tile.device_dim]
                position += 1
                continue
            if is_finest:
                return self.no_tiling(run, current, tile.step)
            passed = self.split(run, position, current)
            if isinstance(passed, Diagnostic):
                return passed
            done *= passed
            position += 2
        return None

    def split(self, run: Run, position: int, current: int) -> int | Diagnostic:
        """Cut a length that the tile does not divide into whole passes and one remainder; return elements done."""
        tile, finer = run.tiles[position], run.tiles[position + 1]
        whole, rest = divmod(current, tile.step)
        if rest % finer.step != 0 or tile.step % finer.step != 0:
            return self.no_tiling(run, current, tile.step)
        if whole >= self.device_size[tile.device_dim] or tile.step // finer.step > self.device_size[finer.device_dim]:
            return self.no_fit(run)
        self.sizes[tile.device_dim] = whole
        self.sizes[finer.device_dim] = tile.step // finer.step
        rest_of_finer = rest // finer.step
        self.remainders.append(
            _Remainder(
                ((tile.device_dim, 1), (finer.device_dim, rest_of_finer)),
                whole * self.host_strides[tile.device_dim],
                whole * self.device_strides[tile.device_dim],
            )
        )
        return current // finer.step

    def no_fit(self, run: Run) -> Diagnostic:
        dims = ", ".join(f"{self.device_size[tile.device_dim]} of step {tile.step}" for tile in run.tiles)
        fact = f"{run.length} elements of host dim {run.last} do not fill tiles {dims}"
        return Diagnostic("SPY0307", f"invalid device sizes and stride map: {fact}")

    def no_tiling(self, run: Run, length: int, step: int) -> Diagnostic:
        fact = f"invalid tiling: {length} elements of host dim {run.last} do not divide into tiles of {step}"
        return Diagnostic(
            "SPY0308", fact, hint="choose a tile that divides the dim, or one whose inner tile is the stick"
        )


def _unevenness(host: HostTensor, memory_strides: tuple[int, ...], run: Run) -> Diagnostic | None:
    """Folded dims must lie densely over each other in host memory too, else one stride cannot walk them."""
    for dim in range(run.first, run.last):
        outer, inner = memory_strides[dim], memory_strides[dim + 1]
        if host.shape[dim] != 1 and outer != inner * host.shape[dim + 1]:
            fact = f"a layout that folds dims {dim} and {dim + 1} cannot walk host strides {list(memory_strides)}"
            return Diagnostic("SPY0307", fact, hint="make the host tensor contiguous first")
    return None


def generate(
    host: HostTensor, memory_strides: tuple[int, ...], device_size: tuple[int, ...], stride_map: tuple[int, ...]
) -> list[CopyNest] | Diagnostic:
    """Return the nests of a copy from host to device, main nest first, or why there are none.

    ``host`` has the strides that ``stride_map`` was made for, ``memory_strides`` those of the tensor to copy.
    Reasons: SPY0307 where the layout does not hold such a tensor, SPY0308 where a tile does not divide its dim.
    """
    if 0 in host.shape:
        return []  # nothing to copy, whatever the layout
    runs = analyse(host, device_size, stride_map)
    if isinstance(runs, Diagnostic):
        return runs
    nest = _Nest(host, device_size, stride_map, runs)
    misfit = nest.follow(memory_strides)
    for run in runs:
        misfit = misfit or nest.fill(run)
    if misfit is not None:
        return misfit
    passes = [(list(nest.sizes), 0, 0)]
    for remainder in nest.remainders:
        for sizes, host_offset, device_offset in list(passes):
            shorter = list(sizes)
            for dim, size in remainder.sizes:
                shorter[dim] = size
            passes.append((shorter, host_offset + remainder.host_offset, device_offset + remainder.device_offset))
    lacking = _lacking(nest, [sizes for sizes, _, _ in passes])
    if lacking is not None:
        return lacking
    host_strides, device_strides = tuple(nest.host_strides[::-1]), nest.device_strides[::-1]
    return [
        CopyNest(tuple(sizes[::-1]), host_strides, device_strides, host_offset, device_offset)
        for sizes, host_offset, device_offset in passes
    ]


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """The host side of a copy: structure the layout was made for, where it lies in memory (elements), its format."""

    direction: Direction
    host: HostTensor
    memory_strides: tuple[int, ...]
    storage_offset: int
    host_format: DeviceFormat


def conversion_table(
    request: CopyRequest, device_size: tuple[int, ...], stride_map: tuple[int, ...], device_format: DeviceFormat
) -> DataConversionInfo:
    """Return the table of a copy; errors: the reasons of ``generate``. A scalar is a tensor of shape ``(1,)``."""
    host = request.host if request.host.shape else HostTensor((1,), (1,))
    nests = [
        replace(nest, source_offset=nest.source_offset + request.storage_offset)
        for nest in answered(generate(host, request.memory_strides or (1,), device_size, stride_map))
    ]
    host_shape, device_shape = host.shape[::-1], device_size[::-1]
    if request.direction is Direction.HOST_TO_DEVICE:
        ends = (request.host_format, device_format, tuple(nests), host_shape, device_shape)
    else:
        ends = (device_format, request.host_format, tuple(nest.reversed() for nest in nests), device_shape, host_shape)
    return DataConversionInfo(request.direction, *ends)


def _lacking(nest: _Nest, passes: list[list[int]]) -> Diagnostic | None:
    """Every element is copied exactly once (per replica): say so where a layout is too small for its tensor."""
    wanted = math.prod(run.length for run in nest.runs)
    wanted *= math.prod(nest.device_size[dim] for dim, stride in enumerate(nest.stride_map) if stride == 0)
    copied = sum(math.prod(sizes) for sizes in passes)
    if copied != wanted:
        layout = f"device_size {list(nest.device_size)} with stride_map {list(nest.stride_map)}"
        fact = f"{layout} holds {copied} of {wanted} elements of host shape {list(nest.host.shape)}"
        return Diagnostic("SPY0307", fact)
    return None
