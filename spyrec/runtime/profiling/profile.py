"""``spyrec.runtime.profile``: a trace and a summary of what a device does inside of a ``with``."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from spyrec.runtime.argument_kinds import is_a, shown
from spyrec.runtime.errors import InvalidArgument, ProfileActive
from spyrec.runtime.profiling.drawing import Drawing, draw
from spyrec.runtime.profiling.recorder import Recorder
from spyrec.runtime.profiling.records import Records
from spyrec.runtime.profiling.summary import ProfileSummary, summarize
from spyrec.runtime.profiling.trace_events import refuse_unwritable_trace, write_trace
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.host_calls import UNWATCHED

RUNTIME_CATEGORY = "privateuse1_runtime"
"""The category of the runtime's calls in torch's profiler for devices of third parties."""


class Profile:
    """What was recorded so far: as a trace, as sums."""

    def __init__(self, recorder: Recorder, drawing: Drawing) -> None:
        self._recorder = recorder
        self._drawing = drawing

    @property
    def records(self) -> Records:
        """The records themselves."""
        return self._recorder.records

    def trace(self) -> dict[str, object]:
        """Return the trace, in the Chrome JSON form that Perfetto reads; it is marked as simulated."""
        return draw(self.records, self._drawing)

    def summary(self) -> ProfileSummary:
        """Return counts and times; ``str`` of it is a table."""
        return summarize(self.records)

    @contextmanager
    def annotate(self, name: str) -> Generator[None]:
        """Draw a span around the calls that this thread makes inside."""
        with self._recorder.call(name, -1):
            yield


@contextmanager
def profile(  # noqa: PLR0913 -- a keyword for each thing that can be chosen
    device: SpyreDevice,
    path: str | os.PathLike[str] | None = None,
    *,
    memory: bool = True,
    shapes: bool = True,
    runtime_category: str = RUNTIME_CATEGORY,
    force: bool = False,
) -> Generator[Profile]:
    """Record what a device does, and at the end, also after an error, write it as a trace to ``path``.

    It changes neither results nor simulated times.  What is enqueued but not done at the end is left out: synchronize
    first.  ``memory``: with the blocks of device memory; ``shapes``: with the tensors of launches; ``force``: replace a
    file at ``path`` that is no trace of spyrec's.
    Errors: SPY0990 the device is profiled already, SPY0751 the file cannot be written, SPY0752 it is somebody's.
    """
    if not is_a(device, SpyreDevice):
        raise InvalidArgument(f"{shown(device)} is profiled, which is no SpyreDevice")
    if path is not None:
        refuse_unwritable_trace(Path(path), force=force)
    scheduler, allocator = device.scheduler, device.allocator
    recorder = Recorder(device, keeps_memory=memory, keeps_shapes=shapes)
    with scheduler.lock:
        if scheduler.host_calls is not UNWATCHED:
            raise ProfileActive(f"device {device.index} is profiled already", hint="end the other profile first")
        scheduler.host_calls = recorder
        scheduler.observers.append(recorder)
    allocator.observers.append(recorder)
    name = "profile" if path is None else Path(path).stem
    found = Profile(recorder, Drawing(name, device.index, runtime_category))
    try:
        yield found
    finally:
        allocator.observers.remove(recorder)
        with scheduler.lock:
            scheduler.observers.remove(recorder)
            scheduler.host_calls = UNWATCHED
        if path is not None:
            write_trace(Path(path), found.trace(), force=force)
