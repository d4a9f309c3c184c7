"""The tensors that a launch is given, by position: each is one, and lies on the stream's device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from spyrec.runtime.argument_kinds import is_a, shown
from spyrec.runtime.errors import DeviceMismatch, NotATensor
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.tensors import SpyreTensor

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice


_USUAL = (list, tuple)
_TENSORS = frozenset({SpyreTensor})


def require_tensors(tensors: object) -> None:
    """Refuse what is no tensor of a device, or no sequence of them; errors SPY0970."""
    if type(tensors) not in _USUAL and not is_a(tensors, Sequence):  # a class of its own is slow to ask
        raise NotATensor(f"the tensors of a launch are {shown(tensors)}, no sequence of SpyreTensors")
    listed = cast("Sequence[object]", tensors)
    if _TENSORS.issuperset(map(type, listed)):
        return
    for number, tensor in enumerate(listed):
        if not isinstance(tensor, SpyreTensor):
            kind = type(tensor)
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            fact = f"tensor {number} of {len(listed)} is no SpyreTensor but {name}"
            raise NotATensor(fact, hint="bring arrays to the device with `SpyreTensor.to_device(device, array)`")


def arguments_on(device: SpyreDevice, tensors: Sequence[SpyreTensor]) -> list[LaunchArgument]:
    """Return what a launch on a device needs to know of its tensors; errors SPY0954, SPY0970."""
    require_tensors(tensors)
    found: list[LaunchArgument] = []
    for tensor in tensors:
        if tensor.device is not device:
            fact = f"tensor {len(found)} is of device {tensor.device.index}, the stream of device {device.index}"
            raise DeviceMismatch(fact)
        found.append(tensor.launch_argument())
    return found
