"""The owner of everything: streams, events, buffers, graphs, plans."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Protocol, Self, TypeVar

from spyrec.exec.arguments import SIZE, StreamOrId, require_name, require_size
from spyrec.exec.buffer import Buffer
from spyrec.exec.default_device import DEFAULT_DEVICES
from spyrec.exec.errors import InvalidCall, translated
from spyrec.exec.event import Event
from spyrec.exec.graph import Graph, require_max_variants
from spyrec.exec.plan import Plan
from spyrec.runtime.argument_kinds import Text, Whole, as_integer, of, shown, takes
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.capture import refuse_in_capture_on
from spyrec.runtime.streams.spyre_stream import SpyreStream


class Owned(Protocol):
    """What a context can own."""

    @property
    def context(self) -> Context:
        """The context that it was made through."""
        ...

    def destroy(self) -> None:
        """Let go of everything, and be forgotten by the context."""
        ...


Item = TypeVar("Item", bound=Owned)


_ORDER = (Plan, Graph, Buffer, Event)


def _rank(item: Owned) -> int:
    """Return when something is destroyed with its context: what others use comes last."""
    return next((place for place, kind in enumerate(_ORDER) if isinstance(item, kind)), len(_ORDER))


class Context:
    """Owns what is made through it, on ``device``, or on one of its own.

    Every method may be called from any thread.  :meth:`destroy`, or ``with``, finishes what is enqueued and gives
    everything back that is the context's: not wrapped memory, wrapped streams, adopted executables.
    """

    @takes(InvalidCall, device=of("SpyreDevice", or_none=True))
    def __init__(self, device: SpyreDevice | None = None) -> None:
        self.lock = threading.RLock()
        self._owns_device = device is None
        self.device = device or DEFAULT_DEVICES.open()
        self._streams: list[SpyreStream] = [self.device.default_stream]
        self._own_streams: list[SpyreStream] = []
        self._owned: dict[Owned, None] = {}
        self._guard: Allocation | None = None
        self._is_destroyed = False
        self._is_finished = False

    @takes(InvalidCall, priority=Whole())
    def stream(self, priority: int = 0) -> int:
        """Return the number of a new stream: 0 is normal priority, more negative is served earlier; errors SPY0931."""
        self.require_alive()
        if not -(1 << 31) <= priority <= 0:
            raise InvalidCall(f"priority {priority}: 0 is normal, more negative is served earlier")
        with self.lock:
            made = self.device.own_stream(priority)
            self._own_streams.append(made)
            self._streams.append(made)
            return len(self._streams) - 1

    @takes(InvalidCall, stream=StreamOrId())
    def wrap_stream(self, stream: SpyreStream | int) -> int:
        """Return the number of somebody else's stream of the device, given as it is or by its id.

        The same stream has the same number.  Stream 0 is the default one, and has number 0.  Errors: SPY0931.
        """
        self.require_alive()
        with self.lock:
            found = self._found(stream)
            if found not in self._streams:
                self._streams.append(found)
            return self._streams.index(found)

    def runtime_stream(self, stream_id: int) -> SpyreStream:
        """Return the runtime's stream with a number, to give it work of other kinds; errors SPY0931."""
        self.require_alive()
        # by hand: replays ask this each time
        number = stream_id if type(stream_id) is int else as_integer(stream_id)
        if number is None or not 0 <= number < len(self._streams):
            raise InvalidCall(f"stream {shown(stream_id)} of {len(self._streams)}")
        return self._streams[number]

    def event(self) -> Event:
        """Return a new event; errors SPY0931."""
        return self.own(Event(self))

    @takes(InvalidCall, stream_id=Whole(0), event=of("Event"))
    def stream_wait(self, stream_id: int, event: Event) -> None:
        """Let what a stream is given from now on begin when an event is reached; errors SPY0931, SPY0935."""
        self.require_own(event)
        event.let_wait(stream_id)

    @takes(InvalidCall, name=Text(), size_bytes=SIZE)
    def buffer_alloc(self, name: str, size_bytes: int) -> Buffer:
        """Return a buffer of new memory, of one byte at least; errors SPY0931, SPY0936 there is no room."""
        self.require_alive()
        require_name(name)
        require_size(size_bytes, "size")
        if size_bytes == 0:
            raise InvalidCall(f'buffer "{name}" of 0 bytes')
        with self.lock, translated():
            owner = self._allocated(size_bytes)
            place = self.device.allocator.part(owner.index, 0, size_bytes)
            return self.own(Buffer(self, name, place, owner))

    @takes(InvalidCall, name=Text(), dptr=SIZE, size_bytes=SIZE)
    def buffer_wrap(self, name: str, dptr: int, size_bytes: int) -> Buffer:
        """Return a buffer of somebody else's memory, from a device address on; errors SPY0931 there is none."""
        self.require_alive()
        require_name(name)
        require_size(size_bytes, "size")
        if size_bytes == 0 or dptr <= 0:
            raise InvalidCall(f'buffer "{name}" of {size_bytes} bytes at address {dptr}')
        allocator = self.device.allocator
        with self.lock, translated():
            place = AddressRange(allocator.regions.virtual_address(dptr), size_bytes)
            return self.own(Buffer(self, name, DeviceBytes(allocator.containing(place), place)))

    @takes(
        InvalidCall,
        destination=of("Buffer"),
        destination_offset=SIZE,
        source=of("Buffer"),
        source_offset=SIZE,
        size_bytes=SIZE,
        stream_id=Whole(0),
    )
    def buffer_copy(  # noqa: PLR0913 -- the contract's own parameters
        self,
        destination: Buffer,
        destination_offset: int,
        source: Buffer,
        source_offset: int,
        size_bytes: int,
        stream_id: int,
    ) -> None:
        """Copy bytes between buffers, or parts of one that share none, in the order of a stream.

        Errors: SPY0931 out of bounds, overlapping, gone; SPY0935.
        """
        stream = self.runtime_stream(stream_id)
        writing = self._part(destination, destination_offset, size_bytes)
        reading = self._part(source, source_offset, size_bytes)
        if size_bytes:
            with translated():
                stream.flex.copy_d2d(writing, reading)

    @takes(InvalidCall, name=Text(), max_variants=SIZE)
    def graph(self, name: str, max_variants: int = 0) -> Graph:
        """Return an empty graph that keeps at most ``max_variants``, 0 for any number; errors SPY0931."""
        self.require_alive()
        require_name(name)
        require_max_variants(max_variants)
        return self.own(Graph(self, name, max_variants))

    def plan(self) -> Plan:
        """Return an empty plan; errors SPY0931."""
        return self.own(Plan(self))

    def destroy(self) -> None:
        """Finish what is enqueued, and give everything back that is the context's; a second call does nothing.

        Plans go first, then graphs, buffers, events, streams.  Errors of streams are dropped: their owners had the
        chance to ask.  Where an interrupt ends it, a second call does the rest.
        Errors: SPY0931 in a host function, which would be waited for, SPY0934 in a capture, which is given up.
        """
        if self._is_finished:
            return
        with translated():
            self.device.scheduler.refuse_in_host_function("destroy a context")
            refuse_in_capture_on(self.device, "destroy a context")
        for stream in self._streams:
            with suppress(RuntimeFault):
                stream.synchronize()
        with self.lock:
            for item in sorted(self._owned, key=_rank):
                item.destroy()
            self._is_destroyed = True
            while self._own_streams:
                stream = self._own_streams.pop()
                stream.clear_error()
                self.device.give_back(stream)
            guard, self._guard = self._guard, None
            if guard is not None:
                guard.free()
        if self._owns_device:
            self.device.close()
        self._is_finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def require_alive(self) -> None:
        """Refuse everything after :meth:`destroy`; errors SPY0931."""
        if self._is_destroyed:
            raise InvalidCall("the context is destroyed")

    def require_own(self, item: Owned) -> None:
        """Refuse what was made through another context; errors SPY0931."""
        self.require_alive()
        if item.context is not self:
            raise InvalidCall(f"a {type(item).__name__.lower()} of another context")

    def forget(self, item: Owned) -> None:
        """Own something no more: it destroys itself."""
        with self.lock:
            self._owned.pop(item, None)

    def own(self, item: Item) -> Item:
        """Return what will be destroyed with the context; errors SPY0931."""
        self.require_alive()
        with self.lock:
            self._owned[item] = None
        return item

    def _found(self, stream: SpyreStream | int) -> SpyreStream:
        if isinstance(stream, SpyreStream):
            if stream.device is not self.device:
                raise InvalidCall("a stream of another device")
            return stream
        if not self.device.has_stream(stream):
            raise InvalidCall(f"{stream} is the handle of no stream")
        return SpyreStream(self.device, stream_id=stream)

    def _allocated(self, size_bytes: int) -> Allocation:
        """Allocate memory that does not begin at device address 0, which callers in C take for none."""
        allocate, allocator = self.device.spyre_allocator.allocate, self.device.allocator
        owner = allocate(size_bytes)
        if allocator.regions.device_address(allocator.resolve(owner.index)) != 0:
            return owner
        owner.free()
        self._guard = allocate(1)
        return allocate(size_bytes)

    def _part(self, buffer: Buffer, offset: int, size_bytes: int) -> DeviceBytes:
        self.require_own(buffer)
        require_size(offset, "an offset")
        require_size(size_bytes, "a size")
        place = buffer.place()
        if offset + size_bytes > buffer.bytes:
            fact = f"bytes [{offset}, {offset + size_bytes})"
            raise InvalidCall(f'{fact} of buffer "{buffer.name}" of {buffer.bytes}')
        return DeviceBytes(place.allocation, place.range.part(offset, size_bytes))
