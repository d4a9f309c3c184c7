"""The scheduled form of a graph: kernels, which are loop nests over buffers, in execution order.

``form-kernels`` makes it from a graph of device ops: views have become accesses, every node that writes memory a
kernel.  What later passes decide are the facets ``KernelBuffer.layout``, ``Kernel.division`` and
``KernelGraph.programs``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.device_ops import IDENTITY, device_operation
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.plan_record import PlannerName, PlanNote
from spyrec.ir.access import Access
from spyrec.ir.device_access import Inexpressible, Movement
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.graph import ConstantData, Graph, LayoutPin, Origin
from spyrec.ir.kernel_form import OUTPUT, KernelForm, KernelShape, OperandUse, Rule, kernel_form
from spyrec.ir.sliding import Window
from spyrec.ir.types import TensorType


class BufferRole(Enum):
    """Who owns a buffer's contents."""

    __hash__ = object.__hash__  # a member is one object, and a key of many tables

    INPUT = "input"
    CONSTANT = "constant"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"


@dataclass(frozen=True, slots=True)
class ConstantSource:
    """A constant's numbers: ``data`` zero-padded at the end of each dim up to the buffer's shape."""

    data: ConstantData
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelBuffer:
    """A tensor with memory of its own.

    ``type`` has the shape that accesses index.  ``host_shape`` is the shape outside the device where that differs: a
    pinned layout may walk several host dims as one.  ``home``: numbers of the loops, outermost first, in each iteration
    of which it is written anew; it holds what one iteration needs.
    """

    name: str
    type: TensorType
    role: BufferRole
    origin: Origin = field(compare=False)
    layout: BufferLayout | None = None
    pin: LayoutPin | None = None
    constant: ConstantSource | None = None
    host_shape: tuple[int, ...] | None = None
    home: tuple[int, ...] = ()

    @property
    def host_type(self) -> TensorType:
        """Shape and dtype of the value outside the device."""
        return self.type if self.host_shape is None else replace(self.type, shape=self.host_shape)

    @property
    def whole(self) -> Access:
        """The access whose index is that of the value."""
        access = Access.identity(self.type.shape).reshape(self.host_type.shape)
        assert access is not None, "adjacent dims always fold"
        return access

    @property
    def device_format(self) -> DeviceFormat:
        """The format of its elements in device memory."""
        return self.type.dtype.device_format

    @property
    def placed(self) -> BufferLayout:
        """The layout, once ``assign-layouts`` has run."""
        assert self.layout is not None, self.name
        return self.layout


@dataclass(frozen=True, slots=True)
class Use:
    """A buffer read or written by a kernel, and which element each iteration touches.

    ``steps`` has an entry per loop around the kernel, outermost first: how far the access moves with every iteration,
    in elements per dim of the buffer.  It is empty where no loop moves it.
    """

    buffer: str
    access: Access
    steps: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """A counted loop around kernels: its trip count, and the tiles of the dim it runs over, in elements.

    ``is_symbolic``: the dim is; ``count`` is then the most trips, a run makes as many as its extent needs.
    """

    count: int
    dim: str
    tile: int
    is_symbolic: bool = False

    def __str__(self) -> str:
        most = "at most " if self.is_symbolic else ""
        return f"{most}{self.count} tiles of {self.tile} along {self.dim}"


@dataclass(frozen=True, slots=True)
class Owners:
    """Which part of an operand of a shuffle each core has: every part has one core.

    ``division``: slices per variable of the form.  ``order``: the variables from the one whose slice varies fastest
    between neighbouring cores to the slowest.
    """

    division: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One device operation over ``extents``.

    ``op`` is the catalogue's name, ``op_func`` and ``constants`` what the OpSpec says.  ``reduced`` are the iteration
    dims that the output does not have.  A copy that ``is_elidable`` is dropped where both sides get one layout.
    ``form`` is the device form under the buffers' layouts, ``None`` until ``assign-layouts``; ``division`` the number
    of slices per variable of the form, ``None`` until ``divide-work``.
    ``reason`` says why a pass inserted the kernel.  ``dims`` are the names of the iteration dims, as far as known.
    ``loops`` are the numbers of the loops around it, outermost first; ``tiled`` the iteration dims of each that count
    inside one of its tiles.  ``pinned``: the slices of each iteration dim where the graph pins them, else empty.
    ``owners``: of a shuffle, a copy from scratchpads to scratchpads, those of its input and those of its output; its
    ``division`` is that of the latter.  ``window``: what a pool or convolution slides over its first input.
    """

    name: str
    op: str
    op_func: str
    rule: Rule
    extents: tuple[int, ...]
    inputs: tuple[Use, ...]
    output: Use
    origin: Origin = field(compare=False)
    reduced: tuple[int, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict[str, float])
    is_elidable: bool = False
    form: KernelForm | None = field(default=None, compare=False)
    division: tuple[int, ...] | None = None
    reason: str | None = field(default=None, compare=False)
    dims: tuple[str | None, ...] = ()
    loops: tuple[int, ...] = ()
    tiled: tuple[tuple[int, ...], ...] = ()
    pinned: tuple[int, ...] = ()
    owners: tuple[Owners, ...] = ()
    window: Window | None = None

    @property
    def uses(self) -> tuple[Use, ...]:
        """Inputs, then the output: the operand order of an OpSpec."""
        return (*self.inputs, self.output)

    @property
    def placed(self) -> KernelForm:
        """The device form, once ``assign-layouts`` has run."""
        assert self.form is not None, self.name
        return self.form

    @property
    def shape(self) -> KernelShape:
        """What the rules of its class need to know of it."""
        is_in_place = any(use.buffer == self.output.buffer for use in self.inputs)
        fold = device_operation(self.op_func).fold if self.rule is Rule.REDUCTION else None
        folds_sticks = fold is None or fold.folds_sticks
        return KernelShape(self.rule, self.extents, self.reduced, is_in_place, self.window, folds_sticks)


def copy_kernel(name: str, source: Use, target: Use, origin: Origin) -> Kernel:
    """Return the kernel that writes what ``source`` reads to where ``target`` writes, whatever layouts they get."""
    return Kernel(name, "spyre.copy", IDENTITY, Rule.COPY, source.access.extents, (source,), target, origin)


@dataclass(frozen=True, slots=True)
class LayoutCost:
    """What the chosen layouts cost, in bytes, and what no choice can undercut.

    Counted are what copies read and write, padding included, once for each kernel that they serve, and what inputs,
    constants and outputs take beyond their default layouts.
    """

    cost_bytes: int
    lower_bound_bytes: int

    @property
    def is_optimal(self) -> bool:
        """Whether no choice is cheaper."""
        return self.cost_bytes == self.lower_bound_bytes

    def __str__(self) -> str:
        kind = "optimal" if self.is_optimal else "not proved optimal"
        return f"copies and padding cost {self.cost_bytes} bytes, lower bound {self.lower_bound_bytes} bytes ({kind})"


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """One device program: kernels by index range, its arguments in order, and where the rest lies.

    ``pool_offsets``: in the pool.  ``lx_offsets``: in every core's scratchpad, which holds the core's slice.
    """

    first_kernel: int
    end_kernel: int
    arguments: tuple[str, ...]
    pool_offsets: Mapping[str, int]
    pool_bytes: int
    lx_offsets: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class KernelGraph:
    """All kernels of a model in execution order; ``outputs`` are (graph output, buffer).

    ``source`` is the graph it was made from; ``places`` says which buffer, read how, a value of that graph is, and has
    no entry for those that passes took apart or dropped.  ``notes``: what the planner decided and why, in the order of
    its decisions; ``planner``: who placed the scratchpads.  ``expects_in_lx``: buffers that divisions were chosen
    slower for, or apart, because they would stay in the scratchpads or be shuffled there.
    """

    name: str
    buffers: Mapping[str, KernelBuffer]
    kernels: tuple[Kernel, ...]
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    programs: tuple[KernelProgram, ...] = ()
    source: Graph | None = None
    places: Mapping[str, Use] = field(default_factory=dict[str, Use])
    layout_cost: LayoutCost | None = None
    loops: Mapping[int, Loop] = field(default_factory=dict[int, Loop])
    notes: tuple[PlanNote, ...] = field(default=(), compare=False)
    planner: PlannerName | None = None
    expects_in_lx: frozenset[str] = frozenset()

    def form_of(self, kernel: Kernel) -> KernelForm | Inexpressible:
        """Return a kernel's device form under the buffers' layouts, or why it has none."""
        operands = [self._operand(kernel, index, use) for index, use in enumerate(kernel.inputs)]
        return kernel_form(kernel.shape, [*operands, self._operand(kernel, OUTPUT, kernel.output)])

    def trips(self, loops: Sequence[int]) -> int:
        """Return how often what stands in ``loops`` runs: at most, where a loop follows a symbolic dim."""
        return math.prod(self.loops[loop].count for loop in loops)

    def movement(self, kernel: Kernel, use: Use) -> Movement:
        """Return how a use moves along the loops around its kernel."""
        counts = (self.loops[loop].count for loop in kernel.loops)
        return tuple(zip(counts, use.steps, strict=True)) if use.steps else ()

    def _operand(self, kernel: Kernel, role: int, use: Use) -> OperandUse:
        buffer = self.buffers[use.buffer]
        return OperandUse(role, use.access, buffer.placed, buffer.type.shape, self.movement(kernel, use))

    def with_kernels(self, kernels: tuple[Kernel, ...]) -> KernelGraph:
        """Return the graph with other kernels."""
        return replace(self, kernels=kernels)

    def with_notes(self, *notes: PlanNote) -> KernelGraph:
        """Return the graph with more decisions of the planner."""
        return replace(self, notes=(*self.notes, *notes))
