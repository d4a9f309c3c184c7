"""Copies between host arrays and device memory, exactly as a data conversion table says, formats included.

Both sides are bounds-checked against the table before a byte moves; padding lanes are neither written nor read.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache, partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.files.kernel_operands import address_of
from spyrec.files.linked_kernel import Linked
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo, Direction
from spyrec.runtime.host_copies.conversion import Converter, converter, host_carriers, storage_type
from spyrec.runtime.host_copies.copy_kernels import FETCHED, SIXTEEN_BIT_KERNELS, STREAMED
from spyrec.runtime.host_copies.copy_plan import CopyPlan, KernelWords, kernel_words, plan_of, writes_every_element
from spyrec.runtime.host_copies.result_memory import ResultMemory
from spyrec.runtime.host_copies.stick_conversion import PATTERN_BYTES
from spyrec.runtime.threads import Threads

Elements = npt.NDArray[np.generic]

_THREADS = Threads(os.cpu_count() or 1)

_STREAMED_BYTES = 1 << 22
"""Bytes that a copy writes, from which on it stores them past the caches: what they displaced was as good."""


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
    known = _known_of(info, stored_as)
    if known.direction is not Direction.HOST_TO_DEVICE:
        raise _wrong_direction(info, Direction.HOST_TO_DEVICE)
    _require_carrier(host, known, info)
    if host.ndim != 1 and host.size != known.elements:
        fact = f"the host array has shape {list(host.shape)}, the table copies {list(info.host_shape)}"
        raise refuse("SPY0315", fact)
    source = host if host.flags.c_contiguous else np.ascontiguousarray(host)
    _execute(known, source, memory)


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
    known = _known_of(info, stored_as)
    if known.direction is not Direction.DEVICE_TO_HOST:
        raise _wrong_direction(info, Direction.DEVICE_TO_HOST)
    _require_carrier(storage, known, info)
    _execute(known, memory, storage)


@dataclass(frozen=True, slots=True)
class _KnownCopy:
    """What follows from a table and the format that memory is in: nothing of it is found out twice.

    ``elements``: those of the host tensor.  ``kernel``: what copies them, with its words and flags; ``None``: NumPy.
    """

    direction: Direction
    elements: int
    host_carriers: tuple[np.dtype[np.generic], ...]
    device_carrier: np.dtype[np.generic]
    nests: tuple[CopyNest, ...]
    plan: CopyPlan
    converter: Converter
    kernel: _CopyKernel | None


@dataclass(frozen=True, slots=True)
class _CopyKernel:
    """A compiled copy, and what it reads."""

    function: Linked
    words: KernelWords
    flags: int

    def copy(self, places: tuple[int, int], first: int, last: int) -> None:
        """Copy groups of parts between two addresses."""
        counts = self.words.counts
        self.function(*places, self.words.places[first], counts[last] - counts[first], self.flags)


_MOST_AT_HAND = 1024

_AT_HAND: dict[tuple[int, int], tuple[DataConversionInfo, _KnownCopy]] = {}
"""What is known of the tables used last, by the identities of table and format: a bundle's are the same each time."""


def _known_of(info: DataConversionInfo, stored_as: DeviceFormat | None) -> _KnownCopy:
    """Return what is known of a copy, of a table that was used before without a look at what it says."""
    key = id(info), id(stored_as)
    found = _AT_HAND.get(key)
    if found is not None and found[0] is info:
        return found[1]
    known = _known(info, stored_as)
    for oldest in list(_AT_HAND)[: max(0, len(_AT_HAND) + 1 - _MOST_AT_HAND)]:  # other threads may do the same
        _AT_HAND.pop(oldest, None)
    _AT_HAND[key] = info, known
    return known


@lru_cache(maxsize=4096)
def _known(info: DataConversionInfo, stored_as: DeviceFormat | None) -> _KnownCopy:
    """Return what is known of a copy; errors SPY0315 there is no such conversion."""
    memory_format = stored_as or info.device_format
    is_to_device = info.direction is Direction.HOST_TO_DEVICE
    formats = (info.host_format, memory_format) if is_to_device else (memory_format, info.host_format)
    plan, carrier = plan_of(info.nests), storage_type(memory_format)
    function = SIXTEEN_BIT_KERNELS.get(formats)
    return _KnownCopy(
        info.direction,
        math.prod(info.host_shape),
        host_carriers(info.host_format),
        carrier,
        info.nests,
        plan,
        converter(*formats),
        None if function is None else _CopyKernel(function, kernel_words(plan.groups), _flags(plan)),
    )


def _flags(plan: CopyPlan) -> int:
    is_streamed = plan.elements * PATTERN_BYTES >= _STREAMED_BYTES
    return FETCHED | STREAMED if is_streamed else FETCHED


def _wrong_direction(info: DataConversionInfo, direction: Direction) -> SpyrecError:
    return refuse("SPY0315", f'the table copies "{info.direction.value}", asked for "{direction.value}"')


def _require_carrier(array: Elements, known: _KnownCopy, info: DataConversionInfo) -> None:
    if array.dtype not in known.host_carriers:
        wanted = " or ".join(carrier.name for carrier in known.host_carriers) or "no host array"
        fact = f"the host array is {array.dtype.name}, format {info.host_format.name} is carried by {wanted}"
        raise refuse("SPY0315", fact)


def _execute(known: _KnownCopy, source: Elements, destination: Elements) -> None:
    """Copy between contiguous arrays, of which the device's is bytes."""
    plan, is_to_device = known.plan, known.direction is Direction.HOST_TO_DEVICE
    memory = destination if is_to_device else source
    assert memory.dtype == np.uint8
    assert memory.ndim == 1
    assert memory.flags.c_contiguous, "a copy out of strided device memory would be lost"
    count = memory.size // known.device_carrier.itemsize
    _require_inside("source", plan.source_span, source.size if is_to_device else count)
    _require_inside("destination", plan.destination_span, count if is_to_device else destination.size)
    kernel = known.kernel
    if kernel is not None:
        places = address_of(source), address_of(destination)
        if len(plan.groups) == 1:  # what is not worth a second thread is one group
            kernel.copy(places, 0, 1)
            return
        copy_groups = partial(kernel.copy, places)
    else:
        elements = memory[: count * known.device_carrier.itemsize].view(known.device_carrier)
        source, destination = (source.reshape(-1), elements) if is_to_device else (elements, destination)
        check = known.converter.check
        if check is not None:
            for nest in known.nests:
                check(_strided(source, nest.sizes, nest.source_strides, nest.source_offset))
        copy_groups = partial(_copy_by_numpy, known, (source, destination))
    _THREADS.run(len(plan.groups), plan.elements, copy_groups)


def _copy_by_numpy(known: _KnownCopy, sides: tuple[Elements, Elements], first: int, last: int) -> None:
    source, destination = sides
    convert = known.converter.apply
    for part in chain.from_iterable(known.plan.groups[first:last]):
        reading = _strided(source, part.sizes, part.source_strides, part.source_offset)
        writing = _strided(destination, part.sizes, part.destination_strides, part.destination_offset)
        np.copyto(writing, reading if convert is None else convert(reading), casting="same_kind")


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
