"""Bundles made ready on a device of their own, for tests that look behind one run."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program_image import read_image
from spyrec.emulator.backend import EmulatorBackend, table_of
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.sanitizers.monitor import Monitor
from spyrec.front import OpenedBundle, opened
from spyrec.options import RunOptions
from spyrec.runtime import ExecutionPlan
from spyrec.runtime.device import ArgumentTable, LaunchStats

Bytes = npt.NDArray[np.uint8]

POOL = "the pool"


@contextmanager
def ready(bundle: Bundle, options: RunOptions | None = None) -> Generator[OpenedBundle]:
    """Yield a bundle that its device does not refuse."""
    with opened(bundle, options or RunOptions()) as found:
        assert isinstance(found, OpenedBundle), found
        yield found


def backend_of(run: OpenedBundle) -> EmulatorBackend:
    """Return the emulated device that a bundle was made ready on."""
    assert isinstance(run.device.backend, EmulatorBackend)
    return run.device.backend


def monitor_of(run: OpenedBundle) -> Monitor:
    """Return the sanitizers that watch a bundle."""
    monitor = backend_of(run).device.monitor
    assert monitor is not None
    return monitor


@contextmanager
def kept_memory(run: OpenedBundle) -> Generator[dict[str, Bytes]]:
    """Yield what each argument and the pool hold behind the last launch of them: intermediates die with a run."""
    device, kept = backend_of(run).device, dict[str, Bytes]()
    execute = device.launch

    def launch(
        loaded: EmulatedProgram,
        arguments: Sequence[int],
        pool_address: int | None,
        observer: None = None,
        *,
        values: Mapping[str, int],
    ) -> LaunchStats:
        stats = execute(loaded, arguments, pool_address, observer, values=values)
        for entry, address in zip(loaded.table.entries, arguments, strict=True):
            kept[entry.name] = device.memory(address, entry.size_bytes).copy()
        if pool_address is not None:
            kept[POOL] = device.memory(pool_address, loaded.table.pool_bytes).copy()
        return stats

    with patch.object(device, "launch", launch):
        yield kept


def program_tables(bundle: Bundle) -> dict[str, ArgumentTable]:
    """Return the argument table of each program, by its directory, as the device reads it from the image."""
    tables: dict[str, ArgumentTable] = {}
    for step, job in zip(bundle.manifest.plan, ExecutionPlan(bundle).jobs, strict=True):
        assert job.binary is not None
        tables[step.program] = table_of(read_image(job.binary.image_bytes))
    return tables
