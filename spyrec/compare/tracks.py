"""What is known of one value of the device graph: exact numbers, simulated ones, random samples, and an error bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from spyrec.compare.storage import Array, Floats, Storage, absolute_difference
from spyrec.dataclass import dataclass

STANDARD_ERRORS = 6.0
"""Width of the statistical bound; a check fails above twice it, which independent roundings never reach."""

_POOLED_SHARE = 0.75
"""Least share of its neighbours' (lower quartile) standard error that an element is given.

Eight samples estimate one element's standard error poorly: once in 10,000 elements they give a quarter of it.
"""

_LONG_ROW = 16
"""Rows shorter than this are pooled with the rest of the tensor."""


@dataclass(frozen=True, slots=True)
class Track:
    """One value.

    ``exact`` is the float64 evaluation, ``device`` one with every rounding the device makes, in the order of the
    graph; ``samples`` are evaluations in which each rounding is random, ``None`` where no rounding has happened since
    the inputs, and the samples would all equal ``device``.  ``error`` bounds ``|stored - exact|`` per element
    (``None``: it is ``|device - exact|``).  ``jump`` is the part of it that comes from choices which rounding may
    turn over (comparisons, floor, poles), ``None`` where there is none.
    """

    exact: Array
    device: Array
    storage: Storage
    samples: tuple[Array, ...] | None = None
    error: Floats | None = None
    jump: Floats | None = None

    def bound(self) -> Floats:
        """Return the error bound of every element."""
        if self.error is not None:
            return self.error
        if self.exact is self.device:
            return np.broadcast_to(np.float64(0.0), self.exact.shape)
        return absolute_difference(self.exact, self.device)

    def jump_or_zero(self) -> Floats:
        """Return the jump part of the bound."""
        return np.broadcast_to(np.float64(0.0), self.exact.shape) if self.jump is None else self.jump

    def sample(self, index: int) -> Array:
        """Return one random evaluation."""
        return self.device if self.samples is None else self.samples[index]

    def moved(self, move: Callable[[Array], Array]) -> Track:
        """Return the track of the same elements at other places."""
        exact = move(self.exact)
        device = exact if self.exact is self.device else move(self.device)
        samples = None if self.samples is None else tuple(move(sample) for sample in self.samples)
        error = None if self.error is None else move(self.error).astype(np.float64, copy=False)
        jump = None if self.jump is None else move(self.jump).astype(np.float64, copy=False)
        return Track(exact, device, self.storage, samples, error, jump)

    def promoted(self, convert: Callable[[Array], Array]) -> Track:
        """Return the track of whole numbers as an op takes them: ``convert`` rounds them, or lets them wrap around.

        What lies within an error of a number is anywhere between what its neighbours become; nothing is known of it
        where these are in another order.
        """
        if self.exact.dtype.kind != "i":
            return self
        exact, device = convert(self.exact), convert(self.device)
        samples = None if self.samples is None else tuple(map(convert, self.samples))
        if self.error is None:
            return replace(self, exact=exact, device=device, samples=samples)
        middle = self.exact.astype(np.float64)
        reach = np.minimum(self.error, 2.0**62)
        ends = [convert((middle + side).astype(np.int64)) for side in (-np.ceil(reach), np.ceil(reach))]
        error = np.maximum(absolute_difference(ends[0], exact), absolute_difference(ends[1], exact))
        is_turned = np.greater(ends[0], exact) | np.less(ends[1], exact)
        is_open = (self.error > 0) & (is_turned | ~np.isfinite(self.error))
        error = np.where(is_open, np.inf, error)
        jump = None if self.jump is None else np.where(self.jump > 0, error, 0.0)
        return replace(self, exact=exact, device=device, samples=samples, error=error, jump=jump)


def stored_exactly_known(values: Array, storage: Storage) -> Track:
    """Return the track of an input or constant in its host carrier: its rounding on the device is known exactly."""
    with np.errstate(invalid="ignore"):  # a NaN that signals
        exact = values.astype(np.float64) if values.dtype.kind == "f" else values
    is_representable = storage.is_exact or (values.dtype.kind == "f" and _holds(storage, values.dtype))
    return Track(exact, exact if is_representable else storage.held(values), storage)


def _holds(storage: Storage, dtype: np.dtype[np.generic]) -> bool:
    """Whether the storage keeps every number of an IEEE dtype."""
    return {"half": 2, "single": 4}.get(storage.name, 0) >= dtype.itemsize


def statistical_bound(exact: Array, device: Array, samples: Sequence[Array]) -> Floats:
    """Return the distance of the simulated device plus six standard errors of the samples, per element."""
    distance = absolute_difference(exact, device)
    return distance + STANDARD_ERRORS * pooled(_standard_error(device, samples))


def _standard_error(device: Array, samples: Sequence[Array]) -> Floats:
    centre = device.astype(np.float64, copy=False)
    total, squares = np.zeros(centre.shape), np.zeros(centre.shape)
    for sample in samples:
        difference = np.asarray(sample.astype(np.float64) - centre)
        difference[sample == device] = 0.0  # the same infinity
        total += difference
        squares += np.square(difference, out=difference)
    squares -= np.square(total, out=total) / len(samples)
    error = np.sqrt(np.maximum(squares, 0.0, out=squares) / (len(samples) - 1))
    return np.where(np.isnan(squares), np.inf, error)


def pooled(errors: Floats) -> Floats:
    """Return errors of few samples, none far below those of its neighbours; what is 0 stays 0."""
    is_long = errors.ndim > 0 and errors.shape[-1] >= _LONG_ROW
    rows = errors.reshape(-1, errors.shape[-1]) if is_long else errors.reshape(1, -1)
    quartile = rows.shape[-1] // 4
    floor = _POOLED_SHARE * np.partition(rows, quartile, axis=-1)[:, quartile : quartile + 1]
    # an element that no rounding reaches keeps its zero
    return np.where(rows > 0, np.maximum(rows, np.where(np.isfinite(floor), floor, 0.0)), 0.0).reshape(errors.shape)
