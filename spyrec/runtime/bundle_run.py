"""A run of a bundle, from host arrays to host arrays: the page that shows a launch.

What happens in :meth:`BundleRun.run`, in the order in which it is enqueued:

1. programs and constants are brought to the device, on a stream of their own (``jobs/execution_plan.py``);
2. memory is allocated for the graph's inputs and outputs, and the inputs are copied in;
3. the plan is launched: each of its jobs becomes a correction tensor made on the host, a copy of it, and a computation
   that decodes the program's image from device memory (``jobs/launch_kernel.py``, ``jobs/iteration.py``), once, or,
   where the inputs are larger than compiled for, once per tile (``jobs/tile_blocks.py``);
4. the outputs are copied back.

Nothing of it is executed before the host waits (``streams/discrete_events.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest
from spyrec.bundle.program import is_size_parameter
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, files_below, located
from spyrec.layout.conversion_table import Direction
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.argument_kinds import Arrays, Named, of, takes
from spyrec.runtime.device import NO_VALUES, LaunchStats, ObservedBackend, OperationStats, TellsStats
from spyrec.runtime.errors import InvalidArgument
from spyrec.runtime.findings import LaunchRefused, naming_elements
from spyrec.runtime.host_copies.device_form import DeviceForm
from spyrec.runtime.host_copies.result_memory import ResultMemory
from spyrec.runtime.inputs.binding import (
    ExpectedInput,
    actual_shape,
    argument_size_bytes,
    checked_inputs,
    chosen_extents,
    expected_inputs,
    has_host_form,
    is_launched_in_tiles,
    program_directory,
    refuse_unfit_state,
    tiled_inputs,
)
from spyrec.runtime.jobs.execution_plan import ExecutionPlan, WiredJob
from spyrec.runtime.jobs.given_tensors import check_values
from spyrec.runtime.jobs.job_argument import JobArgument
from spyrec.runtime.jobs.launch_kernel import launch_arguments
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.observer import ArgumentCopy, RunObserver
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.state_memory import RunState, StateMemory
from spyrec.runtime.streams.control_block import ControlBlock, ExecutionFailed, Kind, Origin
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.streams.stream_queue import Entry, Phase
from spyrec.runtime.timeline_records import HostCopy

if TYPE_CHECKING:
    from spyrec.runtime.jobs.larger_tensors import LaunchForm
    from spyrec.runtime.launch.tile_plan import TilePlan

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run gave: outputs and their dtypes by result name in graph order, counters per SuperDSC in plan order.

    ``dma_h2d_bytes`` and ``dma_d2h_bytes`` are device bytes; those of the constants count in the run that brings them.
    ``copies`` and ``launches`` are the same in order: what a trace shows; of a run in tiles there are no launches, and
    the counters of all tiles are added up.  ``plans``: how each program was launched in tiles.
    """

    outputs: dict[str, HostArray]
    dtypes: dict[str, str]
    operations: tuple[OperationStats, ...]
    lx_peak_bytes: int
    dma_h2d_bytes: int
    dma_d2h_bytes: int
    copies: tuple[HostCopy, ...] = ()
    launches: tuple[LaunchStats, ...] = ()
    plans: tuple[TilePlan, ...] = ()


@dataclass(frozen=True, slots=True)
class _Given:
    """What a run is asked for: checked inputs, and the shapes that follow from them.

    ``forms``: shape and layout of every tensor where the inputs are larger than compiled for, else empty; ``plans``:
    how they are launched then.  ``sizes``: of the programs' dynamic sizes, by parameter, where they are not the
    compiled ones.  ``extents``: of the symbolic dims.
    """

    inputs: Mapping[str, HostArray]
    shapes: Mapping[str, tuple[int, ...]]
    forms: Mapping[str, LaunchForm]
    plans: tuple[TilePlan, ...] = ()
    extents: Mapping[str, int] = field(default_factory=dict[str, int])
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    def values(self, given: Mapping[str, int]) -> Mapping[str, int]:
        """Return the values of the launch, those that were ``given`` before all others."""
        return {**self.sizes, **given} if self.sizes else given

    def size_bytes(self, item: JobArgument) -> int:
        return self.forms[item.name].layout.nbytes if item.name in self.forms else item.size_bytes

    def placed(self, item: JobArgument, place: DeviceBytes, offset_bytes: int) -> LaunchArgument:
        form = self.forms.get(item.name)
        if form is None or item.dtype is None:
            placed = item.placed(place.allocation, self.shapes.get(item.name))
        else:
            strides = row_major_strides(form.shape)
            placed = LaunchArgument(place.allocation, form.shape, strides, item.dtype, form.layout)
        return placed._replace(storage_offset_bytes=offset_bytes)


class HostWork(Protocol):
    """The steps of a bundle that the host computes."""

    @property
    def inputs(self) -> set[str]:
        """The bundle's inputs that steps read as a run is given them."""
        ...

    def compute(self, number: int, values: Mapping[str, HostArray], extents: Mapping[str, int]) -> dict[str, HostArray]:
        """Return the results of a step by name; ``values``: what is on the host, ``extents``: of symbolic dims."""
        ...

    def constant(self, name: str) -> HostArray:
        """Return the numbers of a constant of the bundle's graph."""
        ...


class BundleRun:
    """A bundle's plan on a device, ready to be run as often as wanted.

    Each program is validated by the device before memory is taken (its rules V1 to V14, errors SPY0704 to SPY0724).
    ``allow_tiled_launch``: inputs larger than compiled for are launched in tiles.  The tensors of the latest run stay
    on the device until the next one, which where it ``keeps_tensors`` has the same, or :meth:`free`; so does what
    results have replaced of the inputs.  ``returned``: the results that come to the host, by default all.  ``host``:
    what computes the steps of the host; without it a plan that has some is refused (SPY0785).  ``state``: what keeps
    replaced inputs where the runs of several bundles share them; its owner frees it.
    """

    def __init__(  # noqa: PLR0913 -- what is run, and options by name
        self,
        device: SpyreDevice,
        plan: ExecutionPlan,
        *,
        allow_tiled_launch: bool = True,
        keeps_tensors: bool = False,
        returned: Collection[str] | None = None,
        host: HostWork | None = None,
        state: StateMemory | None = None,
    ) -> None:
        assert plan.tensors is not None, "nothing says what a plan takes that is none of a bundle"
        self.plan = plan
        self._device = device
        self._allows_tiles = allow_tiled_launch
        self._keeps_tensors = keeps_tensors
        self._returned = returned
        self._host = host
        if host is None:
            plan.refuse_host_steps()
        self._kept: tuple[bool, tuple[int, ...]] | None = None
        """Of the latest run whose tensors are there: whether it was in tiles, and their bytes."""

        self._streams: tuple[SpyreStream, SpyreStream] | None = None
        """What the latest run loaded on and ran on, where all went well: the next one has nothing to wait for."""

        self.is_in_doubt = False
        """Whether a run has begun and not come to its end: what is enqueued, or an error of a stream, may be left."""

        self._written: dict[str, int] = {}
        """Inputs whose kept content the latest run, which has not come to its end, was to overwrite.

        With each the latest launch that was enqueued before: where that or an earlier one failed, it is what it was.
        """

        self._programs: dict[int, tuple[int, WiredJob]] = {}
        """By number of the launch, its program, and the launch before it."""

        self._latest_launch = 0
        """The number of the latest launch of a run that is on its stream: operations come to effect in their order."""

        self._tensors = plan.tensors
        self._manifest = plan.tensors.manifest
        # twice: who calls in a loop drops the results of a call when those of the next one are there
        self._results = ResultMemory(2 * len(self._manifest.outputs)) if keeps_tensors else None
        self._arguments = {item.name: item for item in self._manifest.arguments}
        self._owners: list[Allocation] = []
        # the latest run's are a copy where state has changed places since
        self._ran_at = self._places = dict[str, DeviceBytes]()
        self._named = _NamedStats()
        self._parts = _parts_of(plan, self._manifest)
        self._on_host: dict[str, HostArray] = {}
        """What the latest run has on the host beside its inputs: results of its steps there, state that they read."""

        self._host_inputs = set[str]() if host is None else host.inputs

        self.state_memory = StateMemory(device, [self._manifest]) if state is None else state
        self._owns_state = state is None
        self._state = RunState(self.state_memory, self._tensors, self._placed_alone())
        rows = self._refuse_unfit()
        self.inputs = tuple(self._known(item, rows.get(item.name)) for item in expected_inputs(self._manifest))
        self._expected = {item.name: item for item in self.inputs}
        self._tiled_inputs = tiled_inputs(self._manifest)
        self._on_device = self._names_on_device()
        self._argument_bytes = {name: argument_size_bytes(item) for name, item in self._arguments.items()}
        self._fixed_shapes = None if self._manifest.symbolic_dims else self._shapes({})
        self._launched: tuple[Mapping[str, tuple[int, ...]], list[LaunchArgument]] | None = None
        """Of the latest run on the compiled forms, its shapes and tensors, as long as these stay where they are."""

        self._stats = device.backend if isinstance(device.backend, TellsStats) else None  # slow to ask

    def is_launched_in_tiles(self, inputs: Mapping[str, HostArray]) -> bool:
        """Whether some input is larger than the bundle was compiled for, along an axis that tiles may cut."""
        return is_launched_in_tiles(self._tiled_inputs, inputs)

    def run(
        self,
        inputs: Mapping[str, HostArray],
        observer: RunObserver | None = None,
        *,
        values: Mapping[str, int] = NO_VALUES,
    ) -> RunRecord:
        """Copy the inputs in, launch the plan, copy the outputs out, on streams of the device's choice.

        Where ``observer`` ends the run there are no outputs.  ``values``: of the programs' value parameters, by name;
        they come before those that a foreign bundle's table gives.

        Errors: as :meth:`execute`; instead of SPY0921 its reason: those of the copies, and the device's for what the
        files alone do not show.  In tiles it is SPY0921, which names the tile.
        """
        streams, self._streams = self._streams or (self._device.stream(), self._device.stream(-1)), None
        loader, stream = streams
        try:
            record = self.execute(stream, inputs, observer, values=values, loader=loader)
        except ExecutionFailed as failure:
            first = loader.flex.failure  # what the launch has waited for
            if isinstance(first, ExecutionFailed):
                raise self._reason(first) from None
            self._keep_unwritten(failure)
            raise self._reason(failure) from None
        self._streams = streams
        return record

    def execute(
        self,
        stream: SpyreStream,
        inputs: Mapping[str, HostArray],
        observer: RunObserver | None = None,
        *,
        values: Mapping[str, int] = NO_VALUES,
        loader: SpyreStream | None = None,
    ) -> RunRecord:
        """Do what :meth:`run` does on a stream; ``loader``: where programs and constants come to the device.

        Errors: SPY0760 to SPY0763 the inputs, SPY0950 to SPY0962 they are no tiles of the compiled ones, SPY0708 the
        values, SPY0921 an operation fails; of loading and enqueueing.
        """
        if values is not NO_VALUES:
            check_values(self.plan, values)
        given = self._given(inputs, is_watched=observer is not None)
        self.is_in_doubt = True
        self._ran_at = self._places
        self._written.clear()
        self._programs.clear()
        missing = self.plan.missing_constants(self._device)
        counters = _Counters(self._device, (self._stats, observer), self._named, is_summed=bool(given.plans))
        with self._observed(observer), counters.counting():
            if loader is not None:
                self.plan.load(loader)
            self._allocate(given)
            copied_in = [HostCopy(name, self._size_bytes(given, name), is_to_device=True) for name in missing]
            copied_in += self._copy_in(stream, given)
            self._on_host = self._state_for_host(stream, given, copied_in)
            arguments = self._launch_arguments(given)
            for part in self._parts:
                if isinstance(part, int):
                    self._compute_on_host(stream, part, given, copied_in)
                else:
                    self._know_written(part)
                    blocks = launch_arguments(stream, part, arguments, self._allows_tiles, given.values(values))
                    self._note_launched(part, blocks)
            if observer is not None:
                stream.synchronize()
            is_complete = observer is None or not observer.is_ended
            outputs = self._copy_out(stream, given) if is_complete else {}
            stream.synchronize()
        self.is_in_doubt = False
        if not is_complete:
            self._state.lose(self._written, "a call that was ended before its last operation had begun to write it")
        elif given.plans:
            self._state.forget("a call on larger inputs than compiled for, which is launched in tiles, keeps no state")
        elif self._keeps_tensors:
            self._state.replace(given.inputs, {**outputs, **self._on_host}, given.shapes)
            self._ran_at = dict(self._places)
            self._place_state()
        self._written.clear()
        if self._returned is not None:
            outputs = {name: array for name, array in outputs.items() if name in self._returned}
        return self._record(given, copied_in, outputs, counters)

    def state(self) -> dict[str, HostArray]:
        """Return what inputs are now that earlier runs have replaced, as host arrays by name."""
        return self._state.known()

    def lose_written(self, reason: str) -> None:
        """Know nothing of the state that the latest run, which is in doubt, had begun to overwrite."""
        self._state.lose(self._written, reason)

    def argument_memory(self, name: str) -> npt.NDArray[np.uint8]:
        """Return the device bytes of an input, output or constant of the latest run, where that had it."""
        place = self._ran_at[name] if name in self._ran_at else self._place_of(name)
        return self._device.backend.view(place.range)

    def _place_of(self, name: str) -> DeviceBytes:
        """Return where an input or output of the latest run lies, or a constant of the plan."""
        if name in self._places:
            return self._places[name]
        constants = self.plan.constants_on(self._device)
        assert constants is not None
        return self._device.allocator.part(constants.arguments[name].allocation_index)

    def free(self) -> None:
        """Give the memory of the latest run's tensors back, and state that is not shared."""
        self._free_tensors()
        if self._owns_state:
            self.state_memory.free()

    def _free_tensors(self) -> None:
        owners, self._owners = self._owners, []
        self._places.clear()
        self._ran_at = self._places
        self._kept = None
        self._launched = None
        for owner in owners:
            owner.free()

    # --- before a launch --------------------------------------------------------------------------------------------

    def _known(self, item: ExpectedInput, row_count: int | None) -> ExpectedInput:
        """Return an input with what the manifest does not say of it: an input that a host step reads is required."""
        return replace(item, row_count=row_count, is_required=item.is_required or item.name in self._host_inputs)

    def _refuse_unfit(self) -> dict[str, int]:
        """Let the device validate the programs; return the rows of the smallest table that indices choose of."""
        rows: dict[str, int] = {}
        for wired in self.plan.wired_jobs:
            with files_below(self._directory(wired.job.name)), naming_elements(self._element_of):
                check = wired.job.check_on(self._device)
            if check is None or wired.tensors is None:
                continue
            for index, count in check.index_rows.items():
                name = wired.tensors[index]
                rows[name] = min(count, rows.get(name, count))
        return rows

    def _given(self, inputs: Mapping[str, HostArray], *, is_watched: bool) -> _Given:
        manifest = self._manifest
        if is_watched or not self.is_launched_in_tiles(inputs):
            left = self._state.shapes(inputs) if self._keeps_tensors and self.state_memory.content else {}
            if left:
                refuse_unfit_state(left, self.inputs)
                inputs = {**self._state.brought(inputs), **inputs}
            expected = self._expected
            taken = {name: expected[name].as_taken(it) if name in expected else it for name, it in inputs.items()}
            kept = self._state.on_device - inputs.keys()
            lost = self._state.lost
            checked = checked_inputs(taken, [item for item in self.inputs if item.name not in kept], lost)
            if self._fixed_shapes is not None:
                return _Given(checked, self._fixed_shapes, {})
            extents = chosen_extents(checked, self.inputs, manifest.symbolic_dims, left)
            return _Given(checked, self._shapes(extents), {}, extents=extents, sizes=self._sizes(extents))
        from spyrec.runtime.jobs.larger_tensors import contracted_steps, larger_forms  # late: only tiles need it
        from spyrec.runtime.launch.launched_forms import explain_steps
        from spyrec.runtime.launch.plan import LaunchOptions

        checked = checked_inputs(inputs, self._tiled_inputs)
        steps = contracted_steps(manifest)
        assert steps is not None
        forms = larger_forms(manifest, steps, {name: array.shape for name, array in checked.items()})
        shapes = {name: form.shape for name, form in forms.items()}
        layouts = {name: form.layout for name, form in forms.items()}
        options = LaunchOptions(allow_tiled_launch=self._allows_tiles)
        return _Given(checked, shapes, forms, tuple(explain_steps(steps, shapes, layouts, options)))

    def _shapes(self, extents: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        return {item.name: actual_shape(item, extents) for item in self._manifest.arguments}

    def _sizes(self, extents: Mapping[str, int]) -> Mapping[str, int]:
        """Return the dynamic sizes that follow from the extents of their dims, where these are not the largest."""
        counts = (item for step in self._manifest.plan for item in step.trip_counts.items())
        return {
            name: count.trips(extents[count.dim])
            for name, count in counts
            if is_size_parameter(name) and extents[count.dim] != count.max_elements
        }

    def _launch_arguments(self, given: _Given) -> list[LaunchArgument]:
        if self._launched is not None and not given.forms and self._launched[0] == given.shapes:
            return self._launched[1]
        signature, starts = self.plan.signature or (), self._device.allocator
        found: list[LaunchArgument] = []
        for item in signature:
            place = self._places[item.name]
            whole = starts.part(place.allocation)
            found.append(given.placed(item, place, place.range.address.offset - whole.range.address.offset))
        if self._kept is not None and not given.forms:
            self._launched = given.shapes, found
        return found

    def _allocate(self, given: _Given) -> None:
        """Take memory for the graph's inputs and outputs.

        Each gets memory of its own, but where a program was compiled for addresses of tensors in one segment: these
        lie as far apart as it takes them to be.  Tensors of the latest run are taken where they are kept and as large.
        """
        allocator, signature = self._device.allocator, {item.name: item for item in self.plan.signature or ()}
        sizes_bytes = tuple(given.size_bytes(item) for item in signature.values())
        is_tiled = bool(given.forms)
        if self._kept == (is_tiled, sizes_bytes):
            if not is_tiled:
                self._place_state()
            return
        self._free_tensors()
        if not is_tiled:
            self._place_state()
        for group in _neighbours(self.plan.wired_jobs, signature):
            first = min(group.values())
            past = max(offset + given.size_bytes(signature[name]) for name, offset in group.items())
            whole = self._owned(past - first)
            for name, offset in group.items():
                self._places[name] = allocator.part(whole.index, offset - first, given.size_bytes(signature[name]))
        for name, item in signature.items():
            if name not in self._places:
                self._places[name] = allocator.part(self._owned(given.size_bytes(item)).index)
        self._kept = (is_tiled, sizes_bytes) if self._keeps_tensors else None

    def _place_state(self) -> None:
        """Use the memory in which state lies now: the runs of other bundles may have changed it for another."""
        for name, place in self._state.places().items() if self._keeps_tensors else ():
            if self._places.get(name) is not place:
                self._places[name] = place
                self._launched = None

    def _know_written(self, part: ExecutionPlan) -> None:
        """Note the state that programs about to be launched write where it lies."""
        if self._keeps_tensors and self._state.writes_in_place:
            for name in self._state.written_in_place({item.name for item in part.signature or ()}):
                self._written.setdefault(name, self._latest_launch)

    def _keep_unwritten(self, failure: ExecutionFailed) -> None:
        """Forget of what the latest run was to overwrite that which comes after the operation that failed."""
        if failure.origin is not None:
            failed = failure.origin.launch_id
            self._written = {name: before for name, before in self._written.items() if failed > before}
            for name in self._unstored(failure):
                del self._written[name]

    def _note_launched(self, part: ExecutionPlan, blocks: Sequence[ControlBlock]) -> None:
        """Note which launch each program of a part was, and of the state that they write, which one comes first."""
        before, jobs = self._latest_launch, part.wired_jobs
        launches = sorted({block.origin.launch_id for block in blocks})
        unknown = {name for name, latest in self._written.items() if latest == before}
        for wired, number in zip(jobs, launches) if len(jobs) == len(launches) else ():
            self._programs[number] = before, wired
            for name in unknown.intersection(wired.tensors or unknown):
                self._written[name] = before
                unknown.remove(name)
            before = number
        self._latest_launch = launches[-1] if launches else before

    def _unstored(self, failure: ExecutionFailed) -> list[str]:
        """Return what only the program that failed was to overwrite, and had not begun to where its device knows."""
        origin, cause = failure.origin, failure.__cause__
        if origin is None or origin.tile or not isinstance(cause, LaunchRefused):
            return []
        before, wired = self._programs.get(origin.launch_id, (0, None))
        if wired is None or wired.tensors is None:
            return []
        stored = {wired.tensors[number] for number in cause.stored if number in range(len(wired.tensors))}
        return [name for name, latest in self._written.items() if name not in stored and latest == before]

    def _placed_alone(self) -> set[str]:
        """Return the tensors that a launch takes wherever they lie, not in a distance from each other."""
        signature = {item.name: item for item in self.plan.signature or ()}
        together = {name for group in _neighbours(self.plan.wired_jobs, signature) for name in group}
        return signature.keys() - together

    def _owned(self, size_bytes: int) -> Allocation:
        self._owners.append(self._device.spyre_allocator.allocate(size_bytes))
        return self._owners[-1]

    # --- steps of the host ------------------------------------------------------------------------------------------

    def _compute_on_host(self, stream: SpyreStream, number: int, given: _Given, copies: list[HostCopy]) -> None:
        """Bring a step's operands to the host, compute it, and enqueue the copies of what a program reads of it.

        ``copies`` takes what was copied.  Errors: SPY0318 an integer that does not fit; of the copies.
        """
        assert self._host is not None
        step = self._manifest.host_steps[number]
        origin = Origin(self._device.next_launch_id(), f"host step {number} of {self.plan.name}")
        self._latest_launch = origin.launch_id
        taken: dict[str, HostArray] = {}
        blocks: list[ControlBlock] = []
        for value, name in step.takes.items():
            shape = given.shapes.get(name)
            taken[value], block = self._tensors.copy_out_exact(name, self._places[name], origin, shape)
            blocks.append(block)
            copies.append(HostCopy(name, self._size_bytes(given, name), is_to_device=False))
        stream.flex.enqueue(blocks)
        stream.synchronize()
        self._on_host |= taken
        self._on_host |= self._host.compute(number, {**given.inputs, **self._on_host}, given.extents)
        written: list[ControlBlock] = []
        for value, name in step.gives.items():
            written.append(self._tensors.copy_in(name, self._on_host[value], self._places[name], origin, is_lent=True))
            copies.append(HostCopy(name, self._size_bytes(given, name), is_to_device=True))
        stream.flex.enqueue(written)

    def _state_for_host(self, stream: SpyreStream, given: _Given, copies: list[HostCopy]) -> dict[str, HostArray]:
        """Return the inputs that steps read and the device has, as they are before any program replaces them.

        ``copies`` takes what was copied.
        """
        origin = Origin(self._device.next_launch_id(), f"state of {self.plan.name}")
        found: dict[str, HostArray] = {}
        for name in sorted(self._host_inputs - given.inputs.keys()):
            found[name], block = self._tensors.copy_out_exact(name, self._places[name], origin, given.shapes.get(name))
            stream.flex.enqueue([block])
            copies.append(HostCopy(name, self._size_bytes(given, name), is_to_device=False))
        if found:
            stream.synchronize()
        return found

    def _held_on_host(self, result: str, name: str, given: _Given) -> HostArray | None:
        """Return a result that is no tensor of the device: of a step of the host, an input, a constant, or empty."""
        if name in self._places:
            return None
        if result in self._on_host:
            return self._on_host[result]
        argument = self._arguments[name]
        if argument.dtype is not None and 0 in given.shapes[name]:
            return np.empty(given.shapes[name], argument.dtype.carrier)
        if self._host is None:
            return None
        return np.array(given.inputs[result] if result in given.inputs else self._host.constant(result))

    # --- host copies ------------------------------------------------------------------------------------------------

    def _copy_in(self, stream: SpyreStream, given: _Given) -> list[HostCopy]:
        """Enqueue and return the copies of the inputs that programs read, or the caller gets back."""
        used = self._on_device
        origin = Origin(self._device.next_launch_id(), f"copies of {self.plan.name}")
        blocks: list[ControlBlock] = []
        for name, array in given.inputs.items():
            if name in used:
                layout = given.forms[name].layout if name in given.forms else None
                place = self._places[name]
                blocks.append(self._tensors.copy_in(name, array, place, origin, layout=layout, is_lent=True))
        if self._keeps_tensors and not given.forms:
            self._written |= dict.fromkeys(self._state.overwritten(given.inputs), origin.launch_id - 1)
        self._latest_launch = origin.launch_id
        stream.flex.enqueue(blocks)
        return [
            HostCopy(name, self._size_bytes(given, name), is_to_device=True) for name in given.inputs if name in used
        ]

    def _copy_out(self, stream: SpyreStream, given: _Given) -> dict[str, HostArray]:
        origin = Origin(self._device.next_launch_id(), f"copies of {self.plan.name}")
        outputs: dict[str, HostArray] = {}
        blocks: list[ControlBlock] = []
        for result, name in self._manifest.outputs:
            if self._returned is not None and result not in self._returned and not self._state.is_copied(result):
                continue
            held = self._held_on_host(result, name, given)
            if held is not None:
                others = (*given.inputs.values(), *outputs.values())
                is_shared = any(np.may_share_memory(held, other) for other in others)
                outputs[result] = np.array(held) if is_shared else held
                continue
            form = given.forms.get(name) if name in self._places else None  # a constant lies as compiled
            layout, place = None if form is None else form.layout, self._place_of(name)
            with located(*self._copy_place(name, Direction.DEVICE_TO_HOST)):
                outputs[result], block = self._tensors.copy_out(
                    name, place, origin, given.shapes.get(name), layout, memory=self._results
                )
            blocks.append(block)
        stream.flex.enqueue(blocks)
        return outputs

    def _names_on_device(self) -> set[str]:
        """What the plan binds or the caller gets back; the rest (an unused or empty input) never leaves the host."""
        manifest = self._manifest
        used = {name for step in manifest.plan for name in step.arguments}
        if manifest.host_steps:
            return used
        return used | {name for _, name in manifest.outputs if argument_size_bytes(self._arguments[name])}

    def _size_bytes(self, given: _Given, name: str) -> int:
        form = given.forms.get(name)
        return self._argument_bytes[name] if form is None else form.layout.nbytes

    def _copy_place(self, name: str, direction: Direction) -> tuple[Location, tuple[str, ...]]:
        """Return what a refused copy is about: the conversion table (or the foreign bundle), and the argument."""
        file = "/".join(part for part in (self._tensors.root, self._tensors.table_file(name, direction)) if part)
        return Location(file or None), (f'in the copy of argument "{name}"',)

    # --- after it ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _observed(self, observer: RunObserver | None) -> Generator[None]:
        """Let an observer see every execution inside."""
        if observer is None:
            yield
            return
        backend = self._device.backend
        assert isinstance(backend, ObservedBackend), "this device shows nobody what it executes"
        backend.observer = observer
        try:
            yield
        finally:
            backend.observer = None

    def _reason(self, failure: ExecutionFailed) -> BaseException:
        """Return what a run raises for an operation that failed: its own reason, with the file that it is about."""
        cause, origin = failure.__cause__, failure.origin
        if cause is None or origin is None or (isinstance(cause, SpyrecError) and origin.tile):
            return failure
        if not isinstance(cause, SpyrecError):
            return cause
        try:
            if origin.tensor:
                is_out = failure.kind is Kind.D2H
                way = Direction.DEVICE_TO_HOST if is_out else Direction.HOST_TO_DEVICE
                with located(*self._copy_place(origin.tensor, way)):
                    raise _naming(origin.tensor, cause)
            with files_below(self._directory(origin.plan)), naming_elements(self._element_of):
                raise cause
        except SpyrecError as error:
            return error

    def _directory(self, plan: str) -> str:
        """Return what stands before the file names of a job's program: bundle and program directory."""
        return program_directory(self._tensors.root, _directory_of(plan))

    def _element_of(self, name: str, coordinate: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the host index of the element at a device coordinate of an argument, ``None`` for padding."""
        argument = self._arguments.get(name)
        if argument is None or not has_host_form(argument):
            return None
        is_result = name in {item for _, item in self._manifest.outputs}
        direction = Direction.DEVICE_TO_HOST if is_result else Direction.HOST_TO_DEVICE
        table = self._tensors.conversion(name, direction)
        assert not isinstance(table, DeviceForm)
        size, is_to_device = argument_size_bytes(argument), not is_result
        copy = ArgumentCopy(name, 0, size, argument.device_size, table.nests, is_to_device, table.host_shape)
        number = 0
        for place, extent in zip(coordinate, argument.device_size, strict=True):
            number = number * extent + place
        return copy.host_index(number)

    def _record(
        self, given: _Given, copied_in: Sequence[HostCopy], outputs: dict[str, HostArray], counters: _Counters
    ) -> RunRecord:
        results = [(result, name) for result, name in self._manifest.outputs if result in outputs]
        copied_out = [
            HostCopy(name, self._size_bytes(given, name), is_to_device=False)
            for _, name in results
            if name in self._places or not self._manifest.host_steps
        ]
        copies = [*copied_in, *copied_out]
        return RunRecord(
            outputs,
            {result: _dtype_name(self._arguments[name]) for result, name in results},
            counters.operations,
            counters.lx_peak_bytes,
            sum([item.size_bytes for item in copies if item.is_to_device]),
            sum([item.size_bytes for item in copies if not item.is_to_device]),
            tuple(copies),
            tuple(counters.launches),
            given.plans,
        )


@takes(stream=of("SpyreStream"), plan=of("ExecutionPlan"), inputs=Arrays(), values=Named())
def run_plan(
    stream: SpyreStream,
    plan: ExecutionPlan,
    inputs: Mapping[str, HostArray],
    *,
    values: Mapping[str, int] = NO_VALUES,
) -> dict[str, HostArray]:
    """Copy inputs in, launch a plan of a bundle, wait, and return its outputs by result name.

    Errors: SPY0939 the plan is none of a bundle; as :meth:`BundleRun.execute`.
    """
    check_values(plan, values)
    if plan.tensors is None or plan.signature is None:
        raise InvalidArgument(f"{plan} is no plan of a bundle: nothing says what its inputs are")
    run = BundleRun(stream.device, plan)
    try:
        return run.execute(stream, inputs, values=values).outputs
    finally:
        run.free()


class _NamedStats:
    """What the programs of a plan did, with their directory before the names of their files.

    A program that does what it did the time before is told with the same record, which is named once.
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[LaunchStats, LaunchStats]] = {}

    def of(self, plan: str, stats: LaunchStats) -> LaunchStats:
        """Return the counters of the job ``plan`` with named files."""
        latest = self._latest.get(plan)
        if latest is not None and latest[0] is stats:
            return latest[1]
        prefix = program_directory(None, _directory_of(plan))
        named = stats
        if prefix:
            named = replace(
                stats, operations=tuple([replace(item, file=prefix + item.file) for item in stats.operations])
            )
        self._latest[plan] = stats, named
        return named


class _Counters:
    """Keeps what the programs of a run did, launch by launch, or, where it ``is_summed``, in all.

    Files are named with their program's directory.  What comes behind the launch that ``observer`` has ended was not
    executed.
    """

    def __init__(
        self,
        device: SpyreDevice,
        watchers: tuple[TellsStats | None, RunObserver | None],
        named: _NamedStats,
        *,
        is_summed: bool,
    ) -> None:
        self._stats, self._observer = watchers
        self._named = named
        self._is_over = False
        self._scheduler = device.scheduler
        self._is_summed = is_summed
        self._sums: dict[str, OperationStats] = {}
        self.launches: list[LaunchStats] = []
        self.lx_peak_bytes = 0

    @contextmanager
    def counting(self) -> Generator[None]:
        """Count what is executed inside."""
        self._scheduler.observers.append(self)
        try:
            yield
        finally:
            self._scheduler.observers.remove(self)

    @property
    def operations(self) -> tuple[OperationStats, ...]:
        """The counters per SuperDSC, in the order of execution."""
        if self._is_summed:
            return tuple(self._sums.values())
        return tuple(item for launch in self.launches for item in launch.operations)

    def enqueued(self, entry: Entry) -> None:
        """Nothing is counted before it is executed."""

    def retired(self, entry: Entry) -> None:
        """Count a computation that was executed."""
        is_done = entry.phase is Phase.DONE and entry.block.kind is Kind.COMPUTE and not self._is_over
        stats = self._stats.stats_of(entry.block) if is_done and self._stats is not None else None
        if stats is None:
            return
        self._is_over = self._observer is not None and self._observer.is_ended
        named = self._named.of(entry.block.origin.plan, stats)
        self.lx_peak_bytes = max(self.lx_peak_bytes, stats.lx_peak_bytes)
        if not self._is_summed:
            self.launches.append(named)
            return
        for item in named.operations:
            known = self._sums.get(item.file)
            self._sums[item.file] = item if known is None else _sum(known, item)


def _sum(known: OperationStats, more: OperationStats) -> OperationStats:
    times = known.simulated_us, more.simulated_us
    return replace(
        known,
        executions=known.executions + more.executions,
        hbm_read_bytes=known.hbm_read_bytes + more.hbm_read_bytes,
        hbm_write_bytes=known.hbm_write_bytes + more.hbm_write_bytes,
        hbm_core_read_bytes=known.hbm_core_read_bytes + more.hbm_core_read_bytes,
        flops=known.flops + more.flops,
        simulated_us=None if times[0] is None or times[1] is None else times[0] + times[1],
    )


def _parts_of(plan: ExecutionPlan, manifest: Manifest) -> list[ExecutionPlan | int]:
    """Return what a run executes, in order: programs of the plan, and numbers of the host's steps between them."""
    if not manifest.host_steps:
        return [plan]
    parts: list[ExecutionPlan | int] = []
    first = 0
    for number, step in enumerate(manifest.host_steps):
        if step.before > first:
            parts.append(plan.part(first, step.before))
        first = step.before
        parts.append(number)
    if first < len(manifest.plan):
        parts.append(plan.part(first, len(manifest.plan)))
    return parts


def _naming(name: str, cause: SpyrecError) -> SpyrecError:
    """Return what a copy was refused for, with the tensor before a value of its that does not fit (SPY0318)."""
    return SpyrecError(
        [
            replace(item, message=f'"{name}": {item.message}') if item.code == "SPY0318" else item
            for item in cause.diagnostics
        ]
    )


def _neighbours(jobs: Iterable[WiredJob], signature: Mapping[str, JobArgument]) -> list[dict[str, int]]:
    """Return the tensors of which a program was compiled for several in one segment: by name, where they lie in it."""
    found: list[dict[str, int]] = []
    placed: set[str] = set()
    for wired in jobs:
        segments: dict[int, dict[str, int]] = {}
        for index, segment, offset_bytes in () if wired.job.binary is None else wired.job.binary.baked:
            name = (wired.tensors or ())[index]
            if name in signature and name not in placed:
                segments.setdefault(segment, {})[name] = offset_bytes
        for group in segments.values():
            if len(group) > 1:
                found.append(group)
                placed.update(group)
    return found


def _directory_of(plan: str) -> str:
    """Return the directory of the program that a job's name stands for."""
    return plan.partition("/")[2] or "."


def _dtype_name(argument: Argument) -> str:
    return "float32" if argument.dtype is None else argument.dtype.value
