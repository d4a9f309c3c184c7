"""One SuperDSC (one ``sdsc_N.json``) as frozen classes.

``superdsc_writer`` gives the file's bytes, ``superdsc_reader.from_json`` reads a file; the two are inverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from itertools import pairwise
from math import gcd, prod
from typing import TYPE_CHECKING

from spyrec.bundle.debug_handle import DebugHandle
from spyrec.bundle.dialects import JUNE_2026, Dialect
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat

if TYPE_CHECKING:
    from spyrec.bundle.dsc_schedule import DscSchedule


class Component(Enum):
    """The memory an operand lies in (``component_``)."""

    HBM = "hbm"
    LX = "lx"


class Indirection(Enum):
    """An operand's part in a gather (``indirectAllocType_``)."""

    NONE = "no_indirection"
    INDEX = "index_tensor"
    VALUE = "value_tensor"


class PaddingKind(Enum):
    """What an operand has beyond the elements of an axis that a window slides along (``padding_``).

    The names are published; what each holds in memory is not, but for the two that convolutions use: ``NO_ZEROS``
    where there is padding, which memory does not hold, and ``WHOLE_SPAN`` where there is none.
    """

    NONE = "nopad"
    LOWERED = "lowered_padded"
    NO_ZEROS = "padded_nozeropad"
    WITH_ZEROS = "padded_wzeropad"
    SPAN = "padded_fullspan"
    WHOLE_SPAN = "padded_fullspan_wunneeded"


@dataclass(frozen=True, slots=True)
class UnneededPadding:
    """Elements of an axis that no window reaches: all of them, and those taken off the padding before and behind."""

    total: int
    front: int
    back: int


@dataclass(frozen=True, slots=True)
class PaddingSizes:
    """How a window slides along one axis of the input (an entry of ``paddingSizes_``).

    ``total_size``: elements of the axis, padding included.  Window element k at output o is element
    ``o * stride + k * dilation - pad_front`` of the axis without its padding.  ``pad_front``, ``pad_back``: -1 in the
    stages of a divided axis, whose cores have different ones.  ``window_dim``: the dim that counts k.
    """

    pad_front: int
    pad_back: int
    total_size: int
    stride: int
    dilation: int
    window_dim: str
    unneeded: UnneededPadding | None = None


PAIRED_STICK = (2, 64)
"""Elements along each dim of a stick of two dims: pairs of rows, interleaved element by element."""


@dataclass(frozen=True, slots=True)
class LabelInfo:
    """One entry of ``primaryDsInfo_``: dims inner to outer, the dims of a stick, and its elements along each.

    A stick of two dims holds ``stick_sizes[0]`` entries of the first one, interleaved element by element.
    """

    layout_dim_order: tuple[str, ...]
    stick_dims: tuple[str, ...]
    stick_sizes: tuple[int, ...]

    @property
    def stick_dim(self) -> str:
        """The dim whose elements fill sticks; of a stick of two dims the last one."""
        return self.stick_dims[-1]

    @property
    def stick_size(self) -> int:
        """Elements per stick."""
        return prod(self.stick_sizes)


@dataclass(frozen=True, slots=True)
class DimFold:
    """One fold of a dim: its index, below ``factor``, moves ``alpha`` elements along the dim."""

    alpha: int
    factor: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """Who owns what of an operand of a shuffle, which need not be how the operation itself is divided.

    ``core_slices[i]``: the slice of core ``SuperDsc.core_ids[i]`` along each dim of the iteration.  ``folds``: of each
    dim of the operand those of core, corelet and row, then those of its elements from outer to inner.
    ``corelets``: of each core, 1 or 2.
    """

    core_slices: tuple[Mapping[str, int], ...]
    folds: Mapping[str, tuple[DimFold, ...]]
    corelets: int = 1

    def slices(self, dim: str) -> int:
        """Return the number of slices along a dim."""
        return self.folds[dim][0].factor

    def owned_folds(self, dim: str) -> tuple[DimFold, ...] | None:
        """Return the folds of a dim without repetition: core, corelet, then the elements of one corelet.

        Elements that are stated of the whole core are cut to those of a corelet; ``None`` where that is no box of them.
        """
        core, corelet, _, *elements = self.folds[dim]
        stated = prod(fold.factor for fold in elements)
        if corelet.factor == 1 or stated == corelet.alpha:
            return (core, corelet, *elements)
        rest, cut = corelet.factor, list[DimFold]()
        for fold in elements:
            shared = gcd(rest, fold.factor)
            if rest > 1 and shared not in {rest, fold.factor}:
                return None
            rest //= shared
            cut.append(DimFold(fold.alpha, fold.factor // shared))
        return (core, corelet, *cut) if rest == 1 and stated == corelet.alpha * corelet.factor else None

    def cuts_neighbours(self, dim: str) -> bool:
        """Whether a core's elements along a dim are neighbours, in the order of the dim."""
        folds = [fold for fold in (self.owned_folds(dim) or ())[1:] if fold.factor > 1]
        return all(outer.alpha == inner.alpha * inner.factor for outer, inner in pairwise(folds)) and (
            not folds or folds[-1].alpha == 1
        )

    def corelet_elements(self, dim: str) -> int:
        """Return how many elements along a dim one corelet holds.

        A dim that corelets cut may state the elements of one of them, or those of the whole core.
        """
        _, corelet, _, *elements = self.folds[dim]
        stated = prod(fold.factor for fold in elements)
        return stated if corelet.factor == 1 else min(stated, corelet.alpha)

    def core_elements(self, dim: str) -> int:
        """Return how many elements along a dim one core holds."""
        return self.folds[dim][1].factor * self.corelet_elements(dim)


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its node in ``scheduleTree_`` joined with its entry in ``labeledDs_`` on ``ldsIdx_``.

    ``start_addresses`` has one entry per core of ``SuperDsc.core_ids``, in that order: a byte address, or,
    where ``is_symbolic``, a negative symbol id bound by ``sdsc_execute``.
    ``layout_dim_order`` is this operand's own order, inner to outer; ``scales`` and ``max_dim_sizes`` are keyed
    by dim (the file stores them in the label's order).  ``back_gap`` is in elements of the dim.
    ``distribution``: of the operands of a shuffle, and of no others.  ``padding``: of an operand that a window slides
    over, by axis.
    ``is_interleaved``: the halves of each stick alternate every 8 elements (0-7, 64-71, 8-15, ...).
    """

    label: str
    component: Component
    layout_dim_order: tuple[str, ...]
    scales: Mapping[str, int]
    max_dim_sizes: Mapping[str, int]
    start_addresses: tuple[int, ...]
    is_symbolic: bool
    back_gap: Mapping[str, int]
    data_format: DeviceFormat
    word_length: int
    indirection: Indirection = Indirection.NONE
    related_operand: int | None = None
    distribution: Distribution | None = None
    padding: Mapping[str, PaddingKind] = field(default_factory=dict[str, PaddingKind])
    is_interleaved: bool = False


@dataclass(frozen=True, slots=True)
class DynamicDim:
    """A dim whose extent each launch gives: the symbol that stands for it, its name, and its share on one core.

    ``max_size`` and ``granularity`` are those of a core's share: of the whole, divided by the slices.
    """

    symbol_id: int
    name: str
    max_size: int
    granularity: int


@dataclass(frozen=True, slots=True)
class ConstantEntry:
    """One entry of ``constantInfo_``: ``bits`` is the raw unsigned integer of the file."""

    name: str
    data_format: DeviceFormat
    bits: int


@dataclass(frozen=True, slots=True)
class ComputeOp:
    """The one entry of ``computeOp_``; operands are indices into ``SuperDsc.operands``."""

    execution_unit: str
    op_func_name: str
    data_format: DeviceFormat
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    indirect_access_indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SuperDsc:
    """One SuperDSC: an operation over an iteration space, divided among cores.

    As a rule that is all.  ``schedule``: what a file has beyond it, more DSCs (this is then the first), operations that
    move data, and when each core does which (``dsc_actions`` says what is executed); a file that only moves data has
    no operands.

    ``index`` and ``op_func_name`` make the root key ``"<index>_<op_func_name>"``.
    ``iteration`` (``N_``), ``work_slices`` (``numWkSlicesPerDim_``) and ``core_extent`` (``ss_`` and ``el_``)
    are keyed by dim in file order.  ``core_work_slices[i]`` is the slice map of core ``core_ids[i]``.
    ``padding_sizes`` (of ``N_``) and ``stage_padding_sizes`` (of ``ss_`` and ``el_``): by axis, where a window slides.
    ``dialect``: the form of the file.  ``debug_handle``: where the operation comes from, ``None`` where nobody says.
    ``dynamic_dims``: by dim, in file order; extents elsewhere are the largest there can be.
    """

    index: int
    op_func_name: str
    core_ids: tuple[int, ...]
    iteration: Mapping[str, int]
    work_slices: Mapping[str, int]
    core_extent: Mapping[str, int]
    core_work_slices: tuple[Mapping[str, int], ...]
    labels: Mapping[str, LabelInfo]
    operands: tuple[Operand, ...]
    constants: tuple[ConstantEntry, ...]
    coordinate_masking: Mapping[str, tuple[tuple[int, int], ...]]
    masking_constant_id: int
    compute: ComputeOp
    dialect: Dialect = JUNE_2026
    debug_handle: DebugHandle | None = None
    padding_sizes: Mapping[str, PaddingSizes] = field(default_factory=dict[str, PaddingSizes])
    stage_padding_sizes: Mapping[str, PaddingSizes] = field(default_factory=dict[str, PaddingSizes])
    dynamic_dims: Mapping[str, DynamicDim] = field(default_factory=dict[str, DynamicDim])
    schedule: DscSchedule | None = None

    @property
    def dscs(self) -> tuple[SuperDsc, ...]:
        """The DSCs of the file, each without schedule, in order."""
        if self.schedule is None:
            return (self,)
        return (replace(self, schedule=None), *self.schedule.further) if self.operands else ()

    @property
    def every_core(self) -> tuple[int, ...]:
        """The cores of all DSCs and data DSCs."""
        return self.core_ids if self.schedule is None else self.schedule.core_ids

    def core_elements(self, operand: Operand, dim: str) -> int:
        """Return how many elements along a dim of an operand in LX each core holds, gaps not counted."""
        own = operand.distribution
        return self.core_extent[dim] if own is None else own.core_elements(dim)

    @property
    def split_dynamic_dims(self) -> tuple[str, ...]:
        """Dynamic dims that cores share, which no writer known gives right addresses (docs/compatibility.md, Q18)."""
        return tuple(dim for dim in self.dynamic_dims if self.work_slices[dim] > 1)

    @property
    def corelets(self) -> int:
        """Corelets of each core that hold parts of an operand."""
        return max((item.distribution.corelets for item in self.operands if item.distribution), default=1)

    @property
    def provenance(self) -> str | None:
        """What its debug handle names, such as ``aten.add.Tensor at model.py:12``; ``None`` where that is nothing."""
        return (self.debug_handle.shown or None) if self.debug_handle is not None else None

    @property
    def file_name(self) -> str:
        """The name the writer gives the file of this SuperDSC inside its program's directory."""
        return f"sdsc_{self.index}.json"
