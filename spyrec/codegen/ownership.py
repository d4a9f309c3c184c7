"""Shuffles: copies from scratchpad to scratchpad whose two operands are divided in different ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from spyrec.bundle.dialects import Dialect
from spyrec.bundle.superdsc import DimFold, Distribution
from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import EXTENDS, ONE_LANE_PER_STICK, OperandDims
from spyrec.codegen.opspec import AllocationKind, OpSpec, OwnedSlices
from spyrec.dataclass import dataclass
from spyrec.device_ops import IDENTITY
from spyrec.diagnostics import Location, refuse

_CORE = "core_id"
"""The symbol of the expressions that give a core's slice."""


@dataclass(frozen=True, slots=True)
class OwnedSpace:
    """The iteration space as one operand of a shuffle is divided, and each core's slice along every dim of it."""

    space: IterationSpace
    core_slices: tuple[Mapping[str, int], ...]


def is_shuffle(spec: OpSpec) -> bool:
    """Return whether a copy is a shuffle: both operands in LX, owned in different ways."""
    owners = [argument.work_division for argument in spec.args]
    return _moves_in_lx(spec) and None not in owners and owners[0] != owners[1]


def _moves_in_lx(spec: OpSpec) -> bool:
    """Whether it is a copy of one operand in LX into another."""
    in_lx = all(argument.allocation.kind is AllocationKind.LX for argument in spec.args)
    return spec.op == IDENTITY and in_lx and len(spec.args) == 2


def check_owners(spec: OpSpec, dialect: Dialect, location: Location | None) -> None:
    """Check that only copies in LX say who owns their operands, in a dialect that has shuffles.  Errors: SPY0542."""
    for position, argument in enumerate(spec.args):
        if argument.work_division is None or (_moves_in_lx(spec) and dialect.has_shuffles):
            continue
        fact = f'"{spec.op}" says who owns operand {position}'
        if not dialect.has_shuffles:
            fact = f"{fact}, dialect {dialect.name} has no shuffles"
        raise refuse("SPY0542", fact, _at(location, position))


def owned_spaces(
    spec: OpSpec, labels: Mapping[str, str], iteration: IterationSpace, location: Location | None, *, is_exact: bool
) -> tuple[OwnedSpace, ...]:
    """Return how both operands of a shuffle are divided, nothing for another operation.

    ``is_exact``: slices that nobody owns, and uneven ones, pass as they do upstream.  Errors: SPY0542 to SPY0544.
    """
    if not is_shuffle(spec):
        return ()
    found: list[OwnedSpace] = []
    for position, argument in enumerate(spec.args):
        assert argument.work_division is not None
        at = _at(location, position)
        own = _owned_space(argument.work_division, labels, iteration, at)
        if not is_exact:
            _check_even(own, at)
            _check_all_owned(own, at)
        found.append(own)
    return tuple(found)


def _at(location: Location | None, position: int) -> Location | None:
    return None if location is None else location.child("args", position, "work_division")


def _owned_space(
    owned: OwnedSlices, labels: Mapping[str, str], iteration: IterationSpace, at: Location | None
) -> OwnedSpace:
    unknown = sorted((owned.work_slices.keys() | owned.core_id_to_work_slice.keys()) - labels.keys())
    if unknown:
        raise refuse("SPY0542", f'"{unknown[0]}" is no iteration symbol, those are {list(labels)}', at)
    splits = dict.fromkeys(iteration.sizes, 1) | {labels[name]: count for name, count in owned.work_slices.items()}
    if prod(splits.values()) != iteration.cores:
        made = " * ".join(map(str, splits.values()))
        fact = f"slices {made} make {prod(splits.values())}, the operation runs on {iteration.cores} cores"
        raise refuse("SPY0543", fact, at)
    for name, slot in owned.core_id_to_work_slice.items():
        if set(slot.symbols) - {_CORE} or slot.indirect_names:
            raise refuse("SPY0544", f'the slice along "{name}", {slot}, depends on other things than {_CORE}', at)
    slots = {labels[name]: slot for name, slot in owned.core_id_to_work_slice.items()}
    cores = tuple(
        {dim: slots[dim].evaluate({_CORE: core}) if dim in slots else 0 for dim in splits}
        for core in range(iteration.cores)
    )
    for core, slices in enumerate(cores):
        for dim, number in slices.items():
            if not 0 <= number < splits[dim]:
                fact = f'core {core} owns slice {number} along "{dim}", which has {splits[dim]}'
                raise refuse("SPY0544", fact, at)
    return OwnedSpace(replace(iteration, work_slices=splits), cores)


def _check_even(owned: OwnedSpace, at: Location | None) -> None:
    for dim, count in owned.space.work_slices.items():
        if owned.space.sizes[dim] % count:
            fact = f'{count} slices do not divide {owned.space.sizes[dim]} elements along "{dim}"'
            raise refuse("SPY0543", fact, at)


def _check_all_owned(owned: OwnedSpace, at: Location | None) -> None:
    """Check that no two cores own the same slices; there are as many slices as cores, so others had no owner."""
    seen: dict[tuple[int, ...], int] = {}
    for core, slices in enumerate(owned.core_slices):
        before = seen.setdefault(tuple(slices.values()), core)
        if before != core:
            fact = f"cores {before} and {core} own the same slices {dict(slices)}, so that others have no owner"
            raise refuse("SPY0544", fact, at)


def distribution_of(owned: OwnedSpace, dims: OperandDims, view: ArgumentView) -> Distribution:
    """Return who owns what of an operand, with the folds of each of its dims."""
    return Distribution(owned.core_slices, {dim: _folds(owned.space, dims, dim, view) for dim in dims.dim_order})


def _folds(space: IterationSpace, dims: OperandDims, dim: str, view: ArgumentView) -> tuple[DimFold, ...]:
    extends = dims.scales[dim] == EXTENDS
    slices, extent = (space.work_slices[dim], space.core_extent(dim)) if extends else (1, 1)
    spatial = (DimFold(extent, slices), DimFold(0, 1), DimFold(0, 1))
    if dim != dims.stick_dim:
        return (*spatial, DimFold(1, extent))
    size = view.elements_per_stick
    if dims.scales[dim] == ONE_LANE_PER_STICK:
        return (DimFold(size, 1), *spatial[1:], DimFold(size, 1), DimFold(0, size))
    return (*spatial, DimFold(size, max(1, extent // size)), DimFold(1, size))
