"""A compiled bundle loaded on an emulated device with its inputs in place: what a launch benchmark repeats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.emulator.device import EmulatedDevice
from spyrec.runtime.device import LaunchStats
from spyrec.runtime.session import argument_size_bytes, argument_table
from spyrec.runtime.transfer import copy_to_device


class DeviceLaunch:
    """The one program of a bundle, ready to be launched again and again."""

    def __init__(self, bundle: Bundle, inputs: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._device = EmulatedDevice(cores=bundle.manifest.target_cores)
        arguments = {item.name: item for item in bundle.manifest.arguments}
        (step,) = bundle.manifest.plan
        (program,) = bundle.programs
        table = argument_table(arguments, step, is_only=False)
        self._loaded = self._device.load(program.program, program.superdscs, table)
        self._addresses: list[int] = []
        for name in step.arguments:
            size_bytes = argument_size_bytes(arguments[name])
            address = self._device.allocate(size_bytes)
            tables = arguments[name].dci
            if name in inputs and tables is not None:
                copy_to_device(inputs[name], bundle.dci[tables["h2d"]], self._device.memory(address, size_bytes))
            self._addresses.append(address)
        self._pool = self._device.allocate(step.pool_bytes) if step.pool_bytes else None

    def launch(self) -> LaunchStats:
        """Execute the program once."""
        return self._device.launch(self._loaded, self._addresses, self._pool)
