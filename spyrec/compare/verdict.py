"""The verdict of a check on one output: errors over bounds, the worst element, and what NaN and infinities mean."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from spyrec.compare.bounds import ValueBound
from spyrec.compare.error_cells import ErrorCells, error_cells
from spyrec.compare.storage import HALF, Array, Floats, absolute_difference, storage_of
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType

_HALF_END = 32.0
"""How far half's largest number lies from the DLFloat16 number that stands for it on the device."""

Mask = npt.NDArray[np.bool_]

FAILING_RATIO = 2.0
"""A check fails above twice the bound (D058 of docs/decisions.md): the bound is first order."""


_BFLOAT16_ROUNDOFF = 2.0**-8
"""Unit roundoff of bfloat16, which has 7 fraction bits."""


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element with the largest error over its bound: its host index, what stands there, what should.

    ``device_coordinate`` and ``core`` (that wrote it) are known where a bundle was at hand.
    """

    index: tuple[int, ...]
    got: float
    want: float
    device_coordinate: tuple[int, ...] | None = None
    core: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the fields as ``spyrec run --json`` prints them."""
        return {
            "index": list(self.index),
            "device_coordinate": None if self.device_coordinate is None else list(self.device_coordinate),
            "core": self.core,
            "got": _json_number(self.got),
            "want": _json_number(self.want),
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The verdict on one output.

    ``max_abs`` and ``max_rel`` are over elements whose reference is finite; ``bound_ratio`` is the largest error over
    its bound, ``worst`` the element that has it.
    ``bounded_elements`` of ``element_count`` have a finite bound: the others are accepted whatever they hold.
    ``failed_elements`` lie above twice their bound or are infinite or NaN where the reference is not.
    ``cells``: all errors over their bounds, reduced to a small picture; ``None`` without elements.
    """

    ok: bool
    max_abs: float
    max_rel: float
    bound_ratio: float
    worst: WorstElement
    element_count: int
    bounded_elements: int
    failed_elements: int
    cells: ErrorCells | None = field(default=None, compare=False)

    @property
    def has_bound(self) -> bool:
        """Whether any element has a finite bound; without one, the check says nothing."""
        return self.bounded_elements > 0 or not self.element_count

    def to_json(self) -> dict[str, object]:
        """Return the object of ``spyrec run --json`` under ``check``; numbers that are not finite become strings."""
        return {
            "ok": self.ok,
            "max_abs": _json_number(self.max_abs),
            "max_rel": _json_number(self.max_rel),
            "bound_ratio": _json_number(self.bound_ratio),
            "bounded_elements": self.bounded_elements,
            "element_count": self.element_count,
            "failed_elements": self.failed_elements,
            "worst": self.worst.to_json(),
        }


def _json_number(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)


@dataclass(frozen=True, slots=True)
class OutputCase:
    """One output under judgement: the reference ``want``, what the run ``got``, and what the bounds know of it."""

    want: Array
    got: Array
    known: ValueBound
    dtype: DType
    numerics: str

    def report(self, *, merges_nan: bool) -> CheckReport:
        """Return the verdict; ``merges_nan``: NaN and the infinities are one class (DLFloat16 has one pattern)."""
        with np.errstate(all="ignore"):
            want = self.want.astype(np.float64, copy=False)
            got = self.got.astype(np.float64, copy=False)
            bound = self._bound(want)
            agrees = same_class(want, got, merges_nan=merges_nan)
            # where the formats alone turn the reference's infinity or NaN into something else, anything is explained
            explained = np.where(np.isfinite(want), np.inf, 0.0)
            explained[~same_class(want, self.known.device.astype(np.float64), merges_nan=merges_nan)] = np.inf
            error = absolute_difference(want, got)
            overflows = self._overflows(want, got, bound)
            error[overflows] = 0.0
            error[~np.isfinite(want)] = np.where(agrees | np.isinf(explained), 0.0, np.inf)[~np.isfinite(want)]
            bound[~np.isfinite(want)] = explained[~np.isfinite(want)]
            return verdict_of(want, got, error, bound, FAILING_RATIO)

    def beside(self, exact: Array) -> OutputCase:
        """Return the case with other exact numbers where the run got these, rounded to the output's dtype and no more.

        ``exact``: the reference of numbers that the device's format does not hold, and the host has read.
        """
        roundoff = _BFLOAT16_ROUNDOFF if self.dtype is DType.BFLOAT16 else 0.0
        allowed = roundoff * np.abs(exact.astype(np.float64))
        with np.errstate(all="ignore"):
            is_exact = absolute_difference(exact, self.got) <= np.where(np.isfinite(allowed), allowed, 0.0)
        bound = np.where(is_exact, 0.0, self.known.bound)
        return replace(self, want=np.where(is_exact, exact, self.want), known=replace(self.known, bound=bound))

    def _bound(self, want: Floats) -> Floats:
        """Return the bound of the host value: that of the stored one and the conversion to the host dtype."""
        bound = np.array(self.known.bound, dtype=np.float64)
        storage = storage_of(self.dtype, self.numerics)
        if self.dtype is DType.FLOAT16 and storage is not HALF:
            # DLFloat16 has fewer fraction bits than IEEE half: only half's subnormals round
            conversion = HALF.rounding_error(np.minimum(np.abs(want) + bound, HALF.maximum / 2))
            is_wider = storage.unit_roundoff < HALF.unit_roundoff
            ends = np.where(np.abs(want) + bound >= HALF.maximum, _HALF_END, 0.0)
            bound += np.where((np.abs(want) + bound < HALF.smallest_normal) | is_wider, conversion, ends)
        if self.dtype is DType.BFLOAT16:  # fewer fraction bits than any format of the device, and a wider range
            bound += _BFLOAT16_ROUNDOFF * (np.abs(want) + bound)
        # two float64 evaluations of one function differ too
        slack = 0.0 if storage.is_exact else 1e-12
        return np.asarray(bound + slack * np.where(np.isfinite(want), np.abs(want), 0.0))

    def _overflows(self, want: Floats, got: Floats, bound: Floats) -> Mask:
        """Return where an infinity is the right host value: IEEE half ends before the device's formats do."""
        if self.dtype is not DType.FLOAT16:
            return np.zeros(want.shape, dtype=np.bool_)
        reaches = np.abs(want) + FAILING_RATIO * bound >= HALF.maximum + 16.0
        return np.isinf(got) & np.isfinite(want) & reaches & (np.sign(got) == np.sign(want))


def verdict_of(want: Floats, got: Floats, error: Floats, bound: Floats, failing_ratio: float) -> CheckReport:
    """Return the verdict on an output: elements fail whose error is more than ``failing_ratio`` times their bound."""
    if not want.size:
        return CheckReport(True, 0.0, 0.0, 0.0, WorstElement((), 0.0, 0.0), 0, 0, 0)
    ratio = np.asarray(np.where(error == 0.0, 0.0, np.where(np.isinf(bound), 0.0, error / bound)))
    ratio[np.isnan(ratio)] = np.inf
    worst = int(np.argmax(ratio))
    finite = np.isfinite(want) & np.isfinite(got)
    if ratio.reshape(-1)[worst] == 0.0:
        worst = int(np.argmax(np.where(finite, error, 0.0)))
    index = tuple(int(position) for position in np.unravel_index(worst, want.shape))
    magnitudes = np.abs(want)
    relative = np.where(finite & (magnitudes > 0), error / magnitudes, 0.0)
    return CheckReport(
        ok=bool((ratio <= failing_ratio).all()),
        max_abs=float(np.where(np.isfinite(want), error, 0.0).max()),
        max_rel=float(relative.max()),
        bound_ratio=float(ratio[index]),
        worst=WorstElement(index, float(got[index]), float(want[index])),
        element_count=want.size,
        bounded_elements=int(np.count_nonzero(np.isfinite(bound))),
        failed_elements=int(np.count_nonzero(ratio > failing_ratio)),
        cells=error_cells(ratio),
    )


def same_class(want: Floats, got: Floats, *, merges_nan: bool) -> Mask:
    """Return where two values agree in being finite, infinite with a sign, or NaN.

    Where NaN and the infinities are one class, a NaN of the reference may be any of them; an infinity keeps its sign.
    """
    nan_agrees = ~np.isfinite(got) if merges_nan else np.isnan(got)
    return np.where(np.isnan(want), nan_agrees, np.where(np.isinf(want), got == want, np.isfinite(got)))
