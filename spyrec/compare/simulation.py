"""The arithmetic of one device op in float64: its constants as the device holds them, and the error of float32 sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from spyrec.compare.error_rule import ErrorRule, Step
from spyrec.compare.propagation import SINGLE_ROUNDOFF, term_count
from spyrec.compare.storage import DLFLOAT16, EXACT, SINGLE, Array, Floats, Storage
from spyrec.dataclass import dataclass
from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import Attributes, OpDef, OpKind
from spyrec.ir.ops.reduction import FoldAttributes
from spyrec.ir.shapes import normalize_dims

_DOUBLE = ArrayAlgebra(np.float64)

_PARTIAL_SUMS = 8
"""Stretches of a contraction whose partial sums are looked at."""

_ADDITION_ERROR = 2.0 * SINGLE_ROUNDOFF
"""Error of one addition relative to its partial sum, doubled: errors of equal terms do not cancel as random ones do."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """One op with the constants that the device holds: ``attributes`` rounded, the result multiplied by ``scale``.

    ``number``: which of the op's results it is.
    """

    definition: OpDef
    attributes: Attributes
    scale: float
    number: int = 0

    def run(self, operands: Sequence[Array | None]) -> Array:
        """Return the result before it is stored."""
        result = np.asarray(self.definition.reference(operands, self.attributes)[self.number])
        return result if self.scale == 1.0 else result.astype(np.float64) * self.scale

    def run_with_partial_sums(self, operands: Sequence[Array | None]) -> tuple[Array, Floats | None]:
        """Return the result, and the error that a float32 sum of its terms in some order typically makes.

        An addition rounds its partial sum, so n additions whose partial sums are s_k make about
        ``2**-24 sqrt(sum s_k**2)`` (doubled here).  ``None`` where the op sums nothing.
        """
        if self.definition.kind is OpKind.CONTRACTION:
            return self._contraction(operands)
        if not self._sums:
            return self.run(operands), None
        operand = operands[0]
        assert operand is not None
        result = self.run(operands)
        if self.definition.kind is OpKind.REDUCTION:
            return result, self._partial_sums(operand, result)
        if self.definition.kind is OpKind.WINDOW:
            magnitudes = [None if item is None else np.abs(item.astype(np.float64)) for item in operands]
            terms = term_count(Step(self.definition, self.attributes, tuple(operands), result))
            return result, _ADDITION_ERROR * np.sqrt(terms) * self.run(magnitudes)
        return result, _ADDITION_ERROR * np.sqrt(operand.shape[-1]) * self.run([np.abs(operand.astype(np.float64))])

    @property
    def _sums(self) -> bool:
        device = self.definition.device
        fold = None if device is None else device.record.fold
        return fold is not None and fold.join == "add"

    @property
    def _averages(self) -> bool:
        device = self.definition.device
        return device is not None and device.record.fold is not None and device.record.fold.is_average

    def _partial_sums(self, operand: Array, result: Array) -> Floats:
        assert isinstance(self.attributes, FoldAttributes)
        dims = normalize_dims(self.attributes.dim, operand.ndim)
        terms = np.moveaxis(operand, dims, range(-len(dims), 0)) if dims else operand[..., None]
        kept = terms.shape[: terms.ndim - max(len(dims), 1)]
        sums = np.cumsum(self._summed(terms.reshape(*kept, -1)), axis=-1)
        noise = _ADDITION_ERROR * np.sqrt(np.sum(np.square(sums), axis=-1))
        count = sums.shape[-1]
        return noise.reshape(result.shape) / (count if self._averages else 1)

    def _summed(self, elements: Array) -> Floats:
        """Return what each element adds to a sum that was zero: itself, or its square."""
        assert self.definition.device is not None
        fold = self.definition.device.record.fold
        assert fold is not None
        values = elements.astype(np.float64)
        return np.asarray(fold.accumulators[0].step.evaluate(_DOUBLE, (np.zeros(()), values)), np.float64)

    def _contraction(self, operands: Sequence[Array | None]) -> tuple[Array, Floats]:
        left, right = operands
        assert left is not None
        assert right is not None
        count = left.shape[-1]
        stretches = min(_PARTIAL_SUMS, count)
        edges = [count * number // stretches for number in range(stretches + 1)]
        total: Floats | None = None
        squares: Floats | None = None
        for start, stop in pairwise(edges):
            part = np.asarray(np.matmul(left[..., start:stop], right[..., start:stop, :]), dtype=np.float64)
            total = part if total is None else np.add(total, part, out=total)
            square = np.square(total)
            squares = square if squares is None else np.add(squares, square, out=squares)
        assert total is not None
        assert squares is not None
        return total, _ADDITION_ERROR * np.sqrt(squares * (count / stretches))


def constant_storage(dtype: DType) -> Storage:
    """Return how a SuperDSC holds a constant of an op whose result has this dtype: DLFloat16, or float32 beside it."""
    if not dtype.is_float:
        return EXACT
    return SINGLE if dtype is DType.FLOAT32 else DLFLOAT16


def _rounded(value: float, storage: Storage) -> float:
    return float(storage.held(np.array([value], dtype=np.float64))[0])


def simulation_of(definition: OpDef, attributes: Attributes, rule: ErrorRule, step: Step, dtype: DType) -> Simulation:
    """Return the op as the device computes it; ``dtype`` is that of the result."""
    storage = constant_storage(dtype)
    values = {name: getattr(attributes, name) for name in rule.constants}
    changes = {name: _rounded(value, storage) for name, value in values.items() if value is not None}
    held = dataclasses.replace(attributes, **changes) if changes else attributes  # type: ignore[type-var]
    return Simulation(definition, held, 1.0 if rule.scale is None else scale_of(step, 1.0 / term_count(step), dtype))


def scale_of(step: Step, constant: float, dtype: DType) -> float:
    """Return what an op's result is multiplied by where the device scales its terms by ``constant``, rounded."""
    return _rounded(constant, constant_storage(dtype)) * term_count(step)
