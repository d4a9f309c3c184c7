"""What a caller in C may get wrong: it gets a status, the reason as text, and nothing of Python on its stderr."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Generator

import cffi
import pytest

from spyrec.exec.cabi.build import CLibrary
from spyrec.exec.errors import Status
from tests.support.exec_fronts import load_library

assert cffi.__version__  # what the library is made with; this file is not collected without it
POINTER, SIZE, KEY = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64


@pytest.fixture
def library(c_library: CLibrary) -> ctypes.CDLL:
    loaded = load_library(c_library.path)
    loaded.frt_buffer_name.restype = loaded.spyrec_last_error.restype = POINTER
    return loaded


@pytest.fixture
def context(library: ctypes.CDLL) -> Generator[ctypes.c_void_p]:
    made = POINTER(library.frt_ctx_create())
    yield made
    library.frt_ctx_destroy(made)


def text(pointer: int) -> bytes:
    return ctypes.string_at(pointer)


@pytest.mark.parametrize("call", ["spyrec_buffer_write", "spyrec_buffer_read"])
@pytest.mark.parametrize(
    ("has_memory", "size", "status"),
    [
        (False, 256, -1),
        (False, 0, 0),
        (True, (1 << 64) - 1, -1),
        (True, 1 << 63, -1),
        (True, 1 << 62, -1),
        (True, 256, 0),
    ],
)
def test_host_memory_that_is_none_is_refused_with_a_reason(
    call: str,
    has_memory: bool,
    size: int,
    status: int,
    library: ctypes.CDLL,
    context: ctypes.c_void_p,
    capfd: pytest.CaptureFixture[str],
) -> None:
    buffer = POINTER(library.frt_buffer_alloc(context, b"b", SIZE(256)))
    memory = ctypes.create_string_buffer(256) if has_memory else None
    assert library.frt_graph_replay(None, KEY(0), 0) == Status.INVALID  # a reason that must be replaced
    assert getattr(library, call)(buffer, SIZE(0), memory, SIZE(size), 0) == status
    reason = text(library.spyrec_last_error())
    assert (b"no graph" in reason) == (status == 0)
    assert status == 0 or str(size).encode() in reason
    assert capfd.readouterr().err == ""


def test_the_reason_stays_until_another_call_fails(library: ctypes.CDLL, context: ctypes.c_void_p) -> None:
    assert library.frt_ctx_stream(context, 3) == Status.INVALID
    first = library.spyrec_last_error()
    kept = text(first)
    assert b"priority 3" in kept
    for _ in range(50):
        assert library.frt_ctx_event(context)
        assert library.spyrec_last_error() == first
    gc.collect()
    assert text(first) == kept
    assert library.frt_ctx_stream(context, 4) == Status.INVALID
    assert b"priority 4" in text(library.spyrec_last_error())


def test_a_record_callback_that_is_null_is_invalid(library: ctypes.CDLL, context: ctypes.c_void_p) -> None:
    graph = POINTER(library.frt_graph_create(context, b"g", SIZE(0)))
    assert library.frt_graph_capture(graph, KEY(1), None, None) == Status.INVALID
    assert library.spyrec_exec_capture(context, None, None) is None


def test_names_are_the_bytes_that_were_given(library: ctypes.CDLL, context: ctypes.c_void_p) -> None:
    for name in (b"plain", "h\u00e9".encode(), b"\xff\xfe", b"\xff"):
        buffer = POINTER(library.frt_buffer_alloc(context, name, SIZE(16)))
        assert text(library.frt_buffer_name(buffer)) == name
        assert library.frt_buffer_copy(context, buffer, SIZE(17), buffer, SIZE(0), SIZE(1), 0) == Status.INVALID
        assert name in text(library.spyrec_last_error())


def test_a_port_has_one_handle_as_long_as_its_graph_is_captured(library: ctypes.CDLL, context: ctypes.c_void_p) -> None:
    graph = POINTER(library.frt_graph_create(context, b"g", SIZE(0)))
    before, handles = library.spyrec_live_handles(), list[int]()

    def record(_user: int | None, _stream: int | None) -> None:
        handles.extend(library.spyrec_graph_port(graph, name, SIZE(128)) for name in (b"x", b"x", b"y"))

    callback = ctypes.CFUNCTYPE(None, POINTER, POINTER)(record)
    for key in range(5):
        assert library.frt_graph_capture(graph, KEY(key), callback, None) == Status.OK
    assert [one == other for one, other in zip(handles[0::3], handles[1::3], strict=True)] == [True] * 5
    assert len(set(handles)) == 10
    assert library.spyrec_live_handles() == before
    assert library.frt_buffer_bytes(POINTER(handles[0])) == 0
