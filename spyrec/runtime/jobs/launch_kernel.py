"""The front of the pipeline: launch all jobs of a plan on tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spyrec.runtime.device import NO_VALUES
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.given_tensors import check_given, named_tensors, tensors_of
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.launch_argument import LaunchArgument
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.launchable import LaunchMemory, LaunchRequest

if TYPE_CHECKING:
    from spyrec.runtime.streams.spyre_stream import SpyreStream
    from spyrec.runtime.tensors import SpyreTensor


def launch_kernel(
    stream: SpyreStream,
    plan: ExecutionPlan,
    tensors: Sequence[SpyreTensor],
    allow_tiled_launch: bool | None = None,
    *,
    values: Mapping[str, int] = NO_VALUES,
) -> tuple[ControlBlock, ...]:
    """Enqueue all jobs of a plan, or, where one is refused, nothing; return what was enqueued.

    ``tensors``: the graph's inputs, then its outputs (``plan.signature``).  ``allow_tiled_launch``: ``None`` for what
    the environment variable ``SPYRE_ALLOW_TILED_LAUNCH`` says, by default yes.  ``values``: of value parameters.  The
    plan is loaded where it is not, in the same step: where the launch is refused, it is not loaded either.

    Errors: SPY0708 the values, SPY0950 to SPY0962 the tensors do not fit, SPY0902 one was freed, SPY0970 one is no
    tensor, SPY0785 the host computes parts of it; of loading and enqueueing.
    """
    from spyrec.runtime.launch_arguments import arguments_on  # late: runs of bundles have no tensors

    plan.refuse_host_steps()
    arguments = arguments_on(stream.device, tensors)
    return launch_arguments(stream, plan, arguments, allow_tiled_launch, values)


def launch_arguments(
    stream: SpyreStream,
    plan: ExecutionPlan,
    arguments: Sequence[LaunchArgument],
    allow_tiled_launch: bool | None = True,
    values: Mapping[str, int] = NO_VALUES,
) -> tuple[ControlBlock, ...]:
    """Enqueue all jobs of a plan on memory that is described as tensors are; else as :func:`launch_kernel`."""
    check_given(plan, arguments, values)
    device, loads = stream.device, list[ControlBlock]()

    def resolve(memory: LaunchMemory, order: LaunchOrder) -> list[ControlBlock]:
        constants = plan.constants_on(device)
        if constants is not None:
            for readiness in constants.readiness:
                order.need(readiness)
        named: Mapping[str, LaunchArgument] = {}
        if not plan.takes_what_is_given:
            placed: Mapping[str, LaunchArgument] = {} if constants is None else constants.arguments
            named = named_tensors(plan, arguments, placed, lambda size_bytes: memory.allocate(device, size_bytes))
        blocks, stream_id = list(loads), stream.id
        for wired in plan.wired_jobs:
            places = wired.given
            given = tensors_of(wired, arguments, named) if places is None else tuple([arguments[i] for i in places])
            launch_id = device.next_launch_id()
            request = LaunchRequest(device, stream_id, launch_id, given, allow_tiled_launch, memory, order, values)
            blocks += wired.job.control_blocks(request)
        return blocks

    with device.launching:  # nobody unloads it in between
        if plan.is_ready_on(device):
            return stream.flex.enqueue_launch(resolve, arguments)
        from spyrec.runtime.jobs.explain_plan import explain_arguments  # late: where the plan is not loaded yet

        plan.refuse_loading(stream)
        explain_arguments(device, plan, arguments, allow_tiled_launch, values)
        with plan.loading(stream) as copies:
            loads += copies
            blocks = stream.flex.enqueue_launch(resolve, arguments)
    return tuple([block for block in blocks if not any(block is load for load in loads)])
