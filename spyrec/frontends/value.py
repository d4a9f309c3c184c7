"""Values of a graph under construction: what ops take and return, with the operators of Python."""

from __future__ import annotations

from typing import Protocol, TypeGuard

import numpy as np

from spyrec.diagnostics import refuse
from spyrec.frontends.call_site import call_site
from spyrec.ir import graph as ir

Number = float | np.generic
"""A Python or NumPy number (``float`` stands for int and bool too)."""


def is_number(value: object) -> TypeGuard[Number]:
    """Whether an object is a number as operands take it."""
    return isinstance(value, int | float | np.number | np.bool_)


class ValueOwner(Protocol):
    """What a value asks of its builder."""

    def op(self, op: str, /, *operands: object, **arguments: object) -> Value:
        """Add a node of one result."""
        ...

    def described(self, name: str) -> ir.Value:
        """Return what the value of that name is."""
        ...


class Value:
    """A tensor of a graph under construction.

    Operators add nodes: ``+ - * / @ **``, negation, ``abs`` and comparisons are the ops of PyTorch's tensors.  Values
    hold no numbers: asking one for its truth is refused (SPY0145).  Two values are one key of a dict only if they are
    the same object.
    """

    __slots__ = ("_name", "_owner")
    __array_ufunc__ = None  # NumPy leaves operators with a value to the value, instead of going element by element
    __hash__ = object.__hash__

    def __init__(self, owner: ValueOwner, name: str) -> None:
        self._owner = owner
        self._name = name

    @property
    def owner(self) -> ValueOwner:
        """The builder that the value belongs to."""
        return self._owner

    @property
    def name(self) -> str:
        """The value's name in the graph."""
        return self._name

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dim, outermost first; symbolic dims count with their largest extent."""
        return self._owner.described(self._name).type.shape

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """PyTorch's name of the dtype: ``"float16"``."""
        return self._owner.described(self._name).type.dtype.value

    @property
    def dims(self) -> tuple[str | None, ...]:
        """Names of the dims, ``None`` where an axis has none."""
        return self._owner.described(self._name).dims

    def __repr__(self) -> str:
        axes = (str(extent) if name is None else f"{name}={extent}" for name, extent in zip(self.dims, self.shape))
        return f"<{self._name}: {self.dtype}[{', '.join(axes)}]>"

    def __bool__(self) -> bool:
        hint = "compare inside the graph: where, logical_and, logical_not"
        message = f'"{self._name}" is asked for its truth, and has no numbers before the graph runs'
        raise refuse("SPY0145", message, call_site(), hint=hint)

    def __neg__(self) -> Value:
        return self._owner.op("neg", self)

    def __abs__(self) -> Value:
        return self._owner.op("abs", self)

    def __add__(self, other: Value | Number) -> Value:
        return self._owner.op("add", self, other)

    def __radd__(self, other: Number) -> Value:
        return self._owner.op("add", other, self)

    def __sub__(self, other: Value | Number) -> Value:
        return self._owner.op("sub", self, other)

    def __rsub__(self, other: Number) -> Value:
        return self._owner.op("sub", other, self)

    def __mul__(self, other: Value | Number) -> Value:
        return self._owner.op("mul", self, other)

    def __rmul__(self, other: Number) -> Value:
        return self._owner.op("mul", other, self)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._owner.op("div", self, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._owner.op("div", other, self)

    def __matmul__(self, other: Value) -> Value:
        return self._owner.op("matmul", self, other)

    def __rmatmul__(self, other: Value) -> Value:
        return self._owner.op("matmul", other, self)

    def __pow__(self, exponent: Number) -> Value:
        return self._owner.op("pow", self, exponent)

    def __lt__(self, other: Value | Number) -> Value:
        return self._owner.op("lt", self, other)

    def __le__(self, other: Value | Number) -> Value:
        return self._owner.op("le", self, other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._owner.op("gt", self, other)

    def __ge__(self, other: Value | Number) -> Value:
        return self._owner.op("ge", self, other)

    def __eq__(self, other: object) -> Value:  # pyright: ignore[reportIncompatibleMethodOverride] -- as in PyTorch
        return self._owner.op("eq", self, other) if isinstance(other, Value) or is_number(other) else NotImplemented

    def __ne__(self, other: object) -> Value:  # pyright: ignore[reportIncompatibleMethodOverride] -- as in PyTorch
        return self._owner.op("ne", self, other) if isinstance(other, Value) or is_number(other) else NotImplemented
