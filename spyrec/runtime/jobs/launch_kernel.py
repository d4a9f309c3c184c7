"""The front of the pipeline: launch all jobs of a plan on tensors, and run a plan from host arrays to host arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.runtime.argument_kinds import Arrays, Named, of, takes
from spyrec.runtime.binding import actual_shape, checked_inputs, chosen_extents, expected_inputs
from spyrec.runtime.errors import InvalidArgument
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.explain_plan import explain_arguments
from spyrec.runtime.jobs.given_tensors import (
    NO_VALUES,
    allows_tiles,
    check_given,
    check_values,
    named_tensors,
    tensors_of,
)
from spyrec.runtime.launch_arguments import arguments_on
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.streams.control_block import ControlBlock, Origin
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.launchable import LaunchArgument, LaunchMemory, LaunchRequest

if TYPE_CHECKING:
    from spyrec.runtime.streams.spyre_stream import SpyreStream
    from spyrec.runtime.tensors import SpyreTensor

HostArray = npt.NDArray[np.generic]


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
    tensor; of loading and enqueueing.
    """
    arguments = arguments_on(stream.device, tensors)
    return launch_arguments(stream, plan, arguments, allows_tiles(allow_tiled_launch), values)


def launch_arguments(
    stream: SpyreStream,
    plan: ExecutionPlan,
    arguments: Sequence[LaunchArgument],
    allow_tiled_launch: bool = True,
    values: Mapping[str, int] = NO_VALUES,
) -> tuple[ControlBlock, ...]:
    """Enqueue all jobs of a plan on memory that is described as tensors are; else as :func:`launch_kernel`."""
    check_given(plan, arguments, values)
    device, loads = stream.device, list[ControlBlock]()

    def resolve(memory: LaunchMemory, order: LaunchOrder) -> list[ControlBlock]:
        constants = plan.constants_on(device)
        if constants is not None:
            order.need(constants.readiness)
        placed: Mapping[str, LaunchArgument] = {} if constants is None else constants.arguments
        named = named_tensors(plan, arguments, placed, lambda size_bytes: memory.allocate(device, size_bytes))
        blocks = list(loads)
        for wired in plan.wired_jobs:
            given, launch_id = tensors_of(wired, arguments, named), device.next_launch_id()
            request = LaunchRequest(device, stream.id, launch_id, given, allow_tiled_launch, memory, order, values)
            blocks += wired.job.control_blocks(request)
        return blocks

    with device.launching:  # nobody unloads it in between
        if plan.is_ready_on(device):
            return stream.flex.enqueue_launch(resolve, arguments)
        plan.refuse_loading(stream)
        explain_arguments(device, plan, arguments, allow_tiled_launch, values)
        with plan.loading(stream) as copies:
            loads += copies
            blocks = stream.flex.enqueue_launch(resolve, arguments)
    return tuple([block for block in blocks if not any(block is load for load in loads)])


@takes(stream=of("SpyreStream"), plan=of("ExecutionPlan"), inputs=Arrays(), values=Named())
def run_plan(
    stream: SpyreStream,
    plan: ExecutionPlan,
    inputs: Mapping[str, HostArray],
    *,
    values: Mapping[str, int] = NO_VALUES,
) -> dict[str, HostArray]:
    """Copy inputs in, launch a plan of a bundle, wait, and return its outputs by result name.

    Errors: SPY0708 the values, SPY0760 to SPY0763 the inputs; of launching; SPY0921.
    """
    check_values(plan, values)
    device, copies = stream.device, plan.tensors
    if copies is None or plan.signature is None:
        raise InvalidArgument(f"{plan} is no plan of a bundle: nothing says what its inputs are")
    plan.refuse_unfit(device)
    manifest = copies.manifest
    expected = expected_inputs(manifest)
    checked = checked_inputs(inputs, expected)
    extents = chosen_extents(checked, expected, manifest.symbolic_dims)
    shapes = {item.name: actual_shape(item, extents) for item in manifest.arguments if item.shape is not None}
    owners = [device.spyre_allocator.allocate(item.size_bytes) for item in plan.signature]
    places = {item.name: owner for item, owner in zip(plan.signature, owners, strict=True)}
    origin = Origin(device.next_launch_id(), f"copies of {plan.name}")
    copied: list[ControlBlock] = []
    for name, array in checked.items():
        if name in places:
            copied += copies.copy_in(device, name, array, device.allocator.part(places[name].index), origin)
    stream.flex.enqueue(copied)
    arguments = [
        item.placed(owner.index, shapes.get(item.name)) for item, owner in zip(plan.signature, owners, strict=True)
    ]
    launch_arguments(stream, plan, arguments, values=values)
    return _copied_out(stream, plan, places, shapes, origin)


def _copied_out(
    stream: SpyreStream,
    plan: ExecutionPlan,
    owners: Mapping[str, Allocation],
    shapes: Mapping[str, tuple[int, ...]],
    origin: Origin,
) -> dict[str, HostArray]:
    device, copies = stream.device, plan.tensors
    assert copies is not None
    constants = plan.constants_on(device)
    outputs: dict[str, HostArray] = {}
    blocks: list[ControlBlock] = []
    for result, name in copies.manifest.outputs:
        if name in owners:
            index = owners[name].index
        else:
            assert constants is not None
            index = constants.arguments[name].allocation_index
        outputs[result], block = copies.copy_out(device, name, device.allocator.part(index), shapes.get(name), origin)
        blocks.append(block)
    stream.flex.enqueue(blocks)
    stream.synchronize()
    return outputs
