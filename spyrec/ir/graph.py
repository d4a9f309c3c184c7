"""The one IR: an immutable graph of nodes in topological order over named, typed values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.ir.opdef import Attributes
from spyrec.ir.types import TensorType
from spyrec.layout.symbolic_dim import SymbolicDim


@dataclass(frozen=True, slots=True)
class Derived:
    """The origin of something a pass made: which pass, and the locations it was made from."""

    pass_name: str
    parents: tuple[Origin, ...]

    @property
    def location(self) -> Location:
        """The place in the user's input this goes back to."""
        return self.parents[0] if isinstance(self.parents[0], Location) else self.parents[0].location


Origin = Location | Derived


def location_of(origin: Origin) -> Location:
    """Return the place in the user's input that ``origin`` goes back to."""
    return origin if isinstance(origin, Location) else origin.location


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number standing where a tensor is expected; it takes the dtype of the tensors beside it."""

    value: float | int | bool


Operand = str | Scalar | None
"""One input of a node: the name of a value, a number, or an absent optional tensor."""


@dataclass(frozen=True, slots=True)
class LayoutPin:
    """The ``layout`` of an input or node as the user wrote it: either both lists or a dim order."""

    device_size: tuple[int, ...] | None = None
    stride_map: tuple[int, ...] | None = None
    dim_order: tuple[int, ...] | None = None
    origin: Location = field(default_factory=Location, compare=False)


@dataclass(frozen=True, slots=True)
class Value:
    """A named tensor: its type, the dim names of its axes (``None`` where unnamed), and a pinned layout."""

    name: str
    type: TensorType
    dims: tuple[str | None, ...]
    origin: Origin = field(compare=False)
    pin: LayoutPin | None = None


@dataclass(frozen=True, slots=True)
class ConstantData:
    """Where a constant's numbers come from: an array in memory, or a tensor in a file read when needed.

    Exactly one of ``array`` (host carrier dtype, the value's shape) and ``file`` (absolute, checked to lie in the
    graph's directory) is set; ``tensor`` is the name inside a safetensors file, ``None`` for ``.npy``.
    """

    array: npt.NDArray[np.generic] | None = field(default=None, compare=False)
    file: str | None = None
    tensor: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: catalogue name, operands in the op's order, the names of its results, its attributes.

    ``pinned_keys``: what the graph file calls the dims of ``work_division``, in its order, where a pass renamed them.
    ``on_host``: it stands in the graph's prologue, and the host computes it whatever the device could.
    """

    name: str
    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[str, ...]
    attributes: Attributes
    origin: Origin = field(compare=False)
    work_division: Mapping[str, int] | None = None
    pinned_keys: tuple[str, ...] = field(default=(), compare=False)
    on_host: bool = False

    @property
    def output(self) -> str:
        """The name of the only result."""
        assert len(self.outputs) == 1
        return self.outputs[0]


_POSITION = re.compile(r"(out|reduce)\.([0-9]{1,4})", re.ASCII)


def pinned_position(key: str) -> tuple[str, int] | None:
    """Return kind (``out`` or ``reduce``) and number of a work division's key, ``None`` for one that names a dim."""
    position = _POSITION.fullmatch(key)
    return None if position is None else (position[1], int(position[2]))


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """One level of the coarse-tiling request; ``body`` holds node names and inner levels in file order."""

    dims: tuple[str, ...]
    tiles: int | None
    tile_size: int | None
    body: tuple[str | LoopRequest, ...]
    origin: Location = field(default_factory=Location, compare=False)

    def node_names(self) -> Iterator[str]:
        """Yield the names of all nodes in the body, those of the levels inside it included."""
        for item in self.body:
            if isinstance(item, str):
                yield item
            else:
                yield from item.node_names()


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole model.

    ``inputs`` and ``constants`` name values without a producer; ``nodes`` is in topological order; every name that a
    node or ``outputs`` uses is in ``values``.  ``dims`` maps a dim name to its extent or its symbolic bounds.
    ``updates``: of an output that is the new content of an input, the input.  ``outside_lx``: values that lie in device
    memory and never in the scratchpads, with all that is made on the way to them.  ``extent_masks``: of a symbolic dim
    the input, made by the host, that is true within a run's extent and false behind it; parts for the device have some.
    """

    name: str
    dims: Mapping[str, int | SymbolicDim]
    inputs: tuple[str, ...]
    constants: Mapping[str, ConstantData]
    nodes: tuple[Node, ...]
    values: Mapping[str, Value]
    outputs: tuple[str, ...]
    loops: tuple[LoopRequest, ...] = ()
    updates: Mapping[str, str] = field(default_factory=dict[str, str])
    extent_masks: Mapping[str, str] = field(default_factory=dict[str, str])
    outside_lx: tuple[str, ...] = ()

    @property
    def extents(self) -> dict[str, int]:
        """The elements of each dim by name, the most that a symbolic one can have."""
        return {name: dim if isinstance(dim, int) else dim.largest for name, dim in self.dims.items()}

    @property
    def symbolic_dims(self) -> dict[str, SymbolicDim]:
        """The dims whose extent each run chooses."""
        return {name: dim for name, dim in self.dims.items() if isinstance(dim, SymbolicDim)}

    def type_of(self, operand: str) -> TensorType:
        """Return the type of a value by name."""
        return self.values[operand].type

    def producers(self) -> dict[str, Node]:
        """Return the node that makes each value that has one."""
        return {output: node for node in self.nodes for output in node.outputs}

    def live_nodes(self) -> tuple[Node, ...]:
        """Return the nodes that an output needs, in their order."""
        needed = set(self.outputs)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.outputs):
                kept.append(node)
                needed.update(operand for operand in node.inputs if isinstance(operand, str))
        return tuple(reversed(kept))

    def use_counts(self) -> dict[str, int]:
        """Return how often each value is read by nodes or stands among the graph's outputs."""
        counts = dict.fromkeys(self.values, 0)
        for node in self.nodes:
            for operand in node.inputs:
                if isinstance(operand, str):
                    counts[operand] += 1
        for name in self.outputs:
            counts[name] += 1
        return counts
