"""Operations take effect when their time has come: copies (bytes or converted tensors), computations, host work."""

from __future__ import annotations

import threading
import traceback

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import Backend, WatchesCopies
from spyrec.runtime.host_copies.conversion import storage_type
from spyrec.runtime.host_copies.device_form import DeviceForm
from spyrec.runtime.host_copies.transfer import copy_into_host, copy_to_device
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.streams.control_block import (
    ComputeRequest,
    DeviceToDevice,
    DeviceToHost,
    EventAction,
    HostArray,
    HostCall,
    HostToDevice,
    StridedBytes,
)
from spyrec.runtime.streams.host_buffer import HostBuffer
from spyrec.runtime.streams.stream_queue import Entry

Memory = npt.NDArray[np.uint8]


def copy_in(backend: Backend, action: HostToDevice) -> None:
    """Copy host memory to the device; errors SPY0315 to SPY0318, SPY0773, SPY0905."""
    conversion = action.conversion
    if conversion is None:
        backend.write(action.destination, _bytes_of(action.source))
        return
    host = _host_memory(action.source)
    memory = backend.lend(action.destination, is_written=True)
    if action.is_cleared:
        memory[:] = 0
    stored_as = backend.stored_as(conversion.device_format)
    packed = _packed(memory, action.destination, conversion.device_format, stored_as)
    if isinstance(conversion, DeviceForm):
        packed[:] = conversion.encoded(host.astype(np.float32, copy=False).reshape(conversion.shape), stored_as)
    else:
        copy_to_device(host, conversion, packed, stored_as=stored_as)
    if packed is not memory:
        _slots(memory, stored_as)[:] = packed.view(storage_type(stored_as))


def copy_out(backend: Backend, action: DeviceToHost) -> None:
    """Copy device memory to the host; errors SPY0315, SPY0317, SPY0773, SPY0905."""
    memory = backend.lend(action.source, is_written=False)
    conversion = action.conversion
    if conversion is None:
        _bytes_of(action.destination)[: memory.size] = memory
        return
    host = _host_memory(action.destination)
    stored_as = backend.stored_as(conversion.device_format)
    packed = _packed(memory, action.source, conversion.device_format, stored_as)
    if isinstance(conversion, DeviceForm):
        host[...] = conversion.decoded(packed, stored_as).reshape(host.shape)
    else:
        copy_into_host(packed, conversion, host.reshape(-1), stored_as=stored_as)


def copy_on_device(backend: Backend, action: DeviceToDevice) -> None:
    """Copy between two places of device memory; errors SPY0905."""
    copy = action.copy
    source = AddressRange(action.source, copy.reach(copy.source_strides))
    destination = AddressRange(action.destination, copy.reach(copy.destination_strides))
    reading, writing = backend.lend(source, is_written=False), backend.lend(destination, is_written=True)
    scale = reading.size // source.size_bytes
    _chunks(writing, copy, copy.destination_strides, scale)[:] = _chunks(reading, copy, copy.source_strides, scale)


def _chunks(memory: Memory, copy: StridedBytes, strides: tuple[int, ...], scale: int) -> Memory:
    steps = (*(stride * scale for stride in strides), 1)
    # the caller's view holds exactly what the strides reach
    return np.lib.stride_tricks.as_strided(memory, (*copy.sizes, copy.chunk_bytes * scale), steps)


def _host_memory(place: HostBuffer | HostArray) -> HostArray:
    return place.data if isinstance(place, HostBuffer) else place


def _host_bytes(host: HostArray) -> Memory:
    assert host.flags.c_contiguous
    return host.reshape(-1).view(np.uint8)


def _bytes_of(place: HostBuffer | HostArray) -> Memory:
    return place.data if isinstance(place, HostBuffer) else _host_bytes(place)


def _is_wide(memory: Memory, place: AddressRange, device_format: DeviceFormat, stored_as: DeviceFormat) -> bool:
    """Whether an element lies at the front of a slot of twice its width: the backend's memory is two bytes for one.

    A format that such a memory stores as one of twice the width fills its slots.
    """
    return memory.size == 2 * place.size_bytes and stored_as.bits == device_format.bits


def _slots(memory: Memory, stored_as: DeviceFormat) -> npt.NDArray[np.generic]:
    return memory.view(storage_type(stored_as))[::2]


def _packed(memory: Memory, place: AddressRange, device_format: DeviceFormat, stored_as: DeviceFormat) -> Memory:
    if not _is_wide(memory, place, device_format, stored_as):
        return memory
    return np.ascontiguousarray(_slots(memory, stored_as)).view(np.uint8)


class Effects:
    """Executes single operations on a backend, in the thread that asks."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._copies = backend if isinstance(backend, WatchesCopies) else None
        self._here = threading.local()

    @property
    def is_in_host_function(self) -> bool:
        """Whether this thread is inside of host work of a stream."""
        return getattr(self._here, "is_inside", False)

    def execute(self, entry: Entry) -> BaseException | None:
        """Let the effects of an operation happen; return what it raised."""
        try:
            self._act(entry)
        except BaseException as error:  # noqa: BLE001 -- its stream keeps it, and what is no Exception is raised again
            _forget_frames(error)
            return error
        return None

    def _act(self, entry: Entry) -> None:
        action = entry.block.action
        match action:
            case ComputeRequest():
                self._backend.compute(entry.block)
                return
            case HostCall():
                self._call(action)
                return
            case HostToDevice():
                copy_in(self._backend, action)
            case DeviceToHost():
                copy_out(self._backend, action)
            case DeviceToDevice():
                copy_on_device(self._backend, action)
            case EventAction():
                raise AssertionError("events take no engine")
        if self._copies is not None:
            self._copies.copied(entry.block)

    def _call(self, action: HostCall) -> None:
        self._here.is_inside = True
        try:
            action.function()
        finally:
            self._here.is_inside = False


def _forget_frames(error: BaseException) -> None:
    """Keep the traceback as text only: a stream keeps its error, and the frames would keep everybody's tensors."""
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    pending: list[BaseException | None] = [error]
    while pending:
        item = pending.pop()
        if item is not None and item.__traceback__ is not None:
            item.__traceback__ = None
            pending += [item.__cause__, item.__context__]
