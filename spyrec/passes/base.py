"""What a pass is: a pure function with a name, the facets it requires and the facets it establishes.

Instead of a graph that it cannot plan a pass gives a value, so that a search may try another way.  An error that is
raised always reaches the user.  Nothing catches one, so that a search cannot lose a refusal that it did not ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import Generic, TypeVar

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import DEFAULT_PROFILE, Target, TargetProfile
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.likeness import Answers


class Facet(Enum):
    """What a pass can establish about a graph."""

    NUMBERS_BOUND = "every number is a constant"
    DEVICE_OPS = "every node is a device op, a view or a movement"
    FOLDS_MASKED = "no fold along a symbolic dim takes what lies behind a run's extent"
    KERNELS = "every node that writes memory is a kernel"
    LOOPS = "every kernel stands in the loops that the graph asks for"
    LAYOUT = "every buffer has a device layout"
    DIVISION = "every kernel has a work division"
    PROGRAMS = "every kernel belongs to a program"
    SCRATCHPAD = "every tensor that lies in the scratchpads has its place there"
    PLACEMENT = "every buffer has an address in every program that uses it"


@dataclass(frozen=True, slots=True)
class TileGroup:
    """Kernels in one loop that the compiler chose: (kernel, the iteration dim that it tiles), elements of a tile.

    ``extent``: of the dims, which all have the same.
    """

    dims: frozenset[tuple[str, int]]
    extent: int
    tile: int


NO_PLANNER = "none"
"""Instead of a planner's name: every tensor lies in device memory."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """Options that passes read; ``cores`` is at most the target's.

    ``spare_arguments``: how many of a program's arguments ``tile-loops`` leaves free in each loop for copies.
    ``lx_planner``: what packs the scratchpads, or ``none``: all tensors lie in device memory.
    ``auto_tile``: whether the compiler may choose loops where a graph asks for none; ``tile_groups``: what it chose.
    ``profile``: the parameters of the times that plans are compared by.
    ``symbolic_args``: addresses are parameters of the programs, not baked in.  ``has_shuffles``: whether operations may
    be emitted that move a tensor from scratchpad to scratchpad; ``counts_on_lx``: whether ``divide-work`` counts on
    them, and takes slower divisions that keep more in LX.  ``has_windows``: operations may be emitted that slide a
    window.
    """

    target: Target = field(default_factory=Target)
    cores: int = 32
    fixed_io_layouts: bool = False
    spare_arguments: int = 0
    auto_tile: bool = True
    lx_planner: str = "best-fit"
    tile_groups: tuple[TileGroup, ...] = ()
    profile: TargetProfile = DEFAULT_PROFILE
    symbolic_args: bool = True
    has_shuffles: bool = True
    counts_on_lx: bool = True
    has_windows: bool = False

    def most_arguments(self, *, has_pool: bool) -> int:
        """Return how many tensors from outside one program may use."""
        return self.target.most_arguments(symbolic=self.symbolic_args, has_pool=has_pool)


@dataclass(frozen=True, slots=True)
class PassContext:
    """What a pass may look at beside the graph; ``report`` takes lines for ``--print-after``.

    ``known``: answers that hold of whatever graph, from passes before and from plans that were tried before.
    """

    options: PipelineOptions
    report: list[str]
    known: Answers = field(default_factory=Answers)


class Lack(Enum):
    """What is missing, where another choice of loops or layouts may have it."""

    ROOM = "a tensor, a pool or what one core touches is larger than the device takes"
    ARGUMENTS = "a loop uses more tensors than a program can name"
    LAYOUT = "no layout serves a buffer or a kernel"
    DIVISION = "a pinned work division does not fit"


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no plan: what it lacks, and the error to raise where there is no other way."""

    lack: Lack
    error: SpyrecError


S = TypeVar("S", Graph, KernelGraph)
T = TypeVar("T", bound=Graph | KernelGraph | Refused)


@dataclass(frozen=True, slots=True)
class Pass(Generic[S, T]):
    """One pass: ``run`` is pure; a pass with nothing to do returns its argument.

    A pass that plans may return what refuses the plan: another choice of loops is then tried, or the error is raised.
    ``options``: the fields of :class:`PipelineOptions` that it reads.  ``cost``: how its time grows.
    """

    name: str
    summary: str
    requires: frozenset[Facet]
    establishes: frozenset[Facet]
    run: Callable[[S, PassContext], T]
    options: tuple[str, ...] = ()
    cost: str = "one walk over the graph"
