"""The execution contract under the names of its C ABI: handles and numbers in, handles and statuses out.

The shared library exports exactly these functions; none raises.  Handles are those of :mod:`spyrec.exec.flat_calls`; 0
is none.  A record callback is called with the handle of the stream that records.
"""

from __future__ import annotations

from collections.abc import Callable

from spyrec.exec.buffer import Buffer
from spyrec.exec.context import Context
from spyrec.exec.event import Event
from spyrec.exec.flat_calls import HANDLES, answers_handle, answers_status
from spyrec.exec.graph import Graph
from spyrec.exec.graph_exec import GraphExec
from spyrec.exec.plan import Plan

RecordByHandle = Callable[[int], object]


@answers_handle
def frt_ctx_create() -> int:
    """Return a new context on a device of its own."""
    return HANDLES.add(Context())


@answers_status
def frt_ctx_destroy(ctx: int) -> None:
    """Finish what is enqueued, and destroy a context and all that it owns."""
    context = HANDLES.get(ctx, Context)
    context.destroy()
    HANDLES.drop_where(lambda item: getattr(item, "context", None) is context)
    HANDLES.drop(ctx)


@answers_status
def frt_ctx_stream(ctx: int, priority: int) -> int:
    """Return the number of a new stream."""
    return HANDLES.get(ctx, Context).stream(priority)


@answers_status
def frt_ctx_wrap_stream(ctx: int, handle: int) -> int:
    """Return the number of somebody else's stream."""
    return HANDLES.get(ctx, Context).wrap_stream(handle)


@answers_handle
def frt_ctx_event(ctx: int) -> int:
    """Return a new event."""
    return HANDLES.add(HANDLES.get(ctx, Context).event())


@answers_status
def frt_event_destroy(event: int) -> None:
    """Destroy an event."""
    HANDLES.get(event, Event).destroy()
    HANDLES.drop(event)


@answers_status
def frt_event_record(event: int, stream_id: int) -> None:
    """Set an event behind all that a stream has now."""
    HANDLES.get(event, Event).record(stream_id)


@answers_status
def frt_stream_wait(ctx: int, stream_id: int, event: int) -> None:
    """Let what a stream is given from now on begin when an event is reached."""
    HANDLES.get(ctx, Context).stream_wait(stream_id, HANDLES.get(event, Event))


@answers_handle
def frt_buffer_alloc(ctx: int, name: str, size_bytes: int) -> int:
    """Return a buffer of new memory."""
    return HANDLES.add(HANDLES.get(ctx, Context).buffer_alloc(name, size_bytes))


@answers_handle
def frt_buffer_wrap(ctx: int, name: str, dptr: int, size_bytes: int) -> int:
    """Return a buffer of somebody else's memory."""
    return HANDLES.add(HANDLES.get(ctx, Context).buffer_wrap(name, dptr, size_bytes))


@answers_handle
def frt_buffer_dptr(buffer: int) -> int:
    """Return the device address of a buffer, 0 for no buffer."""
    return HANDLES.get(buffer, Buffer).dptr


@answers_handle
def frt_buffer_bytes(buffer: int) -> int:
    """Return the bytes of a buffer, 0 for no buffer."""
    return HANDLES.get(buffer, Buffer).bytes


def frt_buffer_name(buffer: int) -> str | None:
    """Return the name of a buffer, ``None`` for no buffer."""
    names: list[str] = []
    answers_status(lambda: names.append(HANDLES.get(buffer, Buffer).name))()
    return names[0] if names else None


@answers_status
def frt_buffer_destroy(buffer: int) -> None:
    """Destroy a buffer."""
    HANDLES.get(buffer, Buffer).destroy()
    HANDLES.drop(buffer)


@answers_status
def frt_buffer_copy(  # noqa: PLR0913 -- the contract's own parameters
    ctx: int,
    destination: int,
    destination_offset: int,
    source: int,
    source_offset: int,
    size_bytes: int,
    stream_id: int,
) -> None:
    """Copy bytes between buffers in the order of a stream."""
    context = HANDLES.get(ctx, Context)
    writing, reading = HANDLES.get(destination, Buffer), HANDLES.get(source, Buffer)
    context.buffer_copy(writing, destination_offset, reading, source_offset, size_bytes, stream_id)


@answers_handle
def frt_graph_create(ctx: int, name: str, max_variants: int) -> int:
    """Return an empty graph."""
    return HANDLES.add(HANDLES.get(ctx, Context).graph(name, max_variants))


@answers_status
def frt_graph_destroy(graph: int) -> None:
    """Destroy a graph; what is enqueued goes on."""
    HANDLES.get(graph, Graph).destroy()
    HANDLES.drop(graph)


@answers_status
def frt_graph_capture(graph: int, key: int, record: RecordByHandle) -> None:
    """Record the variant of a key."""
    try:
        HANDLES.get(graph, Graph).capture(key, lambda stream: record(stream.id))
    finally:  # the buffers that stood for ports
        HANDLES.drop_where(lambda item: isinstance(item, Buffer) and item.is_destroyed)


@answers_status
def frt_graph_adopt(graph: int, key: int, executable: int) -> None:
    """Use somebody else's executable as the variant of a key."""
    HANDLES.get(graph, Graph).adopt(key, HANDLES.get(executable, GraphExec))


@answers_status
def frt_graph_bind(graph: int, port: str, buffer: int) -> None:
    """Bind a buffer to a port."""
    HANDLES.get(graph, Graph).bind(port, HANDLES.get(buffer, Buffer))


@answers_status
def frt_graph_replay(graph: int, key: int, stream_id: int) -> None:
    """Enqueue the variant of exactly this key."""
    HANDLES.get(graph, Graph).replay(key, stream_id)


@answers_status
def frt_graph_has_variant(graph: int, key: int) -> int:
    """Return 1 where there is a variant of exactly this key, else 0."""
    return int(HANDLES.get(graph, Graph).has_variant(key))


@answers_handle
def frt_plan_create(ctx: int) -> int:
    """Return an empty plan."""
    return HANDLES.add(HANDLES.get(ctx, Context).plan())


@answers_status
def frt_plan_destroy(plan: int) -> None:
    """Destroy a plan; what is enqueued goes on."""
    HANDLES.get(plan, Plan).destroy()
    HANDLES.drop(plan)


@answers_status
def frt_plan_add(plan: int, graph: int, key: int, stream_id: int) -> int:
    """Append a replay, and return its number."""
    return HANDLES.get(plan, Plan).add(HANDLES.get(graph, Graph), key, stream_id)


@answers_status
def frt_plan_after(plan: int, node: int, dependency: int) -> None:
    """Let a node wait for an earlier one."""
    HANDLES.get(plan, Plan).after(node, dependency)


@answers_status
def frt_plan_execute(plan: int, key: int) -> None:
    """Enqueue all replays of a plan, or none."""
    HANDLES.get(plan, Plan).execute(key)


@answers_status
def frt_plan_sync(plan: int) -> None:
    """Wait for all streams of a plan."""
    HANDLES.get(plan, Plan).sync()
