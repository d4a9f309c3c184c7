"""Devices for the tests of the execution pipeline: none may leave anything behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from spyrec.runtime.spyre_device import SpyreDevice
from tests.support.spyre_devices import Footing, leaks_of, make_device


@pytest.fixture
def open_device() -> Iterator[Callable[..., SpyreDevice]]:
    """Opens devices; at the end none holds memory, pinned buffers or operations, and no thread or file is left."""
    gc.collect()
    gc.freeze()  # the search for leaks then goes over what this test makes, not over all that the suite has loaded
    before = Footing()
    devices: list[SpyreDevice] = []

    def opened(schedule: str = "fifo", **options: object) -> SpyreDevice:
        devices.append(make_device(schedule, **options))  # type: ignore[arg-type]
        return devices[-1]

    yield opened
    for device in devices:
        assert leaks_of(device) == {}
        device.close()
    # threads of what an earlier test dropped may end meanwhile; none may have come
    now = Footing()
    assert (now.threads <= before.threads, now.files <= before.files) == (True, True), (before, now)
