"""The programs that join the parts of a result: small graphs, compiled as any other.

The accumulator is float32 whatever the result's format: a part is rounded as the program stores it, their sum once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.constants import HostArray
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.bundle.tile_contract import ReductionPrograms, TileArgument, argument_layout
from spyrec.codegen.emit import emit_bundle
from spyrec.codegen.emit_opspecs import CodegenOptions
from spyrec.dataclass import dataclass
from spyrec.device_ops.record import Fold
from spyrec.hardware.dtypes import DType
from spyrec.ir.kernel import BufferRole, KernelGraph
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import plan_graph

_ACCUMULATOR, _PARTIAL, _RESULT, _JOINED = "accumulator", "partial", "result", "joined"


@dataclass(frozen=True, slots=True)
class JoiningPrograms:
    """The programs around one reduction, and what they add to a bundle: steps outside of its plan, and arguments."""

    around: ReductionPrograms
    bundles: Mapping[str, Bundle]
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Reduction:
    """What is joined: the argument that the program writes, the fold that gives it, the program's directory."""

    output: Argument
    fold: Fold
    program: str

    @property
    def directory(self) -> str:
        """The directory of its programs inside the bundle."""
        return "tiles/main" if self.program == "." else f"tiles/{self.program.replace('/', '-')}"


def joining_programs(
    reduction: Reduction, pipeline: PipelineOptions, options: CodegenOptions
) -> JoiningPrograms | None:
    """Return the programs that join the parts of a result; ``None`` where the device cannot keep or join them.

    ``init`` fills the accumulator, ``combine`` takes a part into it, ``publish`` gives the result.  Each takes first
    what a launch gives it, then constants of its own.
    """
    output = reduction.output
    if output.dtype not in {DType.FLOAT16, DType.FLOAT32} or output.shape is None:
        return None
    bundles: dict[str, Bundle] = {}
    for name, graph in _graphs(reduction).items():
        scheduled = _scheduled(graph, pipeline)
        if scheduled is not None and name == "combine" and not _is_same_walk(scheduled):
            scheduled = _scheduled(_with_copy(graph), pipeline)
        if scheduled is None:
            return None
        given = _GIVEN[name]
        bundles[name] = _renamed(emit_bundle(_ordered(_in_place(scheduled), given), options), reduction, name)
    steps = tuple(_step(reduction, name, bundle) for name, bundle in bundles.items())
    accumulator = next(item for item in bundles["init"].manifest.arguments if item.name.startswith(_name(output)))
    if any(_differs(item, accumulator, output) for bundle in bundles.values() for item in bundle.manifest.arguments):
        return None
    init, combine, publish = (step.program for step in steps)
    around = ReductionPrograms(init, combine, publish, (_tile_argument(accumulator),))
    return JoiningPrograms(around, bundles, steps)


def _scheduled(graph: Mapping[str, object], options: PipelineOptions) -> KernelGraph | None:
    """Return the kernels of a graph, ``None`` where there is no plan of them or they are several programs."""
    scheduled = plan_graph(read_graph_data(graph), options)
    return scheduled if isinstance(scheduled, KernelGraph) and len(scheduled.programs) == 1 else None


def _is_same_walk(scheduled: KernelGraph) -> bool:
    """Whether the kernel that joins walks the accumulator as it walks its result, so that it may write over it.

    A result of one element in its stick is loaded as one lane and stored as a stick: that is no work in place.
    """
    kernel = next(kernel for kernel in scheduled.kernels if kernel.output.buffer == _JOINED)
    operands = kernel.placed.operands
    return operands[-1].lane is not None and all(
        operands[place] == operands[-1] for place, use in enumerate(kernel.inputs) if use.buffer == _ACCUMULATOR
    )


def _with_copy(graph: Mapping[str, object]) -> dict[str, object]:
    """Return the graph that joins into memory of its own, and copies that to the accumulator."""
    nodes = [
        {**node, "name": "apart"} if node["name"] == _JOINED else node
        for node in cast("Sequence[Mapping[str, object]]", graph["nodes"])
    ]
    return {**graph, "nodes": [*nodes, {"name": _JOINED, "op": "clone", "inputs": ["apart"]}]}


_GIVEN: Mapping[str, tuple[str, ...]] = {
    "init": (_ACCUMULATOR,),
    "combine": (_ACCUMULATOR, _PARTIAL),
    "publish": (_ACCUMULATOR, _RESULT),
}
"""What a launch gives each program, in this order."""


def _name(output: Argument) -> str:
    return f"{output.name}.{_ACCUMULATOR}"


def _graphs(reduction: Reduction) -> dict[str, dict[str, object]]:
    output = reduction.output
    assert output.shape is not None
    assert output.dtype is not None
    shape, dtype = list(output.shape), output.dtype.value
    layout = {"device_size": list(output.device_size), "stride_map": list(output.stride_map or ())}
    wide: dict[str, object] = {"name": _ACCUMULATOR, "shape": shape, "dtype": "float32"}
    partial = {"name": _PARTIAL, "shape": shape, "dtype": dtype, "layout": layout}
    identity = reduction.fold.mask
    number = identity if identity == 0 else "-inf" if identity < 0 else "inf"
    fill: dict[str, object] = {
        "name": _ACCUMULATOR,
        "op": "full",
        "inputs": [],
        "attrs": {"size": shape, "fill_value": number, "dtype": "float32"},
    }
    widen = {"name": "wide", "op": "to", "inputs": [_PARTIAL], "attrs": {"dtype": "float32"}}
    join = {"name": _JOINED, "op": reduction.fold.join, "inputs": [_ACCUMULATOR, "wide"]}
    result = {
        "name": _RESULT,
        "op": "to",
        "inputs": [_ACCUMULATOR],
        "attrs": {"dtype": dtype},
        "layout": layout,
    }
    return {
        "init": _graph([], [fill], _ACCUMULATOR),
        "combine": _graph([wide, partial], [widen, join], _JOINED),
        "publish": _graph([wide], [result], _RESULT),
    }


def _graph(inputs: Sequence[object], nodes: Sequence[object], output: str) -> dict[str, object]:
    head = {"format": "spyrec.graph/1", "name": "tiles"}
    return {**head, "inputs": list(inputs), "nodes": list(nodes), "outputs": [output]}


def _in_place(scheduled: KernelGraph) -> KernelGraph:
    """Return the kernels with what they join written over the accumulator, element by element."""
    if scheduled.outputs[0][1] != _JOINED:
        return scheduled
    assert scheduled.buffers[_JOINED].layout == scheduled.buffers[_ACCUMULATOR].layout
    kernels = tuple(
        replace(kernel, output=replace(kernel.output, buffer=_ACCUMULATOR))
        if kernel.output.buffer == _JOINED
        else kernel
        for kernel in scheduled.kernels
    )
    buffers = {name: buffer for name, buffer in scheduled.buffers.items() if name != _JOINED}
    return replace(scheduled, kernels=kernels, buffers=buffers, outputs=((_JOINED, _ACCUMULATOR),), source=None)


def _ordered(scheduled: KernelGraph, given: Sequence[str]) -> KernelGraph:
    """Return the program with its arguments in the order in which a launch gives them, constants last."""
    (program,) = scheduled.programs
    made = dict(scheduled.outputs)
    buffers = [made.get(name, name) for name in given]
    numbers = {name for name, buffer in scheduled.buffers.items() if buffer.role is BufferRole.CONSTANT}
    constants = [name for name in program.arguments if name in numbers]
    return replace(scheduled, programs=(replace(program, arguments=(*buffers, *constants)),), source=None)


def _renamed(bundle: Bundle, reduction: Reduction, program: str) -> Bundle:
    """Return a bundle whose program and arguments have the names that they have inside the whole bundle."""
    directory = f"{reduction.directory}/{program}"
    names = {
        item.name: reduction.output.name
        if program == "publish" and item.role is Role.OUTPUT
        else f"{reduction.output.name}.{item.name}"
        for item in bundle.manifest.arguments
    }
    names |= {item.name: f"{directory}.{item.name}" for item in bundle.manifest.arguments if item.role is Role.CONSTANT}
    arguments = tuple(_inside(item, names[item.name]) for item in bundle.manifest.arguments)
    step = bundle.manifest.plan[0]
    plan = (replace(step, program=directory, arguments=tuple(names[name] for name in step.arguments)),)
    manifest = replace(bundle.manifest, arguments=arguments, plan=plan, tile_contracts={})
    tables = {
        (item.dci or {})[way]: bundle.dci[old]
        for item, before in zip(arguments, bundle.manifest.arguments, strict=True)
        for way, old in (before.dci or {}).items()
        if item.dci is not None
    }
    constants = {names[name]: array for name, array in bundle.constants.items()}
    programs = tuple(replace(item, directory=directory) for item in bundle.programs)
    return Bundle(manifest, programs, constants, tables)


def _inside(item: Argument, name: str) -> Argument:
    if item.role is Role.CONSTANT:
        return replace(item, name=name, dci={way: f"dci/{name}.{way}.json" for way in ("h2d", "d2h")})
    return replace(item, name=name, role=Role.INTERMEDIATE, dci=None)


def _step(reduction: Reduction, program: str, bundle: Bundle) -> PlanStep:
    return replace(bundle.manifest.plan[0], program=f"{reduction.directory}/{program}")


def _differs(item: Argument, accumulator: Argument, output: Argument) -> bool:
    """Whether an argument lies otherwise in memory than what a launch gives for it."""
    if item.role is Role.CONSTANT:
        return False
    like = accumulator if item.name == accumulator.name else output
    mine = (item.device_size, item.stride_map, item.device_dtype, item.shape)
    return mine != (like.device_size, like.stride_map, like.device_dtype, like.shape)


def _tile_argument(accumulator: Argument) -> TileArgument:
    assert accumulator.shape is not None
    assert accumulator.dtype is not None
    layout, axes = argument_layout(accumulator), (None,) * len(accumulator.shape)
    return TileArgument(accumulator.name, Role.INTERMEDIATE, accumulator.dtype, layout, axes)


class _Joined(Mapping[str, HostArray]):
    """Constants of several bundles, loaded when asked for."""

    def __init__(self, parts: Sequence[Mapping[str, HostArray]]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> HostArray:
        for part in self._parts:
            if name in part:
                return part[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for part in self._parts for name in part)

    def __len__(self) -> int:
        return sum(map(len, self._parts))


def with_programs(bundle: Bundle, joining: Sequence[JoiningPrograms], manifest: Manifest) -> Bundle:
    """Return a bundle that also has the programs that join parts, outside of its plan."""
    added = [item for found in joining for item in found.bundles.values()]
    known = {item.name: item for item in manifest.arguments}
    for item in (argument for other in added for argument in other.manifest.arguments):
        known.setdefault(item.name, item)
    return replace(
        bundle,
        manifest=replace(
            manifest,
            arguments=tuple(known.values()),
            tile_steps=tuple(step for found in joining for step in found.steps),
            pool_bytes=max([manifest.pool_bytes, *(other.manifest.pool_bytes for other in added)]),
        ),
        programs=(*bundle.programs, *(program for other in added for program in other.programs)),
        constants=_Joined([bundle.constants, *(other.constants for other in added)]),
        dci={**bundle.dci, **{name: table for other in added for name, table in other.dci.items()}},
    )
