"""The device of a context that is given none: this room knows the runtime alone, so somebody else opens it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice


class DeviceSource:
    """Opens devices as it was told to, once: by ``spyrec`` itself, before anybody can ask."""

    __slots__ = ("_opens",)

    def __init__(self) -> None:
        self._opens: Callable[[], SpyreDevice] | None = None

    def is_told(self, opens: Callable[[], SpyreDevice]) -> None:
        """Take what opens a device."""
        self._opens = opens

    def open(self) -> SpyreDevice:
        """Return a new device."""
        assert self._opens is not None, "nobody said how a device is opened"
        return self._opens()


DEFAULT_DEVICES = DeviceSource()
