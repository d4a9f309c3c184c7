"""Where errors reach over a kink: on its other side the function does something that the exact value does not show."""

from __future__ import annotations

import numpy as np

from spyrec.compare.error_rule import Errors, Mask, Step, present
from spyrec.compare.storage import absolute_difference
from spyrec.ir.opdef import OpDef
from spyrec.ir.ops.reduction import FoldAttributes
from spyrec.ir.shapes import normalize_dims


def is_pair_undecided(step: Step, errors: Errors) -> Mask:
    """Whether the larger of two operands may be the other one than it is exactly."""
    reach = present(errors, 0) + present(errors, 1)
    return np.asarray((reach > 0) & (absolute_difference(step.value(0), step.value(1)) <= reach))


def is_kink_in_reach(step: Step, errors: Errors) -> Mask:
    """Slopes are 0 and 1: away from a kink both sides of the interval move by all of the error, or not at all."""
    value, error = step.value(0), present(errors, 0)
    below = absolute_difference(step.apply(value - error), step.result)
    above = absolute_difference(step.apply(value + error), step.result)
    nearly = error * (1.0 - 1e-9)
    return np.asarray(~(((below >= nearly) & (above >= nearly)) | ((below == 0) & (above == 0))))


def is_extremum_undecided(step: Step, errors: Errors) -> Mask:
    """Whether the extremum may be another element than the exact one: two of them reach the surest one."""
    value, error = step.value(0), present(errors, 0)
    assert isinstance(step.attributes, FoldAttributes)
    axes = normalize_dims(step.attributes.dim, value.ndim)
    if _is_smallest(step.definition):
        value = -value
    surest = np.max(value - error, axis=axes, keepdims=True, initial=-np.inf)
    candidates = np.count_nonzero(value + error >= surest, axis=axes)
    moves = np.any(error > 0, axis=axes)
    return np.asarray((candidates > 1) & moves).reshape(step.result.shape)


def _is_smallest(definition: OpDef) -> bool:
    assert definition.device is not None
    fold = definition.device.record.fold
    assert fold is not None
    return fold.combination == "min"
