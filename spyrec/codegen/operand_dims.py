"""Which dims an operand lists, in which order, and how it varies along each (``scale_``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyrec.bundle.dialects import Dialect
from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.opspec import OpSpec
from spyrec.codegen.unit_dims import UnitDims
from spyrec.dataclass import dataclass
from spyrec.device_ops import LAYERNORM_SCALE, MATMULS, TOPKS, device_operation, names_of
from spyrec.device_ops.record import Family
from spyrec.diagnostics import Location, refuse

EXTENDS = 1
DOES_NOT_VARY = -1
ONE_LANE_PER_STICK = -2
"""The three codes of ``scale_``: see ``spyrec.bundle.superdsc_writer``."""


_CONVOLUTIONS = frozenset(name for name in names_of(Family.WINDOW) if device_operation(name).inputs > 1)
_OWN_DIMS = MATMULS | TOPKS | _CONVOLUTIONS
"""Operations whose operands list their own dims only."""


@dataclass(frozen=True, slots=True)
class OperandDims:
    """The dims of one operand, inner to outer, with the scale of each.

    ``stick_dim`` is that of the operand's layout label.  ``stride_order`` is the order in which torch-spyre walks the
    device axes; only ``maxDimSizes_`` and key orders depend on it.  ``paired``: where a stick holds pairs of rows, 64
    elements of each, the dim of the rows and that of the elements.
    """

    dim_order: tuple[str, ...]
    stride_order: tuple[str, ...]
    stick_dim: str
    scales: Mapping[str, int]
    is_index: bool = False
    paired: tuple[str, ...] = ()

    @property
    def has_pairs(self) -> bool:
        """Whether a stick holds pairs of rows."""
        return bool(self.paired)

    @property
    def stick_dims(self) -> tuple[str, ...]:
        """The dims of a stick, the one that its elements run along last."""
        return self.paired or (self.stick_dim,)


@dataclass(frozen=True, slots=True)
class ReferenceDims:
    """Dims and stick dim of the operand that an operation's other operands are measured against."""

    dim_order: tuple[str, ...]
    stick_dim: str | None


@dataclass(frozen=True, slots=True)
class DimsContext:
    """What the dims of an operand depend on besides the operand."""

    reference: ReferenceDims
    iteration: IterationSpace
    unit: UnitDims
    is_exact: bool


def index_dims(view: ArgumentView, unit: UnitDims, location: Location | None) -> OperandDims:
    """Return the dims of an index tensor: its own, all of them extended along."""
    order, stick_dim = view.dim_order, view.stick_dim
    if stick_dim is None:
        stick_dim = unit.index_stick if order else unit.row
        if stick_dim is None:
            raise refuse("SPY0521", "an index tensor without a stick dim cannot be gathered by", location)
        order = (*order, stick_dim)
    return OperandDims(order, order, stick_dim, dict.fromkeys(order, EXTENDS), is_index=True)


def operand_dims(
    spec: OpSpec, position: int, view: ArgumentView, context: DimsContext, location: Location | None
) -> OperandDims:
    """Return the dims of a non-index operand.

    A dim of the reference operand that this one lacks is appended at the outer end and marked as not varying.
    Errors: SPY0515 where the operand's sticks cannot be described beside the reference operand's.
    """
    reference, iteration = context.reference, context.iteration
    order = list(view.dim_order)
    reduced: list[str] = []
    if spec.op not in _OWN_DIMS and order != list(iteration.sizes):
        own = () if context.unit.index_stick is None else (context.unit.index_stick,)
        reduced = [dim for dim in (*reference.dim_order, *own) if dim not in order]
        order += reduced
    stick_dim = view.stick_dim
    if reference.stick_dim is None:
        stick_dim = _synthetic_stick(view, iteration, location)
        if stick_dim not in order:
            order.append(stick_dim)
    if spec.op == LAYERNORM_SCALE and position == 0:
        reduced = [_layernorm_stick(stick_dim, reference, location)]
    label_stick = _label_stick(view, stick_dim or reference.stick_dim, order, location)
    scales = dict.fromkeys(order, EXTENDS)
    for dim in reduced:
        scales[dim] = DOES_NOT_VARY
    lane_dim = stick_dim if spec.op == LAYERNORM_SCALE else reference.stick_dim
    if view.stick_dim is None and lane_dim in reduced:
        scales[lane_dim] = ONE_LANE_PER_STICK
    if view.index_name is not None:
        # torch-spyre has a table extend along everything, which is right of what has one entry
        scales |= {dim: EXTENDS for dim in reduced if context.is_exact or iteration.sizes[dim] == 1}
    stride_order = (*(dim for dim in order if dim not in reduced), *reduced)
    if iteration.cast_row is not None:
        order.insert(0, iteration.cast_row)
        scales = {iteration.cast_row: EXTENDS, **scales}
    order = context.unit.completed(order, view, is_output=position == len(spec.args) - 1, is_exact=context.is_exact)
    has_pairs = view.argument.element_arrangement == "QFP8WT"
    if has_pairs and len(order) < 2:
        raise refuse("SPY0515", f'sticks of pairs need two dims, the operand has "{label_stick}" alone', location)
    all_scales = dict.fromkeys(order, EXTENDS) | scales
    paired = _paired(order, label_stick, is_exact=context.is_exact) if has_pairs else ()
    return OperandDims(tuple(order), stride_order, label_stick, all_scales, paired=paired)


def _paired(order: Sequence[str], stick_dim: str, *, is_exact: bool) -> tuple[str, ...]:
    """Return the dims of a stick of pairs: the outermost one beside that of the elements, then that one.

    torch-spyre takes the two outermost dims as they stand, which for weights of a batch in default layout says that
    elements run along the rows (D162).
    """
    if is_exact:
        return tuple(order[-2:])
    return next(dim for dim in reversed(order) if dim != stick_dim), stick_dim


def _synthetic_stick(view: ArgumentView, iteration: IterationSpace, location: Location | None) -> str:
    assert iteration.missing_stick is not None
    if view.stick_dim is not None:
        raise refuse(
            "SPY0515",
            f'operand has sticks along "{view.stick_dim}", the reference operand has one element per stick',
            location,
            hint="materialise the operand one element per stick, or the result in whole sticks",
        )
    return iteration.missing_stick


def _layernorm_stick(stick_dim: str | None, reference: ReferenceDims, location: Location | None) -> str:
    if reference.stick_dim is not None or stick_dim is None:
        raise refuse(
            "SPY0515",
            f'"{LAYERNORM_SCALE}" takes and gives one element per stick, an operand has sticks along '
            f'"{reference.stick_dim}"',
            location,
        )
    return stick_dim


def _label_stick(view: ArgumentView, stick_dim: str | None, order: Sequence[str], location: Location | None) -> str:
    assert stick_dim is not None
    if stick_dim not in order:
        raise refuse("SPY0515", f'operand has no sticks and does not vary along "{stick_dim}"', location)
    if view.stick_dim is None and stick_dim in view.dim_order:
        raise refuse(
            "SPY0515",
            f'operand has one element per stick along "{stick_dim}", the reference operand whole sticks',
            location,
            hint="restickify the operand first",
        )
    return stick_dim


@dataclass(frozen=True, slots=True)
class SizeRule:
    """How ``maxDimSizes_`` of gathered dims is found: by the dialect, and 1 along the unit dims of an operation."""

    dialect: Dialect
    unit: UnitDims


def max_dim_sizes(
    dims: OperandDims, view: ArgumentView, index_view: ArgumentView | None, rule: SizeRule
) -> dict[str, int]:
    """Return ``maxDimSizes_``: -1 everywhere but in the gathered dims of a value tensor, and what is added to them.

    Places count from the innermost non-stick axis, in torch-spyre's walk order, whatever the axes mean.
    """
    sizes = dict.fromkeys(dims.dim_order, -1)
    if rule.unit.index_stick in sizes:
        sizes[rule.unit.index_stick] = 1
    if index_view is None:
        return sizes
    if rule.unit.row is not None:
        sizes[rule.unit.row] = 1
    for place, dim in enumerate(dims.stride_order):
        if dim in view.indirect_dims and dim not in {view.stick_dim, rule.unit.row}:
            sizes[dim] = (
                _size_by_index(dim, -place - 2, index_view)
                if rule.dialect.sizes_index_dims
                else _size_by_table(-place - 2, view, index_view)
            )
    return sizes


def _size_by_index(dim: str, axis: int, index_view: ArgumentView) -> int:
    """Return the index tensor's extent at the same place; 1 along the last dim of its coordinates."""
    size, active = index_view.argument.device_size, index_view.coordinate_dims
    if -axis > len(size):
        return -1
    return size[axis] if len(active) > 1 and dim != active[-1] else 1


def _size_by_table(axis: int, view: ArgumentView, index_view: ArgumentView) -> int:
    """Return 1 where the index tensor's device dim at the same place is smaller than the value tensor's."""
    index_size, value_size = index_view.argument.device_size, view.argument.device_size
    if -axis > min(len(index_size), len(value_size)):
        return -1
    return 1 if index_size[axis] < value_size[axis] else -1
