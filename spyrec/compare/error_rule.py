"""One op under error analysis: its exact operands, and the rule that says how errors pass through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.compare.storage import Array, Floats
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import as_computed
from spyrec.ir.opdef import Attributes, OpDef


def as_wrapped(values: Array, dtype: DType) -> Array:
    """Return a result as values of ``dtype`` are computed with: integers of 32 bits and fewer wrap around."""
    is_narrow = not dtype.is_float and dtype not in (DType.BOOL, DType.INT64)
    return as_computed(values, dtype) if is_narrow else values


@dataclass(frozen=True, slots=True)
class Step:
    """One node at its exact operands ``values``, in the op's order; ``result`` is what the reference makes of them.

    ``number``: which of the node's results it is; ``dtype``: of that result, in which whole numbers wrap around;
    without one, none does.
    """

    definition: OpDef
    attributes: Attributes
    values: tuple[Array | None, ...]
    result: Array
    number: int = 0
    dtype: DType | None = None

    def apply(self, *operands: Array | None) -> Floats:
        """Return the reference at other operands, as float64."""
        with np.errstate(all="ignore"):
            return np.asarray(self.definition.reference(operands, self.attributes)[self.number], dtype=np.float64)

    def result_at(self, *operands: Array | None) -> Floats:
        """Return the result at other operands, as float64: what :meth:`apply` gives, wrapped around in its dtype."""
        with np.errstate(all="ignore"):
            found = np.asarray(self.definition.reference(operands, self.attributes)[self.number])
            wrapped = found if self.dtype is None else as_wrapped(found, self.dtype)
            return wrapped.astype(np.float64, copy=False)

    def value(self, index: int) -> Floats:
        """Return an operand that is present, as float64."""
        found = self.values[index]
        assert found is not None
        return found.astype(np.float64, copy=False)


Errors = Sequence[Floats | None]
"""The errors of the operands, in their shapes; ``None`` where the operand is absent."""

Spread = Callable[[Step, Errors], Floats]

Mask = npt.NDArray[np.bool_]

IsAtKink = Callable[[Step, Errors], Mask]


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """What check needs to know of an op.

    ``spread``: the error the operands' errors cause.  ``arithmetic``: the error that float32 arithmetic inside the op
    makes before the one rounding, beyond ``ulps`` roundoffs of the result; ``None`` where there is none.
    ``rounds``: whether the result needs rounding, its operands being storable.  ``is_continuous``: without it, an
    error of the operands can make a jump, which no sample of random errors is sure to show.
    ``is_at_kink``: where the operands' errors reach over a kink of a piecewise linear function: samples that all lie on
    one side of it do not show what errors do on the other.
    ``constants``: the attribute fields that reach the device as rounded constants.
    ``scale``: the constant that the result is multiplied by on the device, named as in ``DeviceOp.constants``.
    """

    spread: Spread
    arithmetic: Spread | None = None
    rounds: bool = True
    is_continuous: bool = True
    is_at_kink: IsAtKink | None = None
    ulps: float = 1.0
    constants: tuple[str, ...] = ()
    scale: str | None = None


def present(errors: Errors, index: int) -> Floats:
    """Return the error of an operand that is present."""
    found = errors[index]
    assert found is not None
    return found
