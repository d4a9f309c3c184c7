"""Operations that fold a dim: sums and extrema, the layer norm statistics, matrix products.

Formats and names: torch-spyre's op table.  That cores may fold parts, and which numbers change nothing:
D010 and D105 of ``docs/decisions.md``, and the identities of torch-spyre's tiled reductions.
"""

from __future__ import annotations

import math

from spyrec.device_ops.expression import Expression
from spyrec.device_ops.record import (
    FP8,
    HALF,
    HALF_OR_SINGLE,
    Accumulator,
    DeviceOperation,
    ErrorBehaviour,
    ErrorKind,
    Family,
    Fold,
    Formats,
)


def _accumulator(name: str, identity: float, step: str, merge: str) -> Accumulator:
    return Accumulator(name, identity, Expression(step, ("total", "x")), Expression(merge, ("total", "x")))


SUM = _accumulator("sum", 0.0, "total + x", "total + x")
SUM_OF_SQUARES = _accumulator("sum of squares", 0.0, "total + x * x", "total + x")
PRODUCT = _accumulator("product", 1.0, "total * x", "total * x")
NOTHING = _accumulator("nothing", 0.0, "total", "total")
"""What a fold keeps that nobody asks for: zero, whatever the elements are."""

# NaN wins, as in NumPy.
MAXIMUM = _accumulator(
    "maximum", -math.inf, "x if x > total or x != x else total", "x if x > total or x != x else total"
)
MINIMUM = _accumulator(
    "minimum", math.inf, "x if x < total or x != x else total", "x if x < total or x != x else total"
)


def _reduction(name: str, summary: str, fold: Fold, error: ErrorBehaviour) -> DeviceOperation:
    return DeviceOperation(
        name=name,
        summary=summary,
        family=Family.REDUCTION,
        outer_name=f"{name}nonstick",
        inputs=1,
        optional_inputs=0,
        constants=() if fold.scale is None else (fold.scale,),
        accepts=HALF_OR_SINGLE,
        gives=HALF_OR_SINGLE,
        is_uniform=True,
        vector_passes=1,
        flops=1,
        error=error,
        unary=None,
        pointwise=None,
        fold=fold,
        padding_mask=None,
        window=None,
    )


def _sum(accumulators: tuple[Accumulator, ...], scale: str | None = None, *, least_tile: int = 1) -> Fold:
    return Fold(
        accumulators=accumulators,
        mask=0.0,
        join="add",
        combination="sum",
        is_split_exact=False,
        is_average=scale is not None,
        scale=scale,
        cores_combine=True,
        least_tile=least_tile,
        folds_sticks=True,
    )


def _extremum(accumulator: Accumulator, join: str, combination: str) -> Fold:
    return Fold(
        accumulators=(accumulator,),
        mask=accumulator.identity,
        join=join,
        combination=combination,
        is_split_exact=True,
        is_average=False,
        scale=None,
        cores_combine=True,
        least_tile=1,
        folds_sticks=True,
    )


_TOTAL = ErrorBehaviour(ErrorKind.TOTAL)
_PRODUCT = Fold(
    accumulators=(PRODUCT,),
    mask=1.0,
    join="mul",
    combination="prod",
    is_split_exact=False,
    is_average=False,
    scale=None,
    cores_combine=True,
    least_tile=1,
    folds_sticks=False,
)
_EXTREMUM = ErrorBehaviour(ErrorKind.EXTREMUM, rounds=False, has_kinks=True)

_REDUCTIONS = (
    _reduction("sum", "sum", _sum((SUM,)), _TOTAL),
    _reduction("mean", "arithmetic mean", _sum((SUM,), "scaling_factor"), _TOTAL),
    _reduction("max", "largest element", _extremum(MAXIMUM, "maximum", "max"), _EXTREMUM),
    _reduction("min", "smallest element", _extremum(MINIMUM, "minimum", "min"), _EXTREMUM),
    # torch-spyre folds other dims than that of the sticks only; so does its table of masks
    _reduction("prod", "product", _PRODUCT, ErrorBehaviour(ErrorKind.GROWING)),
)

_STATISTICS = DeviceOperation(
    name="exx2",
    summary="mean (0 under useZeroMean) and mean of squares, in lanes 0 and 1",
    family=Family.NORM_STATISTICS,
    outer_name=None,
    inputs=1,
    optional_inputs=0,
    constants=("exx2scale", "useZeroMean"),
    accepts=HALF_OR_SINGLE,
    gives=HALF_OR_SINGLE,
    is_uniform=True,
    vector_passes=3,
    flops=3,
    error=ErrorBehaviour(ErrorKind.STATISTICS),
    unary=None,
    pointwise=None,
    # it finds the dim that it folds by its sticks, which a tile of one element does not have
    fold=_sum((SUM, SUM_OF_SQUARES), "exx2scale", least_tile=2),
    padding_mask=None,
    window=None,
)

_SCALE = DeviceOperation(
    name="layernormscale",
    summary="1 / sqrt(lane 1 - lane 0 squared + eps) of each stick, in all lanes",
    family=Family.NORM_SCALE,
    outer_name=None,
    inputs=1,
    optional_inputs=0,
    constants=("eps",),
    accepts=HALF_OR_SINGLE,
    gives=HALF_OR_SINGLE,
    is_uniform=True,
    vector_passes=1,
    flops=1,
    error=ErrorBehaviour(ErrorKind.STATISTICS_SCALE, ulps=3.0),
    unary=None,
    pointwise=None,
    fold=None,
    padding_mask=None,
    window=None,
)


def _product(name: str, summary: str, accepts: Formats, *, is_uniform: bool = True) -> DeviceOperation:
    return DeviceOperation(
        name=name,
        summary=summary,
        family=Family.MATMUL,
        outer_name=None,
        inputs=2,
        optional_inputs=0,
        constants=(),
        accepts=accepts,
        gives=HALF,
        is_uniform=is_uniform,
        vector_passes=1,
        flops=2,
        error=ErrorBehaviour(ErrorKind.CONTRACTION),
        unary=None,
        pointwise=None,
        fold=_sum((SUM,)),
        padding_mask=None,
        window=None,
    )


_PRODUCTS = (
    _product("matmul", "matrix product", HALF),
    _product("batchmatmul", "matrix products of a batch", HALF),
    # torch-spyre's gate refuses FP8 here, though the operation is for nothing else
    _product("batchmatmulfp8", "matrix products of a batch of 8-bit floats", FP8, is_uniform=False),
)

OPERATIONS = (*_REDUCTIONS, _STATISTICS, _SCALE, *_PRODUCTS)
