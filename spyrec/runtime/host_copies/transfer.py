"""Copies between host arrays and device memory, exactly as a data conversion table says, formats included.

Both sides are bounds-checked against the table before a byte moves; padding lanes are neither written nor read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import refuse
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo, Direction
from spyrec.runtime.host_copies.conversion import Converter, converter, host_carriers, storage_type
from spyrec.runtime.host_copies.copy_kernels import SIXTEEN_BIT_KERNELS
from spyrec.runtime.host_copies.copy_plan import kernel_loops, plan_of, writes_every_element
from spyrec.runtime.host_copies.result_memory import ResultMemory
from spyrec.runtime.threads import Threads

Elements = npt.NDArray[np.generic]

_THREADS = Threads(os.cpu_count() or 1)
_ONE_THREAD = Threads(1)


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
    result = host_array_of(info, shape, dtype)
    copy_into_host(memory, info, result.reshape(-1), stored_as=stored_as)
    return result


def host_array_of(
    info: DataConversionInfo, shape: tuple[int, ...], dtype: DType, memory: ResultMemory | None = None
) -> npt.NDArray[np.generic]:
    """Return a host array for a copy of the device, zero where its table writes nothing, in new memory or the given.

    Errors: SPY0315 it is not the shape that the table copies.
    """
    if math.prod(shape) != math.prod(info.host_shape):
        fact = f"shape {list(shape)} is not that of the table, {list(info.host_shape)}"
        raise refuse("SPY0315", fact)
    if not writes_every_element(info):
        return np.zeros(shape, dtype=dtype.carrier)
    return np.empty(shape, dtype=dtype.carrier) if memory is None else memory.array(shape, dtype.carrier)


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
    if array.dtype not in carriers:
        wanted = " or ".join(carrier.name for carrier in carriers) or "no host array"
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
    plans = [plan_of(nest) for nest in info.nests]
    for plan in plans:
        _require_inside("source", plan.source_span, source.size)
        _require_inside("destination", plan.destination_span, destination.size)
    convert = converter(*formats)
    if convert.check is not None:
        for nest in info.nests:
            convert.check(_strided(source, nest.sizes, nest.source_strides, nest.source_offset))
    copy_part = _part_copier(source, destination, formats, convert)
    for plan in plans:
        threads = _THREADS if plan.is_shareable else _ONE_THREAD
        threads.run(len(plan.parts), plan.elements, partial(_copy_parts, copy_part, plan.parts))


def _copy_parts(copy_part: Callable[[CopyNest], None], parts: Sequence[CopyNest], first: int, last: int) -> None:
    for part in parts[first:last]:
        copy_part(part)


def _part_copier(
    source: Elements, destination: Elements, formats: tuple[DeviceFormat, DeviceFormat], convert: Converter
) -> Callable[[CopyNest], None]:
    """Return the function that copies one part of a nest."""
    kernel = SIXTEEN_BIT_KERNELS.get(formats)
    if kernel is not None:
        bits_in, bits_out = source.view(np.uint16), destination.view(np.uint16)
        return lambda part: kernel(bits_in, bits_out, kernel_loops(part), part.source_offset, part.destination_offset)

    def copy_elements(part: CopyNest) -> None:
        reading = _strided(source, part.sizes, part.source_strides, part.source_offset)
        writing = _strided(destination, part.sizes, part.destination_strides, part.destination_offset)
        np.copyto(writing, reading if convert.apply is None else convert.apply(reading), casting="same_kind")

    return copy_elements


def _require_inside(side: str, span: tuple[int, int], elements: int) -> None:
    first, last = span
    if first < 0 or last >= elements:
        raise refuse("SPY0317", f"the table reaches {side} elements {first} to {last}, the buffer holds {elements}")


def _strided(elements: Elements, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Elements:
    """Return the elements of one nest as an array, outermost loop first. The caller has checked the bounds."""
    item = elements.itemsize
    return np.lib.stride_tricks.as_strided(
        elements[offset:], shape=sizes[::-1], strides=tuple(stride * item for stride in strides[::-1])
    )
