"""What an operation computes on one element, as a formula: ``x if x > y or x != x else y``.

The formula is written once, in the record of the operation.  Whoever executes it brings an :class:`Algebra`: NumPy
arrays here, LLVM instructions on scalars and on vectors in the emulator.  The grammar is Python's for names, numbers,
``+ - * /``, unary minus, one comparison, ``and``, ``or``, ``not`` and ``a if c else b``; anything else is refused when
the record is made.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass

V = TypeVar("V")


class Algebra(Protocol[V]):
    """What a formula is made of, for values of one kind; truth values are of that kind as well."""

    def number(self, value: float) -> V:
        """Return a number that stands in the formula."""
        ...

    def arithmetic(self, sign: str, left: V, right: V) -> V:
        """Return ``left sign right``; ``sign`` is one of ``+ - * /``."""
        ...

    def compared(self, sign: str, left: V, right: V) -> V:
        """Return whether ``left sign right``; ``sign`` is one of ``< <= > >= == !=``.

        As in IEEE 754: with a NaN only ``!=`` holds.
        """
        ...

    def both(self, left: V, right: V) -> V:
        """Return whether both hold."""
        ...

    def either(self, left: V, right: V) -> V:
        """Return whether one of them holds."""
        ...

    def chosen(self, condition: V, then: V, otherwise: V) -> V:
        """Return one value or the other."""
        ...


_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


@dataclass(frozen=True)
class Expression:
    """A formula over the named operands, in their order.  A text outside the grammar is a ``ValueError``."""

    text: str
    operands: tuple[str, ...]

    def __post_init__(self) -> None:
        for node in ast.walk(self._root):
            self._check(node)

    def _check(self, node: ast.AST) -> None:
        is_known = isinstance(
            node,
            (
                *(ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Name, ast.Constant, ast.UnaryOp),
                *(*_ARITHMETIC, *_COMPARISONS, ast.And, ast.Or, ast.USub, ast.Load),
            ),
        )
        if not is_known or (isinstance(node, ast.Compare) and len(node.ops) != 1):
            raise ValueError(f"{type(node).__name__} in the formula {self.text!r}")
        if isinstance(node, ast.Name) and node.id not in self.operands:
            raise ValueError(f"{node.id!r} in the formula {self.text!r} is no operand of {self.operands}")

    @cached_property
    def _root(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body

    def evaluate(self, algebra: Algebra[V], values: tuple[V, ...]) -> V:
        """Return the formula's value on the operands' ``values``."""
        return _Walk(algebra, dict(zip(self.operands, values, strict=True))).value(self._root)

    def without_nan(self) -> Expression:
        """Return the formula for operands that are never NaN: ``x != x`` does not hold.

        ``x if x > y or x != x else y  -->  x if x > y else y``
        """
        return Expression(ast.unparse(_NeverNan().visit(ast.parse(self.text, mode="eval"))), self.operands)


class _Walk(Generic[V]):
    """One evaluation: the algebra, and the operands by name."""

    def __init__(self, algebra: Algebra[V], operands: Mapping[str, V]) -> None:
        self._algebra = algebra
        self._operands = operands

    def value(self, node: ast.expr) -> V:
        match node:
            case ast.Name(id=name):
                return self._operands[name]
            case ast.Constant(value=number):
                assert isinstance(number, (int, float))
                return self._algebra.number(float(number))
            case ast.UnaryOp(operand=operand):
                return self._algebra.arithmetic("*", self._algebra.number(-1.0), self.value(operand))
            case ast.BinOp(left=left, op=sign, right=right):
                return self._algebra.arithmetic(_SIGNS[type(sign)], self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                return self._algebra.compared(_SIGNS[type(sign)], self.value(left), self.value(right))
            case ast.BoolOp(op=sign, values=parts):
                join = self._algebra.both if isinstance(sign, ast.And) else self._algebra.either
                found = [self.value(part) for part in parts]
                total = found[0]
                for part in found[1:]:
                    total = join(total, part)
                return total
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._algebra.chosen(self.value(test), self.value(body), self.value(orelse))
            case _:
                raise AssertionError(ast.dump(node))


class _NeverNan(ast.NodeTransformer):
    """Drops ``x != x`` from alternatives."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Or):
            node.values = [part for part in node.values if not _asks_for_nan(part)]
        return node if len(node.values) > 1 else node.values[0]


def _asks_for_nan(node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=ast.Name(id=left), ops=[ast.NotEq()], comparators=[ast.Name(id=right)]):
            return left == right
        case _:
            return False


Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class ArrayAlgebra:
    """Formulas on NumPy arrays of one float type: each step is rounded to it."""

    dtype: npt.DTypeLike

    def number(self, value: float) -> Array:
        """Return a 0-d array."""
        return np.asarray(value, self.dtype)

    def arithmetic(self, sign: str, left: Array, right: Array) -> Array:
        """Return the result in the type of the algebra."""
        with np.errstate(all="ignore"):
            return np.asarray(_ARITHMETIC_OF_ARRAYS[sign](left, right), self.dtype)

    def compared(self, sign: str, left: Array, right: Array) -> Array:
        """Return a bool array."""
        return np.asarray(_COMPARISONS_OF_ARRAYS[sign](left, right))

    def both(self, left: Array, right: Array) -> Array:
        """Return a bool array."""
        return np.logical_and(left, right)

    def either(self, left: Array, right: Array) -> Array:
        """Return a bool array."""
        return np.logical_or(left, right)

    def chosen(self, condition: Array, then: Array, otherwise: Array) -> Array:
        """Return elements of one and of the other."""
        return np.where(condition, then, otherwise)


_ARITHMETIC_OF_ARRAYS: Mapping[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}

_COMPARISONS_OF_ARRAYS: Mapping[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
