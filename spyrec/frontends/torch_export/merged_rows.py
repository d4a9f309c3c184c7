"""Linear layers over rows that a program has merged: ``view(x, [2*S, k])``, the layer, ``view(y, [S, 2, n])``.

An axis of a graph is one dim, and ``2*S`` is none.  The layer computes each row by itself, so the rows need no merging.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from spyrec.frontends.torch_export.traced import Argument, Size, Tensor, TracedNode, TracedProgram, TracedTensor

_VIEWS = {"aten.view.default": "size", "aten._unsafe_view.default": "size", "aten.reshape.default": "shape"}
_LAYERS = {"aten.linear.default": "input", "aten.addmm.default": "mat1"}
"""Layers, and the operand whose rows they take."""


def without_merged_rows(program: TracedProgram) -> TracedProgram:
    """Return a program whose linear layers have the axes that the view behind them restores."""
    made_by = {name: node for node in program.nodes for name, _ in node.results}
    uses = Counter(name for node in program.nodes for name in node.tensors())
    uses.update(item.value.name for item in program.outputs if isinstance(item.value, Tensor))
    replaced: dict[str, tuple[TracedNode, ...]] = {}
    for after in program.nodes:
        layer = _single(after, "self", made_by, uses) if after.target in _VIEWS else None
        if layer is None or layer.target not in _LAYERS:
            continue
        before = _single(layer, _LAYERS[layer.target], made_by, uses)
        if before is None or before.target not in _VIEWS or not _is_merged(before) or not _is_plain(layer, made_by):
            continue
        rows = _result(after).shape[:-1]
        replaced |= {before.name: (_viewed(before, rows),), layer.name: _spread(layer, after, rows), after.name: ()}
    if not replaced:
        return program
    return replace(program, nodes=tuple(made for node in program.nodes for made in replaced.get(node.name, (node,))))


def _single(
    node: TracedNode, operand: str, made_by: Mapping[str, TracedNode], uses: Mapping[str, int]
) -> TracedNode | None:
    """Return the operation that makes an operand which nothing else reads."""
    argument = node.arguments.get(operand)
    name = argument.name if isinstance(argument, Tensor) else ""
    return made_by.get(name) if uses[name] == 1 else None


def _result(node: TracedNode) -> TracedTensor:
    found = node.results[0][1]
    assert found is not None, node.name
    return found


def _is_merged(view: TracedNode) -> bool:
    """Whether the rows of a view are a product of a symbolic dim and others."""
    shape = _result(view).shape
    return len(shape) == 2 and isinstance(shape[0], str) and "*" in shape[0]


def _is_plain(layer: TracedNode, made_by: Mapping[str, TracedNode]) -> bool:
    """Whether a layer is ``x @ w + b`` with a row of numbers: what is added has no rows of its own."""
    if layer.target == "aten.linear.default":
        return True
    bias = layer.arguments["self"]
    is_input = isinstance(bias, Tensor) and bias.name not in made_by
    return is_input and {"beta", "alpha"} <= layer.defaulted


def _viewed(view: TracedNode, rows: tuple[int | str, ...]) -> TracedNode:
    """Return a view with these rows."""
    found = _result(view)
    shape = (*rows, found.shape[-1])
    sizes: tuple[Argument, ...] = tuple(Size(item) if isinstance(item, str) else item for item in shape)
    results = ((view.results[0][0], TracedTensor(found.dtype, shape)),)
    return replace(view, arguments={**view.arguments, _VIEWS[view.target]: sizes}, results=results)


def _spread(layer: TracedNode, after: TracedNode, rows: tuple[int | str, ...]) -> tuple[TracedNode, ...]:
    """Return a layer over these rows, whose result is that of the view behind it."""
    wanted = _result(after)
    made = TracedTensor(_result(layer).dtype, (*rows, wanted.shape[-1]))
    results = ((after.results[0][0], made),)
    if layer.target == "aten.linear.default":
        return (replace(layer, results=results),)
    given, name = layer.arguments, layer.results[0][0]
    product = replace(
        layer, target="aten.matmul.default", arguments={"self": given["mat1"], "other": given["mat2"]},
        results=((name, made),), defaulted=frozenset[str](),
    )  # fmt: skip
    added: dict[str, Argument] = {"self": Tensor(name), "other": given["self"]}
    return product, replace(product, target="aten.add.Tensor", arguments=added, results=results)
