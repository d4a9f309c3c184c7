"""Which dims an operand lists, in which order, and how it varies along each (``scale_``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.opspec import OpSpec
from spyrec.device_ops import LAYERNORM_SCALE, MATMULS, TOPKS
from spyrec.diagnostics import Location, refuse

EXTENDS = 1
DOES_NOT_VARY = -1
ONE_LANE_PER_STICK = -2
"""The three codes of ``scale_``: see ``spyrec.bundle.superdsc_writer``."""


@dataclass(frozen=True, slots=True)
class OperandDims:
    """The dims of one operand, inner to outer, with the scale of each.

    ``stick_dim`` is that of the operand's layout label.  ``stride_order`` is the order in which torch-spyre walks the
    device axes; only ``maxDimSizes_`` and key orders depend on it.
    """

    dim_order: tuple[str, ...]
    stride_order: tuple[str, ...]
    stick_dim: str
    scales: Mapping[str, int]
    is_index: bool = False


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


def index_dims(view: ArgumentView, location: Location | None) -> OperandDims:
    """Return the dims of an index tensor: its own, all of them extended along."""
    if view.stick_dim is None:
        raise refuse("SPY0521", "an index tensor without a stick dim cannot be gathered by", location)
    order = view.dim_order
    return OperandDims(order, order, view.stick_dim, dict.fromkeys(order, EXTENDS), is_index=True)


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
    if spec.op not in MATMULS | TOPKS and order != list(iteration.sizes):
        reduced = [dim for dim in reference.dim_order if dim not in order]
        order += reduced
    stick_dim = view.stick_dim
    if reference.stick_dim is None:
        stick_dim = _synthetic_stick(view, iteration, location)
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
    stride_order = (*(dim for dim in order if dim not in reduced), *reduced)
    if iteration.cast_row is not None:
        order.insert(0, iteration.cast_row)
        scales = {iteration.cast_row: EXTENDS, **scales}
    return OperandDims(tuple(order), stride_order, label_stick, scales)


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


def max_dim_sizes(dims: OperandDims, view: ArgumentView, index_view: ArgumentView | None) -> dict[str, int]:
    """Return ``maxDimSizes_``: -1 everywhere but in the gathered dims of a value tensor.

    There it is 1 where the index tensor's device dim at the same place is smaller than the value tensor's.  Places
    count from the innermost non-stick axis, in torch-spyre's walk order, whatever the axes mean.
    """
    sizes = dict.fromkeys(dims.dim_order, -1)
    if index_view is None:
        return sizes
    for place, dim in enumerate(dims.stride_order):
        axis = -place - 2
        index_size, value_size = index_view.argument.device_size, view.argument.device_size
        if dim in view.indirect_dims and dim != view.stick_dim and -axis <= min(len(index_size), len(value_size)):
            sizes[dim] = 1 if index_size[axis] < value_size[axis] else -1
    return sizes
