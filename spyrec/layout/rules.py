"""The rules under ``DeviceLayout``: the default sizes, what a legal layout is, which host strides fit one."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from spyrec.diagnostics import Diagnostic, refuse
from spyrec.hardware.dtypes import PACKED, QUANTIZED, DeviceFormat, DType
from spyrec.layout.conversion_generation import generate
from spyrec.layout.tiling import HostTensor, row_major_strides

MAX_RANK = 6
"""Most dims of a tensor that has a default layout, dense or sparse (torch-spyre of August 2026).

A sparse one is named by one entry more, the -1.  Before, six entries were the most of either: a target of that date
takes sparse tensors of five dims at most (``Target.sparse_layout_entries``).
"""

SPARSE = -1
"""The last entry of a ``dim_order`` that puts one element into each stick."""

MAX_DEVICE_RANK = 32
"""Most device dims of an explicit layout; our limit."""

MAX_BYTES = 1 << 62
"""Largest tensor that can be spoken of; our limit, far above a segment."""

_MAX_ELEMENTS_CHECKED_ONE_BY_ONE = 1 << 16


def sizes_of(what: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the extents of a tensor, 0 for one without elements; errors SPY0305."""
    return integers(what, sizes, 0)


def integers(what: str, values: Sequence[int], least: int) -> tuple[int, ...]:
    """Return ``values`` as a tuple of ints; errors SPY0305 for one below ``least`` or no integer."""
    try:
        result = tuple(operator.index(value) for value in values)
    except TypeError:
        raise refuse("SPY0305", f"{what} {values!r} is not a list of integers") from None
    if any(value < least for value in result):
        raise refuse("SPY0305", f"{what} {list(result)} has an entry below {least}")
    return result


def _plain_name(dtype: object) -> str:
    """Return the PyTorch name of a dtype: of a name, a NumPy dtype or scalar class, a torch dtype."""
    if isinstance(dtype, type) and dtype.__module__ == "numpy":
        return dtype.__name__
    return str(dtype).removeprefix("torch.")


def host_dtype(dtype: DType | str) -> DType:
    """Return the dtype by its PyTorch name; errors SPY0301 for one the device cannot hold."""
    if isinstance(dtype, DType):
        return dtype
    name = _plain_name(dtype)
    if name in QUANTIZED:
        return QUANTIZED[name]
    if name in PACKED:
        raise refuse("SPY0301", f'dtype "{name}" has a device form, but no host form to copy from or to')
    if name not in {member.value for member in DType}:
        known = ", ".join(member.value for member in DType)
        raise refuse("SPY0301", f'dtype "{name}" has no device representation', hint=f"choose one of {known}")
    return DType(name)


def device_format(name: DeviceFormat | DType | str) -> DeviceFormat:
    """Return a format with a stick geometry, given as such, by its DeepTools name, or by a host dtype."""
    if isinstance(name, DType):
        return name.device_format
    if not isinstance(name, DeviceFormat):
        plain = _plain_name(name).removeprefix("DataFormats.")
        if plain not in DeviceFormat.__members__:
            return PACKED[plain] if plain in PACKED else host_dtype(plain).device_format
        name = DeviceFormat[plain]
    elements_per_stick(name)
    return name


def default_formats(dtype: DType | str) -> tuple[DeviceFormat, DType | None]:
    """Return the device format of a tensor of a PyTorch dtype, and its host form if it has one; errors SPY0301."""
    packed = None if isinstance(dtype, DType) else PACKED.get(_plain_name(dtype))
    if packed is not None:
        return packed, None
    named = host_dtype(dtype)
    return named.device_format, named


def elements_per_stick(device_dtype: DeviceFormat) -> int:
    """Return the elements in one stick; errors SPY0301 for a format without a stick geometry."""
    elements = device_dtype.elements_per_stick
    if elements is None:
        raise refuse("SPY0301", f"format {device_dtype.name} has no stick geometry: no tensor can have it")
    return elements


def misfit_of_device_side(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], device_dtype: DeviceFormat
) -> Diagnostic | None:
    """Return why these numbers are no layout's, ``None`` where they may be.

    Reasons: SPY0302 lengths, SPY0303 rank, SPY0306 last extent, SPY0319 size.
    """
    if len(device_size) != len(stride_map) or not device_size:
        fact = f"device_size {list(device_size)} and stride_map {list(stride_map)} must have one length, at least 1"
        return Diagnostic("SPY0302", fact)
    if len(device_size) > MAX_DEVICE_RANK:
        return Diagnostic("SPY0303", f"{len(device_size)} device dims, more than {MAX_DEVICE_RANK}")
    elements = elements_per_stick(device_dtype)
    if device_size[-1] != elements:
        fact = f"the last extent of device_size {list(device_size)} is {device_size[-1]}, not a stick of {elements}"
        return Diagnostic("SPY0306", fact, hint=f"{device_dtype.name} has {elements} elements in its 128 bytes")
    if math.prod(device_size) > MAX_BYTES:
        return Diagnostic("SPY0319", f"device_size {list(device_size)} has more than {MAX_BYTES} elements")
    return None


def default_sizes(
    host: HostTensor, dim_order: tuple[int, ...], elements: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return device_size, stride_map and the host dim of each device dim (torch-spyre's layout constructor).

    ``elements`` is that of one stick; ``[o0, o1, ..., stick]`` becomes device dims
    ``[o1, ..., tile index of stick, o0, stick]``.
    """
    _check_order(len(host.shape), dim_order)
    if not host.shape:
        return (1, elements), (-1, -1), (SPARSE, SPARSE)
    stick = dim_order[-1]
    middle = dim_order[1:-1] if len(dim_order) > 1 else ()
    owners = (*middle, stick, *dim_order[:1], stick) if len(dim_order) > 1 else (stick, stick)
    device_size = [1 if owner == SPARSE else host.shape[owner] for owner in owners]
    tile_index = len(middle)
    if stick != SPARSE:
        device_size[tile_index] = -(-host.shape[stick] // elements)
    device_size[-1] = elements
    stride_map = [-1 if owner == SPARSE or host.shape[owner] == 1 else host.strides[owner] for owner in owners]
    if stride_map[-1] != -1:
        stride_map[tile_index] = elements * stride_map[-1]
    return tuple(device_size), tuple(stride_map), owners


def sparse_entries(rank: int, device_size: Sequence[int], stride_map: Sequence[int]) -> int:
    """Return how many entries name the sparse default layout of a tensor of this rank; 0 for any other layout."""
    is_sparse = rank > 0 and stride_map[-1] == SPARSE and len(device_size) == rank + 2
    return rank + 1 if is_sparse else 0


def _check_order(rank: int, dim_order: tuple[int, ...]) -> None:
    is_sparse = len(dim_order) == rank + 1 and dim_order[-1] == SPARSE
    if len(dim_order) != rank and not is_sparse:
        fact = f"incompatible host_size and dim_order: rank {rank}, dim_order {list(dim_order)}"
        raise refuse("SPY0302", fact, hint="name every dim once; one more entry, -1 at the end, for a sparse tensor")
    if rank > MAX_RANK:
        raise refuse("SPY0303", f"unsupported tensor rank: {rank}, more than {MAX_RANK}")
    if sorted(dim_order[:rank]) != list(range(rank)):
        raise refuse("SPY0304", f"dim_order {list(dim_order)} is not a permutation of the {rank} dims")


def require_disjoint(host: HostTensor) -> None:
    """Refuse strides that put two elements of a tensor at one place (SPY0309); stride 0 means one element, expanded."""
    dims = sorted((stride, size) for stride, size in zip(host.strides, host.shape, strict=True) if size > 1 and stride)
    reach = 0
    for stride, size in dims:
        if stride <= reach and not _is_disjoint_one_by_one(dims):
            fact = f"strides {list(host.strides)} of shape {list(host.shape)} let elements overlap"
            raise refuse("SPY0309", fact, hint="make the tensor contiguous first")
        reach += stride * (size - 1)


def _is_disjoint_one_by_one(dims: Iterable[tuple[int, int]]) -> bool:
    """Interleaved dims may still not meet: look at the offsets themselves where they are few."""
    if math.prod(size for _, size in dims) > _MAX_ELEMENTS_CHECKED_ONE_BY_ONE:
        return False
    offsets = np.zeros(1, dtype=np.int64)
    for stride, size in dims:
        offsets = (offsets[:, None] + stride * np.arange(size, dtype=np.int64)).reshape(-1)
    return len(np.unique(offsets)) == len(offsets)


def fitting_host(
    device_size: tuple[int, ...],
    stride_map: tuple[int, ...],
    shape: tuple[int, ...],
    known: tuple[int, ...] | None,
    guess: tuple[int, ...] | None = None,
) -> HostTensor | Diagnostic:
    """Return the host tensor of this shape that a layout was made for, or why it holds none.

    Tried in order: the strides ``known`` of it, row-major ones, the ``guess``, those read off the stride map.
    The reason is the first one's: SPY0307 or SPY0308.
    """
    first: Diagnostic | None = None
    row_major = row_major_strides(shape)
    for strides in (known, row_major, guess, _pitched_strides(device_size, stride_map, shape)):
        if strides is None or len(strides) != len(shape):
            continue
        host = HostTensor(shape, strides)
        # Row-major strides that fold dims hold any tensor of so many elements: the guess tells whether they are meant.
        is_guided = strides == row_major and strides != known and guess is not None and len(guess) == len(shape)
        memory = guess if is_guided and guess is not None else strides
        found = generate(HostTensor(shape or (1,), strides or (1,)), memory or (1,), device_size, stride_map)
        if not isinstance(found, Diagnostic):
            return host
        first = first or found
    assert first is not None  # row-major strides are as many as there are dims: one choice at least was tried
    return first


def _distinct_dims(device_size: tuple[int, ...], stride_map: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return (stride, extent) of the device dims that stand for host dims, coarsest first; the stick with its tiles."""
    stick_stride = stride_map[-1]
    tile_stride = device_size[-1] * stick_stride
    dims: list[tuple[int, int]] = []
    stick_extent = device_size[-1]
    for extent, stride in zip(device_size[:-1], stride_map[:-1], strict=True):
        if stick_stride > 0 and stride == tile_stride:
            stick_extent *= extent
        elif extent > 1 and stride > 0:
            dims.append((stride, extent))
    if stick_stride > 0:
        dims.append((stick_stride, stick_extent))
    return sorted(dims, reverse=True)


def _pitched_strides(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of a row-major tensor with gaps: those of the map, in falling order."""
    strides = [stride for stride, _ in _distinct_dims(device_size, stride_map)]
    if len(strides) != sum(size != 1 for size in shape):
        return None
    remaining = iter(strides)
    return tuple(next(remaining) if size != 1 else 1 for size in shape)


@lru_cache(maxsize=1024)
def inferred_host(device_size: tuple[int, ...], stride_map: tuple[int, ...]) -> HostTensor | Diagnostic:
    """Return the largest row-major host tensor that a layout holds: every lane that can be an element is one.

    Reasons for none: SPY0307 where two dims have one stride, so that one of them is padding and nothing says which.
    """
    dims = zip(device_size[:-1], stride_map[:-1], strict=True)
    moving = [stride for extent, stride in dims if extent > 1 and stride > 0]
    if len(set(moving)) != len(moving):
        fact = f"two dims of device_size {list(device_size)} have one stride in stride_map {list(stride_map)}"
        return Diagnostic("SPY0307", f"{fact}: places of the elements overlap", hint="give the host shape")
    shape: list[int] = []
    strides: list[int] = []
    for stride, extent in _distinct_dims(device_size, stride_map):
        room = strides[-1] // stride if strides else extent
        shape.append(min(extent, room))
        strides.append(stride)
    return HostTensor(tuple(shape), tuple(strides))
