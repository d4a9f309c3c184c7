"""What the backend offers beside the contract, under the names of ``spyrec.h``; as in ``spyrec.exec.flat``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spyrec.exec.buffer import Buffer
from spyrec.exec.context import Context
from spyrec.exec.errors import InvalidCall, translated
from spyrec.exec.flat import RecordByHandle
from spyrec.exec.flat_calls import HANDLES, answers_handle, answers_status, last_error
from spyrec.exec.graph import Graph
from spyrec.exec.graph_exec import GraphExec
from spyrec.exec.program import Bytes, Program
from spyrec.exec.recorder import capture
from spyrec.runtime.memory.allocator import DeviceBytes


def spyrec_last_error() -> str:
    """Return why this thread's last failed call failed."""
    return last_error()


def spyrec_live_handles() -> int:
    """Return how many handles are in use."""
    return len(HANDLES)


@answers_handle
def spyrec_control_blocks(ctx: int) -> int:
    """Return how many control blocks the device has executed."""
    return HANDLES.get(ctx, Context).device.scheduler.control_blocks


@answers_status
def spyrec_stream_sync(ctx: int, stream_id: int) -> None:
    """Wait for a stream."""
    with translated():
        HANDLES.get(ctx, Context).runtime_stream(stream_id).synchronize()


@answers_status
def spyrec_buffer_write(buffer: int, offset: int, source: Bytes, stream_id: int) -> None:
    """Copy bytes to a buffer; they may be changed when this returns."""
    target = HANDLES.get(buffer, Buffer)
    stream = target.context.runtime_stream(stream_id)
    place = _part(target, offset, source.size)
    if source.size:
        with translated():
            stream.flex.copy_h2d(source, place)


@answers_status
def spyrec_buffer_read(buffer: int, offset: int, destination: Bytes, stream_id: int) -> None:
    """Copy bytes from a buffer, after waiting for the stream."""
    origin = HANDLES.get(buffer, Buffer)
    stream = origin.context.runtime_stream(stream_id)
    place = _part(origin, offset, destination.size)
    if destination.size:
        with translated():
            stream.flex.copy_d2h(place, destination)


@answers_handle
def spyrec_program_load(ctx: int, directory: str) -> int:
    """Return a bundle's program, uploaded."""
    return HANDLES.add(Program(HANDLES.get(ctx, Context), Path(directory)))


@answers_status
def spyrec_program_destroy(program: int) -> None:
    """Destroy a program."""
    HANDLES.get(program, Program).destroy()
    HANDLES.drop(program)


@answers_status
def spyrec_program_arguments(program: int) -> int:
    """Return how many arguments a program has."""
    return len(HANDLES.get(program, Program).arguments)


@answers_handle
def spyrec_program_argument_bytes(program: int, number: int) -> int:
    """Return the bytes of device memory of an argument."""
    return HANDLES.get(program, Program).argument(number).size_bytes


@answers_status
def spyrec_program_write(program: int, number: int, buffer: int, source: Bytes, stream_id: int) -> None:
    """Copy a host array to an argument's form on the device."""
    HANDLES.get(program, Program).write(number, HANDLES.get(buffer, Buffer), source, stream_id)


@answers_status
def spyrec_program_read(program: int, number: int, buffer: int, destination: Bytes, stream_id: int) -> None:
    """Copy an argument to a host array, after waiting for the stream."""
    data = HANDLES.get(program, Program).read(number, HANDLES.get(buffer, Buffer), stream_id)
    if data.size != destination.size:
        raise InvalidCall(f"room for {destination.size} bytes, the array has {data.size}")
    np.copyto(destination, data)


@answers_status
def spyrec_program_launch(program: int, buffers: list[int], stream_id: int) -> None:
    """Enqueue a program on buffers."""
    HANDLES.get(program, Program).launch([HANDLES.get(item, Buffer) for item in buffers], stream_id)


@answers_handle
def spyrec_graph_port(graph: int, port: str, size_bytes: int) -> int:
    """Return the buffer that stands for a port in the capture under way."""
    return HANDLES.token_of(HANDLES.get(graph, Graph).port(port, size_bytes))


@answers_handle
def spyrec_exec_capture(ctx: int, record: RecordByHandle) -> int:
    """Return an executable of the caller's own."""
    device = HANDLES.get(ctx, Context).device
    return HANDLES.add(capture(device, lambda stream: record(stream.id)))


@answers_status
def spyrec_exec_destroy(executable: int) -> None:
    """Destroy an executable; graphs that adopted it keep using it."""
    HANDLES.get(executable, GraphExec)
    HANDLES.drop(executable)


def _part(buffer: Buffer, offset: int, size_bytes: int) -> DeviceBytes:
    place = buffer.place()
    if offset < 0 or offset + size_bytes > buffer.bytes:
        raise InvalidCall(f'bytes [{offset}, {offset + size_bytes}) of buffer "{buffer.name}" of {buffer.bytes}')
    return DeviceBytes(place.allocation, place.range.part(offset, size_bytes))
