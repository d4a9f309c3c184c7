"""ONNX's control flow written out: ``If``, and ``Loop`` and ``Scan`` whose trips are known before the model runs.

A graph has no branches and no loops of a number of steps that its numbers decide.  A condition that depends on no input
chooses its branch; of one that does, both branches are computed and one is chosen, element by element, as of
``torch.cond``.  A body whose trips are known stands in the graph once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.frontends.model_import.source_graph import HostArray
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.sequences import Result, Tensor, TensorSequence, stacked
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.onnx.lower import Call

MOST_STEPS = 512
"""Steps of a loop or of a recurrent operator that are written out; a graph grows by a body with each."""


_CHOOSE = "return tensors of one shape and dtype from both branches, or write the model with that branch alone"
_COUNT = "write the model with a number of trips that is a constant, and leave out with Where what a trip should not do"


def branch(call: Call) -> Sequence[Result]:
    """``If``: the results of the branch that its condition chooses, when it is known or in each run."""
    condition = call.tensor(0)
    if not isinstance(condition, Value):
        chosen = call.body("then_branch" if bool(condition.reshape(-1)[0]) else "else_branch")
        return call.inlined(chosen, [])
    if condition.ndim:
        condition = call.add("reshape", condition, shape=[])
    first, second = (call.inlined(call.body(name), []) for name in ("then_branch", "else_branch"))
    if len(first) != len(second):
        raise Unsupported(f"its branches have {len(first)} and {len(second)} results")
    return [_chosen(call, condition, pair) for pair in zip(first, second, strict=True)]


def _chosen(call: Call, condition: Value, pair: tuple[Result, Result]) -> Result:
    """Return one of two results by a condition that a run knows; what is equal in both needs none."""
    first, second = pair
    if isinstance(first, TensorSequence) and isinstance(second, TensorSequence):
        if len(first.items) != len(second.items):
            raise Unsupported(f"its branches make {len(first.items)} and {len(second.items)} tensors", _CHOOSE)
        items = zip(first.items, second.items, strict=True)
        return TensorSequence(tuple(_chosen_tensor(call, condition, item) for item in items))
    if isinstance(first, TensorSequence) or isinstance(second, TensorSequence):
        raise Unsupported("one of its branches makes a sequence, and the other a tensor", _CHOOSE)
    return _chosen_tensor(call, condition, (first, second))


def _chosen_tensor(call: Call, condition: Value, pair: tuple[Tensor, Tensor]) -> Tensor:
    if not any(isinstance(item, Value) for item in pair) and _is_same(*cast("tuple[HostArray, HostArray]", pair)):
        return pair[0]
    first, second = (call.as_value(item) for item in pair)
    shapes = [call.shape(item) for item in (first, second)]
    if first.dtype != second.dtype or shapes[0] != shapes[1]:
        kinds = " and ".join(
            f"{item.dtype}[{', '.join(map(str, shape))}]" for item, shape in zip((first, second), shapes, strict=True)
        )
        raise Unsupported(f"which branch it takes depends on an input, and they return {kinds}", _CHOOSE)
    return call.add("where", condition, first, second)


def _is_same(first: HostArray, second: HostArray) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second)


def loop(call: Call) -> Sequence[Result]:
    """``Loop``: the carried values behind the last trip, then what the trips made, stacked."""
    body = call.body("body")
    bound = call.decided(0, "how often it runs", _COUNT)
    most = None if bound is None else int(bound.reshape(-1)[0])
    condition = call.decided(1, "whether it runs", _COUNT)  # without one, what the body says of it is not looked at
    carried: list[Result] = [call.result(index) for index in range(2, call.count)]
    rows: list[Sequence[Result]] = []
    while (condition is None or bool(condition.reshape(-1)[0])) and (most is None or len(rows) < most):
        if len(rows) == MOST_STEPS or (most is not None and most > MOST_STEPS):
            raise Unsupported(f"it has more than {MOST_STEPS} trips, the most that are written out")
        state = call.inlined(body, [np.asarray(len(rows), np.int64), np.asarray(True), *carried])
        if condition is not None:
            if isinstance(state[0], Value | TensorSequence):
                raise Unsupported("when it ends depends on an input", _COUNT)
            condition = state[0]
        carried = list(state[1 : 1 + len(carried)])
        rows.append(state[1 + len(carried) :])
    return [*carried, *_stacked(call, rows, len(call.node.output) - len(carried), [0] * len(call.node.output))]


def scan(call: Call) -> Sequence[Result]:
    """``Scan``: a body over the slices of its operands."""
    body, count = call.body("body"), call.integer("num_scan_inputs", 0)
    first = call.count - count
    if not 0 < count <= call.count:
        raise Unsupported(f"it scans {count} of {call.count} operands")
    carried: list[Result] = [call.result(index) for index in range(first)]
    scanned = [call.tensor(index) for index in range(first, call.count)]
    axes = call.list("scan_input_axes") or [0] * count
    backward = call.list("scan_input_directions") or [0] * count
    made = len(call.node.output) - first
    extents = {
        call.extent(item, axis) if isinstance(item, Value) else item.shape[axis]
        for item, axis in zip(scanned, axes, strict=True)
    }
    if len(extents) != 1 or not 0 < max(extents) <= MOST_STEPS:
        raise Unsupported(f"it has {sorted(extents)} steps, and {MOST_STEPS} are the most that are written out")
    (steps,) = extents
    rows: list[Sequence[Result]] = []
    for step in range(steps):
        slices = [
            _slice(call, item, axis, steps - 1 - step if is_backward else step)
            for item, axis, is_backward in zip(scanned, axes, backward, strict=True)
        ]
        state = call.inlined(body, [*carried, *slices])
        carried = list(state[:first])
        rows.append(state[first:])
    order = call.list("scan_output_directions") or [0] * made
    stacked_along = call.list("scan_output_axes") or [0] * made
    columns = [
        _stack(call, [row[index] for row in (reversed(rows) if order[index] else rows)], stacked_along[index])
        for index in range(made)
    ]
    return [*carried, *columns]


def _slice(call: Call, item: Tensor, axis: int, index: int) -> Tensor:
    if isinstance(item, Value):
        return call.add("select", item, dim=axis, index=index)
    return np.asarray(np.take(item, index, axis=axis))


def _stacked(call: Call, rows: Sequence[Sequence[Result]], count: int, axes: Sequence[int]) -> list[Result]:
    if count and not rows:
        raise Unsupported("it makes no trip, and what its trips make is empty")
    return [_stack(call, [row[index] for row in rows], axes[index]) for index in range(count)]


def _stack(call: Call, items: Sequence[Result], axis: int) -> Tensor:
    tensors = [item for item in items if not isinstance(item, TensorSequence)]
    if len(tensors) != len(items):
        raise Unsupported("its trips make a sequence each")
    return stacked(call, tensors, axis)


CONTROL_FLOW: Mapping[str, Callable[[Call], Sequence[Result]]] = MappingProxyType(
    {"If": branch, "Loop": loop, "Scan": scan}
)
"""Operators that hold graphs, by their names."""
