"""The dry run of a plan's launch: every check, and what each job would enqueue, on memory that nobody touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from spyrec.dataclass import dataclass
from spyrec.runtime.argument_kinds import of, takes
from spyrec.runtime.device import NO_VALUES
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.given_tensors import check_given, named_tensors, tensors_of
from spyrec.runtime.jobs.iteration import require_data_memory, shares_memory
from spyrec.runtime.jobs.job import Job
from spyrec.runtime.jobs.steps import HostOperation
from spyrec.runtime.jobs.tile_blocks import operands_on_tensors
from spyrec.runtime.launch.plan import LaunchCounts
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.launch_arguments import arguments_on, require_tensors
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launchable import LaunchRequest

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.tensors import SpyreTensor


@dataclass(frozen=True, slots=True)
class JobLaunch:
    """What a launch does with one job of its plan.

    ``tiles``: its loops and how each tensor reaches its tiles (``render_plan`` shows it); ``None`` where the tensors
    are those that the job was compiled for: one iteration.  ``counts``: what it enqueues.
    """

    name: str
    tiles: TilePlan | None
    counts: LaunchCounts

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is enqueued, and the tiles where there are any."""
        from spyrec.runtime.launch.plan_html import job_launch_html  # late: notebooks alone ask

        return job_launch_html(self)


class LaunchPlan(tuple[JobLaunch, ...]):
    """What a launch does, job by job: a tuple that notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a line for each job, and the tiles of those that have any."""
        from spyrec.runtime.launch.plan_html import launches_html  # late: notebooks alone ask

        return launches_html(self)


@takes(plan=of("ExecutionPlan"))
def explain_launch(
    plan: ExecutionPlan,
    tensors: Sequence[SpyreTensor],
    allow_tiled_launch: bool | None = None,
    *,
    values: Mapping[str, int] = NO_VALUES,
) -> LaunchPlan:
    """Return what ``launch_kernel`` with the same arguments does, job by job; nothing is loaded, taken or enqueued.

    ``tensors``: the graph's inputs, then its outputs, all of one device; what is in them does not matter.

    Errors: as of ``launch_kernel``, but for what only memory taken for the launch shows (SPY0901, SPY0969).
    """
    require_tensors(tensors)
    arguments = arguments_on(tensors[0].device, tensors) if tensors else []
    device = tensors[0].device if tensors else None
    return explain_arguments(device, plan, arguments, allow_tiled_launch, values)


def explain_arguments(
    device: SpyreDevice | None,
    plan: ExecutionPlan,
    arguments: Sequence[LaunchArgument],
    allow_tiled_launch: bool | None = True,
    values: Mapping[str, int] = NO_VALUES,
) -> LaunchPlan:
    """Explain a launch on memory that is described as tensors are; ``device``: ``None`` where there is none of it."""
    check_given(plan, arguments, values)
    if device is None:
        return LaunchPlan(JobLaunch(wired.job.name, None, _counts(wired.job)) for wired in plan.wired_jobs)
    for argument in arguments:
        device.allocator.range_of(argument.allocation_index)
    held = frozenset(argument.allocation_index for argument in arguments)
    take = _other_handles()
    constants = {item.name: item.placed(take(item.size_bytes)) for item in plan.constants}
    named = named_tensors(plan, arguments, constants, take)
    found: list[JobLaunch] = []
    for wired in plan.wired_jobs:
        given = tensors_of(wired, arguments, named)
        request = LaunchRequest(device, 0, 0, given, allow_tiled_launch, values=values)
        found.append(_explained(wired.job, request, held))
    return LaunchPlan(found)


def _explained(job: Job, request: LaunchRequest, held: frozenset[AllocationIndex]) -> JobLaunch:
    """Explain one job; ``held``: the memory that is there already."""
    tiles = job.tile_plan(request)
    part_of, regions = request.device.allocator.part, request.device.allocator.regions
    given = [item.allocation_index for item in request.arguments if item.allocation_index in held]
    require_data_memory(regions, [part_of(index).range for index in given], job.name)
    if job.value_names:
        job.values_of(request)
    if tiles is not None:
        _check_tiles(job, request, tiles, held)
        return JobLaunch(job.name, tiles, tiles.counts)
    places: list[AddressRange | None] = []
    for argument, tensor in zip(job.arguments, request.arguments, strict=True):
        place = None
        if tensor.allocation_index in held:
            place = part_of(tensor.allocation_index, tensor.storage_offset_bytes, argument.size_bytes).range
        places.append(place)
    check = job.check_on(request.device)
    if check is not None and shares_memory(request.arguments):
        check(places)
    return JobLaunch(job.name, None, _counts(job))


def _check_tiles(job: Job, request: LaunchRequest, tiles: TilePlan, held: frozenset[AllocationIndex]) -> None:
    """Check the operands of every iteration where tensors may overlap, else the strides of each kind of tile."""
    if not shares_memory(request.arguments):
        for _, part in tiles.parts:
            steps = {index: item.stick_strides for index, item in enumerate(part.arguments)}
            _check_program(job, part.contract.program, request, (), steps)
        return
    part_of = request.device.allocator.part
    tensors = {
        number: part_of(item.allocation_index)
        for number, item in enumerate(request.arguments)
        if item.allocation_index in held
    }
    for program, operands in operands_on_tensors(tiles, tensors):
        steps = {index: None if item is None else item.stick_strides for index, item in enumerate(operands)}
        places = [None if item is None else item.range for item in operands]
        _check_program(job, program, request, places, steps)


def _check_program(
    job: Job,
    program: str,
    request: LaunchRequest,
    places: Sequence[AddressRange | None],
    steps: Mapping[int, tuple[int, ...] | None],
) -> None:
    used = job.programs.get(program, job)
    check = used.check_on(request.device)
    if check is None or used.binary is None:
        return
    strides = {index: steps[index] for index in used.binary.default_strides if index in steps}
    check(places, {index: step for index, step in strides.items() if step is not None})


def _counts(job: Job) -> LaunchCounts:
    """Return what one iteration enqueues."""
    host_operations = sum(isinstance(step, HostOperation) for step in job.job_plan.steps)
    return LaunchCounts(1, host_operations, len(job.job_plan.steps) - host_operations, 0, 0)


def _other_handles() -> Callable[[int], AllocationIndex]:
    """Return what gives handles that are no allocation's, each once: for memory that a launch would take."""
    numbers = count(1)
    return lambda _: AllocationIndex(-next(numbers))
