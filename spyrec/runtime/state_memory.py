"""The state of a loaded model: inputs that results have replaced, in device memory that several runs may share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.runtime.inputs.binding import argument_size_bytes, has_host_form
from spyrec.runtime.jobs.plan_tensors import PlanTensors
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.streams.control_block import Origin

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice

HostArray = npt.NDArray[np.generic]


class StateKey(NamedTuple):
    """What one tensor of state is known by: entries of a model that name it share it where its type is theirs, too."""

    name: str
    shape: tuple[int, ...] | None
    dtype: DType | None


def state_key(argument: Argument) -> StateKey:
    """Return what an argument would be state as."""
    return StateKey(argument.name, argument.shape, argument.dtype)


class _Layout(NamedTuple):
    device_size: tuple[int, ...]
    stride_map: tuple[int, ...] | None
    device_dtype: DeviceFormat


def _layout(argument: Argument) -> _Layout:
    return _Layout(argument.device_size, argument.stride_map, argument.device_dtype)


@dataclass(frozen=True, slots=True)
class _OnDevice:
    """State that lies on the device; ``tensors``: of a bundle that has it in this layout.

    ``shape``: of the run that has left it; less than compiled where a symbolic dim had less than its largest extent.
    """

    layout: _Layout
    shape: tuple[int, ...]
    tensors: PlanTensors


_Place: TypeAlias = "tuple[StateKey, _Layout]"


@dataclass(frozen=True, slots=True)
class SavedState:
    """State that outlives its device: what it is, on the host, and by what is lost of it the reason."""

    content: Mapping[StateKey, HostArray]
    lost: Mapping[StateKey, str]


class StateMemory:
    """What is state of the bundles that one device runs, and the memory that it lies in.

    A tensor of state has memory in each layout that a bundle has it in, one of which holds what it is now, or the host
    does.  A result that replaces it and is made elsewhere has memory beside it, and the two change sides.
    """

    def __init__(self, device: SpyreDevice, manifests: Iterable[Manifest]) -> None:
        self._device = device
        self.keys = {
            state_key(item)
            for manifest in manifests
            for item in manifest.arguments
            if item.name in manifest.updates.values()
        }
        self.content: dict[StateKey, _OnDevice | HostArray] = {}
        """What holds each tensor of state that a call has given or made."""

        self.lost: dict[StateKey, str] = {}
        """Why a tensor of state is no longer there, until a call gives it anew."""

        self._owners: list[Allocation] = []
        self._places: dict[_Place, DeviceBytes] = {}
        self._beside: dict[_Place, DeviceBytes] = {}

    def place(self, argument: Argument) -> DeviceBytes:
        """Return where an input that is state lies.  Errors: SPY0901, SPY0906, SPY0928."""
        return self._allocated(self._places, argument, state_key(argument))

    def place_beside(self, result: Argument, replaced: Argument) -> DeviceBytes:
        """Return where a result lies that replaces an input, and lies as it does.  Errors: as :meth:`place`."""
        return self._allocated(self._beside, result, state_key(replaced))

    def change_sides(self, argument: Argument) -> None:
        """Let the memory beside an input be the input's, and the other way round."""
        key = state_key(argument), _layout(argument)
        self._places[key], self._beside[key] = self._beside[key], self._places[key]

    def _allocated(self, places: dict[_Place, DeviceBytes], argument: Argument, key: StateKey) -> DeviceBytes:
        place = key, _layout(argument)
        if place not in places:
            self._owners.append(self._device.spyre_allocator.allocate(argument_size_bytes(argument)))
            places[place] = self._device.allocator.part(self._owners[-1].index)
        return places[place]

    def on_host(self, key: StateKey) -> HostArray:
        """Return what a tensor of state is now; it may have to be copied from the device."""
        found = self.content[key]
        if not isinstance(found, _OnDevice):
            return found
        origin = Origin(self._device.next_launch_id(), f"state {key.name}")
        stream = self._device.stream(-1)
        array, block = found.tensors.copy_out(key.name, self._places[key, found.layout], origin, found.shape)
        stream.flex.enqueue([block])
        stream.synchronize()
        return array

    def hold(self, key: StateKey, content: _OnDevice | HostArray) -> None:
        """Let a tensor of state be this."""
        self.content[key] = content
        self.lost.pop(key, None)

    def lose(self, key: StateKey, reason: str) -> None:
        """Know nothing of a tensor of state any more; ``reason``: for who asks for it."""
        if self.content.pop(key, None) is not None:
            self.lost[key] = reason

    def saved(self) -> SavedState:
        """Return all state on the host: what a device that takes the place of this one begins with."""
        return SavedState({key: self.on_host(key) for key in self.content}, dict(self.lost))

    def all_lost(self, reason: str) -> SavedState:
        """Return what is left of the state of a device that nobody can ask any more."""
        on_host = {key: found for key, found in self.content.items() if not isinstance(found, _OnDevice)}
        return SavedState(on_host, self.lost | dict.fromkeys(self.content.keys() - on_host.keys(), reason))

    def restore(self, saved: SavedState) -> None:
        """Begin with what :meth:`saved` returned."""
        self.content.update(saved.content)
        self.lost.update(saved.lost)

    def free(self) -> None:
        """Forget all state, and give its memory back."""
        owners, self._owners = self._owners, []
        self.content.clear()
        self._places.clear()
        self._beside.clear()
        for owner in owners:
            owner.free()


class RunState:
    """The state of a model as the runs of one bundle see it.

    ``used``: names of what the bundle's programs have in device memory, each in memory of its own.
    """

    def __init__(self, memory: StateMemory, tensors: PlanTensors, used: Collection[str]) -> None:
        self._memory = memory
        self._tensors = tensors
        manifest = tensors.manifest
        self._updates = manifest.updates
        arguments = {item.name: item for item in manifest.arguments}
        self._inputs = {name: arguments[name] for name in manifest.inputs if state_key(arguments[name]) in memory.keys}
        self._places = {name: item for name, item in self._inputs.items() if name in used}
        results = dict(manifest.outputs)
        holders = list(results.values())
        self._results = {
            result: arguments[results[result]]
            for result, name in self._updates.items()
            if name in self._places
            and results[result] in used
            and (results[result] == name or results[result] not in self._inputs)
            and (results[result] == name or holders.count(results[result]) == 1)
            and _layout(arguments[name]) == _layout(arguments[results[result]])
        }
        """By result, the argument that holds it, where its memory may be the input's."""

        self._in_place = {item.name for result, item in self._results.items() if item.name == self._updates[result]}
        self._beside = {
            item.name: self._inputs[self._updates[result]]
            for result, item in self._results.items()
            if item.name != self._updates[result]
        }

    def places(self) -> dict[str, DeviceBytes]:
        """Return where inputs that are state lie, and what replaces them; errors as :meth:`StateMemory.place`."""
        found = {name: self._memory.place(item) for name, item in self._places.items()}
        return found | {item.name: self._memory.place_beside(item, self._inputs[self._updates[result]])
                        for result, item in self._results.items() if item.name in self._beside}  # fmt: skip

    @property
    def on_device(self) -> set[str]:
        """The inputs that lie on the device as the bundle takes them.

        Those of less than the largest extents do not: zero lies behind an input, and anything behind a result.
        """
        return {name for name, item in self._inputs.items() if self._is_there(name) and self._is_whole(item)}

    def _is_there(self, name: str) -> bool:
        found = self._memory.content.get(state_key(self._inputs[name]))
        return name in self._places and isinstance(found, _OnDevice) and found.layout == _layout(self._inputs[name])

    def _is_whole(self, item: Argument) -> bool:
        return self._memory.content[state_key(item)].shape == (item.shape if has_host_form(item) else item.device_size)

    def shapes(self, given: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs that are known and not ``given``."""
        known = {name: self._memory.content.get(state_key(item)) for name, item in self._inputs.items()}
        return {name: found.shape for name, found in known.items() if found is not None and name not in given}

    def brought(self, given: Collection[str]) -> dict[str, HostArray]:
        """Return the inputs that are neither ``given`` nor on the device as the bundle takes them, and known.

        They are state on the host from here on: a call that breaks off has overwritten none of them.
        """
        there = self.on_device.union(given)
        keys = {name: state_key(item) for name, item in self._inputs.items() if name not in there}
        found = {name: self._memory.on_host(key) for name, key in keys.items() if key in self._memory.content}
        self._memory.content.update({keys[name]: array for name, array in found.items()})
        return found

    def known(self) -> dict[str, HostArray]:
        """Return what inputs are now that a call may leave out."""
        return {
            name: self._memory.on_host(state_key(item))
            for name, item in self._inputs.items()
            if state_key(item) in self._memory.content
        }

    @property
    def writes_in_place(self) -> bool:
        """Whether programs of the bundle write state where it lies."""
        return bool(self._in_place)

    def overwritten(self, names: Iterable[str]) -> set[str]:
        """Return which of these inputs are on the device as the bundle takes them: a copy of another overwrites it."""
        return {name for name in names if name in self._inputs and self._is_there(name)}

    def written_in_place(self, names: Collection[str]) -> set[str]:
        """Return which state programs that have these tensors write where it lies."""
        return self.overwritten(self._in_place.intersection(names))

    def lose(self, names: Iterable[str], reason: str) -> None:
        """Know nothing of inputs any more; ``reason``: for who leaves them out."""
        for name in names:
            self._memory.lose(state_key(self._inputs[name]), reason)

    @property
    def lost(self) -> dict[str, str]:
        """By input that was state and is no longer, the reason."""
        if not self._memory.lost:
            return {}
        keys = {name: state_key(item) for name, item in self._inputs.items()}
        return {name: self._memory.lost[key] for name, key in keys.items() if key in self._memory.lost}

    def replace(
        self, given: Mapping[str, HostArray], host: Mapping[str, HostArray], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        """Let results be what state is now; ``given``: the inputs of the run, ``host``: its results on the host.

        ``shapes``: of all tensors in the run.

        An input that was given and has no result stays what it is.
        """
        replaced = set(self._updates.values())
        for name, array in given.items():
            if name in self._inputs and name not in replaced:
                self._hold(name, shapes[name] if name in self._places else np.array(array))
        for result, name in self._updates.items():
            item = self._results.get(result)
            if item is not None and item.name != name:
                self._memory.change_sides(self._inputs[name])
            self._hold(name, np.array(host[result]) if item is None else shapes[name])  # the caller has the result

    def _hold(self, name: str, content: HostArray | tuple[int, ...]) -> None:
        """Let state be what the host has, or of that shape what lies in the input's memory."""
        item = self._inputs[name]
        is_there = isinstance(content, tuple)
        self._memory.hold(state_key(item), _OnDevice(_layout(item), content, self._tensors) if is_there else content)

    def is_copied(self, result: str) -> bool:
        """Whether a result has to come to the host to be the next run's input."""
        return result in self._updates and result not in self._results

    def forget(self, reason: str) -> None:
        """Know nothing of the bundle's inputs any more."""
        self.lose(self._inputs, reason)
