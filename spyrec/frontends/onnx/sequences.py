"""ONNX's sequences of tensors: lengths and places are known while importing, and a graph has their items alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.source_graph import HostArray
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.onnx.lower import Call

Tensor = Value | HostArray
"""A tensor of the model: a value of the graph, or numbers that are known."""


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """The tensors of a sequence, in order."""

    items: tuple[Tensor, ...]


Result = Tensor | TensorSequence
"""What a name of the model stands for."""


def stacked(call: Call, items: Sequence[Tensor], axis: int) -> Tensor:
    """Return tensors of one shape as one, with a new axis; numbers that are known stay known."""
    arrays = [item for item in items if not isinstance(item, Value)]
    if len(arrays) == len(items):
        return np.stack(arrays, axis=axis)
    return call.add("stack", *[call.as_value(item) for item in items], dim=axis)


def _empty(_: Call) -> Sequence[Result]:
    return [TensorSequence(())]


def _identity(call: Call) -> Sequence[Result]:
    return [call.result(0)]


def _construct(call: Call) -> Sequence[Result]:
    return [TensorSequence(tuple(call.tensor(index) for index in range(call.count)))]


def _place(call: Call, index: int, length: int, most: int) -> int:
    """Return a place in a sequence, counted from its front.  Errors: it lies outside, or depends on an input."""
    given = call.sizes(index)[0]
    place = given + length if given < 0 else given
    if not 0 <= place <= most:
        raise Unsupported(f"its place {given} lies outside of a sequence of {length}")
    return place


def _at(call: Call) -> Sequence[Result]:
    items = call.sequence(0).items
    return [items[_place(call, 1, len(items), len(items) - 1)]]


def _insert(call: Call) -> Sequence[Result]:
    items = call.sequence(0).items
    place = _place(call, 2, len(items), len(items)) if call.has(2) else len(items)
    return [TensorSequence((*items[:place], call.tensor(1), *items[place:]))]


def _erase(call: Call) -> Sequence[Result]:
    items = call.sequence(0).items
    place = _place(call, 1, len(items), len(items) - 1) if call.has(1) else len(items) - 1
    return [TensorSequence((*items[:place], *items[place + 1 :]))]


def _length(call: Call) -> Sequence[Result]:
    return [np.asarray(len(call.sequence(0).items), np.int64)]


def _concatenated(call: Call) -> Sequence[Result]:
    items, axis = call.sequence(0).items, call.integer("axis", 0)
    if not items:
        raise Unsupported("its sequence is empty")
    if call.integer("new_axis", 0):
        return [stacked(call, items, axis)]
    arrays = [item for item in items if not isinstance(item, Value)]
    if len(arrays) == len(items):
        return [np.concatenate(arrays, axis=axis)]
    return [call.add("cat", *[call.as_value(item) for item in items], dim=axis)]


def _split(call: Call) -> Sequence[Result]:
    """Parts of a tensor: of one length, of given lengths, or one by one, then with or without the axis."""
    value = call.value(0)
    axis = call.integer("axis", 0) % value.ndim
    extent = call.extent(value, axis)
    given = call.known(1)
    lengths = [1] * extent if given is None else [int(item) for item in given.reshape(-1)]
    if given is not None and given.ndim == 0:
        each = max(lengths[0], 1)
        lengths = [min(each, extent - begin) for begin in range(0, extent, each)]
    if sum(lengths) != extent or min(lengths, default=0) < 0:
        raise Unsupported(f"parts of {lengths} are no axis of {extent}")
    begins = np.cumsum([0, *lengths]).tolist()
    if given is None and not call.integer("keepdims", 1):
        return [TensorSequence(tuple(call.add("select", value, dim=axis, index=begin) for begin in begins[:-1]))]
    parts = itertools.pairwise(begins)
    return [TensorSequence(tuple(call.add("slice", value, dim=axis, start=begin, end=end) for begin, end in parts))]


SEQUENCES: Mapping[str, Callable[[Call], Sequence[Result]]] = MappingProxyType(
    {
        "ConcatFromSequence": _concatenated,
        "Identity": _identity,
        "SequenceAt": _at,
        "SequenceConstruct": _construct,
        "SequenceEmpty": _empty,
        "SequenceErase": _erase,
        "SequenceInsert": _insert,
        "SequenceLength": _length,
        "SplitToSequence": _split,
    }
)
"""Operators that make or take sequences, by their names; ``Identity`` takes whatever there is."""
