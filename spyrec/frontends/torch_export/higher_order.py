"""Operations of torch that take graphs: written out where that says the same, and named where it does not.

A graph has no branches.  Both sides of a ``torch.cond`` are computed and one is chosen, element by element: they change
nothing, since torch's decompositions have made what they change a result.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, GraphModule, Node

PREFIX = "torch.ops.higher_order."

_WRITE = "write it with operations on whole tensors, or as a Python loop, which torch.export writes out"
REASONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "cond": (
            "its predicate hangs on a symbolic dim, or its branches return tensors of different shapes",
            "export it without that dim, or return tensors of one shape from both branches",
        ),
        "while_loop": ("how often it runs depends on numbers", _WRITE),
        "scan": ("a graph has no loop that carries values", _WRITE),
        "associative_scan": ("a graph has no loop that carries values", "write it with cumsum, cumprod or cummax"),
        "map_impl": ("a graph has no loop over rows", "write it with torch.vmap or with operations on whole tensors"),
        "flex_attention": ("its scores are changed by a function", "use scaled_dot_product_attention with a mask"),
    }
)
"""Why an operation that takes graphs is none of a graph's, and what to do."""

OTHERWISE = (
    "it takes a function, which no operation of a graph does",
    "write that part of the model with PyTorch's functions",
)


def refusal_of(target: str) -> tuple[str, str] | None:
    """Return why an operation that takes graphs is refused, and what to do; ``None`` of other operations."""
    if not target.startswith(PREFIX):
        return None
    return REASONS.get(target.removeprefix(PREFIX).split(".")[0], OTHERWISE)


def without_wrong_assertions(program: ExportedProgram) -> ExportedProgram:
    """Return a program that torch takes apart although it has a region of ``torch.autocast``; it is not changed itself.

    Exported with ``strict=True``, such a program asserts dtypes that its values have outside of the region, and torch
    fails at them.  Nothing depends on what an assertion returns.
    """
    import torch

    if not any(_name(node) == "wrap_with_autocast" for node in _nodes(program.graph_module)):
        return program
    module = _without_assertions(program.graph_module)
    return torch.export.ExportedProgram(
        module,
        module.graph,
        program.graph_signature,
        program.state_dict,
        copy.deepcopy(program.range_constraints),
        copy.deepcopy(program.module_call_graph),
        program.example_inputs,
        program.constants,
        verifiers=program.verifiers,
    )


def _nodes(module: GraphModule) -> Iterator[Node]:
    """Yield the operations of a graph and of those that it holds."""
    import torch

    for held in module.modules():
        if isinstance(held, torch.fx.GraphModule):
            yield from held.graph.nodes


def _without_assertions(module: GraphModule) -> GraphModule:
    """Return a copy of a graph and of those that it holds."""
    import torch

    graph = copy.deepcopy(module.graph)
    for node in list(graph.nodes):
        if str(node.target) == "aten._assert_tensor_metadata.default":
            graph.erase_node(node)
    made = torch.fx.GraphModule(module, graph)
    made.meta.update(module.meta)
    for name, held in module.named_children():
        if isinstance(held, torch.fx.GraphModule):
            setattr(made, name, _without_assertions(held))
    return made


def write_out(program: ExportedProgram) -> ExportedProgram:
    """Write the graphs out that a decomposed program holds, in the program itself, and return it."""
    module = program.graph_module
    left = [node for node in module.graph.nodes if _is_written_out(node)]
    while left:
        node = left.pop(0)
        before = set(module.graph.nodes)
        with module.graph.inserting_before(node):
            results = _written_out(module, node)
        _take(node, results)
        left.extend(made for made in module.graph.nodes if made not in before and _is_written_out(made))
    for node in list(module.graph.nodes):
        if node.op == "get_attr" and not node.users:
            module.graph.erase_node(node)
    module.recompile()
    return program


def _name(node: Node) -> str:
    """Return the name of an operation that takes graphs, nothing of others."""
    from torch._ops import HigherOrderOperator

    return node.target.name() if isinstance(node.target, HigherOrderOperator) else ""


def _is_written_out(node: Node) -> bool:
    import torch

    if node.op != "call_function":
        return False
    if _name(node) != "cond":
        return False
    predicate = node.args[0]
    if isinstance(predicate, bool):
        return True
    is_tensor = isinstance(predicate, torch.fx.Node) and isinstance(predicate.meta.get("val"), torch.Tensor)
    results = [_results(cast("Node", branch)) for branch in node.args[1:3]]
    return is_tensor and all(map(_is_chosen, *results))


def _results(branch: Node) -> Sequence[object]:
    """Return what a graph returns."""
    return cast("Sequence[object]", next(iter(reversed(_held(branch).graph.nodes))).args[0])


def _held(branch: Node) -> GraphModule:
    return cast("GraphModule", branch.graph.owning_module.get_submodule(str(branch.target)))


def _is_chosen(first: object, second: object) -> bool:
    """Whether one of two results can be chosen by the numbers of a predicate."""
    import torch

    found = [getattr(item, "meta", {}).get("val") for item in (first, second)]
    if not all(isinstance(item, torch.Tensor) for item in found):
        return not any(isinstance(item, torch.fx.Node) for item in (first, second)) and first == second
    shapes = [tuple(str(extent) for extent in cast("torch.Tensor", item).shape) for item in found]
    return shapes[0] == shapes[1]


def _written_out(module: GraphModule, node: Node) -> list[object]:
    """Add what an operation computes before it, and return the results."""
    predicate, first, second, operands = cast("tuple[Node | bool, Node, Node, Sequence[Node]]", tuple(node.args))
    if isinstance(predicate, bool):
        return _copied(module, first if predicate else second, operands)
    chosen = _scalar(module.graph, predicate, node)
    pairs = zip(_copied(module, first, operands), _copied(module, second, operands), strict=True)
    return [_where(module.graph, chosen, pair, node) for pair in pairs]


def _copied(module: GraphModule, branch: Node, operands: Sequence[Node]) -> list[object]:
    """Add the operations of a graph on these operands, and return its results."""
    graph, held = module.graph, _held(branch)
    given = iter(operands)
    found: dict[Node, Node] = {}
    results: Sequence[object] = ()
    for node in held.graph.nodes:
        if node.op == "placeholder":
            found[node] = next(given)
        elif node.op == "output":
            results = cast("Sequence[object]", node.args[0])
        else:
            made = graph.node_copy(node, found.__getitem__)
            if node.op == "get_attr":
                made.target = f"{branch.target}_{node.target}".replace(".", "_")
                module.add_submodule(made.target, held.get_submodule(str(node.target)))
            found[node] = made
    return [found.get(cast("Node", item), item) for item in results]


def _scalar(graph: Graph, predicate: Node, place: Node) -> Node:
    """Return a predicate without dims, as it may have some of one element."""
    import torch

    value = cast("torch.Tensor", predicate.meta["val"])
    if value.ndim == 0:
        return predicate
    return _call(graph, torch.ops.aten.view.default, (predicate, []), value.reshape(()), place)


def _where(graph: Graph, chosen: Node, pair: tuple[object, object], place: Node) -> object:
    import torch

    first, second = pair
    if not isinstance(first, torch.fx.Node):
        return first
    return _call(graph, torch.ops.aten.where.self, (chosen, first, second), first.meta["val"], place)


def _call(graph: Graph, target: object, arguments: tuple[object, ...], value: object, place: Node) -> Node:
    """Add an operation that stands where another did."""
    made = graph.call_function(target, arguments)
    kept = {key: item for key, item in place.meta.items() if key in ("stack_trace", "nn_module_stack")}
    made.meta = {**kept, "val": value}
    return made


def _take(node: Node, results: Sequence[object]) -> None:
    """Let what read an operation's results read these."""
    import torch

    for user in list(node.users):
        assert user.target is operator.getitem, user
        value = results[cast("int", user.args[1])]
        if isinstance(value, torch.fx.Node):
            user.replace_all_uses_with(value)
        else:
            _fix(user, value)
        node.graph.erase_node(user)
    node.graph.erase_node(node)


def _fix(old: Node, value: object) -> None:
    """Let all that read a node have a number, or nothing, instead."""
    import torch

    for user in list(old.users):
        user.args = torch.fx.node.map_arg(user.args, lambda node: value if node is old else node)
        user.kwargs = torch.fx.node.map_arg(user.kwargs, lambda node: value if node is old else node)
