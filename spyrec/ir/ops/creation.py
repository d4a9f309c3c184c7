"""Tensors made of attributes alone, or in the shape of another: ranges, identity matrices, zeros and ones.

Numbers are PyTorch's; without a dtype they are float32, whole ranges int64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Number, Size, Sizes
from spyrec.ir.numbers import HOST_DTYPES, fits, misfit
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    InferRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import array, require_held, tensor
from spyrec.ir.ops.movement import FullAttributes, full_type, full_values
from spyrec.ir.samples import boolean, f16, i64
from spyrec.ir.shapes import broadcast_axes
from spyrec.ir.types import TensorType

MOST_MADE = 2**26
"""Elements of a tensor whose numbers differ: they are made when the graph is compiled, and lie in its bundle."""

_LIKE = (OperandSpec("input"),)


@dataclass(frozen=True, slots=True)
class _Creation:
    """What distinguishes one such op from the next."""

    infer: InferRule
    reference: Reference
    operands: tuple[OperandSpec, ...] = ()
    result_sizes: str | None = None


def _define(name: str, summary: str, attributes: type, rules: _Creation, samples: tuple[Sample, ...]) -> None:
    def axes(operands: OperandTypes, values: object) -> AxisSources:
        del values
        return broadcast_axes(operands, tensor(operands).shape)

    def own_axes(operands: OperandTypes, values: FullAttributes) -> AxisSources:
        return ((),) * rules.infer(operands, values)[0].rank

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.CREATION,
            operands=rules.operands,
            attributes=attributes,
            infer=rules.infer,
            reference=rules.reference,
            axes=axes if name.endswith("_like") else rule(attributes, own_axes),
            formats=ANY_FORMAT,
            result_sizes=rules.result_sizes,
            samples=samples,
        )
    )


# --- arange, linspace, eye --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArangeAttributes:
    """Numbers from ``start`` to below ``end``, ``step`` apart; one number alone is the end, as in Python's range.

    Without ``dtype`` whole numbers are int64, others float32.  As in PyTorch fractions are cut off all three for an
    integer dtype; how many elements of int32 and narrower there are follows from the fractions all the same.
    """

    start: Number = 0
    end: Number | None = None
    step: Number = 1
    dtype: DType | None = None

    @property
    def bounds(self) -> tuple[Number, Number]:
        """First number, and what all are below."""
        return (0, self.start) if self.end is None else (self.start, self.end)

    @property
    def is_whole(self) -> bool:
        """Whether all numbers were written without a point."""
        return not any(isinstance(number, float) for number in (*self.bounds, self.step))

    @property
    def result_dtype(self) -> DType:
        """The dtype of the numbers."""
        return self.dtype or (DType.INT64 if self.is_whole else DType.FLOAT32)

    @property
    def numbers(self) -> tuple[Number, Number]:
        """Where the numbers begin, and their step."""
        start, step = self.bounds[0], self.step
        is_cut = not self.result_dtype.is_float and self.result_dtype is not DType.BOOL
        return (int(start), int(step)) if is_cut else (start, step)

    @property
    def count(self) -> int:
        """How many numbers there are.  The steps lead from the first to the end."""
        (start, end), step = self.bounds, self.step
        if self.result_dtype is DType.INT64:
            (start, step), end = self.numbers, int(end)
        is_whole = self.is_whole or self.result_dtype is DType.INT64
        return int(-((start - end) // step)) if is_whole else math.ceil((end - start) / step)


def _refuse_many(count: int, attribute: str) -> None:
    if count > MOST_MADE:
        fact = f"{count} elements with numbers of their own, the most are {MOST_MADE}"
        raise OpError("SPY0209", fact, attribute=attribute)


def _require_computable(dtype: DType) -> DType:
    if dtype not in HOST_DTYPES:
        raise OpError("SPY0202", f"nothing makes numbers of {dtype.value}", attribute="dtype")
    return dtype


def _infer_arange(_: OperandTypes, attributes: ArangeAttributes) -> tuple[TensorType, ...]:
    start, end = attributes.bounds
    if attributes.end is None and attributes.start == 0:
        raise OpError("SPY0209", "arange has no end", hint='give "end" in attrs', attribute="end")
    if not all(math.isfinite(number) for number in (start, end, attributes.step)):
        raise OpError("SPY0209", f"a range from {start} to {end} has no count", attribute="end")
    dtype = _require_computable(attributes.result_dtype)
    first, step = attributes.numbers
    if attributes.step == 0 or (end - start) * attributes.step < 0 or (dtype is DType.INT64 and step == 0):
        raise OpError("SPY0209", f"steps of {attributes.step} do not lead from {start} to {end}", attribute="step")
    _refuse_many(attributes.count, "end")
    for number in (first, first + (attributes.count - 1) * step if attributes.count else first):
        if not dtype.is_float and dtype is not DType.BOOL and not fits(number, dtype):
            raise OpError("SPY0215", f"{number} is no {dtype.value}: {misfit(number, dtype)}", attribute="end")
    return (TensorType((attributes.count,), dtype),)


def _arange(operands: Sequence[Array | None], attributes: ArangeAttributes) -> tuple[Array, ...]:
    del operands
    dtype, (start, step) = attributes.result_dtype, attributes.numbers
    is_whole = isinstance(start, int) and isinstance(step, int)
    numbers = start + step * np.arange(attributes.count, dtype=np.int64 if is_whole else np.float64)
    if not dtype.is_float:
        return (numbers.astype(np.bool_ if dtype is DType.BOOL else np.int64),)
    with np.errstate(over="ignore"):  # a range may pass the numbers of its dtype: it goes on with infinities
        ends = numbers.astype(np.float32)
    return (np.where(np.isinf(ends), ends, numbers.astype(np.float64)),)


@dataclass(frozen=True, slots=True)
class LinspaceAttributes:
    """``steps`` numbers of one distance from ``start`` to ``end``, both included."""

    start: float
    end: float
    steps: int
    dtype: DType = DType.FLOAT32


def _infer_linspace(_: OperandTypes, attributes: LinspaceAttributes) -> tuple[TensorType, ...]:
    if attributes.steps < 0:
        raise OpError("SPY0209", f"steps {attributes.steps} is below 0", attribute="steps")
    _refuse_many(attributes.steps, "steps")
    if not _require_computable(attributes.dtype).is_float:
        raise OpError("SPY0202", f"distances are fractions, and {attributes.dtype.value} has none", attribute="dtype")
    for name, number in (("start", attributes.start), ("end", attributes.end)):
        if not math.isfinite(number):
            fact = f"numbers from {attributes.start} to {attributes.end} have no distance"
            raise OpError("SPY0209", fact, attribute=name)
        require_held(name, number, attributes.dtype)
    return (TensorType((attributes.steps,), attributes.dtype),)


def _linspace(_: Sequence[Array | None], attributes: LinspaceAttributes) -> tuple[Array, ...]:
    return (np.linspace(attributes.start, attributes.end, attributes.steps, dtype=np.float64),)


@dataclass(frozen=True, slots=True)
class EyeAttributes:
    """``n`` rows and ``m`` columns, as many as rows unless given."""

    n: Size
    m: Size | None = None
    dtype: DType = DType.FLOAT32


def _infer_eye(_: OperandTypes, attributes: EyeAttributes) -> tuple[TensorType, ...]:
    rows, columns = int(attributes.n), int(attributes.n if attributes.m is None else attributes.m)
    if min(rows, columns) < 0:
        raise OpError("SPY0208", f"{rows} rows and {columns} columns: an extent is below 0", attribute="n")
    _refuse_many(rows * columns, "n")
    return (TensorType((rows, columns), _require_computable(attributes.dtype)),)


def _eye(_: Sequence[Array | None], attributes: EyeAttributes) -> tuple[Array, ...]:
    dtype = attributes.dtype
    carrier = np.float64 if dtype.is_float else np.bool_ if dtype is DType.BOOL else np.int64
    return (np.eye(int(attributes.n), None if attributes.m is None else int(attributes.m), dtype=carrier),)


_define(
    "arange",
    "numbers from start to below end, step apart",
    ArangeAttributes,
    _Creation(rule(ArangeAttributes, _infer_arange), rule(ArangeAttributes, _arange)),
    (
        ((), ArangeAttributes(7)),
        ((), ArangeAttributes(1, 8, 3, DType.FLOAT16)),
        ((), ArangeAttributes(0.5, -2.0, -0.5)),
        ((), ArangeAttributes(3, 3)),
    ),
)
_define(
    "linspace",
    "numbers of one distance from start to end",
    LinspaceAttributes,
    _Creation(rule(LinspaceAttributes, _infer_linspace), rule(LinspaceAttributes, _linspace)),
    (((), LinspaceAttributes(-1.0, 1.0, 5)), ((), LinspaceAttributes(0.0, 3.0, 1, DType.FLOAT16))),
)
_define(
    "eye",
    "ones where row and column are equal, zeros elsewhere",
    EyeAttributes,
    _Creation(rule(EyeAttributes, _infer_eye), rule(EyeAttributes, _eye)),
    (((), EyeAttributes(3)), ((), EyeAttributes(2, 4, DType.INT64)), ((), EyeAttributes(3, dtype=DType.BOOL))),
)

# --- one number for all -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeAttributes:
    """Shape and dtype."""

    size: Sizes
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class ScalarAttributes:
    """The number and its dtype."""

    s: Number
    dtype: DType = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class LikeAttributes:
    """``dtype``: that of the tensor unless given."""

    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class FullLikeAttributes:
    """The number; ``dtype``: that of the tensor unless given."""

    fill_value: Number
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class NewAttributes:
    """Shape; ``dtype``: that of the tensor unless given."""

    size: Sizes
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class NewFullAttributes:
    """Shape and number; ``dtype``: that of the tensor unless given."""

    size: Sizes
    fill_value: Number
    dtype: DType | None = None


Uniform = SizeAttributes | ScalarAttributes | LikeAttributes | FullLikeAttributes | NewAttributes | NewFullAttributes
_Shaped = Callable[[OperandTypes, Uniform], FullAttributes]


def as_full(name: str, operands: OperandTypes, attributes: Uniform) -> FullAttributes:
    """Return what ``full`` makes the same with; what is ``empty`` holds zeros, so that runs agree."""
    number: Number = 1 if "ones" in name else 0
    match attributes:
        case SizeAttributes():
            return FullAttributes(attributes.size, number, attributes.dtype)
        case ScalarAttributes():
            return FullAttributes((), attributes.s, attributes.dtype)
        case LikeAttributes() | FullLikeAttributes():
            like = tensor(operands)
            number = attributes.fill_value if isinstance(attributes, FullLikeAttributes) else number
            return FullAttributes(like.shape, number, attributes.dtype or like.dtype)
        case NewAttributes() | NewFullAttributes():
            number = attributes.fill_value if isinstance(attributes, NewFullAttributes) else number
            return FullAttributes(attributes.size, number, attributes.dtype or tensor(operands).dtype)


def _uniform(name: str, summary: str, attributes: type, samples: tuple[Sample, ...]) -> None:
    def infer(operands: OperandTypes, values: Uniform) -> tuple[TensorType, ...]:
        number = "s" if isinstance(values, ScalarAttributes) else "fill_value"
        return (full_type(as_full(name, operands, values), number),)

    def reference(operands: Sequence[Array | None], values: Uniform) -> tuple[Array, ...]:
        kinds = {"b": DType.BOOL, "f": DType.FLOAT32}
        arrays = [array(operands, index) for index in range(len(operands))]
        likes = [TensorType(item.shape, kinds.get(item.dtype.kind, DType.INT64)) for item in arrays]
        return (full_values(as_full(name, likes, values)),)

    is_like = attributes in (LikeAttributes, FullLikeAttributes, NewAttributes, NewFullAttributes)
    has_size = attributes in (SizeAttributes, NewAttributes, NewFullAttributes)
    rules = _Creation(
        rule(attributes, infer),
        rule(attributes, reference),
        _LIKE if is_like else (),
        "size" if has_size else None,
    )
    _define(name, summary, attributes, rules, samples)


UNIFORM = (
    *("zeros", "ones", "empty", "scalar_tensor"),
    *("zeros_like", "ones_like", "empty_like", "full_like"),
    *("new_zeros", "new_ones", "new_empty", "new_full"),
)
"""Ops that ``full`` can say, given the shape and dtype of their operand."""

for _fill, _what in (("zeros", "zeros"), ("ones", "ones"), ("empty", "a tensor for which nothing says more: zeros")):
    _uniform(
        _fill,
        _what,
        SizeAttributes,
        (((), SizeAttributes((3, 5))), ((), SizeAttributes((), DType.BOOL)), ((), SizeAttributes((0, 2), DType.INT64))),
    )
    _uniform(
        f"{_fill}_like",
        f"{_what}, in the shape of input",
        LikeAttributes,
        (
            ((f16(3, 5),), LikeAttributes()),
            ((i64(3),), LikeAttributes(DType.FLOAT16)),
            ((f16(0, 2),), LikeAttributes()),
        ),
    )
    _uniform(
        f"new_{_fill}",
        f"{_what}, in the dtype of input",
        NewAttributes,
        (((f16(3, 5),), NewAttributes((2,))), ((boolean(),), NewAttributes((2, 2), DType.FLOAT32))),
    )
_uniform(
    "scalar_tensor",
    "one number",
    ScalarAttributes,
    (((), ScalarAttributes(0.5)), ((), ScalarAttributes(3, DType.INT64))),
)
_uniform(
    "full_like",
    "one number, in the shape of input",
    FullLikeAttributes,
    (((f16(3, 5),), FullLikeAttributes(0.5)), ((i64(3),), FullLikeAttributes(7))),
)
_uniform(
    "new_full",
    "one number, in the dtype of input",
    NewFullAttributes,
    (((f16(3, 5),), NewFullAttributes((2, 3), -1.5)), ((i64(),), NewFullAttributes((), 7, DType.FLOAT32))),
)
