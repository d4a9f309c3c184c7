"""A plan on tensors larger than compiled for: what each of its tensors is then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyrec.bundle.manifest import Manifest, Role
from spyrec.bundle.tile_contract import argument_layout
from spyrec.dataclass import dataclass
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.launch.launched_forms import ContractedStep, launched_layouts, launched_shapes
from spyrec.runtime.streams.launch_argument import LaunchArgument


@dataclass(frozen=True, slots=True)
class LaunchForm:
    """Shape and device layout of a tensor in one launch."""

    shape: tuple[int, ...]
    layout: DeviceLayout


def contracted_steps(manifest: Manifest) -> tuple[ContractedStep, ...] | None:
    """Return the programs of a bundle with their tile contracts, ``None`` where one has none."""
    if any(step.program not in manifest.tile_contracts for step in manifest.plan):
        return None
    return tuple(ContractedStep(manifest.tile_contracts[step.program], step.arguments) for step in manifest.plan)


def larger_forms(
    manifest: Manifest, steps: Sequence[ContractedStep], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, LaunchForm]:
    """Return the form of every tensor of a bundle where its inputs have these shapes."""
    fixed: dict[str, LaunchForm] = {}
    for item in manifest.arguments:
        is_unread = item.arg_index is None
        if item.shape is not None and (item.role is Role.CONSTANT or is_unread):
            fixed[item.name] = LaunchForm(item.shape, argument_layout(item))
    given = {name: shape for name, shape in shapes.items() if name not in fixed}
    known = launched_shapes(steps, {**given, **{name: form.shape for name, form in fixed.items()}})
    layouts = launched_layouts(steps, known, {name: form.layout for name, form in fixed.items()})
    outside = {
        item.name: LaunchForm(known[item.name], layouts[item.name])
        for item in manifest.arguments
        if item.role is not Role.INTERMEDIATE and item.name in layouts
    }
    return {**outside, **forms_of(steps, outside)}


def intermediate_forms(plan: ExecutionPlan, named: Mapping[str, LaunchArgument]) -> dict[str, LaunchForm]:
    """Return the forms of a plan's own tensors where those of a launch are not what it was compiled for, else none.

    ``named``: the tensors of the launch, constants too, by the plan's names.
    """
    signature = plan.signature or ()
    if all(item.matches(named[item.name]) for item in signature):
        return {}
    steps: list[ContractedStep] = []
    for wired in plan.wired_jobs:
        contract = wired.job.signature.contract
        if contract is None or wired.tensors is None:
            return {}
        steps.append(ContractedStep(contract, wired.tensors))
    return forms_of(steps, {name: LaunchForm(item.shape, item.layout) for name, item in named.items()})


def forms_of(steps: Sequence[ContractedStep], given: Mapping[str, LaunchForm]) -> dict[str, LaunchForm]:
    """Return the forms of the tensors of a plan that are not given."""
    shapes = launched_shapes(steps, {name: form.shape for name, form in given.items()})
    layouts = launched_layouts(steps, shapes, {name: form.layout for name, form in given.items()})
    return {name: LaunchForm(shapes[name], layouts[name]) for name in layouts if name not in given}
