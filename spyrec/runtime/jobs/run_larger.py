"""A bundle on host arrays larger than it was compiled for, in tiles: what ``spyrec run`` does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest, Role
from spyrec.bundle.tile_contract import argument_layout
from spyrec.hardware.dtypes import DType
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.larger_tensors import Form, contracted_steps, forms_of
from spyrec.runtime.jobs.launch_kernel import launch_kernel
from spyrec.runtime.launch.launched_forms import ContractedStep, explain_steps, launched_layouts, launched_shapes
from spyrec.runtime.launch.plan import LaunchOptions
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.tensors import SpyreTensor

if TYPE_CHECKING:
    from spyrec.runtime.streams.spyre_stream import SpyreStream

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class LargerRun:
    """What a run in tiles gave: outputs by result name in graph order, and per program the plan that was executed.

    ``control_blocks``: those of the launch, staging's copies among them.  ``forms``: of the tensors that the host
    copied, by name.
    """

    outputs: dict[str, HostArray]
    plans: tuple[TilePlan, ...]
    control_blocks: int
    forms: Mapping[str, Form]


def run_larger(
    stream: SpyreStream, plan: ExecutionPlan, inputs: Mapping[str, HostArray], *, allow_tiled_launch: bool = True
) -> LargerRun:
    """Copy inputs in, launch a bundle's plan in tiles, and copy the outputs back.

    Layouts are those that stage fewest bytes.  Errors: SPY0950 to SPY0962 the inputs are not tiles of the compiled
    ones, or tiles are not allowed; of launching; SPY0921.
    """
    assert plan.tensors is not None
    assert plan.signature is not None
    manifest = plan.tensors.manifest
    steps = contracted_steps(manifest)
    assert steps is not None
    forms = larger_forms(manifest, steps, {name: array.shape for name, array in inputs.items()})
    plans = explain_steps(
        steps,
        {name: form.shape for name, form in forms.items()},
        {name: form.layout for name, form in forms.items()},
        LaunchOptions(allow_tiled_launch=allow_tiled_launch),
    )
    arguments = {item.name: item for item in manifest.arguments}
    constants = {item.name for item in manifest.arguments if item.role is Role.CONSTANT}
    tensors = {
        item.name: _tensor(stream, arguments[item.name], forms[item.name], inputs.get(item.name))
        for item in plan.signature
    }
    if not plan.is_loaded(stream.device):
        plan.load(stream)
    stream.synchronize()
    before = stream.device.scheduler.control_blocks
    launch_kernel(stream, plan, list(tensors.values()), allow_tiled_launch)
    stream.synchronize()
    executed = stream.device.scheduler.control_blocks - before
    outputs = {
        result: tensors[name].to_host(stream) if name in tensors else plan.tensors.constant(name)
        for result, name in manifest.outputs
    }
    copied = {name: form for name, form in forms.items() if name in tensors or name in constants}
    return LargerRun(outputs, tuple(plans), executed, copied)


def larger_forms(
    manifest: Manifest, steps: Sequence[ContractedStep], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Form]:
    """Return the form of every tensor of a bundle where its inputs have these shapes."""
    fixed: dict[str, Form] = {}
    for item in manifest.arguments:
        is_unread = item.arg_index is None
        if item.shape is not None and (item.role is Role.CONSTANT or is_unread):
            fixed[item.name] = Form(item.shape, argument_layout(item))
    given = {name: shape for name, shape in shapes.items() if name not in fixed}
    known = launched_shapes(steps, {**given, **{name: form.shape for name, form in fixed.items()}})
    layouts = launched_layouts(steps, known, {name: form.layout for name, form in fixed.items()})
    outside = {
        item.name: Form(known[item.name], layouts[item.name])
        for item in manifest.arguments
        if item.role is not Role.INTERMEDIATE and item.name in layouts
    }
    return {**outside, **forms_of(steps, outside)}


def _tensor(stream: SpyreStream, argument: Argument, form: Form, array: HostArray | None) -> SpyreTensor:
    dtype: DType | None = argument.dtype
    assert dtype is not None
    if array is not None:
        return SpyreTensor.to_device(stream.device, array, form.layout, stream, dtype)
    return SpyreTensor.empty(stream.device, form.shape, dtype, form.layout)
