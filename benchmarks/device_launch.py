"""A bundle loaded on an emulated device with its inputs and constants in place: what a launch benchmark repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program_image import read_image
from spyrec.emulator.backend import EmulatorOptions, emulated_device, emulator_of, table_of
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.footprint import length
from spyrec.emulator.operations.matmul import MatmulExecutable
from spyrec.emulator.plan import PlannedCall
from spyrec.runtime import ExecutionPlan, Job
from spyrec.runtime.device import OperationStats
from spyrec.runtime.findings import Finding, Sanitizer, sanitizers_named
from spyrec.runtime.inputs.binding import argument_size_bytes
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.streams.control_block import Origin

HostArray = npt.NDArray[np.generic]


def _moved_bytes(planned: PlannedCall) -> int:
    """Return the bytes that the cores of one call touch in all rounds of its loops."""
    is_product = isinstance(planned.executable, MatmulExecutable)
    positions = [planned.setting.output] if is_product else range(len(planned.binding.runs))
    rounds = prod(len(loop.values) for loop in planned.call.loops)
    return rounds * planned.setting.cores * sum(length(planned.binding.runs[t]) for t in positions)


class DeviceLaunch:
    """The programs of a bundle, ready to be launched again and again without host copies, streams and corrections.

    ``sanitize``: the sanitizers that watch the launches, as ``--sanitize`` names them.  ``threads``: how many execute
    kernels, by default one per processor.
    """

    def __init__(
        self,
        bundle: Bundle,
        inputs: Mapping[str, HostArray],
        sanitize: str | None = None,
        threads: int | None = None,
    ) -> None:
        manifest = bundle.manifest
        sanitizers = sanitizers_named(sanitize) - {Sanitizer.SYNC}
        self._host = emulated_device(EmulatorOptions(manifest.target.cores, sanitizers=sanitizers))
        self._backend = emulator_of(self._host)
        self._device = self._backend.device
        self._results = dict(manifest.outputs)
        self._plan = ExecutionPlan(bundle)
        self._loaded = [self._load(job) for job in self._plan.jobs]
        for planned in (item for loaded in self._loaded for item in loaded.planned.values()):
            planned.setting.threads.count = threads or planned.setting.threads.count
        sizes = {item.name: argument_size_bytes(item) for item in manifest.arguments}
        names = dict.fromkeys(name for step in manifest.plan for name in step.arguments)
        owned = {name: self._host.spyre_allocator.allocate(sizes[name]) for name in names}
        self._places = {name: self._host.allocator.part(owner.index) for name, owner in owned.items()}
        self._steps = [[self._address(self._places[name]) for name in step.arguments] for step in manifest.plan]
        self._pools = [step.pool_bytes > 0 for step in manifest.plan]
        pool_bytes = max((step.pool_bytes for step in manifest.plan), default=0)
        self._pool = self._device.allocate(pool_bytes) if pool_bytes else None
        self.device_bytes = pool_bytes + sum(sizes[name] for name in names)
        self._inputs = [name for name in names if name in inputs]
        assert self._plan.tensors is not None
        self._tensors = self._plan.tensors
        copies = [
            self._tensors.copy_in(name, array, self._places[name], Origin(0, "inputs"))
            for name in names
            if (array := inputs.get(name, bundle.constants.get(name))) is not None
        ]
        self._host.default_stream.flex.enqueue(copies)
        self._host.synchronize()

    def _load(self, job: Job) -> EmulatedProgram:
        assert job.binary is not None
        image = read_image(job.binary.image_bytes)
        return self._device.load(image.program, image.superdscs, table_of(image))

    def _address(self, place: DeviceBytes) -> int:
        return self._host.allocator.regions.device_address(place.range.address)

    @property
    def moved_bytes(self) -> int:
        """What all cores touch of all operands in one launch; of a product only what it stores: the rest is reused."""
        return sum(_moved_bytes(item) for loaded in self._loaded for item in loaded.planned.values())

    @property
    def device_memory_bytes(self) -> int:
        """What one launch moves to and from device memory, as ``spyrec run --stats`` counts it: reads core by core."""
        return sum(item.hbm_core_read_bytes + item.hbm_write_bytes for stats in self._launched() for item in stats)

    def _launched(self) -> Iterator[tuple[OperationStats, ...]]:
        """Yield the counters of each program, executed once."""
        for loaded, addresses, has_pool in zip(self._loaded, self._steps, self._pools):
            yield self._device.launch(loaded, addresses, self._pool if has_pool else None).operations

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the sanitizers found in all launches so far."""
        return () if self._device.monitor is None else self._device.monitor.findings

    def forget_half(self, name: str) -> None:
        """Let the sanitizers take the first half of an input for memory that nothing wrote."""
        assert self._device.monitor is not None
        place = self._places[name]
        self._device.monitor.forgotten(self._address(place), place.range.size_bytes // 2)

    def launch(self) -> None:
        """Execute the programs once, in the order of the plan, on inputs that count as new.

        The device hands out their memory, as it does when a run copies them in: what it derived from their bytes in
        an earlier launch (decoded operands) is void.  Constants stay.
        """
        for name in self._inputs:
            self._backend.view(self._places[name].range)
        self.relaunch()

    def relaunch(self) -> int:
        """Execute the programs once more on the same inputs; return how many SuperDSCs were executed."""
        return sum(operation.executions for operations in self._launched() for operation in operations)

    def result(self, name: str) -> HostArray:
        """Return what the launches left in an output."""
        argument = self._results[name]
        values, copy = self._tensors.copy_out(argument, self._places[argument], Origin(0, "outputs"))
        self._host.default_stream.flex.enqueue([copy])
        self._host.synchronize()
        return values
