"""The verb of the public front that opens a device, ``spyrec.open_device``, and the device of a context without one."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from spyrec.diagnostics import refuse
from spyrec.front import checked_engine, checked_numerics, checked_profile
from spyrec.hardware.target import DEFAULT_PROFILE, Target
from spyrec.options import Engine, Numerics, RunOptions

if TYPE_CHECKING:
    from spyrec.runtime.findings import Sanitizer
    from spyrec.runtime.memory.allocator import MemoryOptions
    from spyrec.runtime.spyre_device import SpyreDevice

_LOCK = threading.Lock()
_NUMBERS = itertools.count()
_CHOSEN: set[int] = set()
"""Indices that somebody asked for: no other device gets them."""

_DEVICES: weakref.WeakValueDictionary[int, SpyreDevice] = weakref.WeakValueDictionary()


def open_device(  # noqa: PLR0913 -- options, given by name
    cores: int = Target().cores,
    numerics: Numerics | str = Numerics.DL16,
    *,
    schedule: str = "fifo",
    sanitize: str | Sequence[str] = (),
    profile: str = DEFAULT_PROFILE.name,
    memory: MemoryOptions | None = None,
    index: int | None = None,
    engine: Engine | str = Engine.FAST,
) -> SpyreDevice:
    """Return an emulated device for the program execution pipeline (``spyrec.runtime``).

    ``schedule``: ``fifo``, ``rr``, ``lifo``, ``adversarial``, ``random:SEED`` or ``threads``.  ``sanitize``: ``sync``
    (races between streams) and ``init`` (memory that is read before anything wrote it), by name or with commas.

    ``index`` tells the device's memory handles from those of others: by default a number that none of this process
    had; one that is given may be that of a device that was closed.  ``engine``: ``fast``, or ``reference`` for the slow
    interpreter that defines what programs do.

    Errors: SPY0750, SPY0771, SPY0927.
    """
    options = RunOptions(numerics=numerics, profile=profile, engine=engine)
    numerics, timing, engine = checked_numerics(options), checked_profile(options), checked_engine(options)
    if type(cores) is not int or not 1 <= cores <= Target().cores:
        raise refuse("SPY0771", f"cores is {cores}", hint=f"choose 1 to {Target().cores}")
    asked = _asked(sanitize)
    from spyrec.emulator.backend import EmulatorOptions, emulated_device
    from spyrec.runtime.findings import Sanitizer
    from spyrec.runtime.memory.allocator import MemoryOptions
    from spyrec.runtime.spyre_device import DeviceOptions
    from spyrec.runtime.streams.scheduler import SchedulerOptions

    scheduling = SchedulerOptions(
        schedule=schedule,
        finds_races=Sanitizer.SYNC in asked,
        finds_uninitialised_reads=Sanitizer.INIT in asked,
    )
    emulator = EmulatorOptions(cores, numerics, profile=timing, engine=engine)
    host = DeviceOptions(memory or MemoryOptions(), scheduling)
    with _LOCK:
        number = _own_index(index)
        device = _DEVICES[number] = emulated_device(emulator, host, index=number)
    return device


def open_default_device() -> SpyreDevice:
    """Return the device of an execution context that is given none: everything as it is by default."""
    from spyrec.emulator.backend import emulated_device

    return emulated_device()


def _own_index(asked: int | None) -> int:
    """Return the index of a new device; errors SPY0771 a device has it."""
    if asked is None:
        return next(number for number in _NUMBERS if number not in _CHOSEN)
    device = _DEVICES.get(asked)
    if asked < 0 or (device is not None and not device.is_closed):
        fact = "it must be 0 or more" if asked < 0 else "an open device has it"
        raise refuse("SPY0771", f"index is {asked}, {fact}", hint="leave it out for a number of its own")
    _CHOSEN.add(asked)
    return asked


def _asked(sanitize: str | Sequence[str]) -> frozenset[Sanitizer]:
    """Return the sanitizers of streams that somebody names; errors SPY0771 any other name."""
    from spyrec.runtime.findings import Sanitizer

    of_streams = {item.value: item for item in (Sanitizer.SYNC, Sanitizer.INIT)}
    named: object = tuple(sanitize.split(",")) if isinstance(sanitize, str) else sanitize
    listed = cast("Sequence[object]", named) if isinstance(named, list | tuple | set | frozenset) else (named,)
    asked = frozenset(str(item) for item in listed) - {""}
    if not asked <= of_streams.keys():
        unknown = ", ".join(sorted(asked - of_streams.keys()))
        hint = "choose sync, init or both; the sanitizers of programs are options of run"
        raise refuse("SPY0771", f'sanitize is "{unknown}"', hint=hint)
    return frozenset(of_streams[name] for name in asked)
