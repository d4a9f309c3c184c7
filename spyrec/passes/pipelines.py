"""The pipeline, in order: the page to read first.

A graph is formed once (``FORM``): its ops become loop nests over buffers.  These kernels are then planned (``PLAN``):
loops, layouts, cores, programs, places.  A plan may come out too large for the scratchpads, or not at all; the stage
``AUTO_TILE`` runs the passes of ``PLAN`` again with operations in loops of its own choice, and keeps the best plan.

    graph --FORM--> kernels --AUTO_TILE(PLAN)--> scheduled kernels
"""

from __future__ import annotations

from collections.abc import Callable

from spyrec.dataclass import dataclass
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.assign_addresses import assign_addresses
from spyrec.passes.assign_layouts import assign_layouts
from spyrec.passes.auto_tile import MOST_PLANNED_KERNELS, MOST_PLANS, Plan, Tiled, auto_tile
from spyrec.passes.base import Facet, Pass, PipelineOptions, Refused
from spyrec.passes.canonicalize import canonicalize
from spyrec.passes.decompose import decompose
from spyrec.passes.divide_work import divide_work
from spyrec.passes.form_kernels import form_kernels
from spyrec.passes.group_bundles import group_bundles
from spyrec.passes.mask_folds import mask_folds
from spyrec.passes.place_scratchpad import place_scratchpad
from spyrec.passes.tile_loops import tile_loops

AnyPass = (
    Pass[Graph, Graph]
    | Pass[Graph, KernelGraph]
    | Pass[KernelGraph, KernelGraph]
    | Pass[KernelGraph, KernelGraph | Refused]
)

CANONICALIZE = Pass(
    "canonicalize",
    "bind numbers to constants, drop what no output needs",
    frozenset(),
    frozenset({Facet.NUMBERS_BOUND}),
    canonicalize,
    cost="one walk over the nodes",
)
DECOMPOSE = Pass(
    "decompose",
    "turn ops that the device lacks into ops that it has",
    frozenset({Facet.NUMBERS_BOUND}),
    frozenset({Facet.DEVICE_OPS}),
    decompose,
    options=("has_windows",),
    cost="one walk over the nodes; a node becomes one to some dozens",
)
MASK_FOLDS = Pass(
    "mask-folds",
    "put what changes nothing behind the extent of a symbolic dim that is folded",
    frozenset({Facet.DEVICE_OPS}),
    frozenset({Facet.FOLDS_MASKED}),
    mask_folds,
    cost="one walk over the nodes where a dim is symbolic, else nothing",
)
FORM_KERNELS = Pass(
    "form-kernels",
    "fold views into accesses, make a loop nest of every op",
    frozenset({Facet.DEVICE_OPS, Facet.FOLDS_MASKED}),
    frozenset({Facet.KERNELS}),
    form_kernels,
    cost="one walk over the nodes",
)
TILE_LOOPS = Pass(
    "tile-loops",
    "cut what the graph's loops ask for into tiles inside counted loops",
    frozenset({Facet.KERNELS}),
    frozenset({Facet.LOOPS}),
    tile_loops,
    options=("tile_groups", "spare_arguments", "target", "symbolic_args"),
    cost="a few walks over the kernels inside of loops; without loops nothing",
)
ASSIGN_LAYOUTS = Pass(
    "assign-layouts",
    "choose device layouts and insert the fewest bytes of copies",
    frozenset({Facet.KERNELS, Facet.LOOPS}),
    frozenset({Facet.LAYOUT}),
    assign_layouts,
    options=("target", "fixed_io_layouts", "cores", "profile"),
    cost="variable elimination over tables of the layouts that buffers may have: it grows with the kernels where few "
    "buffers are read together, and faster where many are; copies are searched where an optimum needs them",
)
DIVIDE_WORK = Pass(
    "divide-work",
    "cut every kernel into even slices, one per core",
    frozenset({Facet.LAYOUT}),
    frozenset({Facet.DIVISION}),
    divide_work,
    options=("target", "cores", "profile", "lx_planner", "has_shuffles", "counts_on_lx"),
    cost="a dozen divisions of each kernel are timed, then variable elimination over those of neighbours",
)
GROUP_BUNDLES = Pass(
    "group-bundles",
    "cut the kernels into programs that fit the argument limit",
    frozenset({Facet.LAYOUT, Facet.DIVISION}),
    frozenset({Facet.PROGRAMS}),
    group_bundles,
    options=("target", "symbolic_args"),
    cost="one walk over the kernels for each place where a program may end",
)
PLACE_SCRATCHPAD = Pass(
    "place-scratchpad",
    "put tensors that live inside one loop iteration into the scratchpads",
    frozenset({Facet.PROGRAMS, Facet.DIVISION}),
    frozenset({Facet.SCRATCHPAD}),
    place_scratchpad,
    options=("target", "lx_planner", "has_shuffles", "profile"),
    cost="a packing of each program: best-fit sorts tensors, cpsat searches within its limit of work",
)
ASSIGN_ADDRESSES = Pass(
    "assign-addresses",
    "give the intermediates of each program their place in its pool",
    frozenset({Facet.PROGRAMS, Facet.SCRATCHPAD}),
    frozenset({Facet.PLACEMENT}),
    assign_addresses,
    cost="a packing of each pool, 200,000 steps at most",
)

DEVICE_GRAPH: tuple[Pass[Graph, Graph], ...] = (CANONICALIZE, DECOMPOSE)
"""From a user's graph to one of device ops: what ``--check`` evaluates."""

FORM: tuple[AnyPass, ...] = (*DEVICE_GRAPH, MASK_FOLDS, FORM_KERNELS)
"""From a user's graph to its kernels."""

LAY_OUT: tuple[AnyPass, ...] = (TILE_LOOPS, ASSIGN_LAYOUTS)
"""What no choice of cores changes: loops and layouts."""

PLACE: tuple[AnyPass, ...] = (DIVIDE_WORK, GROUP_BUNDLES, PLACE_SCRATCHPAD, ASSIGN_ADDRESSES)
"""From kernels with layouts to a plan: cores, programs, places."""

PLAN: tuple[AnyPass, ...] = (*LAY_OUT, *PLACE)
"""From kernels to a plan of them; each pass may answer with what the plan lacks."""


@dataclass(frozen=True, slots=True)
class Search:
    """A stage that runs its passes as often as it likes: ``run`` is given kernels, and what plans them with loops.

    ``options`` and ``cost`` as of a pass.
    """

    name: str
    summary: str
    passes: tuple[AnyPass, ...]
    run: Callable[[KernelGraph, PipelineOptions, Plan], Tiled | Refused]
    options: tuple[str, ...]
    cost: str


AUTO_TILE = Search(
    "auto-tile",
    "plan kernels; again, in loops of the compiler's choice, where tensors do not fit the scratchpads",
    PLAN,
    auto_tile,
    ("auto_tile", "target", "cores", "lx_planner", "profile"),
    f"a plan for every choice of loops: at most {MOST_PLANS}, of {MOST_PLANNED_KERNELS} kernels together",
)

COMPILE: tuple[AnyPass, ...] = (*FORM, *PLAN)
"""The whole compiler, pass by pass."""
