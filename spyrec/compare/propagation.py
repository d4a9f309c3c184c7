"""How errors pass through ops: a bound of the result's error from the bounds of the operands' errors, per element.

Every rule is a worst case in interval form: it holds for any operands within their errors, near kinks and poles too
(an infinite bound says that anything is possible).  The rules use the ``reference`` of the op's declaration, so they
know shapes, dims and broadcasting only through it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from spyrec.compare.error_rule import ErrorRule, Errors, IsAtKink, Spread, Step, present
from spyrec.compare.kinks import is_extremum_undecided, is_kink_in_reach, is_pair_undecided
from spyrec.compare.storage import Array, Floats, absolute_difference
from spyrec.device_ops.record import ErrorKind
from spyrec.ir.opdef import DeviceOp, OpDef, OpError, OpKind, Roundings
from spyrec.ir.ops.pools import AvgPoolAttributes
from spyrec.ir.windows import per_dim

SINGLE_ROUNDOFF = 2.0**-24
"""Unit roundoff of the float32 arithmetic that every op may compute in (semantics of the number formats)."""


def moved(step: Step, errors: Errors) -> Floats:
    """Elements move and keep their errors."""
    return step.apply(*errors)


def _of_one(*critical_points: float) -> Spread:
    """One operand; between the critical points (extrema and poles) the function is monotone."""

    def spread(step: Step, errors: Errors) -> Floats:
        value, error = step.value(0), present(errors, 0)
        rest = step.values[1:]
        low, high = value - error, value + error
        worst = absolute_difference(step.apply(low, *rest), step.result)
        for point in (high, *(np.clip(critical, low, high) for critical in critical_points)):
            np.maximum(worst, absolute_difference(step.apply(point, *rest), step.result), out=worst)
        return worst

    return spread


def _of_sum(step: Step, errors: Errors) -> Floats:
    del step
    return present(errors, 0) + present(errors, 1)


def _of_product(step: Step, errors: Errors) -> Floats:
    left, right = np.abs(step.value(0)), np.abs(step.value(1))
    return left * present(errors, 1) + present(errors, 0) * (right + present(errors, 1))


def _of_quotient(step: Step, errors: Errors) -> Floats:
    divisor, error = np.abs(step.value(1)), present(errors, 1)
    quotient = np.abs(step.result.astype(np.float64))
    worst = (present(errors, 0) + np.where(error > 0, quotient * error, 0.0)) / (divisor - error)
    return np.where(divisor > error, worst, np.where((error == 0) & (present(errors, 0) == 0), 0.0, np.inf))


def _of_monotone_pair(step: Step, errors: Errors) -> Floats:
    low = step.apply(step.value(0) - present(errors, 0), step.value(1) - present(errors, 1))
    high = step.apply(step.value(0) + present(errors, 0), step.value(1) + present(errors, 1))
    return np.maximum(absolute_difference(low, step.result), absolute_difference(high, step.result))


def _of_comparison(step: Step, errors: Errors) -> Floats:
    """Either answer is right where the operands may be equal or change order."""
    error = present(errors, 0) + present(errors, 1)
    distance = absolute_difference(step.value(0), step.value(1))
    return np.where((error == 0) | (distance > error), 0.0, 1.0)


def _of_choice(step: Step, errors: Errors) -> Floats:
    condition = step.values[0]
    assert condition is not None
    chosen = step.apply(condition, present(errors, 1), present(errors, 2))
    undecided = present(errors, 0) != 0
    if not undecided.any():
        return chosen
    other = step.apply(np.logical_not(condition), present(errors, 1), present(errors, 2))
    apart = absolute_difference(step.apply(np.logical_not(condition), *step.values[1:]), step.result)
    return np.where(undecided, np.maximum(chosen, apart + other), chosen)


def _of_extremum(step: Step, errors: Errors) -> Floats:
    low, high = step.value(0) - present(errors, 0), step.value(0) + present(errors, 0)
    return np.maximum(
        absolute_difference(step.apply(low), step.result), absolute_difference(step.apply(high), step.result)
    )


def _of_bilinear(step: Step, errors: Errors) -> Floats:
    left, right = np.abs(step.value(0)), np.abs(step.value(1))
    return step.apply(left, present(errors, 1)) + step.apply(present(errors, 0), right + present(errors, 1))


def _of_growing(step: Step, errors: Errors) -> Floats:
    """The result moves most where every element is larger in magnitude by its error."""
    magnitude = np.abs(step.value(0))
    return step.apply(magnitude + present(errors, 0)) - step.apply(magnitude)


def gamma(count: int) -> float:
    """Return the relative error of a float32 sum of ``count`` products: ``n u / (1 - n u)``."""
    product = count * SINGLE_ROUNDOFF
    return product / (1.0 - product) if product < 1.0 else np.inf


def _accumulation(step: Step, errors: Errors) -> Floats:
    """A fold of n elements in any order: gamma(n) times the fold of the magnitudes, for sums, products, squares."""
    magnitudes = np.abs(step.value(0)) + present(errors, 0)
    return gamma(term_count(step)) * step.apply(magnitudes)


def term_count(step: Step) -> int:
    """Return how many terms one element of a reduction, a contraction, a window or exx2 sums."""
    shape = step.value(0).shape
    if step.definition.kind is OpKind.REDUCTION:
        return step.value(0).size // max(step.result.size, 1)
    if step.definition.kind is OpKind.WINDOW:
        return math.prod(_window_shape(step))
    return shape[-1]


def _window_shape(step: Step) -> tuple[int, ...]:
    """Return the elements of a window along each dim: of a convolution those of one channel's weights."""
    if isinstance(step.attributes, AvgPoolAttributes):
        return per_dim(step.attributes.kernel_size, 2, "kernel_size")
    return step.value(1).shape[1:]


def _product_accumulation(step: Step, errors: Errors) -> Floats:
    left = np.abs(step.value(0)) + present(errors, 0)
    right = np.abs(step.value(1)) + present(errors, 1)
    return gamma(term_count(step)) * step.apply(left, right)


def _of_exx2(step: Step, errors: Errors) -> Floats:
    """Lane 0 is the mean, lane 1 the mean of squares: the error of a square is (|x| + e)^2 - x^2."""
    magnitude, error = np.abs(step.value(0)), present(errors, 0)
    means, squares = step.apply(error), step.apply(magnitude + error) - step.apply(magnitude)
    return np.stack((means[..., 0], np.maximum(squares[..., 1], 0.0)), axis=-1)


def _variance_errors(step: Step, mean_error: Floats, square_error: Floats) -> Floats:
    """Return the error of the scale where the two lanes have these errors: the mean square moves, eps stays."""
    statistics = step.value(0)
    mean = np.abs(statistics[..., 0])
    variance_error = square_error + mean_error * (2.0 * mean + mean_error)
    worst = np.zeros(step.result.shape)
    for sign in (-1.0, 1.0):
        moved_statistics = np.stack((statistics[..., 0], statistics[..., 1] + sign * variance_error), axis=-1)
        np.maximum(worst, absolute_difference(step.apply(moved_statistics), step.result), out=worst)
    return worst


def _of_layernormscale(step: Step, errors: Errors) -> Floats:
    error = present(errors, 0)
    return _variance_errors(step, error[..., 0], error[..., 1])


def _layernormscale_arithmetic(step: Step, errors: Errors) -> Floats:
    """The mean square and the squared mean cancel in float32."""
    magnitude = np.abs(step.value(0)) + present(errors, 0)
    cancelled = 3.0 * SINGLE_ROUNDOFF * (magnitude[..., 1] + np.square(magnitude[..., 0]))
    return _variance_errors(step, np.zeros_like(cancelled), cancelled)


def _layernormnorm_parts(step: Step, errors: Errors) -> tuple[list[Floats], list[Floats]]:
    """Return magnitudes and errors of x, mean, scale, weight and bias; an absent weight is 1, an absent bias 0."""
    magnitudes = [np.abs(step.value(0)), np.abs(step.value(1))[..., :1], np.abs(step.value(2))]
    parts = [present(errors, 0), present(errors, 1)[..., :1], present(errors, 2)]
    for index, default in ((3, 1.0), (4, 0.0)):
        is_absent = index >= len(step.values) or step.values[index] is None
        magnitudes.append(np.array(default) if is_absent else np.abs(step.value(index)))
        parts.append(np.array(0.0) if is_absent else present(errors, index))
    return magnitudes, parts


def _of_layernormnorm(step: Step, errors: Errors) -> Floats:
    magnitudes, (x, mean, scale, weight, bias) = _layernormnorm_parts(step, errors)
    centred = np.abs(step.value(0) - step.value(1)[..., :1])
    moved_product = (centred + x + mean) * (magnitudes[2] + scale) * (magnitudes[3] + weight)
    return moved_product - centred * magnitudes[2] * magnitudes[3] + bias


def _layernormnorm_arithmetic(step: Step, errors: Errors) -> Floats:
    magnitudes, _ = _layernormnorm_parts(step, errors)
    x, mean, scale, weight, bias = magnitudes
    return 4.0 * SINGLE_ROUNDOFF * ((x + mean) * scale * weight + bias)


_MOVED = ErrorRule(moved, rounds=False)

_SPREADS: Mapping[ErrorKind, Spread] = {
    ErrorKind.MOVED: moved,
    ErrorKind.SUM: _of_sum,
    ErrorKind.PRODUCT: _of_product,
    ErrorKind.QUOTIENT: _of_quotient,
    ErrorKind.PAIR: _of_monotone_pair,
    ErrorKind.COMPARISON: _of_comparison,
    ErrorKind.CHOICE: _of_choice,
    ErrorKind.TOTAL: moved,
    ErrorKind.EXTREMUM: _of_extremum,
    ErrorKind.GROWING: _of_growing,
    ErrorKind.CONTRACTION: _of_bilinear,
    ErrorKind.STATISTICS: _of_exx2,
    ErrorKind.STATISTICS_SCALE: _of_layernormscale,
    ErrorKind.NORMALISATION: _of_layernormnorm,
}
"""What the operands' errors cause; a function of one operand has a rule of its own turning points."""

_ARITHMETIC: Mapping[ErrorKind, Spread] = {
    ErrorKind.TOTAL: _accumulation,
    ErrorKind.CONTRACTION: _product_accumulation,
    ErrorKind.GROWING: _accumulation,
    ErrorKind.STATISTICS: _accumulation,
    ErrorKind.STATISTICS_SCALE: _layernormscale_arithmetic,
    ErrorKind.NORMALISATION: _layernormnorm_arithmetic,
}
"""What arithmetic inside the operation adds before the one rounding, where it is more than some roundoffs."""

_KINKS: Mapping[ErrorKind, IsAtKink] = {
    ErrorKind.SHAPED: is_kink_in_reach,
    ErrorKind.PAIR: is_pair_undecided,
    ErrorKind.EXTREMUM: is_extremum_undecided,
}


def error_rule(definition: OpDef) -> ErrorRule | None:
    """Return the rule of an op that the device has, ``None`` for one that has none (casts and creations are apart)."""
    if definition.kind in {OpKind.VIEW, OpKind.MOVEMENT}:
        return _MOVED
    return None if definition.device is None else _rule_of(definition.device)


@cache
def _rule_of(device: DeviceOp) -> ErrorRule:
    record = device.record
    behaviour, fold = record.error, record.fold
    kind = behaviour.kind
    return ErrorRule(
        spread=_of_one(*behaviour.turning_points) if kind is ErrorKind.SHAPED else _SPREADS[kind],
        arithmetic=_ARITHMETIC.get(kind),
        rounds=behaviour.rounds,
        is_continuous=behaviour.is_continuous,
        is_at_kink=_KINKS[kind] if behaviour.has_kinks else None,
        ulps=behaviour.ulps,
        constants=device.rounded,
        scale=fold.scale if fold is not None and kind in {ErrorKind.TOTAL, ErrorKind.GROWING} else None,
    )


_CORNERS = 6
"""Patterns of signs that the errors of a host operation's operands are tried with, beside all up and all down."""

_CORNER_SEED = 20261123


def _of_corners(step: Step, errors: Errors) -> Floats:
    """Any function that the host computes: the largest change where the operands are off by their errors.

    It is exact where the function is monotone in each operand, and an estimate elsewhere, which is why it is doubled
    there where operands go both ways.  Where a pole lies within the error there is no bound.
    """
    worst = np.zeros(step.result.shape)
    if not any(error is not None and error.any() for error in errors):
        return worst
    generator = np.random.Generator(np.random.PCG64(_CORNER_SEED))
    for corner in range(_CORNERS + 2):
        moved_values: list[Array | None] = []
        for value, error in zip(step.values, errors, strict=True):
            if value is None or error is None or not error.any():
                moved_values.append(value)
                continue
            signs = (1.0, -1.0)[corner] if corner < 2 else generator.choice((-1.0, 1.0), size=value.shape)
            moved_values.append(_moved_by(value, error * signs))
        try:
            changed = step.result_at(*moved_values)
        except OpError:  # an index that is off by its error names no element: the device may refuse
            return np.full(step.result.shape, np.inf)
        np.maximum(worst, absolute_difference(changed, step.result), out=worst)
    if step.definition.poles is not None:
        value = step.value(0).astype(np.float64, copy=False)
        worst[np.abs(step.definition.poles(value) - value) <= present(errors, 0)] = np.inf
    return 2.0 * worst if step.result.dtype.kind == "f" else worst


def _moved_by(value: Array, error: Floats) -> Array:
    """Return an operand that is off by an error: a bool is the other one, an integer another integer.

    NaN that is off is an infinity: the device's 16 bits have one pattern for both.
    """
    if value.dtype == np.bool_:
        return np.where(error != 0, np.logical_not(value), value)
    off = value.astype(np.float64) + error
    off = np.where(np.isnan(value) & np.isinf(error), error, off) if value.dtype.kind == "f" else off
    return np.rint(off).astype(np.int64) if value.dtype.kind == "i" else off


_HOST_FLOAT = ErrorRule(_of_corners)
_HOST_EXACT = ErrorRule(_of_corners, rounds=False, is_continuous=False)
_HOST_CHOICE = ErrorRule(_of_corners, is_continuous=False)


def host_rule(stated: Roundings | None, is_exact: bool) -> ErrorRule:
    """Return the rule of an operation that the host computes; ``is_exact``: its results are integers or bools.

    One that states 0 roundings chooses a whole number, and may choose the next one where its operands are off.
    """
    chooses = stated is not None and stated.is_exact
    return _HOST_EXACT if is_exact else _HOST_CHOICE if chooses else _HOST_FLOAT


def cast_rule(from_roundoff: float, to_roundoff: float) -> ErrorRule:
    """Return the rule of a dtype change between storages of these unit roundoffs (0: bools and integers)."""
    if to_roundoff == 0.0:
        return _CUT if from_roundoff > 0.0 else _MOVED
    return _ROUNDED if from_roundoff < to_roundoff and from_roundoff > 0.0 else _MOVED


def _of_cut(step: Step, errors: Errors) -> Floats:
    """A float becomes a bool (is it zero?) or an integer: exact, unless the error reaches another answer."""
    value, error = step.value(0), present(errors, 0)
    worst = np.zeros(step.result.shape)
    for point in (value - error, value + error, np.clip(0.0, value - error, value + error)):
        np.maximum(worst, absolute_difference(step.result_at(point), step.result), out=worst)
    return worst


_CUT = ErrorRule(_of_cut, rounds=False, is_continuous=False)
_ROUNDED = ErrorRule(moved)
