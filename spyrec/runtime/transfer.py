"""Copies between host arrays and device memory, exactly as a data conversion table says, formats included.

Both sides are bounds-checked against the table before a byte moves; padding lanes are neither written nor read.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spyrec.dci import CopyNest, DataConversionInfo, Direction
from spyrec.diagnostics import refuse
from spyrec.dtypes import DeviceFormat, DType
from spyrec.runtime.conversion import converter, host_carriers, storage_type
from spyrec.runtime.copy_kernels import SIXTEEN_BIT_KERNELS

Elements = npt.NDArray[np.generic]

_CHUNK_ELEMENTS = 1 << 20


def copy_to_device(
    host: npt.NDArray[np.generic],
    info: DataConversionInfo,
    memory: npt.NDArray[np.uint8],
    *,
    stored_as: DeviceFormat | None = None,
) -> None:
    """Copy a host tensor into the bytes of its device allocation.

    ``host`` has the shape of the table, or is one-dimensional: the storage that the table's strides and offset walk.
    ``memory`` is contiguous. ``stored_as`` is the format that this device memory really holds where the emulator
    was told to compute in another than the table names (IEEE half or float32 in place of DLFloat16).
    Errors: SPY0315 no such conversion, or an array of another dtype or shape; SPY0317 the table leaves one of the
    buffers; SPY0318 an integer does not fit its device format. Nothing is written then.
    """
    _require_direction(info, Direction.HOST_TO_DEVICE)
    source = _host_storage(host, info)
    destination = _device_elements(memory, stored_as or info.device_format)
    _execute(source, destination, info, (info.host_format, stored_as or info.device_format))


def copy_to_host(
    memory: npt.NDArray[np.uint8],
    info: DataConversionInfo,
    shape: tuple[int, ...],
    dtype: DType,
    *,
    stored_as: DeviceFormat | None = None,
) -> npt.NDArray[np.generic]:
    """Return a new contiguous host tensor of ``shape``, in the carrier of ``dtype``, copied from device memory.

    ``memory`` and ``stored_as`` as in ``copy_to_device``. Values beyond the range of ``dtype`` become infinities.
    Errors: SPY0315, SPY0317 as ``copy_to_device``.
    """
    if math.prod(shape) != math.prod(info.host_shape):
        fact = f"shape {list(shape)} is not that of the table, {list(info.host_shape)}"
        raise refuse("SPY0315", fact)
    result = np.zeros(shape, dtype=dtype.carrier)
    copy_into_host(memory, info, result.reshape(-1), stored_as=stored_as)
    return result


def copy_into_host(
    memory: npt.NDArray[np.uint8],
    info: DataConversionInfo,
    storage: npt.NDArray[np.generic],
    *,
    stored_as: DeviceFormat | None = None,
) -> None:
    """Copy device memory into host storage that the table's strides and offset walk; what it skips is left as it is.

    ``storage`` is one-dimensional and contiguous. Errors as ``copy_to_host``.
    """
    _require_direction(info, Direction.DEVICE_TO_HOST)
    _require_carrier(storage, info)
    source = _device_elements(memory, stored_as or info.device_format)
    _execute(source, storage, info, (stored_as or info.device_format, info.host_format))


def _require_direction(info: DataConversionInfo, direction: Direction) -> None:
    if info.direction is not direction:
        raise refuse("SPY0315", f'the table copies "{info.direction.value}", asked for "{direction.value}"')


def _require_carrier(array: Elements, info: DataConversionInfo) -> None:
    carriers = host_carriers(info.host_format)
    if array.dtype.name not in carriers:
        wanted = " or ".join(carriers) or "no host array"
        fact = f"the host array is {array.dtype.name}, format {info.host_format.name} is carried by {wanted}"
        raise refuse("SPY0315", fact)


def _host_storage(host: Elements, info: DataConversionInfo) -> Elements:
    _require_carrier(host, info)
    if host.ndim != 1 and math.prod(host.shape) != math.prod(info.host_shape):
        fact = f"the host array has shape {list(host.shape)}, the table copies {list(info.host_shape)}"
        raise refuse("SPY0315", fact)
    return np.ascontiguousarray(host).reshape(-1)


def _device_elements(memory: npt.NDArray[np.uint8], device_format: DeviceFormat) -> Elements:
    """Return device memory as elements of the type that stores the format."""
    carrier = storage_type(device_format)
    assert memory.dtype == np.uint8
    assert memory.ndim == 1
    assert memory.flags.c_contiguous, "a copy out of strided device memory would be lost"
    return memory[: memory.size - memory.size % carrier.itemsize].view(carrier)


def _execute(
    source: Elements, destination: Elements, info: DataConversionInfo, formats: tuple[DeviceFormat, DeviceFormat]
) -> None:
    for nest in info.nests:
        _require_inside("source", nest.source_span, source.size)
        _require_inside("destination", nest.destination_span, destination.size)
    kernel = SIXTEEN_BIT_KERNELS.get(formats)
    convert = converter(*formats)
    if kernel is None and convert.check is not None:
        for nest in info.nests:
            convert.check(_strided(source, nest.sizes, nest.source_strides, nest.source_offset))
    for nest in (_simplified(nest) for nest in info.nests):
        if kernel is not None:
            bits_in, bits_out = source.view(np.uint16), destination.view(np.uint16)
            kernel(bits_in, bits_out, *_kernel_arguments(nest))
            continue
        reading = _strided(source, nest.sizes, nest.source_strides, nest.source_offset)
        writing = _strided(destination, nest.sizes, nest.destination_strides, nest.destination_offset)
        if convert.apply is None:
            np.copyto(writing, reading, casting="same_kind")
            continue
        for part in _parts(nest.sizes):
            writing[part] = convert.apply(reading[part])


def _kernel_arguments(nest: CopyNest) -> tuple[object, ...]:
    """Return a nest for the kernels: three loops or more, the third the one that walks host memory most closely."""
    loops = list(zip(nest.sizes, nest.source_strides, nest.destination_strides, strict=True))
    loops += [(1, 0, 0)] * (3 - len(loops))
    third = min(range(2, len(loops)), key=lambda loop: min(abs(loops[loop][1]), abs(loops[loop][2])))
    loops.insert(2, loops.pop(third))
    columns = [np.array(entries, dtype=np.int64) for entries in zip(*loops, strict=True)]
    return *columns, nest.source_offset, nest.destination_offset


def _require_inside(side: str, span: tuple[int, int], elements: int) -> None:
    first, last = span
    if first < 0 or last >= elements:
        raise refuse("SPY0317", f"the table reaches {side} elements {first} to {last}, the buffer holds {elements}")


def _simplified(nest: CopyNest) -> CopyNest:
    """Drop loops of one pass and fuse loops that run on through both sides; at least one loop remains."""
    sizes: list[int] = []
    source: list[int] = []
    destination: list[int] = []
    for size, source_stride, destination_stride in zip(
        nest.sizes, nest.source_strides, nest.destination_strides, strict=True
    ):
        if size == 1:
            continue
        if sizes and source_stride == source[-1] * sizes[-1] and destination_stride == destination[-1] * sizes[-1]:
            sizes[-1] *= size
            continue
        sizes.append(size)
        source.append(source_stride)
        destination.append(destination_stride)
    if not sizes:
        sizes, source, destination = [1], [1], [1]
    return CopyNest(tuple(sizes), tuple(source), tuple(destination), nest.source_offset, nest.destination_offset)


def _strided(elements: Elements, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Elements:
    """Return the elements of one nest as an array, outermost loop first. The caller has checked the bounds."""
    item = elements.itemsize
    return np.lib.stride_tricks.as_strided(
        elements[offset:], shape=sizes[::-1], strides=tuple(stride * item for stride in strides[::-1])
    )


def _parts(sizes: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Cut the outermost loop so that a conversion works on about a million elements at a time."""
    outer = sizes[-1]
    rows = max(1, _CHUNK_ELEMENTS // max(1, math.prod(sizes[:-1])))
    return [(slice(start, start + rows),) for start in range(0, outer, rows)]
