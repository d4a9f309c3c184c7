"""What there is to say of one operation of the device.

A record is the only place that knows an operation by name.  Code generation, rules, kernels, masks, tiling, cost,
sanitizers and error bounds read it; a table keyed by an operation's name anywhere else is a mistake.  Every field of a
record is stated, so that one that lacks something fails when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops.expression import Expression
from spyrec.hardware.dtypes import DeviceFormat

Doubles = npt.NDArray[np.float64]
Constants = Mapping[str, float]
UnaryFunction = Callable[[Doubles, Constants], Doubles]
"""A one-input operation: a NumPy function of float64 values and the operation's decoded constants."""

Formats = frozenset[DeviceFormat]

HALF: Formats = frozenset({DeviceFormat.SEN169_FP16})
"""The device's 16-bit float alone."""

SINGLE: Formats = frozenset({DeviceFormat.IEEE_FP32})
"""IEEE float32 alone."""

HALF_OR_SINGLE: Formats = HALF | SINGLE
"""Formats of an operation on the device's IEEE_FP32-capable list."""

FP8: Formats = frozenset({DeviceFormat.SEN143_FP8, DeviceFormat.SEN152_FP8})
"""The 8-bit floats."""

ANY_FORMAT: Formats = frozenset(item for item in DeviceFormat if item.elements_per_stick is not None)
"""Formats of an operation that moves elements without looking at them."""


class Family(Enum):
    """How an operation is executed."""

    UNARY = "unary"
    POINTWISE = "pointwise"
    IDENTITY = "identity"
    SHUFFLE = "shuffle"
    RESTICKIFY = "restickify"
    CAST = "cast"
    PACK = "pack"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    NORM_STATISTICS = "exx2"
    NORM_SCALE = "layernormscale"
    TOP = "topk"
    WINDOW = "window"


class WindowForm(Enum):
    """How files describe an operation that slides a window along the axes ``i`` and ``j`` of its first input."""

    POOL = "pool"
    """The window holds nothing: its elements are summed."""
    CONVOLUTION = "convolution"
    """Every output channel has a window of weights over all input channels."""
    DEPTHWISE = "depthwise"
    """Every channel has a window of weights of its own."""


class ErrorKind(Enum):
    """How errors of the operands pass through an operation; the rules are ``spyrec.compare.propagation``'s."""

    MOVED = "elements move and keep their errors"
    SHAPED = "a function of one operand, monotone between its turning points"
    SUM = "sum or difference"
    PRODUCT = "product"
    QUOTIENT = "quotient"
    PAIR = "monotone in both operands"
    COMPARISON = "either answer is right where operands may change order"
    CHOICE = "one of two operands, by a condition"
    TOTAL = "a sum of many terms"
    GROWING = "grows with the magnitude of each of many elements"
    """Products of many factors, sums of squares."""
    EXTREMUM = "the largest or smallest of many"
    CONTRACTION = "a sum of products"
    STATISTICS = "mean and mean of squares"
    STATISTICS_SCALE = "the reciprocal deviation from them"
    NORMALISATION = "an element normalised by them"


@dataclass(frozen=True, slots=True)
class ErrorBehaviour:
    """What error bounds need to know.

    ``rounds``: whether the result needs rounding, the operands being storable.  ``ulps``: roundoffs of float32 that
    computing it may cost.  ``turning_points``: extrema and poles of a function of one operand.  ``has_kinks``: it is
    piecewise linear.  ``is_continuous``: without it an error of the operands can make a jump.
    """

    kind: ErrorKind
    rounds: bool = True
    ulps: float = 1.0
    turning_points: tuple[float, ...] = ()
    has_kinks: bool = False
    is_continuous: bool = True


@dataclass(frozen=True, slots=True)
class Pointwise:
    """The formula of an operation on up to five operands, computed in float32 and rounded once.

    ``is_double``: computed in float64, because its steps cancel.  ``absent``: what an optional operand that is not
    there holds, by name.  ``by_row``: where the last operand is one element per row and all are DLFloat16, the
    formula of ``r`` that replaces it and the one that then is computed; both give the same patterns.
    """

    formula: Expression
    is_double: bool = False
    absent: Constants | None = None
    by_row: tuple[Expression, Expression] | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One running value of a fold, in float64.

    ``identity``: what it begins with.  ``step``: the formula of ``total`` and the next element ``x``.  ``merge``: the
    formula of two partial results, ``total`` and ``x``, the second one's elements behind the first one's.
    """

    name: str
    identity: float
    step: Expression
    merge: Expression


@dataclass(frozen=True, slots=True)
class Fold:
    """How an operation folds a dim.

    ``accumulators``: one per result lane.  ``mask``: the number that changes nothing, which stands in for padding.
    ``join``: the pointwise operation that joins the results of two parts of the dim.  ``combination``: what a tile
    contract calls that (``sum``, ``prod``, ``max``, ``min``).  ``is_split_exact``: joining does not round.
    ``is_average``: the result is scaled by the extent of the dim, so that parts of other extents do not join.
    ``scale``: the constant by which results are multiplied.  ``cores_combine``: cores may fold parts, which the device
    then joins.  ``least_tile``: elements of the dim that one execution needs.  ``folds_sticks``: whether the device
    folds the dim that lies in the sticks, too.
    """

    accumulators: tuple[Accumulator, ...]
    mask: float
    join: str
    combination: str
    is_split_exact: bool
    is_average: bool
    scale: str | None
    cores_combine: bool
    least_tile: int
    folds_sticks: bool

    def __post_init__(self) -> None:
        assert self.accumulators, "a fold has an identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOperation:
    """One operation of the device, by its ``opFuncName``.

    ``outer_name``: what it is called where it folds another dim than that of the sticks.  ``optional_inputs`` of the
    ``inputs``, the last ones, may be absent.  ``constants``: names that it needs, in the file's order.  ``accepts``,
    ``gives``: formats of inputs and output; ``is_uniform``: all operands of one execution share theirs.
    ``vector_passes``: results that the vector unit makes per point.  ``flops``: operations counted per point.
    ``unary``, ``pointwise``, ``fold``: what it computes, by family.  ``padding_mask``: what stands in for padding,
    where a writer masks an operation that folds nothing.  ``window``: of operations that slide one, which are few.
    """

    name: str
    summary: str
    family: Family
    outer_name: str | None
    inputs: int
    optional_inputs: int
    constants: tuple[str, ...]
    accepts: Formats
    gives: Formats
    is_uniform: bool
    vector_passes: int
    flops: int
    error: ErrorBehaviour
    unary: UnaryFunction | None
    pointwise: Pointwise | None
    fold: Fold | None
    padding_mask: float | None
    window: WindowForm | None

    def __post_init__(self) -> None:
        folds = self.family in {Family.REDUCTION, Family.MATMUL, Family.NORM_STATISTICS, Family.WINDOW}
        assert folds == (self.fold is not None), f"{self.name}: a fold has an identity, and nothing else has one"
        assert (self.family is Family.UNARY) == (self.unary is not None), f"{self.name}: a function of one input"
        assert (self.family is Family.POINTWISE) == (self.pointwise is not None), f"{self.name}: a formula"
        assert (self.family is Family.WINDOW) == (self.window is not None), f"{self.name}: a window"
        assert 0 <= self.optional_inputs < self.inputs <= _MOST_INPUTS, self.name
        if self.pointwise is not None:
            assert len(self.pointwise.formula.operands) == self.inputs, self.name

    @property
    def unit(self) -> str:
        """The unit that executes it, as files call it: the PT array (``pt``) or the vector units (``sfp``)."""
        return "pt" if self.family is Family.MATMUL or self.window is WindowForm.CONVOLUTION else "sfp"

    @property
    def least_inputs(self) -> int:
        """Inputs that are always there."""
        return self.inputs - self.optional_inputs


_MOST_INPUTS = 5
"""Inputs of the operation that has most (``layernormnorm``): blocks of the pointwise kernel hold as many."""
