"""Makes control blocks: each function fills in what the operation reads and writes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spyrec.runtime.errors import HostArrayNotWritable, InvalidSize, OverlappingCopy
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes
from spyrec.runtime.streams.control_block import (
    ControlBlock,
    Conversion,
    DeviceToDevice,
    DeviceToHost,
    EventAction,
    HostArray,
    HostCall,
    HostToDevice,
    Kind,
    Origin,
    StridedBytes,
)
from spyrec.runtime.streams.host_buffer import HostBuffer
from spyrec.runtime.streams.recording import Recording


def host_to_device(  # noqa: PLR0913 -- options, given by name
    source: HostBuffer | HostArray,
    destination: DeviceBytes,
    origin: Origin,
    conversion: Conversion | None = None,
    *,
    is_lent: bool = False,
    is_cleared: bool = False,
) -> ControlBlock:
    """Return a copy to the device: bytes, or a tensor as ``conversion`` says.

    An array is taken as it is then, by copy; one that ``is_lent``, and a host buffer, is read when the copy is
    executed.  ``is_cleared``: what the conversion leaves out becomes zero.  Errors: SPY0906 without a conversion, and
    the sizes differ.
    """
    if conversion is None:
        _require_size(source, destination)
    if isinstance(source, HostBuffer):
        action = HostToDevice(source, destination.range, conversion)
        return ControlBlock(Kind.H2D, action, origin, (source.range,), (destination.range,), (destination.allocation,))
    array = np.ascontiguousarray(source) if is_lent else source.copy(order="C")
    action = HostToDevice(array, destination.range, conversion, is_cleared)
    return ControlBlock(Kind.H2D, action, origin, (), (destination.range,), (destination.allocation,))


def device_to_host(
    source: DeviceBytes,
    destination: HostBuffer | HostArray,
    origin: Origin,
    conversion: Conversion | None = None,
) -> ControlBlock:
    """Return a copy to the host: bytes, or a tensor as ``conversion`` says; an array is C-contiguous and writable.

    Errors: SPY0906 without a conversion, and the sizes differ; SPY0971 the array cannot be written so.
    """
    if conversion is None:
        _require_size(destination, source)
    if not isinstance(destination, HostBuffer):
        flags = destination.flags
        if not (flags.writeable and flags.c_contiguous):
            kind = "not contiguous" if flags.writeable else "read-only"
            raise HostArrayNotWritable(f"a copy to the host into an array that is {kind}")
    writes = (destination.range,) if isinstance(destination, HostBuffer) else ()
    action = DeviceToHost(source.range, destination, conversion)
    return ControlBlock(Kind.D2H, action, origin, (source.range,), writes, (source.allocation,))


def device_to_device(
    source: DeviceBytes, destination: DeviceBytes, origin: Origin, copy: StridedBytes | None = None
) -> ControlBlock:
    """Return a copy on the device: all of ``source``, or the chunks that ``copy`` walks from the starts of both.

    Errors: SPY0906 it reaches beyond either, SPY0926 source and destination overlap.
    """
    walk = copy or StridedBytes(source.range.size_bytes)
    reading = source.range.part(0, walk.reach(walk.source_strides or (0,) * len(walk.sizes)))
    writing = destination.range.part(0, walk.reach(walk.destination_strides or (0,) * len(walk.sizes)))
    if not source.range.contains(reading) or not destination.range.contains(writing):
        fact = f"a copy of {reading.size_bytes} bytes to {writing.size_bytes} bytes"
        raise InvalidSize(f"{fact} reaches beyond {source.range.size_bytes} or {destination.range.size_bytes} bytes")
    if reading.overlaps(writing):
        places = f"[{reading.address.offset}, {reading.past}) to [{writing.address.offset}, {writing.past})"
        raise OverlappingCopy(f"a copy of bytes {places} of region {reading.address.region_id}")
    action = DeviceToDevice(reading.address, writing.address, walk)
    return ControlBlock(Kind.D2D, action, origin, (reading,), (writing,), (source.allocation, destination.allocation))


def host_operation(
    function: Callable[[], None],
    origin: Origin,
    reads: tuple[AddressRange, ...] = (),
    writes: tuple[AddressRange, ...] = (),
    *,
    is_apart: bool = False,
) -> ControlBlock:
    """Return a computation of the runtime's own on the host, in stream order: what makes a correction tensor.

    ``is_apart``: as a control block has it.
    """
    return ControlBlock(Kind.HOST_OPERATION, HostCall(function), origin, reads, writes, is_apart=is_apart)


def host_function(
    function: Callable[[], None],
    origin: Origin,
    reads: tuple[AddressRange, ...] = (),
    writes: tuple[AddressRange, ...] = (),
    retained: tuple[AllocationIndex, ...] = (),
) -> ControlBlock:
    """Return a call of the user's function: it overlaps with nothing of its stream."""
    return ControlBlock(Kind.HOST_FUNCTION, HostCall(function), origin, reads, writes, retained, is_barrier=True)


def event_record(recording: Recording, origin: Origin, retained: tuple[AllocationIndex, ...] = ()) -> ControlBlock:
    """Return a point in the stream that others can wait for; ``retained``: memory that stays until it is reached."""
    return ControlBlock(Kind.EVENT_RECORD, EventAction(recording), origin, retained=retained)


def event_wait(recording: Recording, origin: Origin) -> ControlBlock:
    """Return a wait until another stream has come to its point."""
    return ControlBlock(Kind.EVENT_WAIT, EventAction(recording), origin)


def own_wait(recording: Recording, origin: Origin, *, is_order_only: bool = False) -> ControlBlock:
    """Return a wait of the runtime's own, not the user's; ``is_order_only``: whether or not all went well."""
    return ControlBlock(Kind.EVENT_WAIT, EventAction(recording, is_order_only, is_own=True), origin)


def _require_size(host: HostBuffer | HostArray, device: DeviceBytes) -> None:
    size_bytes = host.size_bytes if isinstance(host, HostBuffer) else host.nbytes
    if size_bytes != device.range.size_bytes:
        raise InvalidSize(f"a copy between {size_bytes} bytes of the host and {device.range.size_bytes} of the device")
