"""What a launch of a plan is given: checked as far as it needs no job, and by the plan's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spyrec.diagnostics import refuse
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.argument_kinds import as_integer, is_a, shown
from spyrec.runtime.device import NO_VALUES
from spyrec.runtime.errors import ArgumentCountError
from spyrec.runtime.jobs.execution_plan import ExecutionPlan, WiredJob
from spyrec.runtime.jobs.job_argument import extents_of
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.streams.launch_argument import LaunchArgument


def check_given(plan: ExecutionPlan, arguments: Sequence[LaunchArgument], values: Mapping[str, int]) -> None:
    """Refuse a wrong number of tensors (SPY0950), and values that no program takes (SPY0708)."""
    if plan.signature is not None and len(arguments) != len(plan.signature):
        names = ", ".join(f'"{item.name}"' for item in plan.signature)
        fact = f'plan "{plan.name}" takes {len(plan.signature)} tensors ({names}), not {len(arguments)}'
        raise ArgumentCountError(fact)
    if values is not NO_VALUES:
        check_values(plan, values)


def check_values(plan: ExecutionPlan, values: Mapping[str, int]) -> None:
    """Refuse values that no program of a plan takes, or that are no numbers by name; errors SPY0708."""
    if not is_a(values, Mapping) or not all(is_a(name, str) for name in values):
        raise refuse("SPY0708", f"the values are {shown(values)}, no mapping from names to numbers")
    for name, value in values.items():
        if as_integer(value) is None:
            raise refuse("SPY0708", f'the value of "%{name}" is {shown(value)}, no whole number')
    known = sorted({name for wired in plan.wired_jobs for name in wired.job.value_names})
    for name in sorted(set(values) - set(known)):
        hint = f"its value parameters are {', '.join(known)}" if known else "its programs have no value parameters"
        raise refuse("SPY0708", f'no program of plan "{plan.name}" has a value parameter "%{name}"', hint=hint)


def named_tensors(
    plan: ExecutionPlan,
    arguments: Sequence[LaunchArgument],
    constants: Mapping[str, LaunchArgument],
    allocate: Callable[[int], AllocationIndex],
) -> dict[str, LaunchArgument]:
    """Return the tensors of a launch by the plan's names: those given, constants, and intermediates of its own.

    ``allocate``: from a number of bytes to the memory of an intermediate.  Errors: SPY0953.
    """
    if plan.signature is None:
        return {str(number): argument for number, argument in enumerate(arguments)}
    named = {item.name: argument for item, argument in zip(plan.signature, arguments, strict=True)}
    named.update(constants)
    if plan.intermediates:
        from spyrec.runtime.jobs.larger_tensors import intermediate_forms  # late: it plans launches in tiles

        extents = extents_of(plan.signature, tuple(arguments))
        forms = intermediate_forms(plan, named)
        for item in plan.intermediates:
            form = forms.get(item.name)
            index = allocate(item.size_bytes if form is None else form.layout.nbytes)
            if form is None or item.dtype is None:
                named[item.name] = item.placed(index, item.actual_shape(extents))
            else:
                strides = row_major_strides(form.shape)
                named[item.name] = LaunchArgument(index, form.shape, strides, item.dtype, form.layout)
    return named


def tensors_of(
    wired: WiredJob, arguments: Sequence[LaunchArgument], named: Mapping[str, LaunchArgument]
) -> tuple[LaunchArgument, ...]:
    """Return the tensors of one job of a plan."""
    return tuple(arguments) if wired.tensors is None else tuple([named[name] for name in wired.tensors])
