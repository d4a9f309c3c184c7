"""Pools and convolutions, on the host: the axes that a window slides along are loaded whole, and cut into windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc_windows import slid_axes
from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import WindowForm
from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Doubles, Integers, Mover, Setting
from spyrec.emulator.geometry import core_firsts, window_elements, window_inside
from spyrec.emulator.operations.pointwise import constants_of
from spyrec.emulator.rules.races import combination_owners

Flags = npt.NDArray[np.bool_]
Point = Mapping[str, int]
Element = TypeVar("Element", bound=np.generic)

_MOST_ELEMENTS = 1 << 18
"""Results that are computed at once: what is made on the way stays in the processor's caches."""


@dataclass(frozen=True, slots=True)
class _Reach:
    """What the windows of one core take of the input.

    ``elements``: by axis ``[output, tap]`` the place in what is loaded, -1 for padding.  ``first_bytes``: how far
    behind the core's start what is loaded begins.
    """

    mover: Mover
    elements: Mapping[str, Integers]
    first_bytes: int


class Window:
    """One operation that slides a window over its first input; implements ``host.HostWork``.

    Arrays have an axis for the cores that are computed together, whose windows reach alike, and one per dim of the box,
    in its order: folded dims and those that an operand lacks are 1 long.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.form = device_operation(setting.superdsc.op_func_name).window
        self.constants = constants_of(setting)
        source, output = setting.inputs[0], setting.output
        self.folded = [dim for dim in setting.extents if not setting.extends(output, dim)]
        self.axes = slid_axes(setting.superdsc, source)
        self.reaches = self._reaches()
        self.weights = Mover(setting, setting.inputs[1], self._loaded(setting.inputs[1])) if self._has_weights else None
        self.result = Mover(setting, output, self._loaded(output))
        owners = combination_owners(setting)
        self.cohorts = [self._in_slice_order([core for core, own in enumerate(owners) if own == owner])
                        for owner in dict.fromkeys(owners)]  # fmt: skip

    @property
    def _has_weights(self) -> bool:
        return len(self.setting.inputs) > 1

    def _in_slice_order(self, cores: list[int]) -> list[int]:
        slices = self.setting.superdsc.core_work_slices
        return sorted(cores, key=lambda core: [slices[core][dim] for dim in self.folded])

    def _loaded(self, position: int) -> dict[str, int]:
        """Return how much of an operand is moved."""
        setting = self.setting
        return {dim: extent for dim, extent in setting.extents.items() if setting.extends(position, dim)}

    def _reaches(self) -> list[_Reach]:
        """Return what each core loads: of an axis that a window slides along all that its own windows reach.

        Cores whose windows reach alike share it; in a divided axis only outer ones have padding.
        """
        setting, source = self.setting, self.setting.inputs[0]
        superdsc, geometry = setting.superdsc, setting.geometries[source]
        places = window_elements(superdsc, source)
        inside, firsts = window_inside(superdsc, source, geometry.extents), core_firsts(superdsc, source)
        known: dict[tuple[object, ...], _Reach] = {}
        found: list[_Reach] = []
        for core in range(setting.cores):
            taken = {axis: places[axis][inside[axis][core]] for axis in places}
            # windows of nothing but padding: any element of the axis may be loaded
            lows = {axis: int(own.min()) if own.size else -int(firsts[axis][core]) for axis, own in taken.items()}
            key = (tuple(lows.values()), *(inside[axis][core].tobytes() for axis in places))
            if key not in known:
                loaded = self._loaded(source)
                counts = {axis: int(own.max()) + 1 - lows[axis] if own.size else 1 for axis, own in taken.items()}
                mover = Mover(setting, source, {dim: counts.get(dim, extent) for dim, extent in loaded.items()})
                elements = {axis: np.where(inside[axis][core], places[axis] - lows[axis], -1) for axis in places}
                first_bytes = sum(geometry.offset(axis, low) for axis, low in lows.items())
                known[key] = _Reach(mover, elements, first_bytes * setting.expansion)
            found.append(known[key])
        return found

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once."""
        totals: dict[int, npt.NDArray[np.floating]] = {}
        for cores in self._groups():
            totals.update(zip(cores, self._of_cores(starts, cores), strict=True))
        for members in self.cohorts:
            total = reduce(np.add, [totals[core] for core in members])
            shape = [extent if self.setting.extends(self.setting.output, dim) else 1
                     for dim, extent in self.setting.extents.items()]  # fmt: skip
            patterns = self.setting.codec(self.setting.output).encode(
                np.broadcast_to(total, shape).astype(np.float64).reshape(-1)
            )
            self.result.store(starts[self.setting.output, members[:1]], patterns[None, :])
        return NO_DATA_TRAFFIC

    def _groups(self) -> list[list[int]]:
        """Return the cores whose windows reach alike, as many together as have room."""
        alike: dict[int, list[int]] = {}
        for core, reach in enumerate(self.reaches):
            alike.setdefault(id(reach), []).append(core)
        sizes = (extent for dim, extent in self.setting.extents.items() if dim not in self.folded)
        together = max(1, _MOST_ELEMENTS // math.prod(sizes))
        return [cores[at : at + together] for cores in alike.values() for at in range(0, len(cores), together)]

    def _values(self, mover: Mover, starts: Integers) -> Doubles:
        """Return what stands at the starts of some cores."""
        patterns = mover.load(starts)
        shape = [mover.extents.get(dim, 1) for dim in self.setting.extents]
        return self.setting.codec(mover.position).decode(patterns).reshape(-1, *shape)

    def _of_cores(self, starts: Integers, cores: list[int]) -> npt.NDArray[np.floating]:
        """Return the sums of some cores: of a convolution in float32, of others in float64."""
        reach = self.reaches[cores[0]]
        source = self._values(reach.mover, starts[reach.mover.position, cores] + reach.first_bytes)
        slid = _Slid(self, source, reach.elements)
        weights = None if self.weights is None else self._values(self.weights, starts[self.weights.position, cores])
        ranges = [range(self.setting.extents[dim]) for dim in self.folded]
        points: list[Point] = [dict(zip(self.folded, point, strict=True)) for point in product(*ranges)]
        with np.errstate(all="ignore"):
            if self.form is WindowForm.CONVOLUTION:
                assert weights is not None
                return self._convolved(slid, weights, points, self._absent(starts, cores))
            return self._summed(slid, weights, points)

    def _summed(self, slid: _Slid, weights: Doubles | None, points: list[Point]) -> Doubles:
        total = np.zeros([1] * (len(self.setting.extents) + 1))
        for point in points:
            element = slid.at(point)
            total = total + (element if weights is None else element * self.taken(weights, point))
        return total * self.constants["nmap"] if weights is None else total

    def _convolved(self, slid: _Slid, weights: Doubles, points: list[Point], absent: Flags) -> npt.NDArray[np.float32]:
        total = np.zeros((), np.float32)
        windows = {axis.window_dim for axis in self.axes.values()}
        tapped: dict[tuple[int, ...], Doubles] = {}  # by the taps, all channels side by side
        is_any_absent = bool(absent.any())
        for point in points:
            taps = {dim: at for dim, at in point.items() if dim in windows}
            key = tuple(taps.values())
            if key not in tapped:
                tapped[key] = slid.at(taps)
            element = self.taken(tapped[key], {dim: at for dim, at in point.items() if dim not in self.axes})
            if is_any_absent:
                element = np.where(self.taken(absent, point), 0.0, element)
            total = multiply_add(element, self.taken(weights, point), total)
        return total

    def taken(self, array: npt.NDArray[Element], point: Point) -> npt.NDArray[Element]:
        """Return an operand at one point of the folded dims, along which it keeps an axis of extent 1."""
        places = [
            slice(point[dim], point[dim] + 1) if dim in point and extent > 1 else slice(None)
            for dim, extent in zip(self.setting.extents, array.shape[1:], strict=True)
        ]
        return array[(slice(None), *places)]

    def _absent(self, starts: Integers, cores: list[int]) -> Flags:
        """Return the channels that count as zero: of the last stick of them, where every weight of every core is zero.

        They may be padding, and what the input holds there is undefined.
        """
        setting, superdsc = self.setting, self.setting.superdsc
        source, weights = setting.inputs[0], setting.inputs[1]
        dims, stick_dim = list(setting.extents), setting.geometries[source].stick_dim
        if stick_dim is None or stick_dim not in self.folded or self.weights is None:
            return np.zeros([len(cores), *(1 for _ in dims)], bool)
        slices, width = superdsc.core_work_slices, setting.extents[stick_dim]
        shape = [-1 if dim == stick_dim else 1 for dim in dims]
        last = superdsc.iteration[stick_dim] - setting.geometries[source].stick_size
        shared = [dim for dim in dims if setting.extends(source, dim) and setting.extends(weights, dim)]
        columns = tuple(axis for axis, dim in enumerate(dims, 1) if setting.extends(weights, dim) and dim not in shared)
        # cores that have one slice of the shared dims look for theirs together
        found: dict[tuple[int, ...], Flags] = {}
        for core in cores:
            own = tuple(slices[core][dim] for dim in shared)
            if own in found:
                continue
            is_last = (slices[core][stick_dim] * width + np.arange(width) >= last).reshape(shape)
            if is_last.any():
                others = [at for at in range(setting.cores) if tuple(slices[at][dim] for dim in shared) == own]
                values = self._values(self.weights, starts[weights, others])
                is_last = is_last & np.all(np.all(values == 0, axis=columns, keepdims=True), axis=0)
            found[own] = is_last
        absent = [found[tuple(slices[core][dim] for dim in shared)] for core in cores]
        return np.stack(np.broadcast_arrays(*absent))


class _Slid:
    """What a core has loaded of the input, under its windows."""

    def __init__(self, window: Window, source: Doubles, elements: Mapping[str, Integers]) -> None:
        self._window, self._source, self._elements = window, source, elements

    def at(self, point: Point) -> Doubles:
        """Return the element of each window at one point of the folded dims; padding is zero."""
        window, dims = self._window, list(self._window.setting.extents)
        found = window.taken(self._source, {dim: at for dim, at in point.items() if dim not in self._elements})
        for axis, elements in self._elements.items():
            wanted = elements[:, point.get(window.axes[axis].window_dim, 0)]
            found = np.take(found, np.maximum(wanted, 0), dims.index(axis) + 1)
            shape = [1, *(-1 if dim == axis else 1 for dim in dims)]
            found = np.where((wanted >= 0).reshape(shape), found, 0.0)
        return found


def multiply_add(x: Doubles, y: Doubles, total: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return ``x * y + total``, rounded once to float32; x and y are values of float32.

    The product is exact in float64.  Where the sum is not, it becomes the neighbour whose last bit is set (rounding to
    odd), and rounding that to float32 is rounding the exact sum.
    """
    product_, addend = x * y, total.astype(np.float64)
    near = product_ + addend
    part = near - product_
    lost = (product_ - (near - part)) + (addend - part)
    if not lost.any():
        return near.astype(np.float32)
    is_even = near.view(np.int64) % 2 == 0
    moves = np.isfinite(near) & (lost != 0) & is_even
    return np.where(moves, np.nextafter(near, np.copysign(np.inf, lost)), near).astype(np.float32)
