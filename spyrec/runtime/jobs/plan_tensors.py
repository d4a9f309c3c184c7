"""How the host copies a bundle's tensors: the bundle's own tables, and the forms that bundles of others have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.argument_copy import ArgumentCopier
from spyrec.runtime.binding import has_host_form
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.streams.blocks import device_to_host, host_function, host_to_device
from spyrec.runtime.streams.control_block import ControlBlock, Origin

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice

HostArray = npt.NDArray[np.generic]


class PlanTensors:
    """The copies between the host and the tensors of one bundle, as operations of a stream.

    What a conversion table cannot say (a bundle of others gives its tensors in device form, or leaves the padding of
    a matmul to the host) is done by host functions.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.manifest = bundle.manifest
        self._bundle = bundle
        self._arguments = {item.name: item for item in bundle.manifest.arguments}
        self._tables = ArgumentCopier(bundle, DeviceFormat.SEN169_FP16)

    def constant(self, name: str) -> HostArray:
        """Return the values of a constant."""
        return self._bundle.constants[name]

    def copy_in(
        self, device: SpyreDevice, name: str, array: HostArray, place: DeviceBytes, origin: Origin
    ) -> list[ControlBlock]:
        """Return what brings a host array to the device; the array is taken as it is now."""
        argument = self._arguments[name]
        if has_host_form(argument) and not self._tables.clears(argument):
            conversion = self._tables.table(argument, "h2d", array.shape)
            source = np.ascontiguousarray(array).reshape(-1)
            return [host_to_device(source, place, origin, conversion)]
        copier, taken = self._copier(device), array.copy()

        def copy() -> None:
            copier.copy_in(argument, taken, device.backend.view(place.range))

        return [host_function(copy, origin, (), (place.range,), (place.allocation,))]

    def copy_out(
        self, device: SpyreDevice, name: str, place: DeviceBytes, shape: tuple[int, ...] | None, origin: Origin
    ) -> tuple[HostArray, ControlBlock]:
        """Return a host array, and what fills it; ``shape``: that of a run, where a dim is symbolic."""
        argument = self._arguments[name]
        if argument.shape is not None and argument.dtype is not None and has_host_form(argument):
            actual = shape or argument.shape
            array = np.zeros(actual, argument.dtype.carrier)
            conversion = self._tables.table(argument, "d2h", actual)
            return array, device_to_host(place, array, origin, conversion)
        copier, values = self._copier(device), np.zeros(argument.device_size, np.float32)

        def copy() -> None:
            values[:] = copier.copy_out(argument, device.backend.view(place.range))

        return values, host_function(copy, origin, (place.range,), (), (place.allocation,))

    def _copier(self, device: SpyreDevice) -> ArgumentCopier:
        return ArgumentCopier(self._bundle, device.backend.stored_as(DeviceFormat.SEN169_FP16))
