"""A plan of several programs on larger tensors: the shapes of what they hand on, and layouts that save copies.

The tile contracts say which loop each dim follows, so that the inputs' shapes give those of all other tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from spyrec.bundle.tile_contract import TileArgument, TileContract
from spyrec.dataclass import dataclass
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.launch.explain import explain_launch, planned_launch
from spyrec.runtime.launch.plan import LaunchOptions, LaunchTensor
from spyrec.runtime.launch.tile_major import tile_major_layout
from spyrec.runtime.launch.tile_plan import TilePlan

Shape = tuple[int, ...]

_REFUSED = float("inf")
_MOST_ORDERED_DIMS = 4


@dataclass(frozen=True, slots=True)
class ContractedStep:
    """A program of a plan: its tile contract, and per argument the name of its tensor in the plan."""

    contract: TileContract
    names: tuple[str, ...]

    def arguments(self) -> list[tuple[TileArgument, str]]:
        """Return each argument with the name of its tensor."""
        return list(zip(self.contract.arguments, self.names, strict=True))


def launched_shapes(steps: Sequence[ContractedStep], given: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return the shapes of all tensors of a plan where ``given`` ones have other shapes than compiled for.

    A tensor that nothing determines keeps its compiled shape.
    """
    shapes = dict(given)
    for step in steps:
        extents = _extents(step, shapes)
        for argument, name in step.arguments():
            axes = argument.axes or (None,) * len(argument.shape)
            found = tuple(
                extent if axis is None else extents.get(axis, extent)
                for axis, extent in zip(axes, argument.shape, strict=True)
            )
            shapes.setdefault(name, found)
    return shapes


def _extents(step: ContractedStep, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Return the extent of each loop that a tensor of known shape follows; broadcasts of one element do not count."""
    tiles = step.contract.tiles
    extents: dict[str, int] = {}
    for argument, name in step.arguments():
        if name not in shapes or argument.axes is None or len(shapes[name]) != len(argument.axes):
            continue
        for axis, extent in zip(argument.axes, shapes[name], strict=True):
            if axis is not None and (extent > 1 or tiles[axis] > 1):
                extents.setdefault(axis, extent)
    return extents


def launched_layouts(
    steps: Sequence[ContractedStep], shapes: Mapping[str, Shape], given: Mapping[str, DeviceLayout]
) -> dict[str, DeviceLayout]:
    """Return a device layout for every tensor of a plan: those given, and for the rest what stages fewest bytes.

    Tried are the compiled layout's kind and whole tiles one after the other, tensor by tensor; first in all of them
    where a launch is refused otherwise.
    """
    layouts = dict(given)
    users: dict[str, list[tuple[TileArgument, TileContract]]] = {}
    for step in steps:
        for argument, name in step.arguments():
            users.setdefault(name, []).append((argument, step.contract))
    open_names = [name for name in users if name not in given]
    choices = {name: _candidates(shapes[name], users[name]) for name in open_names}
    layouts.update({name: found[0] for name, found in choices.items()})
    if _staged_bytes(steps, shapes, layouts) == _REFUSED:  # where several tensors have to change, one alone is no help
        others = {**layouts, **{name: found[-1] for name, found in choices.items()}}
        layouts = min(layouts, others, key=lambda item: _staged_bytes(steps, shapes, item))
    for name in open_names:
        touching = [step for step in steps if name in step.names]
        trials = [(_staged_bytes(touching, shapes, {**layouts, name: item}), item) for item in choices[name]]
        layouts[name] = min(trials, key=lambda trial: trial[0])[1]
    return layouts


def _candidates(shape: Shape, users: Sequence[tuple[TileArgument, TileContract]]) -> list[DeviceLayout]:
    first, _ = users[0]
    if shape == first.shape:
        return [first.layout]
    found = [_of_a_kind(first, shape)]
    for argument, contract in users:
        wanted = tile_major_layout(argument, shape, [loop.name for loop in contract.loops])
        if wanted is not None and wanted not in found:
            found.append(wanted)
    return found


def _of_a_kind(argument: TileArgument, shape: Shape) -> DeviceLayout:
    """Return the layout that a compiler gives a tensor of this shape where it gave the tile its own."""
    rank = len(shape)
    for order in permutations(range(rank)) if rank <= _MOST_ORDERED_DIMS else ():
        if DeviceLayout.default(argument.shape, argument.dtype, None, order) == argument.layout:
            return DeviceLayout.default(shape, argument.dtype, None, order)
    return DeviceLayout.default(shape, argument.dtype)


def _staged_bytes(
    steps: Sequence[ContractedStep], shapes: Mapping[str, Shape], layouts: Mapping[str, DeviceLayout]
) -> float:
    total = 0.0
    for step in steps:
        plan = planned_launch(step.contract, launched_tensors(step, shapes, layouts))
        if isinstance(plan, RuntimeFault):
            return _REFUSED
        total += sum(plan.scratch_bytes) * plan.total_iterations
    return total


def launched_tensors(
    step: ContractedStep, shapes: Mapping[str, Shape], layouts: Mapping[str, DeviceLayout]
) -> tuple[LaunchTensor, ...]:
    """Return the tensors of one program, each in an allocation of its own."""
    return tuple(
        LaunchTensor(shapes[name], row_major_strides(shapes[name]), argument.dtype, layouts[name], 0, number)
        for number, (argument, name) in enumerate(step.arguments())
    )


def explain_steps(
    steps: Sequence[ContractedStep],
    shapes: Mapping[str, Shape],
    layouts: Mapping[str, DeviceLayout],
    options: LaunchOptions | None = None,
) -> list[TilePlan]:
    """Return the plan of every program; errors SPY0950 to SPY0962, see :func:`explain_launch`."""
    return [explain_launch(step.contract, launched_tensors(step, shapes, layouts), options) for step in steps]
