"""A bundle loaded on an emulated device with its inputs and constants in place: what a launch benchmark repeats."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.emulator.device import EmulatedDevice, EmulatedProgram
from spyrec.emulator.footprint import length
from spyrec.emulator.operations.matmul import MatmulExecutable
from spyrec.emulator.plan import PlannedCall
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.argument_copy import ArgumentCopier
from spyrec.runtime.binding import has_host_form
from spyrec.runtime.findings import Finding, sanitizers_named
from spyrec.runtime.observer import ArgumentCopy
from spyrec.runtime.session import argument_size_bytes, argument_table

HostArray = npt.NDArray[np.generic]


def _moved_bytes(planned: PlannedCall) -> int:
    """Return the bytes that the cores of one call touch in all rounds of its loops."""
    is_product = isinstance(planned.executable, MatmulExecutable)
    positions = [planned.setting.output] if is_product else range(len(planned.binding.runs))
    rounds = prod(len(loop.values) for loop in planned.call.loops)
    return rounds * planned.setting.cores * sum(length(planned.binding.runs[t]) for t in positions)


class DeviceLaunch:
    """The programs of a bundle, ready to be launched again and again without host copies.

    ``sanitize``: the sanitizers that watch the launches, as ``--sanitize`` names them.
    """

    def __init__(self, bundle: Bundle, inputs: Mapping[str, HostArray], sanitize: str | None = None) -> None:
        manifest = bundle.manifest
        self._device = EmulatedDevice(cores=manifest.target.cores, sanitizers=sanitizers_named(sanitize))
        self._arguments = {item.name: item for item in manifest.arguments}
        self._results = dict(manifest.outputs)
        self._copier = ArgumentCopier(bundle, DeviceFormat.SEN169_FP16)
        programs = {item.directory: item for item in bundle.programs}
        is_only = len(manifest.plan) == 1
        self._loaded: list[EmulatedProgram] = []
        for step in manifest.plan:
            program = programs[step.program]
            table = argument_table(self._arguments, step, is_only=is_only)
            self._loaded.append(self._device.load(program.program, program.superdscs, table))
        names = dict.fromkeys(name for step in manifest.plan for name in step.arguments)
        self._addresses = {name: self._device.allocate(argument_size_bytes(self._arguments[name])) for name in names}
        self._steps = [[self._addresses[name] for name in step.arguments] for step in manifest.plan]
        self._pools = [step.pool_bytes > 0 for step in manifest.plan]
        pool_bytes = max((step.pool_bytes for step in manifest.plan), default=0)
        self._pool = self._device.allocate(pool_bytes) if pool_bytes else None
        self.device_bytes = pool_bytes + sum(argument_size_bytes(self._arguments[name]) for name in names)
        self._inputs = [name for name in names if name in inputs]
        for name in names:
            if name in inputs or name in bundle.constants:
                array = inputs[name] if name in inputs else bundle.constants[name]
                self._copier.copy_in(self._arguments[name], array, self._memory(name))
                self._tell_of_copy(name, array.shape)

    @property
    def moved_bytes(self) -> int:
        """What all cores touch of all operands in one launch; of a product only what it stores: the rest is reused."""
        return sum(_moved_bytes(item) for loaded in self._loaded for item in loaded.planned.values())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the sanitizers found in all launches so far."""
        return () if self._device.monitor is None else self._device.monitor.findings

    def forget_half(self, name: str) -> None:
        """Let the sanitizers take the first half of an input for memory that nothing wrote."""
        assert self._device.monitor is not None
        self._device.monitor.forgotten(self._addresses[name], argument_size_bytes(self._arguments[name]) // 2)

    def _tell_of_copy(self, name: str, shape: tuple[int, ...]) -> None:
        """Tell the sanitizers which elements a host copy has defined."""
        if self._device.monitor is None:
            return
        argument = self._arguments[name]
        is_whole = not has_host_form(argument) or self._copier.clears(argument)
        table = None if is_whole else self._copier.table(argument, "h2d", shape)
        copy = ArgumentCopy(
            name,
            self._addresses[name],
            argument_size_bytes(argument),
            argument.device_size,
            None if table is None else table.nests,
            is_to_device=True,
            host_shape=None if table is None else table.host_shape,
        )
        self._device.monitor.copied_in(copy)

    def _memory(self, name: str) -> npt.NDArray[np.uint8]:
        return self._device.memory(self._addresses[name], argument_size_bytes(self._arguments[name]))

    def launch(self) -> None:
        """Execute the programs once, in the order of the plan, on inputs that count as new.

        The device hands out their memory, as it does when a run copies them in: what it derived from their bytes in
        an earlier launch (decoded operands) is void.  Constants stay.
        """
        for name in self._inputs:
            self._memory(name)
        self.relaunch()

    def relaunch(self) -> int:
        """Execute the programs once more on the same inputs; return how many SuperDSCs were executed."""
        executions = 0
        for loaded, addresses, has_pool in zip(self._loaded, self._steps, self._pools):
            stats = self._device.launch(loaded, addresses, self._pool if has_pool else None)
            executions += sum(operation.executions for operation in stats.operations)
        return executions

    def result(self, name: str) -> HostArray:
        """Return what the launches left in an output."""
        argument = self._results[name]
        return self._copier.copy_out(self._arguments[argument], self._memory(argument))
