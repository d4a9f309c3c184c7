"""What operations do when their time has come: copies, computations, host work."""

from __future__ import annotations

import threading
import traceback

from spyrec.runtime.device import Backend, WatchesCopies
from spyrec.runtime.streams.control_block import DeviceToDevice, DeviceToHost, HostCall, HostToDevice
from spyrec.runtime.streams.stream_queue import Entry
from spyrec.runtime.streams.transfers import copy_in, copy_on_device, copy_out


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
            case HostToDevice():
                copy_in(self._backend, action)
            case DeviceToHost():
                copy_out(self._backend, action)
            case DeviceToDevice():
                copy_on_device(self._backend, action)
            case HostCall():
                self._call(action)
                return
            case _:
                self._backend.compute(entry.block)
                return
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
