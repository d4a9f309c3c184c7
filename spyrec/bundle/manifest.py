"""The data of ``manifest.json`` (``spyrec.bundle/1``): arguments, plan, figures, file hashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING

from spyrec.dataclass import dataclass
from spyrec.files.json_form import (
    COUNT,
    MAX_ARGUMENTS,
    MAX_RANK,
    NAME,
    NOT_IN_FILE,
    RELATIVE_PATH,
    SIZE,
    STRIDES,
    Form,
    Parsed,
    Shape,
    json,
    omitted,
    optional,
)
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.hardware.plan_record import PlanFigures, PlanOptions
from spyrec.hardware.target import SEGMENT_BYTES, Target
from spyrec.layout.symbolic_dim import SymbolicDim

if TYPE_CHECKING:
    from spyrec.bundle.tile_contract import TileContract


class Role(Enum):
    """What an argument is to the caller; an intermediate is written by one program and read by another."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    CONSTANT = "constant"
    INTERMEDIATE = "intermediate"


_FORMATS = [item.name for item in DeviceFormat if item.elements_per_stick is not None]


def _format_by_name(value: object) -> object:
    if isinstance(value, str) and value in _FORMATS:
        return DeviceFormat[value]
    raise ValueError("expected one of " + ", ".join(_FORMATS))


@dataclass(frozen=True, slots=True)
class Dci:
    """Paths of the two conversion tables of an argument, relative to the bundle, as the file shows them."""

    h2d: str = field(metadata=json(RELATIVE_PATH))
    d2h: str = field(metadata=json(RELATIVE_PATH))

    @staticmethod
    def of_paths(paths: Mapping[str, str]) -> Dci:
        """Return the paths of both directions."""
        return Dci(paths["h2d"], paths["d2h"])

    def paths(self) -> dict[str, str]:
        """Return the paths by direction."""
        return {"h2d": self.h2d, "d2h": self.d2h}


INDEX = Form(at_least=0, below=1 << 16)
DEVICE_EXTENTS = Form(min_length=1, max_length=MAX_RANK, each=SIZE)
_HOST_EXTENTS = Form(max_length=MAX_RANK, each=COUNT)
_EXTENTS_OR_NONE = Form(min_length=1, max_length=MAX_RANK, each=COUNT)
"""A tensor without elements has no device memory, and a layout for the record."""

STICK_FORMAT = Form(parsed=Parsed(_format_by_name, attrgetter("name"), {"enum": _FORMATS}))
"""A device format that can hold a tensor, by its name."""

NAMES = Form(max_length=MAX_ARGUMENTS, each=NAME)


@dataclass(frozen=True, slots=True)
class Argument:
    """One tensor in device memory that the plan binds.

    ``arg_index`` and ``address`` are those of the first program that uses it (``None`` for an input no program
    reads); ``host_strides`` and ``stride_map`` are in elements, ``address`` in bytes.
    ``shape``, ``dtype`` and ``stride_map`` are ``None`` in a table for a foreign bundle, and where a bundle was made of
    OpSpecs: the argument is then given and returned in device form.
    ``dci`` holds the paths of the two conversion tables relative to the bundle, keys ``h2d`` and ``d2h``.
    ``symbolic_axes``: by axis the symbolic dim that it is, ``None`` where it is none; empty where no axis is one.
    ``shape`` has the largest extents.  In device form these are the axes of ``device_size``.
    """

    name: str = field(metadata=json(NAME))
    role: Role
    arg_index: int | None = field(metadata=json(INDEX))
    address: int | None = field(metadata=json(COUNT))
    shape: tuple[int, ...] | None = field(metadata=json(_HOST_EXTENTS))
    dtype: DType | None
    host_strides: tuple[int, ...] | None = field(metadata=json(STRIDES))
    device_size: tuple[int, ...] = field(metadata=json(_EXTENTS_OR_NONE))
    stride_map: tuple[int, ...] | None = field(metadata=json(STRIDES))
    device_dtype: DeviceFormat = field(metadata=json(STICK_FORMAT))
    dci: Mapping[str, str] | None = field(default=None, metadata=json(Form(shape=Shape(Dci, Dci.paths, Dci.of_paths))))
    symbolic_axes: tuple[str | None, ...] = field(default=(), metadata=omitted(Form(max_length=MAX_RANK, each=NAME)))


@dataclass(frozen=True, slots=True)
class TripCount:
    """What a value parameter holds: the tiles of ``tile_size`` in the first ``max_elements`` of a symbolic dim."""

    dim: str = field(metadata=json(NAME))
    tile_size: int = field(metadata=json(SIZE))
    max_elements: int = field(metadata=json(COUNT, "max"))

    @property
    def max_trips(self) -> int:
        """The largest number of tiles."""
        return self.trips(self.max_elements)

    def trips(self, extent: int) -> int:
        """Return the number of tiles where the dim has ``extent`` elements."""
        return -(-min(extent, self.max_elements) // self.tile_size)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One device program of the plan, executed in list order.

    ``program`` is its directory inside the bundle (``"."`` or ``"kernels/0"``).  ``arguments[i]`` is the name of the
    tensor bound to ``%arg_i_base_addr``; with baked addresses argument ``i`` lies in segment ``i``, or ``i + 1``
    where ``pool_bytes`` is not 0.  ``trip_counts``: by the name of a value parameter (``S_value``), what it holds.
    ``values``: what the value parameters of a foreign bundle hold; a compiled bundle's are given with each run.
    """

    program: str = field(metadata=json(RELATIVE_PATH))
    arguments: tuple[str, ...] = field(metadata=json(NAMES))
    pool_bytes: int = field(default=0, metadata=optional(COUNT))
    trip_counts: Mapping[str, TripCount] = field(
        default_factory=dict[str, TripCount], metadata=omitted(Form(max_length=MAX_RANK, keys=NAME))
    )
    values: Mapping[str, int] = field(default_factory=dict[str, int], metadata=NOT_IN_FILE)


def baked_base(argument: Argument, index: int, step: PlanStep, *, is_only: bool) -> int:
    """Return the device address of argument ``index`` in a program with baked addresses.

    It lies in segment ``index``, or ``index + 1`` where the program has a pool; the only program of a plan (every
    foreign bundle has one) states the addresses itself.
    """
    if is_only and argument.address is not None:
        return argument.address
    return (index + (1 if step.pool_bytes else 0)) * SEGMENT_BYTES


@dataclass(frozen=True, slots=True)
class HostStep:
    """Nodes of the bundle's graph that the host computes, one after the other, before a device program of the plan.

    ``before``: the position of that program; where the plan ends the step comes last.  ``nodes``: their names in
    ``graph.json``, in order.  ``takes``: values that lie in device memory, and the arguments that hold them; other
    operands are inputs, constants or results of earlier steps.  ``gives``: results that a program reads, and where.
    """

    before: int = field(metadata=json(COUNT))
    nodes: tuple[str, ...] = field(metadata=json(NAMES))
    takes: Mapping[str, str] = field(metadata=json(Form(max_length=MAX_ARGUMENTS, keys=NAME, each=NAME)))
    gives: Mapping[str, str] = field(metadata=json(Form(max_length=MAX_ARGUMENTS, keys=NAME, each=NAME)))


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of ``manifest.json`` but the file hashes, which are made when the bundle is written.

    ``outputs`` are (result name of the graph, argument name) in graph order: an argument may serve two results.
    ``inputs`` are the graph's input names in order, those that no program reads included.  ``symbolic_dims``: what a
    run may choose for dims without one extent.  ``figures``: what the compiler predicts; ``planned_with``: the options
    that made its plan; bundles of others have neither.  ``tile_contracts``: by the directory of a program, which loops
    a launch may repeat it in; empty where nobody knows.  ``tile_steps``: programs outside of the plan that launches of
    many tiles run, with their arguments.  ``dialect``: that of the SuperDSCs, by name; ``None`` where nobody says.
    ``host_steps``: what the host computes between the programs of the plan, in order.  ``updates``: of a result that is
    the new content of an input, that input.
    """

    name: str
    target: Target
    arguments: tuple[Argument, ...]
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    plan: tuple[PlanStep, ...]
    pool_bytes: int
    graph_sha256: str | None
    symbolic_dims: Mapping[str, SymbolicDim] = field(default_factory=dict[str, SymbolicDim])
    figures: PlanFigures | None = None
    planned_with: PlanOptions | None = None
    tile_contracts: Mapping[str, TileContract] = field(default_factory=dict[str, "TileContract"])
    tile_steps: tuple[PlanStep, ...] = ()
    dialect: str | None = None
    host_steps: tuple[HostStep, ...] = ()
    updates: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """The steps of all programs: those of the plan in order, then those that launches of many tiles run."""
        return (*self.plan, *self.tile_steps)
