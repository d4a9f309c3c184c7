"""The two fronts of the execution contract under one face: functions of the C ABI's shape, statuses out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from spyrec.exec import Buffer, Context, Event, Graph, GraphExec, Plan, capture
from spyrec.exec.cabi.build import lacking
from spyrec.exec.errors import ExecError, Status, translated

FRONTS = ("py", "cabi") if lacking() is None else ("py",)

Handle = object
"""What a front gives out: an object, or a pointer; ``None`` for failure."""

Record = Callable[[int], object]


class Front(Protocol):
    """The contract's functions without their prefix, on one context; what tests need beside them."""

    def stream(self, priority: int) -> int: ...
    def wrap_stream(self, handle: int) -> int: ...
    def event(self) -> Handle: ...
    def event_destroy(self, event: Handle) -> None: ...
    def event_record(self, event: Handle, stream: int) -> int: ...
    def stream_wait(self, stream: int, event: Handle) -> int: ...
    def buffer_alloc(self, name: str, size: int) -> Handle: ...
    def buffer_wrap(self, name: str, dptr: int, size: int) -> Handle: ...
    def buffer_dptr(self, buffer: Handle) -> int: ...
    def buffer_bytes(self, buffer: Handle) -> int: ...
    def buffer_name(self, buffer: Handle) -> str | None: ...
    def buffer_destroy(self, buffer: Handle) -> None: ...
    def buffer_copy(self, to: Handle, to_at: int, source: Handle, source_at: int, size: int, stream: int) -> int: ...
    def graph_create(self, name: str, max_variants: int) -> Handle: ...
    def graph_destroy(self, graph: Handle) -> None: ...
    def graph_capture(self, graph: Handle, key: int, record: Record) -> int: ...
    def graph_adopt(self, graph: Handle, key: int, executable: Handle) -> int: ...
    def graph_bind(self, graph: Handle, port: str, buffer: Handle) -> int: ...
    def graph_replay(self, graph: Handle, key: int, stream: int) -> int: ...
    def graph_has_variant(self, graph: Handle, key: int) -> int: ...
    def plan_create(self) -> Handle: ...
    def plan_destroy(self, plan: Handle) -> None: ...
    def plan_add(self, plan: Handle, graph: Handle, key: int, stream: int) -> int: ...
    def plan_after(self, plan: Handle, node: int, dependency: int) -> int: ...
    def plan_execute(self, plan: Handle, key: int) -> int: ...
    def plan_sync(self, plan: Handle) -> int: ...
    def ctx_destroy(self) -> None: ...

    def write(self, buffer: Handle, data: bytes, stream: int = 0) -> int: ...
    def read(self, buffer: Handle) -> bytes: ...
    def port(self, graph: Handle, name: str, size: int) -> Handle: ...
    def exec_capture(self, record: Record) -> Handle: ...
    def exec_destroy(self, executable: Handle) -> None: ...
    def control_blocks(self) -> int: ...
    def sync(self, stream: int) -> int: ...


def _status(call: Callable[[], object]) -> int:
    try:
        answer = call()
    except ExecError as error:
        return error.status
    return answer if isinstance(answer, int) else Status.OK


def _handle(call: Callable[[], Handle]) -> Handle:
    try:
        return call()
    except ExecError:
        return None


class PythonFront:
    """``spyrec.exec``: objects, and exceptions that carry the status."""

    def __init__(self, context: Context | None = None) -> None:
        self.context = context or Context()

    def stream(self, priority: int) -> int:
        return _status(lambda: self.context.stream(priority))

    def wrap_stream(self, handle: int) -> int:
        return _status(lambda: self.context.wrap_stream(handle))

    def event(self) -> Handle:
        return _handle(self.context.event)

    def event_destroy(self, event: Handle) -> None:
        assert isinstance(event, Event)
        event.destroy()

    def event_record(self, event: Handle, stream: int) -> int:
        assert isinstance(event, Event)
        return _status(lambda: event.record(stream))

    def stream_wait(self, stream: int, event: Handle) -> int:
        assert isinstance(event, Event)
        return _status(lambda: self.context.stream_wait(stream, event))

    def buffer_alloc(self, name: str, size: int) -> Handle:
        return _handle(lambda: self.context.buffer_alloc(name, size))

    def buffer_wrap(self, name: str, dptr: int, size: int) -> Handle:
        return _handle(lambda: self.context.buffer_wrap(name, dptr, size))

    def buffer_dptr(self, buffer: Handle) -> int:
        assert isinstance(buffer, Buffer)
        return buffer.dptr

    def buffer_bytes(self, buffer: Handle) -> int:
        assert isinstance(buffer, Buffer)
        return buffer.bytes

    def buffer_name(self, buffer: Handle) -> str | None:
        assert isinstance(buffer, Buffer)
        return buffer.name

    def buffer_destroy(self, buffer: Handle) -> None:
        assert isinstance(buffer, Buffer)
        buffer.destroy()

    def buffer_copy(self, to: Handle, to_at: int, source: Handle, source_at: int, size: int, stream: int) -> int:
        assert isinstance(to, Buffer)
        assert isinstance(source, Buffer)
        return _status(lambda: self.context.buffer_copy(to, to_at, source, source_at, size, stream))

    def graph_create(self, name: str, max_variants: int) -> Handle:
        return _handle(lambda: self.context.graph(name, max_variants))

    def graph_destroy(self, graph: Handle) -> None:
        assert isinstance(graph, Graph)
        graph.destroy()

    def graph_capture(self, graph: Handle, key: int, record: Record) -> int:
        assert isinstance(graph, Graph)
        return _status(lambda: graph.capture(key, lambda stream: record(stream.id)))

    def graph_adopt(self, graph: Handle, key: int, executable: Handle) -> int:
        assert isinstance(graph, Graph)
        assert isinstance(executable, GraphExec)
        return _status(lambda: graph.adopt(key, executable))

    def graph_bind(self, graph: Handle, port: str, buffer: Handle) -> int:
        assert isinstance(graph, Graph)
        assert isinstance(buffer, Buffer)
        return _status(lambda: graph.bind(port, buffer))

    def graph_replay(self, graph: Handle, key: int, stream: int) -> int:
        assert isinstance(graph, Graph)
        return _status(lambda: graph.replay(key, stream))

    def graph_has_variant(self, graph: Handle, key: int) -> int:
        assert isinstance(graph, Graph)
        return _status(lambda: int(graph.has_variant(key)))

    def plan_create(self) -> Handle:
        return _handle(self.context.plan)

    def plan_destroy(self, plan: Handle) -> None:
        assert isinstance(plan, Plan)
        plan.destroy()

    def plan_add(self, plan: Handle, graph: Handle, key: int, stream: int) -> int:
        assert isinstance(plan, Plan)
        assert isinstance(graph, Graph)
        return _status(lambda: plan.add(graph, key, stream))

    def plan_after(self, plan: Handle, node: int, dependency: int) -> int:
        assert isinstance(plan, Plan)
        return _status(lambda: plan.after(node, dependency))

    def plan_execute(self, plan: Handle, key: int) -> int:
        assert isinstance(plan, Plan)
        return _status(lambda: plan.execute(key))

    def plan_sync(self, plan: Handle) -> int:
        assert isinstance(plan, Plan)
        return _status(plan.sync)

    def ctx_destroy(self) -> None:
        self.context.destroy()

    def write(self, buffer: Handle, data: bytes, stream: int = 0) -> int:
        assert isinstance(buffer, Buffer)
        flex = self.context.runtime_stream(stream).flex
        return _status(lambda: flex.copy_h2d(np.frombuffer(data, np.uint8), buffer.place()))

    def read(self, buffer: Handle) -> bytes:
        assert isinstance(buffer, Buffer)
        data = np.zeros(buffer.bytes, np.uint8)
        self.context.runtime_stream(0).flex.copy_d2h(buffer.place(), data)
        return data.tobytes()

    def port(self, graph: Handle, name: str, size: int) -> Handle:
        assert isinstance(graph, Graph)
        return _handle(lambda: graph.port(name, size))

    def exec_capture(self, record: Record) -> Handle:
        return _handle(lambda: capture(self.context.device, lambda stream: record(stream.id)))

    def exec_destroy(self, executable: Handle) -> None:
        assert isinstance(executable, GraphExec)

    def control_blocks(self) -> int:
        return self.context.device.scheduler.control_blocks

    def sync(self, stream: int) -> int:
        def call() -> None:
            with translated():
                self.context.runtime_stream(stream).synchronize()

        return _status(call)


_POINTER, _SIZE, _KEY, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int
_RECORD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_POINTERS = (
    "frt_ctx_create frt_ctx_event frt_buffer_alloc frt_buffer_wrap frt_buffer_dptr frt_graph_create frt_plan_create "
    "spyrec_exec_capture spyrec_graph_port spyrec_program_load"
)


def load_library(path: Path) -> ctypes.CDLL:
    """The shared library in this process: it uses the interpreter that runs."""
    library = ctypes.CDLL(str(path))
    for name in _POINTERS.split():
        getattr(library, name).restype = _POINTER
    library.frt_buffer_bytes.restype = _SIZE
    library.frt_buffer_name.restype = ctypes.c_char_p
    library.spyrec_last_error.restype = ctypes.c_char_p
    library.spyrec_live_handles.restype = library.spyrec_control_blocks.restype = ctypes.c_uint64
    return library


def _at(handle: Handle) -> ctypes.c_void_p:
    assert handle is None or isinstance(handle, int)
    return _POINTER(handle)


def _callback(record: Record) -> Callable[..., object]:
    def call(_: int | None, stream: int | None) -> None:
        record(stream or 0)

    return _RECORD(call)


class LibraryFront:
    """The shared library, called as C calls it."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._context = _POINTER(library.frt_ctx_create())
        assert self._context.value is not None, library.spyrec_last_error()

    def stream(self, priority: int) -> int:
        return self._library.frt_ctx_stream(self._context, priority)

    def wrap_stream(self, handle: int) -> int:
        return self._library.frt_ctx_wrap_stream(self._context, _POINTER(handle))

    def event(self) -> Handle:
        return self._library.frt_ctx_event(self._context)

    def event_destroy(self, event: Handle) -> None:
        self._library.frt_event_destroy(_at(event))

    def event_record(self, event: Handle, stream: int) -> int:
        return self._library.frt_event_record(_at(event), stream)

    def stream_wait(self, stream: int, event: Handle) -> int:
        return self._library.frt_stream_wait(self._context, stream, _at(event))

    def buffer_alloc(self, name: str, size: int) -> Handle:
        return self._library.frt_buffer_alloc(self._context, name.encode(), _SIZE(size))

    def buffer_wrap(self, name: str, dptr: int, size: int) -> Handle:
        return self._library.frt_buffer_wrap(self._context, name.encode(), _POINTER(dptr), _SIZE(size))

    def buffer_dptr(self, buffer: Handle) -> int:
        return self._library.frt_buffer_dptr(_at(buffer))

    def buffer_bytes(self, buffer: Handle) -> int:
        return self._library.frt_buffer_bytes(_at(buffer))

    def buffer_name(self, buffer: Handle) -> str | None:
        name = self._library.frt_buffer_name(_at(buffer))
        return None if name is None else name.decode()

    def buffer_destroy(self, buffer: Handle) -> None:
        self._library.frt_buffer_destroy(_at(buffer))

    def buffer_copy(self, to: Handle, to_at: int, source: Handle, source_at: int, size: int, stream: int) -> int:
        target, origin = _at(to), _at(source)
        sizes = (_SIZE(to_at), _SIZE(source_at), _SIZE(size))
        return self._library.frt_buffer_copy(self._context, target, sizes[0], origin, sizes[1], sizes[2], stream)

    def graph_create(self, name: str, max_variants: int) -> Handle:
        return self._library.frt_graph_create(self._context, name.encode(), _SIZE(max_variants))

    def graph_destroy(self, graph: Handle) -> None:
        self._library.frt_graph_destroy(_at(graph))

    def graph_capture(self, graph: Handle, key: int, record: Record) -> int:
        callback = _callback(record)
        return self._library.frt_graph_capture(_at(graph), _KEY(key), callback, None)

    def graph_adopt(self, graph: Handle, key: int, executable: Handle) -> int:
        return self._library.frt_graph_adopt(_at(graph), _KEY(key), _at(executable))

    def graph_bind(self, graph: Handle, port: str, buffer: Handle) -> int:
        return self._library.frt_graph_bind(_at(graph), port.encode(), _at(buffer))

    def graph_replay(self, graph: Handle, key: int, stream: int) -> int:
        return self._library.frt_graph_replay(_at(graph), _KEY(key), stream)

    def graph_has_variant(self, graph: Handle, key: int) -> int:
        return self._library.frt_graph_has_variant(_at(graph), _KEY(key))

    def plan_create(self) -> Handle:
        return self._library.frt_plan_create(self._context)

    def plan_destroy(self, plan: Handle) -> None:
        self._library.frt_plan_destroy(_at(plan))

    def plan_add(self, plan: Handle, graph: Handle, key: int, stream: int) -> int:
        return self._library.frt_plan_add(_at(plan), _at(graph), _KEY(key), stream)

    def plan_after(self, plan: Handle, node: int, dependency: int) -> int:
        return self._library.frt_plan_after(_at(plan), node, dependency)

    def plan_execute(self, plan: Handle, key: int) -> int:
        return self._library.frt_plan_execute(_at(plan), _KEY(key))

    def plan_sync(self, plan: Handle) -> int:
        return self._library.frt_plan_sync(_at(plan))

    def ctx_destroy(self) -> None:
        self._library.frt_ctx_destroy(self._context)

    def write(self, buffer: Handle, data: bytes, stream: int = 0) -> int:
        target = _at(buffer)
        return self._library.spyrec_buffer_write(target, _SIZE(0), data, _SIZE(len(data)), stream)

    def read(self, buffer: Handle) -> bytes:
        size = self.buffer_bytes(buffer)
        data = ctypes.create_string_buffer(size)
        status = self._library.spyrec_buffer_read(_at(buffer), _SIZE(0), data, _SIZE(size), 0)
        assert status == 0, self._library.spyrec_last_error()
        return data.raw

    def port(self, graph: Handle, name: str, size: int) -> Handle:
        return self._library.spyrec_graph_port(_at(graph), name.encode(), _SIZE(size))

    def exec_capture(self, record: Record) -> Handle:
        callback = _callback(record)
        return self._library.spyrec_exec_capture(self._context, callback, None)

    def exec_destroy(self, executable: Handle) -> None:
        self._library.spyrec_exec_destroy(_at(executable))

    def control_blocks(self) -> int:
        return self._library.spyrec_control_blocks(self._context)

    def sync(self, stream: int) -> int:
        return self._library.spyrec_stream_sync(self._context, stream)
