"""A table of executables by shape key, with an exact key and a bound on how many are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from spyrec.dataclass import dataclass
from spyrec.exec.arguments import SIZE, require_key, require_name, require_own_key, require_size
from spyrec.exec.buffer import Buffer
from spyrec.exec.errors import InvalidCall, NoVariant, Unbound, exec_error, translated
from spyrec.exec.graph_exec import GraphExec
from spyrec.exec.recorder import Captured, Record, linked_or_refused, record_on
from spyrec.runtime.argument_kinds import Function, Text, of, takes
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Holdings
from spyrec.runtime.streams.capture import refuse_beside_capture

if TYPE_CHECKING:
    from spyrec.exec.context import Context


@dataclass(slots=True, eq=False)
class Variant:
    """One key's executable; ``captured`` as long as there are ports that something else may be bound to."""

    executable: GraphExec | None
    captured: Captured | None = None


class Graph:
    """Exact shape key -> executable; at most ``max_variants`` of them, 0 for any number, the least recently used goes.

    Keys are unsigned 64 bit numbers other than all ones.  Replaying and inserting count as uses, asking does not.
    """

    def __init__(self, context: Context, name: str, max_variants: int = 0) -> None:
        self.context = context
        self.name = name
        self.max_variants = max_variants
        self._variants: OrderedDict[int, Variant] = OrderedDict()
        self._bound: dict[str, tuple[DeviceBytes, Holdings]] = {}
        self._declared: dict[str, Buffer] | None = None
        self._recording = threading.Lock()
        self._is_destroyed = False

    @takes(InvalidCall, record=Function())
    def capture(self, key: int, record: Record) -> None:
        """Record what ``record`` gives to the stream it is called with, as the variant of a key; replaces one.

        Errors: SPY0931 the key, the graph; SPY0934 the callback failed, and the graph is as before.
        """
        self.require_alive()
        require_own_key(key)
        with translated():  # a capture that this thread has under way is given up, as beginning any other does
            refuse_beside_capture(self.context.device.default_stream.flex, "record")
        with self._recording:  # other threads take turns
            self._declared = {}
            try:
                captured = record_on(self.context.device, record, self._port_places)
                executable = None if captured.ports else linked_or_refused(captured, {})
            finally:
                for buffer in self._declared.values():
                    buffer.destroy()
                self._declared = None
        self._insert(key, Variant(executable, captured if captured.ports else None))

    @takes(InvalidCall, name=Text(), size_bytes=SIZE)
    def port(self, name: str, size_bytes: int) -> Buffer:
        """Return, while this graph is captured, a buffer that stands for the one bound to a port when it is replayed.

        Errors: SPY0931 no capture is under way, SPY0936.
        """
        self.require_alive()
        if self._declared is None:
            raise InvalidCall(f'port "{name}" of graph "{self.name}", which is not being captured')
        if name not in self._declared:
            self._declared[name] = self.context.buffer_alloc(f"port {name}", size_bytes)
        buffer = self._declared[name]
        if buffer.bytes != size_bytes:
            raise InvalidCall(f'port "{name}" of {size_bytes} bytes was declared with {buffer.bytes}')
        return buffer

    @takes(InvalidCall, executable=of("GraphExec"))
    def adopt(self, key: int, executable: GraphExec) -> None:
        """Use an executable that was captured elsewhere, and belongs to somebody else, as the variant of a key.

        Errors: SPY0931.
        """
        self.require_alive()
        require_own_key(key)
        if executable.device is not self.context.device:
            raise InvalidCall("an executable of another device")
        self._insert(key, Variant(executable))

    @takes(InvalidCall, port=Text(), buffer=of("Buffer"))
    def bind(self, port: str, buffer: Buffer) -> None:
        """Bind a buffer to a port of all variants; it keeps its memory until something else is bound there.

        Errors: SPY0931 the buffer is gone, another context's, smaller than a captured port, or begins inside of a stick
        where a tensor was captured.
        """
        self.require_alive()
        require_name(port)
        self.context.require_own(buffer)
        place, holdings = buffer.place(), buffer.held()
        with self.context.lock:
            for key, variant in self._variants.items():
                if variant.captured is not None and port in variant.captured.ports:
                    variant.captured.require_fit(port, place.range, f", variant {key:#x}")
            self._bound[port] = (place, holdings)
            for variant in self._variants.values():
                if variant.captured is not None and port in variant.captured.ports:
                    variant.executable = None

    def replay(self, key: int, stream_id: int) -> None:
        """Enqueue the variant of exactly this key on a stream.

        Errors, and nothing is enqueued: SPY0931, SPY0932 no such variant, SPY0933 a port without buffer, SPY0935.
        """
        context = self.context
        with context.lock:
            stream = context.runtime_stream(stream_id)
            executable = self.ready(key)
            self._variants.move_to_end(key)
        try:
            executable.replay(stream)
        except RuntimeFault as error:
            raise exec_error(error) from error

    def ready(self, key: int) -> GraphExec:
        """Return the executable of a key, without counting as a use; errors SPY0931, SPY0932, SPY0933."""
        self.require_alive()
        if type(key) is not int:
            require_key(key)
        variant = self._variants.get(key)
        if variant is None:
            require_key(key)
            raise NoVariant(f'graph "{self.name}" has no variant {key:#x}')
        if variant.executable is None:
            variant.executable = self._linked(key, variant)
        return variant.executable

    def has_variant(self, key: int) -> bool:
        """Return whether there is a variant of exactly this key; errors SPY0931."""
        self.require_alive()
        require_key(key)
        with self.context.lock:
            return key in self._variants

    def destroy(self) -> None:
        """Forget all variants and bindings; what is enqueued goes on.  A second call does nothing."""
        if not self._is_destroyed:
            self._is_destroyed = True
            self._variants.clear()
            self._bound.clear()
            self.context.forget(self)

    def require_alive(self) -> None:
        """Refuse everything after :meth:`destroy`; errors SPY0931."""
        self.context.require_alive()
        if self._is_destroyed:
            raise InvalidCall(f'graph "{self.name}" is destroyed')

    def _insert(self, key: int, variant: Variant) -> None:
        with self.context.lock:
            self.require_alive()
            self._variants[key] = variant
            self._variants.move_to_end(key)
            if self.max_variants and len(self._variants) > self.max_variants:
                self._variants.popitem(last=False)

    def _port_places(self) -> dict[str, AddressRange]:
        assert self._declared is not None
        return {name: buffer.place().range for name, buffer in self._declared.items()}

    def _linked(self, key: int, variant: Variant) -> GraphExec:
        captured = variant.captured
        assert captured is not None
        unbound = sorted(port for port in captured.ports if port not in self._bound)
        if unbound:
            ports = ", ".join(f'"{port}"' for port in unbound)
            raise Unbound(f'graph "{self.name}" has no buffer at {ports} of variant {key:#x}')
        bound = {port: self._bound[port][0] for port in captured.ports}
        for port, memory in bound.items():
            captured.require_fit(port, memory.range, "")
        with translated():
            return linked_or_refused(captured, bound)


def require_max_variants(value: int) -> None:
    """Refuse what is no bound; errors SPY0931."""
    require_size(value, "max_variants")
