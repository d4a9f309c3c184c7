"""Root mean square norms that a program computes step by step, as the one op that they are.

``x * rsqrt(mean(x ** 2) + eps) * w`` is ``rms_norm(x, w)``: the same number in float64, but no square of an element is
ever a value of 16 bits, where squares of numbers above 255 do not fit.
"""

from __future__ import annotations

from dataclasses import replace

from spyrec.ir.graph import Graph, Node, Operand, Scalar
from spyrec.ir.numbers import decode
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.normalization import RmsNormAttributes
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.unary import PowAttributes
from spyrec.ir.shapes import normalize_dims


def with_rms_norms(graph: Graph) -> Graph:
    """Return the graph with each norm as one node under the name of its last step.

    Steps that nothing else reads are left without readers.  Powers and squares, ``rsqrt``, a division by ``sqrt`` and
    the power -1/2 are known, products in either order, and a weight of the shape of the normalized dims.
    """
    finder = _Finder(graph)
    return replace(graph, nodes=tuple(finder.rewritten(node) for node in graph.nodes))


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers = graph.producers()

    def rewritten(self, node: Node) -> Node:
        """Return the node, or the norm that it ends."""
        return self._norm(node) or self._weighted(node) or node

    def _weighted(self, node: Node) -> Node | None:
        """``norm * w``, where ``w`` has exactly the normalized dims."""
        for norm, weight in _both_orders(node) if node.op == "mul" else ():
            maker = self._maker(norm)
            found = None if maker is None else self._norm(maker)
            if found is None or not isinstance(weight, str) or not isinstance(norm, str):
                continue
            assert isinstance(found.attributes, RmsNormAttributes)
            held = self._graph.type_of(weight)
            if held.shape == found.attributes.normalized_shape and held.dtype is self._graph.type_of(norm).dtype:
                return replace(found, name=node.name, inputs=(found.inputs[0], weight), outputs=node.outputs)
        return None

    def _norm(self, node: Node) -> Node | None:
        """``x * rsqrt(mean(x ** 2) + eps)`` or ``x / sqrt(..)`` without a weight."""
        if node.op == "div":
            root = self._maker(node.inputs[1], "sqrt")
            if root is None or node.attributes != DivAttributes():
                return None
            return self._of_mean(node, node.inputs[0], root.inputs[0])
        for x, factor in _both_orders(node) if node.op == "mul" else ():
            total = self._below_the_root(factor)
            found = None if total is None else self._of_mean(node, x, total)
            if found is not None:
                return found
        return None

    def _below_the_root(self, factor: Operand) -> Operand:
        """Return what ``rsqrt``, ``1 / sqrt`` or the power -1/2 is taken of, ``None`` where it is none of them."""
        maker = self._maker(factor)
        if maker is None:
            return None
        if maker.op == "rsqrt":
            return maker.inputs[0]
        if self._exponent(maker) == -0.5:
            return maker.inputs[0]
        is_inverse = maker.op == "reciprocal" or (
            maker.op == "div" and maker.attributes == DivAttributes() and self._number(maker.inputs[0]) == 1
        )
        root = self._maker(maker.inputs[-1], "sqrt") if is_inverse else None
        return None if root is None else root.inputs[0]

    def _of_mean(self, node: Node, x: Operand, total: Operand) -> Node | None:
        """Return the norm of ``x`` where ``total`` is ``mean(x ** 2) + eps`` over its last dims."""
        added = self._maker(total, "add")
        if added is None or added.attributes != AlphaAttributes() or not isinstance(x, str):
            return None
        for mean_name, number in _both_orders(added):
            eps, mean = self._number(number), self._maker(mean_name, "mean")
            if mean is None or eps is None or eps < 0 or not isinstance(mean.attributes, ReductionAttributes):
                continue
            source = self._squared(mean.inputs[0])
            if source is None or not self._is_same(source, x) or not mean.attributes.keepdim:
                continue
            shape = self._graph.type_of(x).shape
            dims = sorted(normalize_dims(mean.attributes.dim, len(shape)))
            is_last = bool(dims) and dims == list(range(len(shape) - len(dims), len(shape)))
            if is_last and self._has_type_of(node, x) and self._has_type_of(mean, mean.inputs[0], only_dtype=True):
                attributes = RmsNormAttributes(tuple(shape[axis] for axis in dims), eps)
                return replace(node, op="rms_norm", inputs=(x,), attributes=attributes)
        return None

    def _squared(self, square: Operand) -> str | None:
        """Return what is squared."""
        maker = self._maker(square)
        if maker is None or not isinstance(maker.inputs[0], str):
            return None
        is_square = (
            maker.op == "square"
            or self._exponent(maker) == 2
            or (maker.op == "mul" and maker.inputs[0] == maker.inputs[1])
        )
        return maker.inputs[0] if is_square else None

    def _is_same(self, left: str, right: str) -> bool:
        """Whether two values hold the same numbers in one dtype: programs convert an operand once for each reader."""
        if left == right:
            return True
        makers = [self._maker(name, "to") for name in (left, right)]
        is_one_type = self._graph.type_of(left) == self._graph.type_of(right)
        return is_one_type and None not in makers and len({maker.inputs[0] for maker in makers if maker}) == 1

    def _has_type_of(self, node: Node, operand: Operand, only_dtype: bool = False) -> bool:
        if not isinstance(operand, str):
            return False
        made, held = self._graph.type_of(node.outputs[0]), self._graph.type_of(operand)
        return made.dtype is held.dtype if only_dtype else made == held

    def _maker(self, operand: Operand, op: str | None = None) -> Node | None:
        maker = self._makers.get(operand) if isinstance(operand, str) else None
        return maker if maker is not None and op in (None, maker.op) else None

    def _exponent(self, node: Node) -> float | None:
        """Return the number that a node raises its operand to, ``None`` where it is no power."""
        if not isinstance(node.attributes, PowAttributes):
            return None
        given = node.inputs[1] if len(node.inputs) > 1 else None
        return node.attributes.exponent if given is None else self._number(given)

    def _number(self, operand: Operand) -> float | None:
        """Return the number that an operand is, also as a constant of one element."""
        if isinstance(operand, Scalar):
            return float(operand.value)
        data = self._graph.constants.get(operand) if isinstance(operand, str) else None
        if not isinstance(operand, str) or data is None or data.array is None or data.array.ndim:
            return None
        return float(decode(data.array, self._graph.type_of(operand).dtype).item())


def _both_orders(node: Node) -> tuple[tuple[Operand, Operand], ...]:
    first, second = node.inputs[:2]
    return ((first, second), (second, first))
