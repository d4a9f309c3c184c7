"""Numbers of a model that are made of extents which each run chooses: ``2 * S + 1``, and arrays of those.

ONNX computes shapes with its own operators.  What these make of symbolic extents is followed exactly: numbers are
polynomials in the dims, operators that only move numbers are computed on their places by the onnx package, and a
comparison has an answer where all extents that runs may have give the same one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.source_graph import HostArray
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.layout.symbolic_dim import SymbolicDim

if TYPE_CHECKING:
    from onnx import NodeProto

Monomial = tuple[str, ...]

_MOST_TERMS = 64
"""Terms of one number: shapes have a few, and each product multiplies them."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenNumber:
    """A polynomial in symbolic dims: a coefficient for each product of dims, ``()`` for the number alone.

    One whose dims have all vanished is an ``int`` instead, see :func:`settled_number`.
    """

    terms: Mapping[Monomial, int]
    dims: Mapping[str, SymbolicDim]

    def __add__(self, other: Number) -> Number:
        found = dict(self.terms)
        for monomial, factor in _terms(other).items():
            found[monomial] = found.get(monomial, 0) + factor
        return settled_number(found, self.dims)

    def __mul__(self, other: Number) -> Number:
        found: dict[Monomial, int] = {}
        for left, first in self.terms.items():
            for right, second in _terms(other).items():
                monomial = tuple(sorted((*left, *right)))
                found[monomial] = found.get(monomial, 0) + first * second
        return settled_number(found, self.dims)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Number:
        return self * -1

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __rsub__(self, other: Number) -> Number:
        return -self + other

    def __floordiv__(self, other: Number) -> Number:
        return _quotient(self, other)

    def __rfloordiv__(self, other: Number) -> Number:
        return _quotient(other, self)

    def at(self, extents: Mapping[str, int]) -> int:
        """Return the number at these extents."""
        return sum(factor * math.prod(extents[name] for name in names) for names, factor in self.terms.items())

    def range(self) -> tuple[int, int]:
        """Return bounds of the number over all extents that runs may have; the number may reach neither."""
        least = most = 0
        for names, factor in self.terms.items():
            small = factor * math.prod(self.dims[name].smallest for name in names)
            large = factor * math.prod(self.dims[name].largest for name in names)
            least, most = least + min(small, large), most + max(small, large)
        return least, most

    def written(self) -> str | None:
        """Return the number as an extent of a graph, ``S*2``; ``None`` for what is no product."""
        if len(self.terms) != 1:
            return None
        ((names, factor),) = self.terms.items()
        return None if factor < 1 else "*".join([*names, *([] if factor == 1 else [str(factor)])])

    def __str__(self) -> str:
        parts = ["*".join([*([str(factor)] if factor != 1 or not names else []), *names])
                 for names, factor in self.terms.items()]  # fmt: skip
        return " + ".join(parts)


Number = int | OpenNumber
"""A whole number of a shape."""


def _terms(number: Number) -> Mapping[Monomial, int]:
    return number.terms if isinstance(number, OpenNumber) else {(): number}


def settled_number(terms: Mapping[Monomial, int], dims: Mapping[str, SymbolicDim]) -> Number:
    """Return a number by its terms, an ``int`` where it is the same in every run."""
    found: dict[Monomial, int] = {}
    for names, factor in terms.items():
        fixed = [dims[name].largest for name in names if dims[name].smallest == dims[name].largest]
        free = tuple(name for name in names if dims[name].smallest != dims[name].largest)
        found[free] = found.get(free, 0) + factor * math.prod(fixed)
    found = {names: factor for names, factor in found.items() if factor}
    if len(found) > _MOST_TERMS:
        raise Unsupported(f"a size of it has {len(found)} terms")
    return found.get((), 0) if found.keys() <= {()} else OpenNumber(found, dims)


def product(numbers: Sequence[Number]) -> Number:
    """Return the product of extents."""
    found: Number = 1
    for number in numbers:
        found = found * number
    return found


def _quotient(left: Number, right: Number) -> Number:
    """Return a quotient, of numbers alone cut off towards zero; others have no remainder.

    Errors: :class:`Unsupported` where there may be one, or by zero.
    """
    if not isinstance(left, OpenNumber) and not isinstance(right, OpenNumber) and right:
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    divisor = _terms(right)
    if len(divisor) != 1:
        raise Unsupported(f"it divides by {right}, which each run chooses")
    ((names, factor),) = divisor.items()
    found: dict[Monomial, int] = {}
    for own, number in _terms(left).items():
        rest = list(own)
        for name in names:
            if name not in rest:
                raise _rounded(left, right)
            rest.remove(name)
        if factor == 0 or number % factor:
            raise _rounded(left, right)
        found[tuple(rest)] = number // factor
    dims = left.dims if isinstance(left, OpenNumber) else cast("OpenNumber", right).dims
    return settled_number(found, dims)


def _rounded(left: Number, right: Number) -> Unsupported:
    return Unsupported(f"it needs {left} divided by {right}, which may have a remainder", hint_of(left, right))


def _remainder(left: Number, right: Number) -> Number:
    """Return a remainder that is the same in every run.  Errors: :class:`Unsupported`."""
    if not isinstance(left, OpenNumber) and not isinstance(right, OpenNumber) and right:
        return left % right
    if not isinstance(right, OpenNumber) and right > 0 and isinstance(left, OpenNumber):
        units = {names: math.prod(left.dims[name].multiple_of for name in names) for names in left.terms}
        if all(not names or factor * units[names] % right == 0 for names, factor in left.terms.items()):
            return left.terms.get((), 0) % right
    raise Unsupported(f"it needs the remainder of {left} by {right}, which each run chooses", hint_of(left, right))


def hint_of(*numbers: object) -> str | None:
    """Return the remedy for numbers that a run chooses: their dims get one extent; ``None`` where none is open."""
    found = {name for item in numbers if isinstance(item, OpenNumber) for names in item.terms for name in names}
    return "bind it: " + " ".join(f"--dim {name}=N" for name in sorted(found)) if found else None


def _sign(left: Number, right: Number) -> int:
    """Return how two numbers compare in every run.  Errors: :class:`Unsupported` where runs differ."""
    difference = left - right if isinstance(left, OpenNumber) else -(right - left)
    least, most = difference.range() if isinstance(difference, OpenNumber) else (difference, difference)
    if least > 0 or most < 0 or least == most == 0:
        return (least > 0) - (most < 0)
    raise Unsupported(f"it compares {left} with {right}, and the answer is each run's own", hint_of(left, right))


def _is_equal(left: Number, right: Number) -> bool:
    return _sign(left, right) == 0


def _largest(left: Number, right: Number) -> Number:
    return left if _bound(left, right) >= 0 else right


def _smallest(left: Number, right: Number) -> Number:
    return right if _bound(left, right) >= 0 else left


def _bound(left: Number, right: Number) -> int:
    """Return a sign whose larger number is at least as large in every run.  Errors: :class:`Unsupported`."""
    difference = left - right if isinstance(left, OpenNumber) else -(right - left)
    least, most = difference.range() if isinstance(difference, OpenNumber) else (difference, difference)
    if least >= 0:
        return 1
    if most <= 0:
        return -1
    raise Unsupported(f"it needs the larger of {left} and {right}, and that is each run's own", hint_of(left, right))


# --- arrays of numbers ---

OpenArray = HostArray
"""An array of ``object``: numbers of the model of which at least one is open."""

_ARITHMETIC: Mapping[str, Callable[[Number, Number], Number | bool]] = MappingProxyType(
    {
        "Add": lambda left, right: left + right, "Sub": lambda left, right: left - right,
        "Mul": lambda left, right: left * right, "Div": _quotient, "Mod": _remainder,
        "Max": _largest, "Min": _smallest, "Equal": _is_equal,
        "Less": lambda left, right: _sign(left, right) < 0,
        "LessOrEqual": lambda left, right: _bound(left, right) < 0 or _is_equal(left, right),
        "Greater": lambda left, right: _sign(left, right) > 0,
        "GreaterOrEqual": lambda left, right: _bound(left, right) > 0 or _is_equal(left, right),
    }
)  # fmt: skip

_MOVING: Mapping[str, tuple[int, ...] | None] = MappingProxyType(
    {
        "Concat": None, "Expand": (0,), "Flatten": (0,), "Gather": (0,), "GatherElements": (0,), "GatherND": (0,),
        "Identity": (0,), "Reshape": (0,), "Slice": (0,), "Split": (0,), "Squeeze": (0,), "Tile": (0,),
        "Transpose": (0,), "Unsqueeze": (0,), "Where": (1, 2),
    }
)  # fmt: skip
"""Operators that move numbers and look at none: which operands they move, ``None`` for all."""

_WHOLE = frozenset({2, 3, 4, 5, 6, 7, 12, 13})
"""ONNX's element types of whole numbers."""


def computed(
    node: NodeProto, arrays: Sequence[HostArray], evaluate: Callable[[dict[str, HostArray]], list[HostArray] | None]
) -> list[HostArray] | None:
    """Return the results of a node of which an operand has open numbers; ``None`` for what is not followed.

    ``arrays``: all operands that are given, in order.  ``evaluate``: computes the node on plain operands by name.
    Errors: :class:`Unsupported` where runs differ in more than the numbers.
    """
    if any(array.dtype.kind not in "Oiub" for array in arrays):
        return None
    if node.op_type in _ARITHMETIC:
        found = arrays[0]
        for other in arrays[1:]:
            found = _elementwise(_ARITHMETIC[node.op_type], found, other)
        return [found]
    if node.op_type in _MOVING:
        return _moved(node, arrays, evaluate)
    attributes = {item.name: item.i for item in node.attribute}
    if node.op_type == "Neg":
        return [_elementwise(lambda left, right: right - left, arrays[0], np.asarray(0))]
    if node.op_type == "Cast" and attributes.get("to") in _WHOLE:
        return [arrays[0]]
    if node.op_type == "Cast" and attributes.get("to") == 9:
        return [_elementwise(lambda left, right: _sign(left, right) != 0, arrays[0], np.asarray(0))]
    if node.op_type == "ReduceProd" and len(arrays) == 1 and arrays[0].ndim == 1:
        total = product(cast("list[Number]", arrays[0].tolist()))
        return [_plain_if_known(np.full([1] if attributes.get("keepdims", 1) else [], total, object))]
    return None


def _elementwise(function: Callable[[Number, Number], object], left: HostArray, right: HostArray) -> HostArray:
    pairs = np.broadcast(left, right)
    found = np.empty(pairs.shape, object)
    found.reshape(-1)[:] = [function(*(_plain(item) for item in pair)) for pair in pairs]
    return _plain_if_known(found)


def _plain(item: object) -> Number:
    return item if isinstance(item, OpenNumber) else int(cast("int", item))


def _moved(
    node: NodeProto, arrays: Sequence[HostArray], evaluate: Callable[[dict[str, HostArray]], list[HostArray] | None]
) -> list[HostArray] | None:
    """Compute a node on the places of numbers, and put these in."""
    moved = _MOVING[node.op_type] or range(len(arrays))
    if any(array.dtype == object and index not in moved for index, array in enumerate(arrays)):
        return None
    numbers: list[object] = []
    given: dict[str, HostArray] = {}
    for index, (name, array) in enumerate(zip([name for name in node.input if name], arrays, strict=True)):
        if index in moved and name not in given:
            given[name] = np.arange(len(numbers), len(numbers) + array.size, dtype=np.int64).reshape(array.shape)
            numbers.extend(array.reshape(-1).tolist())
        elif index not in moved:
            given[name] = array
    results = evaluate(given)
    if results is None:
        return None
    table = np.empty(len(numbers), object)
    table[:] = numbers
    return [_plain_if_known(np.asarray(table[result.astype(np.int64)], object)) for result in results]


def _plain_if_known(array: HostArray) -> HostArray:
    """Return an array of ``int64`` or of truths where no number is open."""
    items = array.reshape(-1).tolist()
    if any(isinstance(item, OpenNumber) for item in items):
        return array
    is_truth = bool(items) and all(isinstance(item, bool | np.bool_) for item in items)
    return array.astype(np.bool_ if is_truth else np.int64)


# --- sizes in a model's text ---

_WORD = re.compile(r"[0-9]{1,18}|[A-Za-z_][A-Za-z0-9_.]{0,127}", re.ASCII)


def read_open_size(text: str, extents: Mapping[str, Number]) -> Number | None:
    """Return what a ``dim_param`` says by its dims: one of them, or sums of products, ``past + 2*S``.

    ``None`` for a dim that has no extent here, or another form.
    """
    if text in extents:
        return extents[text]
    total: Number = 0
    for part in text.split("+"):
        words = [word.strip() for word in part.split("*")]
        if not all(_WORD.fullmatch(word) and (word.isdigit() or word in extents) for word in words):
            return None
        total = total + product([int(word) if word.isdigit() else extents[word] for word in words])
    return total
