"""Device layouts: where in device memory each element of a tensor lies (seed 004's ``SpyreTensorLayout``).

Device memory is row-major over ``device_size``; the last device dim is the stick of 128 bytes.  ``stride_map`` holds
for each device dim the host elements that one step on it advances: 0 replicates, -1 has no host counterpart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, SpyrecError, answered, refuse
from spyrec.hardware.dtypes import DeviceFormat, DType, is_convertible
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.conversion_generation import CopyRequest, conversion_table
from spyrec.layout.conversion_table import DataConversionInfo, Direction
from spyrec.layout.rules import (
    default_formats,
    default_sizes,
    device_format,
    elements_per_stick,
    fitting_host,
    inferred_host,
    integers,
    misfit_of_device_side,
    require_disjoint,
    sizes_of,
)
from spyrec.layout.rules import host_dtype as host_dtype_named
from spyrec.layout.tiling import HostTensor, Replica, Run, Tile, analyse, replicas, row_major_strides

_MAX_MASK_ELEMENTS = 1 << 30

_HOST_DTYPES: dict[DeviceFormat, DType] = {
    DeviceFormat.SEN169_FP16: DType.FLOAT16,
    DeviceFormat.IEEE_FP32: DType.FLOAT32,
    DeviceFormat.IEEE_INT32: DType.INT32,
    DeviceFormat.SENINT8: DType.INT8,
    DeviceFormat.SENINT16: DType.INT16,
    DeviceFormat.SENUINT32: DType.UINT8,
    DeviceFormat.SEN143_FP8: DType.FLOAT8_E4M3FN,
    DeviceFormat.SEN152_FP8: DType.FLOAT8_E5M2FNUZ,
}
"""The host dtype a copy takes where none is named."""


@dataclass(frozen=True, slots=True)
class HostSide:
    """What a layout knows of the host: the tensor and dtype it was made for, where it was told."""

    tensor: HostTensor | None = None
    dtype: DType | None = None
    owners: tuple[int, ...] | None = None
    """Of a default layout: the host dim that each device dim belongs to."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DeviceLayout:
    """The layout of one tensor in device memory: a value, compared by its first three fields.

    ``device_size`` in elements, outermost first, the last one a full stick; ``stride_map`` of the same length, in
    host elements; ``device_dtype`` a format with a stick geometry.  ``host_shape``, ``host_strides`` and
    ``host_dtype`` describe the host tensor it was made for; they serve the methods that speak of host indices, and do
    not count in comparisons: layouts of one device form are one layout.

    Errors: SPY0301 no stick geometry, SPY0302 lengths differ, SPY0305 a negative number or an empty tensor, SPY0306 the
    last extent is no stick, SPY0307 and SPY0308 places overlap or the layout does not hold such a host tensor, SPY0319
    more than 2**62 elements.
    """

    device_size: tuple[int, ...]
    stride_map: tuple[int, ...]
    device_dtype: DeviceFormat
    _side: HostSide = field(compare=False)

    def __init__(  # noqa: PLR0913 -- the public form: three fields of the layout, three of the host tensor
        self,
        device_size: Sequence[int],
        stride_map: Sequence[int],
        device_dtype: DeviceFormat | str,
        host_shape: Sequence[int] | None = None,
        host_strides: Sequence[int] | None = None,
        host_dtype: DType | str | None = None,
    ) -> None:
        sizes = sizes_of("device_size", device_size)
        strides = integers("stride_map", stride_map, -1)
        stick_format = device_format(device_dtype)
        misfit = misfit_of_device_side(sizes, strides, stick_format)
        if misfit is not None:
            raise SpyrecError([misfit])
        host = None
        if host_shape is not None:
            given = None if host_strides is None else integers("host_strides", host_strides, 0)
            host = answered(fitting_host(sizes, strides, sizes_of("host_shape", host_shape), given))
        dtype = None if host_dtype is None else host_dtype_named(host_dtype)
        # The class is frozen: its own constructor is the one place that sets fields.
        object.__setattr__(self, "device_size", sizes)
        object.__setattr__(self, "stride_map", strides)
        object.__setattr__(self, "device_dtype", stick_format)
        object.__setattr__(self, "_side", HostSide(host, dtype))

    @classmethod
    def default(
        cls,
        shape: Sequence[int],
        dtype: DType | str,
        stride: Sequence[int] | None = None,
        dim_order: Sequence[int] | None = None,
    ) -> DeviceLayout:
        """Return the layout that a tensor of this host shape and dtype gets.

        ``stride`` (elements; default row-major) may pitch, permute or, with 0, expand.  ``dim_order`` is a permutation
        of the dims, stick last, the first of it moved next to the stick; one more entry, -1, puts one element into
        each stick.
        Errors: SPY0301 dtype without device form, SPY0302 lengths, SPY0303 more than 6 dims, SPY0304 no permutation,
        SPY0305 a negative number or an empty tensor, SPY0309 overlapping strides.
        """
        stick_format, named = default_formats(dtype)
        sizes = sizes_of("shape", shape)
        strides = row_major_strides(sizes) if stride is None else integers("stride", stride, 0)
        if len(strides) != len(sizes):
            raise refuse("SPY0302", f"{len(strides)} strides for {len(sizes)} dims of shape {list(sizes)}")
        order = tuple(range(len(sizes))) if dim_order is None else integers("dim_order", dim_order, -1)
        host = HostTensor(sizes, strides)
        device_size, stride_map, owners = default_sizes(host, order, elements_per_stick(stick_format))
        require_disjoint(host)
        # Not through host_shape: these strides are right by construction.
        layout = cls(device_size, stride_map, stick_format)
        object.__setattr__(layout, "_side", HostSide(host, named, owners))
        return layout

    def with_host(
        self, shape: Sequence[int], strides: Sequence[int] | None = None, dtype: DType | str | None = None
    ) -> DeviceLayout:
        """Return the same layout for another host tensor; strides default to those that the layout fits."""
        named = dtype or self._side.dtype
        return DeviceLayout(self.device_size, self.stride_map, self.device_dtype, shape, strides, named)

    @property
    def elements_per_stick(self) -> int:
        """Elements in one stick of 128 bytes."""
        return self.device_size[-1]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the tensor takes: whole sticks."""
        return STICK_BYTES * math.prod(self.device_size[:-1])

    @property
    def host_tensor(self) -> HostTensor:
        """Shape and strides of the host tensor: those given, or the largest tensor without padding that fits."""
        return self._side.tensor or answered(inferred_host(self.device_size, self.stride_map))

    @property
    def host_shape(self) -> tuple[int, ...]:
        """Shape of the host tensor, see ``host_tensor``."""
        return self.host_tensor.shape

    @property
    def host_strides(self) -> tuple[int, ...]:
        """Strides of the host tensor in elements, see ``host_tensor``."""
        return self.host_tensor.strides

    @property
    def padding_fraction(self) -> float:
        """The part of the device memory, 0 to 1, that holds no element of the host tensor."""
        elements = math.prod(self.device_size)
        return 1.0 - math.prod(self.host_shape) / elements if elements else 0.0

    def device_strides(self) -> tuple[int, ...]:
        """Return the distance in elements between neighbours along each device dim."""
        return row_major_strides(self.device_size)

    def device_coordinate(self, host_index: Sequence[int]) -> tuple[int, ...]:
        """Return the device coordinate of a host index; errors SPY0310 when the index is not in the tensor."""
        index = _checked_index("host index", host_index, self.host_shape)
        coordinate = [0] * len(self.device_size)
        for run in self._runs():
            rest = _flat_index(index[run.first : run.last + 1], self.host_shape[run.first : run.last + 1])
            for tile in run.tiles:
                coordinate[tile.device_dim], rest = divmod(rest, tile.step)
        for replica in self._replicas():
            rest = index[replica.host_dim]
            for tile in replica.tiles:
                coordinate[tile.device_dim], rest = divmod(rest, tile.step)
        return tuple(coordinate)

    def host_index(self, device_coordinate: Sequence[int]) -> tuple[int, ...] | None:
        """Return the host index of the element at a device coordinate, ``None`` for padding.

        A coordinate of a replicated dim (stride 0) that follows no host dim counts as 0.
        Errors: SPY0310 when the coordinate is not in the layout.
        """
        coordinate = _checked_index("device coordinate", device_coordinate, self.device_size)
        index = [0] * len(self.host_shape)
        for run in self._runs():
            position = sum(coordinate[tile.device_dim] * tile.step for tile in run.tiles)
            if position >= run.length:
                return None
            for dim in range(run.last, run.first - 1, -1):
                position, index[dim] = divmod(position, self.host_shape[dim])
        for replica in self._replicas():
            index[replica.host_dim] = sum(coordinate[tile.device_dim] * tile.step for tile in replica.tiles)
        if any(entry >= size for entry, size in zip(index, self.host_shape, strict=True)):
            return None
        home = self.device_coordinate(index)
        is_home = all(
            at == want or stride == 0 for at, want, stride in zip(coordinate, home, self.stride_map, strict=True)
        )
        return tuple(index) if is_home else None

    def host_indices(
        self, element_offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the host indices ``[element, dim]`` of elements, and which of these are any and no padding.

        ``element_offsets``: distances in elements from the start of the tensor, inside of it.  Each index is what
        :meth:`host_index` gives; of padding it means nothing.
        """
        coordinates = [np.zeros_like(element_offsets)] * len(self.device_size)
        rest = element_offsets
        for dim, stride in enumerate(self.device_strides()):
            coordinates[dim], rest = np.divmod(rest, stride)
        indices = np.zeros((len(element_offsets), len(self.host_shape)), np.int64)
        is_element = np.ones(len(element_offsets), np.bool_)
        homes = [np.zeros_like(element_offsets)] * len(self.device_size)
        for run in self._runs():
            position = np.zeros_like(element_offsets)
            for tile in run.tiles:
                position = position + coordinates[tile.device_dim] * tile.step
            is_element &= position < run.length
            rest = position
            for tile in run.tiles:
                homes[tile.device_dim], rest = np.divmod(rest, tile.step)
            for dim in range(run.last, run.first - 1, -1):
                position, indices[:, dim] = np.divmod(position, self.host_shape[dim])
        for replica in self._replicas():
            for tile in replica.tiles:
                indices[:, replica.host_dim] += coordinates[tile.device_dim] * tile.step
            rest = indices[:, replica.host_dim]
            for tile in replica.tiles:
                homes[tile.device_dim], rest = np.divmod(rest, tile.step)
        is_element &= (indices < np.array(self.host_shape, np.int64)).all(axis=1)
        for at, home, stride in zip(coordinates, homes, self.stride_map, strict=True):
            is_element &= (at == home) | (stride == 0)
        return indices, is_element

    def element_offset(self, device_coordinate: Sequence[int]) -> int:
        """Return the distance in elements from the start of the tensor; errors SPY0310 as ``host_index``."""
        coordinate = _checked_index("device coordinate", device_coordinate, self.device_size)
        return sum(at * stride for at, stride in zip(coordinate, self.device_strides(), strict=True))

    def byte_address(self, host_index: Sequence[int]) -> int:
        """Return the distance in bytes of an element from the start of the tensor in device memory.

        Of formats narrower than a byte, the byte that holds the element.  Errors: SPY0310 as ``device_coordinate``.
        """
        return self.element_offset(self.device_coordinate(host_index)) * STICK_BYTES // self.elements_per_stick

    def at_byte_address(self, address: int) -> tuple[int, ...]:
        """Return the device coordinate of the element at a byte distance from the start; errors SPY0310."""
        if not 0 <= address < self.nbytes:
            raise refuse("SPY0310", f"byte address {address} is not in the tensor's {self.nbytes} bytes")
        rest = address * self.elements_per_stick // STICK_BYTES
        coordinate: list[int] = []
        for stride in self.device_strides():
            position, rest = divmod(rest, stride)
            coordinate.append(position)
        return tuple(coordinate)

    def valid_lane_mask(self) -> npt.NDArray[np.bool_]:
        """Return a bool array of shape ``device_size``: where an element of the host tensor lies, and not padding.

        Errors: SPY0319 for more than 2**30 elements.
        """
        if math.prod(self.device_size) > _MAX_MASK_ELEMENTS:
            fact = f"a mask over device_size {list(self.device_size)} has more than {_MAX_MASK_ELEMENTS} elements"
            raise refuse("SPY0319", fact)
        mask = np.ones(self.device_size, dtype=np.bool_)
        held = {dim for dim, stride in enumerate(self.stride_map) if stride == 0}
        for length, tiles in self._cuts():
            position = np.zeros((1,) * len(self.device_size), dtype=np.int64)
            limits = [*(tile.step for tile in tiles[-2::-1]), length]
            # Finest first: what the finer tiles add up to may not reach one step of the next coarser one.
            for tile, limit in zip(tiles[::-1], limits, strict=True):
                position = position + self._axis(tile.device_dim) * tile.step
                mask &= position < limit
                held.add(tile.device_dim)
        for dim in set(range(len(self.device_size))) - held:
            mask &= self._axis(dim) == 0
        return mask

    def equal_up_to_padding(self, other: DeviceLayout) -> bool:
        """Whether both put every element at the same address: they differ in what lies around the tensor at most.

        Dims of one element, the extent of the outermost dim, and how contiguous dims are cut do not count.
        """
        mine, theirs = _essence(self.device_size, self.stride_map), _essence(other.device_size, other.stride_map)
        return self.device_dtype == other.device_dtype and mine[1:] == theirs[1:] and mine[0][1] == theirs[0][1]

    def coordinates(self, index: str, ranges: Mapping[str, int]) -> tuple[str, ...]:
        """Return, per device dim, the coordinate that a host index expression reads, as text.

        ``index`` is the offset in host elements over the loop variables in ``ranges`` (extent of each).
        Errors: SPY0311 the text is no index expression, SPY0312 the layout cannot follow the index (its offsets would
        not be those of the expression), SPY0313 a coordinate would leave its dim, or mean padding and no host element.
        """
        # sympy costs half a second to import: only who asks for symbolic coordinates pays it.
        from spyrec.layout.coordinates import checked_coordinates

        return checked_coordinates(self.device_size, self.stride_map, index, ranges, self._side.tensor)

    def dci(
        self,
        direction: Direction | str,
        host_shape: Sequence[int] | None = None,
        host_strides: Sequence[int] | None = None,
        storage_offset: int = 0,
        host_dtype: DType | str | None = None,
    ) -> DataConversionInfo:
        """Return the table that copies a host tensor to or from this layout.

        ``direction`` is ``"h2d"`` or ``"d2h"``; ``host_strides`` and ``storage_offset`` (elements) say where the tensor
        lies in host memory, by default as the layout was made for; which element goes where does not depend on them
        if the layout was made for a known tensor or a row-major one.
        Errors: SPY0301/0302/0305 as the constructor, SPY0307 the layout does not hold such a tensor, SPY0308 a tile
        does not divide its dim, SPY0309 a copy to the host would write one element twice, SPY0315 nothing converts
        between ``host_dtype`` and the format of the layout.
        """
        way = _direction_named(direction)
        given = None if host_strides is None else integers("host_strides", host_strides, 0)
        host = self.host_tensor
        if host_shape is not None:
            shape = sizes_of("host_shape", host_shape)
            known = None if self._side.tensor is None else self._side.tensor.strides
            host = answered(fitting_host(self.device_size, self.stride_map, shape, known, given))
        memory = host.strides if given is None else given
        _require_copyable(host, memory, way)
        dtype = self._copy_dtype(host_dtype)
        offset = integers("storage_offset", [storage_offset], 0)[0]
        _require_conversion(DeviceFormat[dtype.host_format], self.device_dtype, way)
        request = CopyRequest(way, host, memory, offset, DeviceFormat[dtype.host_format])
        return conversion_table(request, self.device_size, self.stride_map, self.device_dtype)

    def _copy_dtype(self, dtype: DType | str | None) -> DType:
        if dtype is not None:
            return host_dtype_named(dtype)
        natural = self._side.dtype or _HOST_DTYPES.get(self.device_dtype)
        if natural is None:
            raise refuse("SPY0301", f"no host dtype belongs to format {self.device_dtype.name}", hint="name one")
        return natural

    def _runs(self) -> tuple[Run, ...]:
        return answered(analyse(self.host_tensor, self.device_size, self.stride_map))

    def _replicas(self) -> tuple[Replica, ...]:
        return replicas(self.host_tensor, self.device_size, self.stride_map, self._side.owners)

    def _cuts(self) -> list[tuple[int, tuple[Tile, ...]]]:
        """Return (elements, tiles coarsest first) of everything that device dims cut."""
        cuts = [(run.length, run.tiles) for run in self._runs()]
        return [*cuts, *((self.host_shape[replica.host_dim], replica.tiles) for replica in self._replicas())]

    def _axis(self, dim: int) -> npt.NDArray[np.int64]:
        shape = [1] * len(self.device_size)
        shape[dim] = self.device_size[dim]
        return np.arange(self.device_size[dim], dtype=np.int64).reshape(shape)

    def __str__(self) -> str:
        return (
            f"SpyreTensorLayout(device_size={list(self.device_size)}, stride_map ={list(self.stride_map)}, "
            f"device_dtype=DataFormats.{self.device_dtype.name})"
        )

    def __repr__(self) -> str:
        return f"DeviceLayout({list(self.device_size)}, {list(self.stride_map)}, {self.device_dtype.name!r})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: facts, dims, and the first and last sticks with their padding."""
        from spyrec.layout.layout_html import layout_html  # late: notebooks alone ask

        found = self._side.tensor or inferred_host(self.device_size, self.stride_map)
        return layout_html(self, None if isinstance(found, Diagnostic) else found)


def layout_holding(
    host: HostTensor,
    dtype: DType,
    device_size: tuple[int, ...],
    stride_map: tuple[int, ...],
    stick_format: DeviceFormat,
) -> DeviceLayout | Diagnostic:
    """Return the layout of these numbers that was made for a host tensor, or why it is none or holds no such tensor.

    What a search asks; numbers as the constructor takes them.  Reasons: SPY0302, SPY0303, SPY0306 to SPY0308, SPY0319.
    """
    misfit = misfit_of_device_side(device_size, stride_map, stick_format)
    held = misfit or fitting_host(device_size, stride_map, host.shape, host.strides)
    if isinstance(held, Diagnostic):
        return held
    layout = DeviceLayout(device_size, stride_map, stick_format)
    object.__setattr__(layout, "_side", HostSide(held, dtype))
    return layout


def _checked_index(what: str, entries: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return an index that lies inside ``sizes``; errors SPY0305, SPY0310."""
    index = integers(what, entries, 0)
    if len(index) != len(sizes):
        raise refuse("SPY0310", f"{what} {list(index)} has {len(index)} entries, shape {list(sizes)} has {len(sizes)}")
    if any(entry >= size for entry, size in zip(index, sizes, strict=True)):
        raise refuse("SPY0310", f"{what} {list(index)} is not inside shape {list(sizes)}")
    return index


def _flat_index(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the row-major position of an index."""
    return sum(entry * stride for entry, stride in zip(index, row_major_strides(shape), strict=True))


def _direction_named(direction: Direction | str) -> Direction:
    """Return the direction by its name; errors SPY0320."""
    if isinstance(direction, Direction):
        return direction
    if direction not in {member.value for member in Direction}:
        raise refuse("SPY0320", f'direction "{direction}" is neither "h2d" nor "d2h"')
    return Direction(direction)


def _require_copyable(host: HostTensor, memory: tuple[int, ...], direction: Direction) -> None:
    """Refuse host strides that a copy in this direction cannot use."""
    if len(memory) != len(host.shape):
        raise refuse("SPY0302", f"{len(memory)} host strides for {len(host.shape)} dims of shape {list(host.shape)}")
    for dim, size in enumerate(host.shape):
        if size == 1:
            continue
        if host.strides[dim] == 0 and memory[dim] != 0:
            fact = f"the layout holds one element for all {size} of dim {dim}, host memory has stride {memory[dim]}"
            raise refuse("SPY0307", fact)
        if memory[dim] == 0 and host.strides[dim] != 0 and direction is Direction.DEVICE_TO_HOST:
            raise refuse("SPY0309", f"{size} elements of dim {dim} would be copied to one place (host stride 0)")
    if direction is Direction.DEVICE_TO_HOST:
        require_disjoint(HostTensor(host.shape, memory))


def _require_conversion(host_format: DeviceFormat, device_format: DeviceFormat, direction: Direction) -> None:
    """Refuse a copy between formats that nothing converts (SPY0315)."""
    is_to_device = direction is Direction.HOST_TO_DEVICE
    source, destination = (host_format, device_format) if is_to_device else (device_format, host_format)
    if is_convertible(source, destination):
        return
    legal = [item.value for item in DType if is_convertible(DeviceFormat[item.host_format], device_format)]
    existing = f"host dtypes that a {device_format.name} layout copies: {', '.join(legal) or 'none'}"
    raise refuse("SPY0315", f"no copy converts {source.name} to {destination.name}", hint=existing)


def _essence(device_size: tuple[int, ...], stride_map: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return (extent, stride) per dim that matters: without dims of one element, contiguous ones fused."""
    dims: list[tuple[int, int]] = []
    for extent, stride in zip(device_size, stride_map, strict=True):
        if extent == 1:
            continue
        if dims and dims[-1][1] == stride * extent and stride > 0:
            dims[-1] = (dims[-1][0] * extent, stride)
        else:
            dims.append((extent, stride))
    return dims
