"""What a shuffle must state: two tensors in LX, each dim of both enumerated once, and an owner for every slice.

The movement follows from who owns what of the two states of the tensor; how the operation itself is divided does not
count.  Capacity, alignment and overlap are the rules of all operands in LX (V4, V5, V7, V8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from spyrec.bundle.superdsc import Component, Distribution, Operand, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.device_ops import SHUFFLE

NOT_EXECUTED, NOT_ENUMERATED, NOT_OWNED, NOT_WHOLE_STICKS = "SPY0724", "SPY0725", "SPY0726", "SPY0713"


@dataclass(frozen=True, slots=True)
class ShuffleFault:
    """A rule that a shuffle breaks: its code, the operand to blame, and how."""

    code: str
    position: int
    message: str


def is_shuffle(superdsc: SuperDsc) -> bool:
    """Return whether the operation moves a tensor between the scratchpads."""
    return superdsc.op_func_name == SHUFFLE


def shuffle_faults(superdsc: SuperDsc) -> Iterator[ShuffleFault]:
    """Yield what is wrong with a shuffle: SPY0713 sticks, SPY0724 form, SPY0725 folds, SPY0726 owners."""
    (target,) = superdsc.compute.outputs
    source = next(position for position in superdsc.compute.inputs if position != target)
    found = [fault for position in (source, target) for fault in _form(superdsc, position)]
    first, second = superdsc.operands[source], superdsc.operands[target]
    if _extending(first) != _extending(second):
        message = f"moves dims {sorted(_extending(second))} of a tensor that has {sorted(_extending(first))}"
        found.append(ShuffleFault(NOT_EXECUTED, target, message))
    if first.data_format is not second.data_format:
        message = f"moves {first.data_format.name} to {second.data_format.name}, bits are copied"
        found.append(ShuffleFault(NOT_EXECUTED, target, message))
    yield from found
    if not found:
        for position in (source, target):
            yield from _coverage(superdsc, position)


def _extending(operand: Operand) -> frozenset[str]:
    return frozenset(dim for dim, scale in operand.scales.items() if scale == 1)


def _form(superdsc: SuperDsc, position: int) -> Iterator[ShuffleFault]:
    operand = superdsc.operands[position]
    if operand.component is not Component.LX or operand.distribution is None:
        yield ShuffleFault(NOT_EXECUTED, position, "a shuffle moves tensors from LX to LX, with owners of both")
    if any(operand.back_gap.values()):
        yield ShuffleFault(
            NOT_EXECUTED, position, f"a shuffle moves whole tensors, not one with gaps {operand.back_gap}"
        )
    if not _extending(operand):
        yield ShuffleFault(NOT_EXECUTED, position, "it extends along no dim")


def _coverage(superdsc: SuperDsc, position: int) -> Iterator[ShuffleFault]:
    """Yield dims that are not enumerated once, and slices that nobody owns."""
    operand = superdsc.operands[position]
    own, label = operand.distribution, superdsc.labels[operand.label]
    assert own is not None
    dims = [dim for dim in operand.layout_dim_order if operand.scales[dim] == 1]
    found = [ShuffleFault(NOT_ENUMERATED, position, text) for dim in dims for text in _folds(superdsc, own, dim)]
    cut = prod(own.folds[dim][1].factor for dim in dims)
    if cut != own.corelets:
        message = f"{own.corelets} corelets hold it, the corelet folds of its dims make {cut}"
        found.append(ShuffleFault(NOT_ENUMERATED, position, message))
    found += [ShuffleFault(NOT_OWNED, position, text) for text in _owners(superdsc, own, dims)]
    stick_dim, size = label.stick_dim, label.stick_size
    if stick_dim in dims and own.slices(stick_dim) > 1 and own.core_elements(stick_dim) % size:
        elements = own.core_elements(stick_dim)
        message = f'{elements} elements of stick dim "{stick_dim}" per core are not whole sticks of {size}'
        found.append(ShuffleFault(NOT_WHOLE_STICKS, position, message))
    yield from found


def _folds(superdsc: SuperDsc, own: Distribution, dim: str) -> Iterator[str]:
    """Yield why the folds of a dim do not count its elements once each.

    Digits do that where each alpha is the product of the factors of all smaller ones, whatever their order.
    """
    extent, folds = superdsc.iteration[dim], own.owned_folds(dim)
    if own.folds[dim][2].factor != 1:
        yield f'folds of dim "{dim}" cut it into rows, which is not executed'
        return
    if folds is None:
        stated = [(fold.alpha, fold.factor) for fold in own.folds[dim]]
        yield f'the corelet fold of dim "{dim}" does not halve its elements: (alpha, factor) {stated}'
        return
    reached = 1
    for fold in sorted((fold for fold in folds if fold.factor > 1), key=lambda fold: fold.alpha):
        if fold.alpha < reached:
            yield f'folds of dim "{dim}" name elements twice: alpha {fold.alpha}, {reached} elements lie below'
            return
        if fold.alpha > reached:
            yield f'folds of dim "{dim}" leave elements out: alpha {fold.alpha}, {reached} elements lie below'
            return
        reached *= fold.factor
    if reached != extent:
        more = "more" if reached > extent else "fewer"
        yield f'folds of dim "{dim}" name {reached} elements, {more} than its {extent}'


def _owners(superdsc: SuperDsc, own: Distribution, dims: list[str]) -> Iterator[str]:
    counts = {dim: own.slices(dim) for dim in dims}
    for core, slices in zip(superdsc.core_ids, own.core_slices, strict=True):
        for dim, count in counts.items():
            if not 0 <= slices[dim] < count:
                yield f'core {core} owns slice {slices[dim]} of dim "{dim}", which has {count}'
                return
    owned = {tuple(slices[dim] for dim in dims) for slices in own.core_slices}
    if prod(counts.values()) > len(owned):
        missing = next(place for place in _grid(counts) if tuple(place.values()) not in owned)
        yield f"nobody owns slices {missing}, {len(owned)} of {prod(counts.values())} have an owner"


def _grid(counts: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield all combinations of slices, the first dim's fastest, without making them first: a file may name many."""
    for number in range(prod(counts.values())):
        rest, place = number, dict[str, int]()
        for dim, count in counts.items():
            rest, place[dim] = divmod(rest, count)
        yield place
