"""The few steps of which decompositions are made, as methods: float32 in between, one rounding at the end."""

from __future__ import annotations

from collections.abc import Callable

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Operand
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.passes.builder import NodeBuilder

Term = Operand | float
"""A value, or a number that a constant is made of."""

Rewrite = Callable[[NodeBuilder], str]
"""Emits what a node becomes, and returns its result."""


class Steps:
    """Emits steps of one dtype; a number stands for a constant of it."""

    def __init__(self, builder: NodeBuilder, dtype: DType) -> None:
        self.builder = builder
        self.dtype = dtype

    def taken(self, operand: Operand) -> str:
        """Return an operand of the node in the dtype of the steps."""
        assert isinstance(operand, str)
        if self.builder.type_of(operand).dtype is self.dtype:
            return operand
        number = self.builder.number_of(operand)
        if number is not None:  # it is not rounded to the operand's dtype first
            return self.builder.number(number, self.dtype)
        return self.builder.emit("to", operand, attributes=ToAttributes(self.dtype))

    def given(self, value: str, dtype: DType) -> str:
        """Return a result in the dtype of the node: its one rounding to 16 bits."""
        if dtype is self.dtype:
            return value
        return self.builder.emit("to", value, attributes=ToAttributes(dtype))

    def _operand(self, term: Term) -> Operand:
        if isinstance(term, int | float):
            return self.builder.number(float(term), self.dtype)
        return term

    def of(self, op: str, *terms: Term) -> str:
        """Emit an op without attributes."""
        return self.builder.emit(op, *map(self._operand, terms))

    def add(self, left: Term, right: Term) -> str:
        """Emit a sum."""
        return self.builder.emit("add", self._operand(left), self._operand(right), attributes=AlphaAttributes())

    def sub(self, left: Term, right: Term) -> str:
        """Emit a difference."""
        return self.builder.emit("sub", self._operand(left), self._operand(right), attributes=AlphaAttributes())

    def mul(self, left: Term, right: Term) -> str:
        """Emit a product; times 1 is nothing."""
        if right == 1.0 and isinstance(left, str):
            return left
        return self.of("mul", left, right)

    def div(self, left: Term, right: Term) -> str:
        """Emit a quotient."""
        return self.builder.emit("div", self._operand(left), self._operand(right), attributes=DivAttributes())

    def limited(self, value: str, low: float, high: float) -> str:
        """Emit the value limited to a range."""
        return self.of("minimum", self.of("maximum", value, low), high)
