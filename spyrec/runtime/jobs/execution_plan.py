"""Seed 000's ExecutionPlan: jobs in order, and which tensors each of them takes.  It executes nothing."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.bundle.manifest import Manifest, PlanStep, Role
from spyrec.bundle.tile_contract import programs_beside
from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.runtime.argument_kinds import Several, Text, Whole, of, takes
from spyrec.runtime.errors import InvalidArgument, NoEntry, OutsideAllocation
from spyrec.runtime.inputs.binding import argument_size_bytes
from spyrec.runtime.jobs.constant_memory import PlanConstants, UsedConstant
from spyrec.runtime.jobs.job import Job, JobSignature
from spyrec.runtime.jobs.job_argument import JobArgument, job_argument
from spyrec.runtime.jobs.plan_tensors import PlanTensors
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.streams.blocks import event_record
from spyrec.runtime.streams.control_block import ControlBlock, Origin
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launch_order import Readiness
from spyrec.runtime.streams.recording import Recording

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.streams.spyre_stream import SpyreStream


@dataclass(frozen=True, slots=True)
class WiredJob:
    """A job of a plan; ``tensors``: by position, the name that the plan has for each of its arguments.

    ``None``: the job takes the tensors of a launch as they are given.
    ``given``: the same as positions among the tensors of a launch, ``None`` where it takes others, or all of them.
    """

    job: Job
    tensors: tuple[str, ...] | None
    given: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlacedConstants:
    """The constants of a plan on one device, their memory, and when they are there."""

    arguments: Mapping[str, LaunchArgument]
    memory: tuple[Allocation | UsedConstant, ...]
    readiness: tuple[Readiness, ...]


class ExecutionPlan:
    """The jobs that launch a compiled graph, or, without a bundle, those that :meth:`add` is given.

    ``bundle``: what ``spyrec.compile`` returns, or its directory.  ``correction_slots``: by default as the bundle was
    compiled; with another number the launch artefacts are made anew.  A plan is loaded on each device once; its memory
    there lives as long as the plan.

    Errors: SPY06xx for the bundle, SPY0771 slots that are not 1 to 16, SPY0965.
    """

    @takes(bundle=of("Bundle", "str", "PathLike", "PurePath", or_none=True), correction_slots=Whole(or_none=True))
    def __init__(
        self, bundle: Bundle | str | os.PathLike[str] | None = None, *, correction_slots: int | None = None
    ) -> None:
        self._wired: list[WiredJob] = []
        self._jobs: dict[int, Job] = {}  # all that may be launched, by identity: each launch asks for them
        self.name = "plan"
        self.tensors: PlanTensors | None = None
        self.signature: tuple[JobArgument, ...] | None = None
        """The tensors that a launch gives: the graph's inputs, then its outputs; ``None`` where nobody says."""
        self.intermediates: tuple[JobArgument, ...] = ()
        self.constants: tuple[JobArgument, ...] = ()
        self._placed: WeakKeyDictionary[SpyreDevice, PlacedConstants] = WeakKeyDictionary()
        self._shared: PlanConstants | None = None
        if bundle is not None:
            loaded = bundle if isinstance(bundle, Bundle) else Bundle.load(Path(bundle))
            slots = loaded.correction_slots if correction_slots is None else correction_slots
            if not 1 <= slots <= MAX_SLOTS:
                raise refuse("SPY0771", f"correction_slots is {slots}", hint=f"choose 1 to {MAX_SLOTS}")
            self._fill(loaded if slots == loaded.correction_slots else replace(loaded, correction_slots=slots))

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs in the order of execution."""
        return tuple(wired.job for wired in self._wired)

    @property
    def wired_jobs(self) -> tuple[WiredJob, ...]:
        """The jobs with the names of their tensors."""
        return tuple(self._wired)

    @takes(job=of("Job"), tensors=Several(Text(), or_none=True))
    def add(self, job: Job, tensors: Sequence[str] | None = None) -> None:
        """Append a job; ``tensors``: the plan's names of its arguments, by default those of a launch as given."""
        names = None if tensors is None else tuple(tensors)
        self._wired.append(WiredJob(job, names, self._given_places(names)))
        self._jobs |= _with_those_beside(job)

    def _given_places(self, names: tuple[str, ...] | None) -> tuple[int, ...] | None:
        if names is None or self.signature is None:
            return None
        places = {item.name: place for place, item in enumerate(self.signature)}
        return tuple([places[name] for name in names]) if places.keys() >= set(names) else None

    @property
    def takes_what_is_given(self) -> bool:
        """Whether all jobs take nothing but tensors that a launch gives."""
        for wired in self._wired:  # noqa: SIM110 -- a generator costs more, and each launch asks
            if wired.given is None:
                return False
        return True

    def part(self, first: int, end: int) -> ExecutionPlan:
        """Return a plan of the jobs at positions ``first`` to ``end``, which shares what is loaded with this one."""
        part = copy(self)
        part._wired = self._wired[first:end]  # noqa: SLF001 -- its own
        return part

    @takes(device=of("SpyreDevice"))
    def is_loaded(self, device: SpyreDevice) -> bool:
        """Whether programs and constants were brought to a device, and nothing went wrong on the way."""
        return self.is_ready_on(device)

    def is_ready_on(self, device: SpyreDevice) -> bool:
        """Return what :meth:`is_loaded` does, of a device: for launches, which ask each time."""
        if self.constants and not self._has_placed(device):
            return False
        for job in self._jobs.values():  # noqa: SIM110 -- a generator costs more, and each launch asks
            if not job.is_loaded(device):
                return False
        return True

    def _has_placed(self, device: SpyreDevice) -> bool:
        placed = self._placed.get(device)
        return placed is not None and all(item.is_well for item in placed.readiness)

    @takes(number=Whole())
    def remove(self, number: int) -> None:
        """Take the job at a position out: later launches go without it; errors SPY0939 there is none."""
        if not 0 <= number < len(self._wired):
            raise InvalidArgument(f"job {number} of a plan of {len(self._wired)}")
        del self._wired[number]
        self._jobs = {key: item for wired in self._wired for key, item in _with_those_beside(wired.job).items()}

    @property
    def program_bytes(self) -> int:
        """Bytes of program memory that :meth:`load` fills."""
        return sum(job.program_bytes for job in self._jobs.values())

    @takes(stream=of("SpyreStream"), memory=of("DeviceBytes", or_none=True))
    def load(self, stream: SpyreStream, memory: DeviceBytes | None = None) -> None:
        """Bring programs (one DMA each) and constants to the stream's device, where they are not there already.

        It returns before the copies; launches on other streams wait for them.  ``memory``: of ``program_bytes``, where
        the programs lie one behind the other, instead of in allocations of their own; its owner keeps it.
        Errors: SPY0901, SPY0905 the memory is too small, SPY0930, SPY0968 it is none for programs; what the device
        cannot execute, as SPY0705; of enqueueing.
        """
        with self.loading(stream, memory) as blocks:
            if blocks:
                stream.flex.enqueue(blocks)

    @contextmanager
    def loading(self, stream: SpyreStream, memory: DeviceBytes | None = None) -> Generator[list[ControlBlock]]:
        """Yield what :meth:`load` enqueues, nothing where it is done, for a caller who enqueues it inside.

        Where the block ends by an exception, nothing is loaded that was not before, and the memory is free again.
        Errors: as :meth:`load`.
        """
        device = stream.device
        with device.launching:
            if self.is_loaded(device):
                yield []
                return
            self.refuse_loading(stream)
            with ExitStack() as undo:
                yield self._load_blocks(stream, memory, undo)
                undo.pop_all()

    def _load_blocks(self, stream: SpyreStream, memory: DeviceBytes | None, undo: ExitStack) -> list[ControlBlock]:
        """Take memory for what is not loaded, and return the copies that fill it; ``undo`` gets what gives it back."""
        device = stream.device
        if memory is not None:
            _require_program_memory(device, memory)
        launch_id = device.next_launch_id()
        recording = Recording(stream.id)
        readiness = Readiness(recording, {stream.id})
        blocks: list[ControlBlock] = []
        offset_bytes = 0
        for job in self._jobs.values():
            if not job.is_loaded(device):
                place = None if memory is None else _part(memory, offset_bytes, job.program_bytes)
                blocks += job.load(device, launch_id, readiness, place)
                undo.callback(job.take_back, device)
            offset_bytes += job.program_bytes
        blocks += self._place_constants(device, launch_id, readiness, undo)
        uploads = [replace(block, is_upload=True) for block in blocks]
        return [*uploads, event_record(recording, Origin(launch_id, f"load {self.name}"))]

    def refuse_unfit(self, device: SpyreDevice) -> None:
        """Refuse a device that cannot execute a program of the plan; errors of ``Backend.operand_check``."""
        for job in self._jobs.values():
            job.check_on(device)

    def refuse_host_steps(self) -> None:
        """Refuse to launch a plan between whose programs the host computes (SPY0785)."""
        if self.tensors is not None and self.tensors.manifest.host_steps:
            count = len(self.tensors.manifest.host_steps)
            fact = f'the host computes between the programs of plan "{self.name}", in {count} step{"s"[: count != 1]}'
            raise refuse("SPY0785", fact)

    def refuse_loading(self, stream: SpyreStream) -> None:
        """Refuse to load on a stream that takes no work, or records; errors SPY0920, SPY0928 to SPY0930."""
        if stream.flex.capture is not None:
            stream.flex.capture.give_up(f'plan "{self.name}" is loaded on stream {stream.id}, which records')
        stream.device.refuse_if_closed()
        stream.device.scheduler.refuse_unready(stream.flex.queue)

    @takes(device=of("SpyreDevice"))
    def unload(self, device: SpyreDevice) -> None:
        """Give the plan's memory on a device back when what is enqueued has retired."""
        with device.launching:
            placed = self._placed.pop(device, None)
            for owner in () if placed is None else placed.memory:  # now: whoever holds the plan in a frame keeps it
                owner.free()
            for job in self._jobs.values():
                job.unload(device)

    def constants_on(self, device: SpyreDevice) -> PlacedConstants | None:
        """Return the constants as they lie on a device, ``None`` where the plan has none."""
        return self._placed.get(device) if self.constants else None

    def _place_constants(
        self, device: SpyreDevice, launch_id: int, readiness: Readiness, undo: ExitStack
    ) -> list[ControlBlock]:
        if not self.constants or self._has_placed(device):
            return []
        assert self.tensors is not None
        owners: list[Allocation | UsedConstant] = []
        needed = [readiness]
        placed: dict[str, LaunchArgument] = {}
        blocks: list[ControlBlock] = []
        for argument in self.constants:
            name, shared = argument.name, self._shared
            if shared is not None and shared.is_there(name):
                used = shared.use(name)
                owners.append(used)
                needed.append(used.readiness)
            else:
                own = device.spyre_allocator.allocate(argument.size_bytes)
                owners.append(own if shared is None else shared.keep(name, own, readiness))
                place = device.allocator.part(own.index)
                origin = Origin(launch_id, f"load {self.name}")
                blocks.append(self.tensors.copy_in(name, self.tensors.constant(name), place, origin, is_lent=True))
            undo.callback(owners[-1].free)
            placed[name] = argument.placed(owners[-1].index)
        undo.callback(self._placed.pop, device)
        readied = {id(item): item for item in needed}
        self._placed[device] = PlacedConstants(placed, tuple(owners), tuple(readied.values()))
        return blocks

    def share_constants(self, shared: PlanConstants) -> None:
        """Have constants in common with other plans of one device, the only one that this plan is loaded on then."""
        self._shared = shared

    def missing_constants(self, device: SpyreDevice) -> list[str]:
        """Return the constants that :meth:`load` would bring."""
        if self.constants_on(device) is not None:
            return []
        return [item.name for item in self.constants if self._shared is None or not self._shared.is_there(item.name)]

    def _fill(self, bundle: Bundle) -> None:
        manifest = bundle.manifest
        self.name = manifest.name
        self.tensors = PlanTensors(bundle)
        used = {name for step in manifest.plan for name in step.arguments}
        arguments = {
            item.name: job_argument(item, manifest.symbolic_dims, argument_size_bytes(item))
            for item in manifest.arguments
            # what the host alone has comes to no device, and what has no elements has no place there
            if (item.arg_index is not None or not manifest.host_steps)
            and (item.name in used or argument_size_bytes(item))
        }
        roles = {name: item.role for name, item in arguments.items()}
        names = dict.fromkeys([*manifest.inputs, *(name for _, name in manifest.outputs)])
        if manifest.host_steps:
            # tensors that live while the host computes are the run's, as inputs and outputs are
            names |= {name: None for name, role in roles.items() if role is Role.INTERMEDIATE}
            names = {name: None for name in names if name in used}
        self.signature = tuple(
            arguments[name] for name in names if name in arguments and roles[name] is not Role.CONSTANT
        )
        self.intermediates = tuple(
            item for name, item in arguments.items() if item.role is Role.INTERMEDIATE and name in used - names.keys()
        )
        needed = {name for step in manifest.steps for name in step.arguments} | {name for _, name in manifest.outputs}
        self.constants = tuple(
            item for name, item in arguments.items() if item.role is Role.CONSTANT and name in needed
        )
        jobs: dict[str, Job] = {}
        placed = self._placed
        for step in (*manifest.tile_steps, *manifest.plan):
            name = manifest.name if step.program == "." else f"{manifest.name}/{step.program}"
            signature = _signature(manifest, step, arguments)
            beside = () if signature.contract is None else programs_beside(signature.contract)
            named = {item: jobs[item] for item in beside if item in jobs}
            job = Job.of_artifact(bundle.artifacts[step.program], name, signature, named)
            job.constants_on = lambda device: placed[device].arguments
            jobs.setdefault(step.program, job)
            if step in manifest.plan:
                self.add(job, step.arguments)

    def __repr__(self) -> str:
        return f'ExecutionPlan("{self.name}", {len(self._wired)} jobs)'

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the jobs in order, and the tensors that a launch gives."""
        from spyrec.runtime.launch.plan_html import execution_plan_html  # late: notebooks alone ask

        return execution_plan_html(self)


def _with_those_beside(job: Job) -> dict[int, Job]:
    """Return a job and those that its launches run beside it, by identity."""
    return {id(item): item for item in (job, *job.programs.values())}


def _require_program_memory(device: SpyreDevice, memory: DeviceBytes) -> None:
    regions, region_id = device.allocator.regions, memory.range.address.region_id
    if region_id != regions.region_ids[regions.program_index]:
        hint = "allocate it with MemoryKind.PROGRAM"
        raise NoEntry(f"programs for region {region_id}, which holds none: nothing there can be started", hint=hint)


def _part(memory: DeviceBytes, offset_bytes: int, size_bytes: int) -> DeviceBytes:
    part = memory.range.part(offset_bytes, size_bytes)
    if not memory.range.contains(part):
        fact = f"programs up to byte {offset_bytes + size_bytes}, in memory of {memory.range.size_bytes}"
        raise OutsideAllocation(fact)
    return DeviceBytes(memory.allocation, part)


def _signature(manifest: Manifest, step: PlanStep, arguments: Mapping[str, JobArgument]) -> JobSignature:
    before = manifest.plan[: manifest.plan.index(step)] if step in manifest.plan else manifest.steps
    held = {name for earlier in before for name in earlier.arguments}
    made_here = (
        index
        for index, name in enumerate(step.arguments)
        if arguments[name].role in {Role.OUTPUT, Role.INTERMEDIATE} and name not in held
    )
    return JobSignature(
        tuple(arguments[name] for name in step.arguments),
        step.trip_counts,
        step.values,
        manifest.tile_contracts.get(step.program),
        frozenset(made_here),
    )
