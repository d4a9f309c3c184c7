"""Copies between host arrays and device memory, exactly as a data conversion table says, formats included.

Both sides are bounds-checked against the table before a byte moves; padding lanes are neither written nor read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.files.host_processor import last_cache_bytes
from spyrec.files.kernel_operands import address_of
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo, Direction
from spyrec.runtime.host_copies.conversion import Converter, converter, host_carriers, storage_type
from spyrec.runtime.host_copies.copy_kernels import SIXTEEN_BIT_KERNELS
from spyrec.runtime.host_copies.copy_plan import (
    CopyPlan,
    KernelWords,
    Walk,
    kernel_words,
    plan_of,
    tiles_of_a_row,
    writes_every_element,
)
from spyrec.runtime.host_copies.result_memory import ResultMemory
from spyrec.runtime.host_copies.stick_conversion import FETCHED, PATTERN_BYTES, STREAMED
from spyrec.runtime.threads import Threads

Elements = npt.NDArray[np.generic]
Octets = npt.NDArray[np.uint8]

_THREADS = Threads(os.cpu_count() or 1)

_SMALL_ELEMENTS = 1 << 19
"""Elements below which a copy finds its memory in the caches, and goes row by row, without asking for any."""

_FEW_TILES = 16
"""Sticks of a row up to which larger ones do too: as many streams as the processor follows by itself."""

_ALIASED_BYTES = 4096
"""What is written a multiple of this apart shares few lines of the first cache: such rows are copied in tiles."""

_ROWS_AT_A_TIME, _TILES_AHEAD = 8, 2
"""Of larger ones: as many streams of the host's as its caches fetch ahead of the reads.

One thread, 4096 x 4096 past the caches, of copyto: 1.2 to the device and 0.87 back; 16 rows 1.0 and 0.86, 32 rows 0.7
and 0.8, one tile ahead 1.17 and 0.8.
"""

_STREAMED_PART = 4
"""Part of the last cache that a copy writes, from which on it stores past the caches: both sides then take half of it,
and what they displaced was as good.  Of less, what comes next finds in the cache what was copied.
"""


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
    found = _AT_HAND.get((id(info), id(stored_as)))
    known = found[1] if found is not None and found[0] is info else _newly_known(info, stored_as)
    if not known.is_to_device:
        raise _wrong_direction(info, Direction.HOST_TO_DEVICE)
    if host.dtype not in known.host_carriers:
        raise _wrong_carrier(host, known, info)
    if host.size != known.elements and host.ndim != 1:
        fact = f"the host array has shape {list(host.shape)}, the table copies {list(info.host_shape)}"
        raise refuse("SPY0315", fact)
    if host.size < known.least_host_elements or memory.size < known.least_device_bytes:
        raise _outside(known, host, memory)
    source = host if host.flags.c_contiguous else np.ascontiguousarray(host)
    assert memory.flags.c_contiguous, _STRIDED
    if known.at_once is None:
        _execute(known, source, memory)
    else:
        known.at_once(address_of(source), address_of(memory))


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
    found = _AT_HAND.get((id(info), id(stored_as)))
    known = found[1] if found is not None and found[0] is info else _newly_known(info, stored_as)
    if known.is_to_device:
        raise _wrong_direction(info, Direction.DEVICE_TO_HOST)
    if storage.dtype not in known.host_carriers:
        raise _wrong_carrier(storage, known, info)
    if storage.size < known.least_host_elements or memory.size < known.least_device_bytes:
        raise _outside(known, storage, memory)
    assert memory.flags.c_contiguous, _STRIDED
    if known.at_once is None:
        _execute(known, memory, storage)
    else:
        known.at_once(address_of(memory), address_of(storage))


@dataclass(frozen=True, slots=True)
class _KnownCopy:
    """What follows from a table and the format that memory is in: nothing of it is found out twice.

    ``elements``: those of the host tensor.  ``least_host_elements`` and ``least_device_bytes``: what the sides hold at
    least, more than any does where a place lies before it.  ``kernel``: what copies; ``None``: NumPy.  ``at_once``:
    it, between two addresses, where that is not worth a second thread.
    """

    is_to_device: bool
    elements: int
    host_carriers: tuple[np.dtype[np.generic], ...]
    least_host_elements: float
    least_device_bytes: float
    at_once: Callable[[int, int], None] | None
    device_carrier: np.dtype[np.generic]
    nests: tuple[CopyNest, ...]
    plan: CopyPlan
    converter: Converter
    kernel: _CopyKernel | None


@dataclass(frozen=True, slots=True)
class _CopyKernel:
    """A compiled copy, and what it reads."""

    function: Callable[..., None]
    words: KernelWords

    @property
    def of_all(self) -> Callable[[int, int], None]:
        """What copies all groups between two addresses."""
        return partial(self.function, self.words.places[0], self.words.counts[-1])

    def copy(self, places: tuple[int, int], first: int, last: int) -> None:
        """Copy groups of parts between two addresses."""
        counts = self.words.counts
        self.function(self.words.places[first], counts[last] - counts[first], *places)


_STRIDED = "a copy out of strided device memory would be lost"

_MOST_AT_HAND = 1024

_AT_HAND: dict[tuple[int, int], tuple[DataConversionInfo, _KnownCopy]] = {}
"""What is known of the tables used last, by the identities of table and format: a bundle's are the same each time.

Copies look here themselves.  Each call of Python's on their way costs a small one half a microsecond, for what a copy
reads and writes has just displaced what such a call reads.
"""


def _newly_known(info: DataConversionInfo, stored_as: DeviceFormat | None) -> _KnownCopy:
    """Return what is known of a copy, and keep it at hand."""
    known = _known(info, stored_as)
    for oldest in list(_AT_HAND)[: max(0, len(_AT_HAND) + 1 - _MOST_AT_HAND)]:  # other threads may do the same
        _AT_HAND.pop(oldest, None)
    _AT_HAND[id(info), id(stored_as)] = info, known
    return known


@lru_cache(maxsize=4096)
def _known(info: DataConversionInfo, stored_as: DeviceFormat | None) -> _KnownCopy:
    """Return what is known of a copy; errors SPY0315 there is no such conversion."""
    memory_format = stored_as or info.device_format
    is_to_device = info.direction is Direction.HOST_TO_DEVICE
    formats = (info.host_format, memory_format) if is_to_device else (memory_format, info.host_format)
    plan, carrier = plan_of(info.nests), storage_type(memory_format)
    function = SIXTEEN_BIT_KERNELS.get(formats)
    kernel = None if function is None else _CopyKernel(function.from_python, kernel_words(plan.groups, _walk(plan)))
    source, destination = _least_elements(plan.source_span), _least_elements(plan.destination_span)
    host, device = (source, destination) if is_to_device else (destination, source)
    return _KnownCopy(
        is_to_device,
        math.prod(info.host_shape),
        host_carriers(info.host_format),
        host,
        device * carrier.itemsize,
        None if kernel is None or len(plan.groups) > 1 else kernel.of_all,
        carrier,
        info.nests,
        plan,
        converter(*formats),
        kernel,
    )


def _least_elements(span: tuple[int, int]) -> float:
    first, last = span
    return last + 1 if first >= 0 else math.inf


def _walk(plan: CopyPlan) -> Walk:
    if plan.elements * PATTERN_BYTES >= last_cache_bytes() // _STREAMED_PART:
        return Walk(FETCHED | STREAMED, _ROWS_AT_A_TIME, _TILES_AHEAD)
    tiles, apart_bytes = tiles_of_a_row(plan.groups[0][0])
    goes_by_rows = plan.elements < _SMALL_ELEMENTS or tiles <= _FEW_TILES
    if goes_by_rows and (tiles == 1 or apart_bytes % _ALIASED_BYTES):
        return Walk()
    return Walk(FETCHED, _ROWS_AT_A_TIME, _TILES_AHEAD)


def _wrong_direction(info: DataConversionInfo, direction: Direction) -> SpyrecError:
    return refuse("SPY0315", f'the table copies "{info.direction.value}", asked for "{direction.value}"')


def _wrong_carrier(array: Elements, known: _KnownCopy, info: DataConversionInfo) -> SpyrecError:
    wanted = " or ".join(carrier.name for carrier in known.host_carriers) or "no host array"
    fact = f"the host array is {array.dtype.name}, format {info.host_format.name} is carried by {wanted}"
    return refuse("SPY0315", fact)


def _execute(known: _KnownCopy, source: Elements, destination: Elements) -> None:
    """Copy between contiguous arrays, of which the device's is bytes; the caller has checked the bounds."""
    if known.kernel is not None:
        copy_groups = partial(known.kernel.copy, (address_of(source), address_of(destination)))
    else:
        memory = destination if known.is_to_device else source
        assert memory.dtype == np.uint8
        assert memory.ndim == 1
        size_bytes = memory.size // known.device_carrier.itemsize * known.device_carrier.itemsize
        elements = memory[:size_bytes].view(known.device_carrier)
        source, destination = (source.reshape(-1), elements) if known.is_to_device else (elements, destination)
        check = known.converter.check
        if check is not None:
            for nest in known.nests:
                check(_strided(source, nest.sizes, nest.source_strides, nest.source_offset))
        copy_groups = partial(_copy_by_numpy, known, (source, destination))
    _THREADS.run(len(known.plan.groups), known.plan.elements, copy_groups)


def _copy_by_numpy(known: _KnownCopy, sides: tuple[Elements, Elements], first: int, last: int) -> None:
    source, destination = sides
    convert = known.converter.apply
    for part in chain.from_iterable(known.plan.groups[first:last]):
        reading = _strided(source, part.sizes, part.source_strides, part.source_offset)
        writing = _strided(destination, part.sizes, part.destination_strides, part.destination_offset)
        np.copyto(writing, reading if convert is None else convert(reading), casting="same_kind")


def _outside(known: _KnownCopy, host: Elements, memory: Octets) -> SpyrecError:
    held = {"host": host.size, "device": memory.size // known.device_carrier.itemsize}
    sides = ("host", "device") if known.is_to_device else ("device", "host")
    for name, side, (first, last) in zip(
        ("source", "destination"), sides, (known.plan.source_span, known.plan.destination_span), strict=True
    ):
        if first < 0 or last >= held[side]:
            fact = f"the table reaches {name} elements {first} to {last}, the buffer holds {held[side]}"
            return refuse("SPY0317", fact)
    raise AssertionError


def _strided(elements: Elements, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Elements:
    """Return the elements of one nest as an array, outermost loop first. The caller has checked the bounds."""
    item = elements.itemsize
    return np.lib.stride_tricks.as_strided(
        elements[offset:], shape=sizes[::-1], strides=tuple(stride * item for stride in strides[::-1])
    )
