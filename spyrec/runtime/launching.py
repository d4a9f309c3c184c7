"""``launch_kernel`` of both seeds: a plan on a stream, without waiting, or a program on tensors, to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from spyrec.runtime.argument_kinds import is_a, shown
from spyrec.runtime.device import NO_VALUES
from spyrec.runtime.errors import InvalidArgument
from spyrec.runtime.jobs import launch_kernel as plans
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.launch_arguments import require_tensors
from spyrec.runtime.legacy import Program
from spyrec.runtime.streams.control_block import ControlBlock
from spyrec.runtime.streams.launchable import allows_tiles
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.tensors import SpyreTensor


@overload
def launch_kernel(
    target: SpyreStream,
    plan: ExecutionPlan,
    tensors: Sequence[SpyreTensor],
    allow_tiled_launch: bool | None = None,
    *,
    values: Mapping[str, int] = NO_VALUES,
) -> tuple[ControlBlock, ...]: ...
@overload
def launch_kernel(target: Program, plan: Sequence[SpyreTensor]) -> tuple[ControlBlock, ...]: ...
def launch_kernel(
    target: SpyreStream | Program,
    plan: ExecutionPlan | Sequence[SpyreTensor],
    tensors: Sequence[SpyreTensor] = (),
    allow_tiled_launch: bool | None = None,
    *,
    values: Mapping[str, int] = NO_VALUES,
) -> tuple[ControlBlock, ...]:
    """Launch ``launch_kernel(stream, plan, tensors)`` (seed 000), or ``launch_kernel(program, tensors)`` (seed 001).

    Of a plan: enqueue all its jobs, or, where one is refused, nothing; return what was enqueued.  ``tensors``: the
    graph's inputs, then its outputs.  ``allow_tiled_launch``: ``None`` for what the environment variable
    ``SPYRE_ALLOW_TILED_LAUNCH`` says, by default yes.  ``values``: of value parameters.

    A program is launched strictly where the tensors have the shapes that it was compiled for, or the environment
    variable forbids tiles, else tiled; the call returns, without blocks, when the work is done.

    Errors: SPY0939 neither a stream nor a program; SPY0708 the values, SPY0950 to SPY0962 the tensors do not fit,
    SPY0902 one was freed, SPY0970 one is no tensor, SPY0938 one lies among programs; SPY0717 they overlap where the
    program loads and stores them; of loading and enqueueing.
    """
    if isinstance(target, SpyreStream):
        if not isinstance(plan, ExecutionPlan):
            raise InvalidArgument(f"launch_kernel(stream, plan, tensors) with {shown(plan)} for the plan")
        return plans.launch_kernel(target, plan, tensors, allow_tiled_launch, values=values)
    if not is_a(target, Program):
        raise InvalidArgument(f"launch_kernel on {shown(target)}, which is no SpyreStream and no Program")
    require_tensors(plan)
    assert not isinstance(plan, ExecutionPlan)
    if target.fits(plan) or not allows_tiles(allow_tiled_launch):
        target.launch(plan)
    else:
        target.launch_tiled(plan)
    return ()
