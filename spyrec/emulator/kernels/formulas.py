"""Formulas of device operations as instructions, and kernels made from one template for all operations of a kind.

A template takes the formula as text.  numba keeps compiled functions by their code and by the constants that they
close over, so that a changed formula is compiled anew; each function made from a template bears the operation's name,
because numba's index of one function is not safe against two processes that add different constants to it.
"""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from llvmlite import ir

from spyrec.dataclass import dataclass
from spyrec.device_ops.expression import Expression
from spyrec.emulator.kernels.dl16 import HALF, WORD, advanced, pointer, repeat
from spyrec.files.numba_names import literal_intrinsic, types

F = TypeVar("F", bound=Callable[..., object])

_INSTRUCTIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


@dataclass(frozen=True, slots=True)
class InstructionAlgebra:
    """Formulas as instructions on values of one type: a float, or a vector of them."""

    builder: Any
    kind: ir.Type

    def number(self, value: float) -> Any:  # noqa: ANN401
        """Return the number, in every lane."""
        lanes = isinstance(self.kind, ir.VectorType)
        return ir.Constant(self.kind, [value] * self.kind.count if lanes else value)

    def arithmetic(self, sign: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return the result of one instruction."""
        return getattr(self.builder, _INSTRUCTIONS[sign])(left, right)

    def compared(self, sign: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return one bit, or one per lane."""
        compare = self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered
        return compare(sign, left, right)

    def both(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return one bit, or one per lane."""
        return self.builder.and_(left, right)

    def either(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Return one bit, or one per lane."""
        return self.builder.or_(left, right)

    def chosen(self, condition: Any, then: Any, otherwise: Any) -> Any:  # noqa: ANN401
        """Return one value or the other, lane by lane."""
        return self.builder.select(condition, then, otherwise)


def text_of(formula: Expression) -> str:
    """Return a formula as the constant that templates take: its operands, then its text."""
    return f"{' '.join(formula.operands)}: {formula.text}"


def formula_of(text: str) -> Expression:
    """Return the formula that :func:`text_of` wrote."""
    operands, _, formula = text.partition(": ")
    return Expression(formula, tuple(operands.split()))


def computed(builder: Any, formula: Expression, values: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the formula's value as an instruction's; ``values`` are of one type."""
    return formula.evaluate(InstructionAlgebra(builder, values[0].type), tuple(values))


def named(function: F, operation: str) -> F:
    """Return a function made from a template under a name of its own, by which numba keeps it."""
    function.__qualname__ = f"{function.__name__}_{operation.replace(' ', '_')}"
    return function


_LANES = HALF
_SINGLES = ir.VectorType(ir.FloatType(), _LANES)
_DOUBLES = ir.VectorType(ir.DoubleType(), _LANES)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of float32 or float64 at addresses, vector after vector; whole vectors are read and written."""

    builder: Any
    kind: ir.VectorType

    def load(self, address: Any, index: Any) -> Any:  # noqa: ANN401
        return self.builder.load(self._place(address, index), align=self._bytes // _LANES)

    def store(self, value: Any, address: Any, index: Any) -> None:  # noqa: ANN401
        self.builder.store(value, self._place(address, index), align=self._bytes // _LANES)

    def _place(self, address: Any, index: Any) -> Any:  # noqa: ANN401
        return pointer(self.builder, advanced(self.builder, address, index, self._bytes), self.kind)

    @property
    def _bytes(self) -> int:
        return _LANES * (4 if self.kind is _SINGLES else 8)


@literal_intrinsic
def _compute_rows(_context: Any, formula: Any, is_double: Any, _first: Any, _step: Any, _out: Any, _count: Any):  # noqa: ANN202, ANN401
    found, wide = formula_of(formula.literal_value), bool(is_double.literal_value)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _, _, first, step, out, count = arguments
        rows = _Rows(builder, _SINGLES)
        starts = [
            builder.add(first, builder.mul(step, ir.Constant(WORD, place))) for place in range(len(found.operands))
        ]

        def body(index: Any) -> None:  # noqa: ANN401
            values = [rows.load(start, index) for start in starts]
            values = [builder.fpext(value, _DOUBLES) for value in values] if wide else values
            result = computed(builder, found, values)
            rows.store(builder.fptrunc(result, _SINGLES) if wide else result, out, index)

        whole = builder.add(count, ir.Constant(WORD, _LANES - 1))
        repeat(builder, builder.sdiv(whole, ir.Constant(WORD, _LANES)), body)
        return ir.Constant(WORD, 0)

    words = types.int64
    return words(formula, is_double, words, words, words, words), generate


compute_rows = cast("Callable[[str, bool, int, int, int, int], None]", _compute_rows)
"""``(formula, is_double, first, step, out, count)``: computes a row of float32 from rows ``step`` bytes apart.

Inside kernels only, the first two as constants.  Rows are read and written in whole vectors of 16.  ``is_double``: in
float64, rounded once.
"""


@literal_intrinsic
def _fold_values(_context: Any, formula: Any, _total: Any, _value: Any):  # noqa: ANN202, ANN401
    found = formula_of(formula.literal_value)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return computed(builder, found, arguments[1:])

    return types.float64(formula, types.float64, types.float64), generate


fold_values = cast("Callable[[str, float, float], float]", _fold_values)
"""``(formula, total, x)``: the formula's value in float64 (inside kernels only, the formula as a constant)."""
