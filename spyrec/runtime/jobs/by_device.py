"""What a job or a plan has on each device, as long as that lives."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice

Value = TypeVar("Value")


class ByDevice(Generic[Value]):
    """A value for each device that has one; the one that was set last is found at once: every launch asks for it.

    Whoever sets or takes the value of a device has the device's lock of launches.
    """

    def __init__(self) -> None:
        self._all: WeakKeyDictionary[SpyreDevice, Value] = WeakKeyDictionary()
        self._latest: tuple[weakref.ref[SpyreDevice], Value] | None = None

    def get(self, device: SpyreDevice) -> Value | None:
        """Return the value of a device, ``None`` where it has none."""
        latest = self._latest
        if latest is not None and latest[0]() is device:
            return latest[1]
        return self._all.get(device)

    def put(self, device: SpyreDevice, value: Value) -> None:
        """Set the value of a device."""
        self._all[device] = value
        whose = weakref.ref(self)  # nothing here holds this object: what it has ends with whoever has it

        def forget(_: object) -> None:
            mine = whose()
            if mine is not None:
                mine._latest = None  # noqa: SLF001 -- its own

        self._latest = weakref.ref(device, forget), value

    def take(self, device: SpyreDevice) -> Value | None:
        """Return the value of a device, which has none from now on."""
        latest = self._latest
        if latest is not None and latest[0]() is device:
            self._latest = None
        return self._all.pop(device, None)
