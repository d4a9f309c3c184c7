"""The unit of work of seed 000: a program, the metadata of its correction, and the steps that launch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from spyrec.bundle.correction_word import WordKind
from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.bundle.image_table import ImageTable, check_stride_words, stride_words
from spyrec.bundle.launch_plan import ComputeOnDevice, ComputeOnHost, DataTransfer, ExecutionStep, LaunchArtifact
from spyrec.bundle.manifest import Role, TripCount
from spyrec.bundle.program import is_size_parameter
from spyrec.bundle.tile_contract import TileContract, programs_beside
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE
from spyrec.runtime.device import NO_VALUES
from spyrec.runtime.errors import ArgumentCountError, JobNotLoaded, MalformedPlan, ProgramMissing
from spyrec.runtime.jobs.binary import Binary, binary_of, slot_zero
from spyrec.runtime.jobs.by_device import ByDevice
from spyrec.runtime.jobs.iteration import (
    LaunchContext,
    OperandPlace,
    OperandSet,
    Run,
    iteration_blocks,
    require_data_memory,
    shares_memory,
)
from spyrec.runtime.jobs.job_argument import JobArgument, extents_of
from spyrec.runtime.jobs.loaded_job import LoadedJob
from spyrec.runtime.jobs.steps import DMA, DeviceCompute, HostOperation, JobPlan, Step
from spyrec.runtime.memory.addresses import whole_sticks
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes
from spyrec.runtime.streams.control_block import ControlBlock, OperandCheck
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launch_order import Readiness
from spyrec.runtime.streams.launchable import LaunchRequest, allows_tiles

if TYPE_CHECKING:
    from spyrec.runtime.launch.tile_plan import TilePlan
    from spyrec.runtime.spyre_device import SpyreDevice


@dataclass(frozen=True, slots=True)
class JobSignature:
    """What a job's tensors are.

    ``trip_counts`` and ``values``: of the program's value parameters, those that follow from the extents of symbolic
    dims and those that are fixed.  ``contract``: how tensors of many tiles are launched.  ``made_here``: indices of the
    arguments that hold nothing before the job: what it reads of them it has written itself.
    """

    arguments: tuple[JobArgument, ...]
    trip_counts: Mapping[str, TripCount] = field(default_factory=dict[str, TripCount])
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    contract: TileContract | None = None
    made_here: frozenset[int] = frozenset()


class Job:
    """Passive data: a plan of steps, and what they need.  A stream launches it.

    ``Job(job_plan)`` is a job of copies alone; ``Job(job_plan, artifact, program_correction_metadata)`` has a program,
    which is loaded before it is launched.  ``signature``: by default what the program's own table says of its
    arguments, bytes only.  ``programs``: by directory, the jobs that launches by its tile contract run beside it.

    Errors: SPY0965 steps that do not make a launch of the program, SPY0652 to SPY0654 a damaged image, SPY0972 and
    SPY0973 a tile contract that the programs do not keep.
    """

    def __init__(  # noqa: PLR0913 -- seed 000's three, and what a bundle knows beside
        self,
        job_plan: JobPlan,
        artifact: LaunchArtifact | None = None,
        program_correction_metadata: HostComputeSpec | None = None,
        *,
        name: str = "job",
        signature: JobSignature | None = None,
        programs: Mapping[str, Job] | None = None,
    ) -> None:
        self.name = name
        self.job_plan = job_plan
        self.program_correction_metadata = program_correction_metadata
        made_here = frozenset[int]() if signature is None else signature.made_here
        self.binary: Binary | None = None if artifact is None else binary_of(artifact, name, made_here)
        self.signature = signature or JobSignature(_table_arguments(self.binary))
        self.programs: Mapping[str, Job] = {} if programs is None else dict(programs)
        self.constants_on: Callable[[SpyreDevice], Mapping[str, LaunchArgument]] = lambda _: {}
        """Where the constants of its plan lie on a device, by name."""
        self._loaded: ByDevice[LoadedJob] = ByDevice()
        self._checks: ByDevice[OperandCheck] = ByDevice()
        self._sizes = [argument.size_bytes for argument in self.signature.arguments]
        words = () if self.binary is None else self.binary.table.words
        self.value_names = frozenset(word.name for word in words if word.kind is WordKind.VALUE)
        """The names of the program's value parameters."""
        _check_steps(self)
        _check_contract(self)

    @classmethod
    def of_artifact(
        cls,
        artifact: LaunchArtifact,
        name: str = "job",
        signature: JobSignature | None = None,
        programs: Mapping[str, Job] | None = None,
    ) -> Job:
        """Return the job whose steps are those of a launch artefact; errors as the constructor."""
        metadata = next((item.specification for item in artifact.execution if isinstance(item, ComputeOnHost)), None)
        shapes = () if signature is None else tuple(argument.shape for argument in signature.arguments)
        plan = JobPlan(tuple(_step(item, shapes) for item in artifact.execution))
        return cls(plan, artifact, metadata, name=name, signature=signature, programs=programs)

    @property
    def arguments(self) -> tuple[JobArgument, ...]:
        """The tensors that a launch gives, in order."""
        return self.signature.arguments

    def allocation_index(self, device: SpyreDevice) -> AllocationIndex:
        """Return the handle of the program's memory on a device; errors SPY0964 it is not loaded there."""
        return self.loaded_on(device).index

    def is_loaded(self, device: SpyreDevice) -> bool:
        """Whether the program was brought to a device, and nothing went wrong on the way."""
        loaded = self._loaded.get(device)
        if loaded is None:
            return self.binary is None
        made = loaded.readiness.recording
        return made.ticket > 0 and made.failure is None  # as `Readiness.is_well`: each launch asks

    def loaded_on(self, device: SpyreDevice) -> LoadedJob:
        """Return the program as it lies on a device; errors SPY0964."""
        loaded = self._loaded.get(device)
        if loaded is None:
            raise JobNotLoaded(
                f'the program of job "{self.name}" is not on device {device.index}', hint="load its plan on a stream"
            )
        return loaded

    @property
    def program_bytes(self) -> int:
        """Bytes of program memory that it takes, in whole sticks; 0 without a program."""
        return 0 if self.binary is None else whole_sticks(self.binary.artifact.allocation_bytes)

    def check_on(self, device: SpyreDevice) -> OperandCheck | None:
        """Return what refuses operands that the program cannot be launched on, ``None`` without a program.

        Errors: as of ``Backend.operand_check``: what the device cannot execute, as SPY0705.
        """
        if self.binary is None:
            return None
        found = self._checks.get(device)
        if found is None:
            found = device.backend.operand_check(self.binary.image_bytes, self.name)
            self._checks.put(device, found)
        return found

    def load(
        self, device: SpyreDevice, launch_id: int, readiness: Readiness, memory: DeviceBytes | None = None
    ) -> list[ControlBlock]:
        """Take memory for the program, by default of its own, and return the copies that bring it there.

        Errors: SPY0901; of :meth:`check_on`.
        """
        check = self.check_on(device)
        if self.binary is None or check is None:
            return []
        loaded = LoadedJob(self.binary, device, readiness, check, memory)
        self._loaded.put(device, loaded)
        return loaded.transfers(launch_id, f"load {self.name}")

    def take_back(self, device: SpyreDevice) -> None:
        """Undo :meth:`load`, of which nothing was enqueued."""
        loaded = self._loaded.take(device)
        assert loaded is not None
        loaded.free()

    def unload(self, device: SpyreDevice) -> None:
        """Give the program's memory on a device back when what is enqueued has retired."""
        loaded = self._loaded.take(device)
        if loaded is not None:
            loaded.free()

    def control_blocks(self, request: LaunchRequest) -> Sequence[ControlBlock]:
        """Return what a launch enqueues: one iteration where the tensors are those compiled for, else one per tile.

        Errors: SPY0902, SPY0905 the tensors' memory; SPY0950 to SPY0953 they do not fit; SPY0955 to SPY0962 nor do
        tiles of them; SPY0938, SPY0964, SPY0969; what the device says of its operands, as SPY0717.
        """
        loaded = self._loaded.get(request.device)
        known = () if loaded is None else loaded.known_runs(request.arguments, request.device.allocator)
        if known and (not known[0].tile or allows_tiles(request.allow_tiled_launch)):
            return self._again(known, request)
        plan = self.tile_plan(request)
        if plan is not None:
            return self._in_tiles(plan, request)
        operands = OperandSet(self._operands(request))
        blocks = iteration_blocks(self.open(request), operands)
        if loaded is not None:
            loaded.keep_runs(request.arguments, [Run("", operands)])
        return blocks

    def _again(self, runs: Sequence[Run], request: LaunchRequest) -> Sequence[ControlBlock]:
        """Return what a launch of tensors enqueues that an earlier one had."""
        contexts: dict[str, LaunchContext] = {}
        blocks: list[ControlBlock] = []
        for program, operands, tile in runs:
            context = contexts.get(program)
            if context is None:
                job = self if program == "" else self.programs[program]
                context = contexts[program] = job.open(request)
            blocks += iteration_blocks(context, operands, tile)
        return blocks

    def _operands(self, request: LaunchRequest) -> list[OperandPlace]:
        """Return where tensors lie that are those compiled for; errors SPY0902, SPY0905, SPY0938."""
        part, regions = request.device.allocator.part, request.device.allocator.regions
        programs_id = regions.region_ids[-1]
        places: list[OperandPlace] = []
        for tensor, size_bytes in zip(request.arguments, self._sizes, strict=True):
            allocation, place = part(tensor.allocation_index, tensor.storage_offset_bytes, size_bytes)
            places.append(OperandPlace(place, allocation))
            if place[0][0] == programs_id:  # by position: names cost more than the comparison
                require_data_memory(regions, [item.range for item in places], self.name)
        return places

    def tile_plan(self, request: LaunchRequest) -> TilePlan | None:
        """Return how a launch goes through tensors of many tiles, ``None`` where they are those compiled for.

        Errors: SPY0950 to SPY0953 they do not fit, SPY0955 to SPY0962 nor do tiles of them.
        """
        arguments, given = self.signature.arguments, request.arguments
        if len(given) != len(arguments):
            names = ", ".join(f'"{item.name}"' for item in arguments)
            raise ArgumentCountError(f'job "{self.name}" takes {len(arguments)} tensors ({names}), not {len(given)}')
        for argument, tensor in zip(arguments, given, strict=True):
            if not argument.matches(tensor):
                if self.signature.contract is None:
                    raise argument.mismatch(tensor)
                from spyrec.runtime.jobs.tile_blocks import launch_tensors  # late: what only launches in tiles need
                from spyrec.runtime.launch.explain import explain_launch
                from spyrec.runtime.launch.plan import LaunchOptions

                options = LaunchOptions(allow_tiled_launch=allows_tiles(request.allow_tiled_launch))
                return explain_launch(self.signature.contract, launch_tensors(given), options)
        return None

    def _in_tiles(self, plan: TilePlan, request: LaunchRequest) -> Sequence[ControlBlock]:
        """Return what a launch of tensors of many tiles enqueues."""
        from spyrec.runtime.jobs.tile_blocks import tile_blocks  # late: as in `tile_plan`

        contexts: dict[str, LaunchContext] = {}
        runs: list[Run] = []

        def run(program: str, operands: Sequence[OperandPlace], tile: tuple[int, ...]) -> list[ControlBlock]:
            is_own = program == plan.body.contract.program
            job = self if is_own else self.programs[program]
            if program not in contexts:
                contexts[program] = job.open(request)
            constants = job.constant_places(request.device, len(operands))
            runs.append(Run("" if is_own else program, OperandSet([*operands, *constants]), tile))
            return iteration_blocks(contexts[program], runs[-1].operands, tile)

        blocks = tile_blocks(request, plan, run)
        loaded = self._loaded.get(request.device)
        if loaded is not None and not any((*plan.scratch_bytes, *plan.sum_scratch_bytes, *plan.accumulator_bytes)):
            loaded.keep_runs(request.arguments, runs)
        return blocks

    def constant_places(self, device: SpyreDevice, first: int) -> list[OperandPlace]:
        """Return where the arguments from the index ``first`` on lie: constants, which no launch gives."""
        if first == len(self.signature.arguments):
            return []
        known, places = self.constants_on(device), list[OperandPlace]()
        for argument, size_bytes in zip(self.signature.arguments[first:], self._sizes[first:], strict=True):
            placed = known[argument.name]
            allocation, place = device.allocator.part(placed.allocation_index, placed.storage_offset_bytes, size_bytes)
            places.append(OperandPlace(place, allocation))
        return places

    def open(self, request: LaunchRequest) -> LaunchContext:
        """Return the job as a launch runs it, once or in iterations; errors SPY0708, SPY0901, SPY0953, SPY0964."""
        if self.binary is None:
            return LaunchContext(request, self.name, self.job_plan)
        loaded = self._loaded.get(request.device) or self.loaded_on(request.device)
        request.order.need(loaded.readiness)
        pool = None
        if self.binary.table.pool_bytes:
            index = request.memory.allocate(request.device, self.binary.table.pool_bytes)
            pool = request.device.allocator.part(index)
        values = self.values_of(request) if self.value_names else NO_VALUES
        return LaunchContext(request, self.name, self.job_plan, loaded, values, pool, shares_memory(request.arguments))

    def values_of(self, request: LaunchRequest) -> Mapping[str, int]:
        """Return the program's value parameters in a launch.

        Errors: SPY0708 one has no value or one out of range, SPY0953 two tensors disagree on a symbolic dim.
        """
        extents = extents_of(self.signature.arguments, request.arguments)
        trips = {
            name: count.trips(extents.get(count.dim, count.max_elements))
            for name, count in self.signature.trip_counts.items()
            if count.dim in extents or not is_size_parameter(name)
        }
        assert self.binary is not None
        maxima = self.binary.table.value_maxima
        sizes = {name: maxima[name] for name in self.value_names if is_size_parameter(name) and name in maxima}
        known = {**sizes, **self.signature.values, **trips, **request.values}
        for name in sorted(self.value_names):
            value, largest = known.get(name), maxima.get(name)
            if value is None or value < 0 or (largest is not None and value > largest):
                has = "no value" if value is None else f"the value {value}"
                span = "0 or more" if largest is None else f"0 to {largest}"
                raise refuse("SPY0708", f'parameter "%{name}" of job "{self.name}" has {has}, it takes {span}')
        return {name: value for name, value in known.items() if name in self.value_names}

    def __repr__(self) -> str:
        return f'Job("{self.name}", {len(self.job_plan.steps)} steps, {len(self.arguments)} tensors)'


def _step(item: ExecutionStep, shapes: tuple[tuple[int, ...] | None, ...]) -> Step:
    match item:
        case ComputeOnHost():
            return HostOperation(item.specification, item.output)
        case DataTransfer() if not item.is_to_host:
            return DMA(item.host_buffer, item.size_bytes, offset_bytes=item.dev_ptr - PROGRAM_SEGMENT_BASE)
        case DataTransfer():
            raise MalformedPlan(f'a job that copies "{item.host_buffer}" back to the host has nobody to give it to')
        case ComputeOnDevice():
            return DeviceCompute(item.job_bin_ptr - PROGRAM_SEGMENT_BASE, shapes)


def _table_arguments(binary: Binary | None) -> tuple[JobArgument, ...]:
    listed = () if binary is None else binary.table.arguments
    return tuple(
        JobArgument(item.name, Role.OUTPUT if item.is_written else Role.INPUT, item.size_bytes) for item in listed
    )


def _check_steps(job: Job) -> None:
    """Refuse a computation without a program, and one whose correction this job does not make (J11); SPY0965."""
    corrected: set[int] = set()
    for number, step in enumerate(job.job_plan.steps):
        if isinstance(step, DMA) and isinstance(step.host_address, str):
            corrected.add(step.offset_bytes)
        if not isinstance(step, DeviceCompute):
            continue
        if job.binary is None:
            raise MalformedPlan(f'step {number} of job "{job.name}" computes, and the job has no program')
        first = slot_zero(job.binary.artifact)
        if first is None:
            continue
        if step.entry_bytes != first.job_bin_ptr - PROGRAM_SEGMENT_BASE:
            raise MalformedPlan(f'step {number} of job "{job.name}" starts at byte {step.entry_bytes}, no entry')
        if first.dev_ptr - PROGRAM_SEGMENT_BASE not in corrected:
            hint = "a job is self-contained: its HostOperation and its DMA come before its DeviceCompute"
            raise MalformedPlan(f'no step of job "{job.name}" makes the correction that step {number} takes', hint=hint)
        corrected.clear()


def _check_contract(job: Job) -> None:
    """Refuse a tile contract that asks for programs which are not there, or take less than launches give."""
    contract = job.signature.contract
    if contract is None or job.binary is None:
        return
    tables = {contract.program: job.binary.table}
    tables |= {name: item.binary.table for name, item in job.programs.items() if item.binary is not None}
    check_contract(job.name, contract, tables)


def check_contract(name: str, contract: TileContract, tables: Mapping[str, ImageTable]) -> None:
    """Refuse a contract that a job cannot keep; ``tables``: by program, what its image says of itself.

    Errors: SPY0972 a program has no words for stick strides that launches set, SPY0973 a program is missing.
    """
    for program in (contract.program, *programs_beside(contract)):
        if program not in tables:
            has = ", ".join(f'"{item}"' for item in tables)
            raise ProgramMissing(f'job "{name}" is launched by a contract with program "{program}", and has only {has}')
        table = tables[program]
        check_stride_words(stride_words(program, [contract], table.arguments), table, Location(f"{name}: {program}"))
