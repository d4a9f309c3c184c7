"""One operation by itself: what its inputs explain of its result, element by element.

The inputs are the numbers that stand in device memory, so they have no error of their own; what is left is the
arithmetic inside the operation and one rounding (semantics of the number formats).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.compare.bounds import rule_of, store_error
from spyrec.compare.error_rule import ErrorRule, Step
from spyrec.compare.simulation import scale_of, simulation_of
from spyrec.compare.storage import Array, Floats, Storage, absolute_difference
from spyrec.compare.verdict import FAILING_RATIO
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import Attributes, OpDef, OpKind

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a buffer should hold: the unrounded numbers, and how far the stored ones may lie from them."""

    want: Floats
    bound: Floats


@dataclass(frozen=True, slots=True)
class OpVerdict:
    """A buffer held against its expectation.

    ``ratio`` is the largest error over its bound, at ``index``; where no element is in error, ``index`` is the first.
    ``failed_elements`` lie above twice their bound.
    """

    index: tuple[int, ...]
    got: float
    want: float
    bound: float
    ratio: float
    failed_elements: int
    element_count: int

    @property
    def ok(self) -> bool:
        """Whether every element is explained."""
        return self.failed_elements == 0

    @property
    def error(self) -> float:
        """The error of the worst element."""
        return abs(self.got - self.want)


def judge(got: Floats, known: Expectation, *, merges_nan: bool) -> OpVerdict:
    """Compare; ``merges_nan``: NaN and the infinities are one class, as in DLFloat16."""
    with np.errstate(all="ignore"):
        error = absolute_difference(known.want, got)
        lost = ~np.isfinite(known.want)
        error[lost] = np.where(_is_same(known.want, got, merges_nan=merges_nan), 0.0, np.inf)[lost]
        ratio = np.where(error == 0.0, 0.0, np.where(np.isinf(known.bound), 0.0, error / known.bound))
        ratio[np.isnan(ratio)] = np.inf
    worst = int(np.argmax(ratio))
    index = tuple(int(position) for position in np.unravel_index(worst, ratio.shape))
    return OpVerdict(
        index=index,
        got=float(got[index]),
        want=float(known.want[index]),
        bound=float(known.bound[index]),
        ratio=float(ratio[index]),
        failed_elements=int(np.count_nonzero(ratio > FAILING_RATIO)),
        element_count=ratio.size,
    )


def _is_same(want: Floats, got: Floats, *, merges_nan: bool) -> Mask:
    nan_agrees = ~np.isfinite(got) if merges_nan else np.isnan(got)
    return np.where(np.isnan(want), nan_agrees, got == want)


def unchanged(values: Array) -> Expectation:
    """Return the expectation of elements that were only moved."""
    want = values.astype(np.float64, copy=False)
    return Expectation(want, np.zeros(want.shape))


def stored(values: Array, storage: Storage) -> Expectation:
    """Return the expectation of host numbers copied into device memory: one rounding."""
    want = values.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        return Expectation(want, storage.rounding_error(np.abs(want)))


@dataclass(frozen=True, slots=True)
class CheckedOperation:
    """What a device op computes: the attributes of its node, its constants, how operands and result are stored.

    ``constants`` are those of the SuperDSC: one tile of a mean is scaled by the terms of all tiles.
    """

    definition: OpDef
    attributes: Attributes
    constants: Mapping[str, float]
    operands: tuple[Storage | None, ...]
    result: Storage
    dtype: DType


def computed(operation: CheckedOperation, operands: Sequence[Array | None]) -> Expectation:
    """Return the expectation of an operation's result at ``operands``, its constants as the device's.

    The arithmetic bound is the worst case over any order of a sum.
    """
    definition, attributes = operation.definition, operation.attributes
    rule = rule_of(definition, operation.operands, operation.result)
    with np.errstate(all="ignore"):
        exact = np.asarray(definition.reference(operands, attributes)[0])
        step = Step(definition, attributes, tuple(operands), exact)
        simulation = simulation_of(definition, attributes, rule, step, operation.dtype)
        if rule.scale is not None:
            scale = scale_of(step, operation.constants[rule.scale], operation.dtype)
            simulation = replace(simulation, scale=scale)
        want = np.asarray(simulation.run(operands)).astype(np.float64)
        spread = _arithmetic(step, rule) * simulation.scale
        if rule.rounds:
            spread = spread + store_error(operation.result, rule, np.abs(want) + spread)
        bound = np.where(np.isnan(spread), np.inf, spread)
        if definition.kind is OpKind.CONTRACTION:
            # zero rows of the second operand silence what the first holds there, infinities too
            want, bound = _with_silenced(want, bound)
    return Expectation(want, np.asarray(bound))


def _arithmetic(step: Step, rule: ErrorRule) -> Floats:
    if rule.arithmetic is None:
        return np.zeros(step.result.shape)
    exact = [None if value is None else np.broadcast_to(np.float64(0.0), value.shape) for value in step.values]
    return rule.arithmetic(step, exact)


def _with_silenced(want: Floats, bound: Floats) -> tuple[Floats, Floats]:
    """Accept anything where infinity meets zero: the device leaves such products out in the last stick of K."""
    undefined = np.isnan(want)
    if not undefined.any():
        return want, bound
    return np.where(undefined, 0.0, want), np.where(undefined, np.inf, bound)
