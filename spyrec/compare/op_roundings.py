"""The bound of an op by itself, whatever it was decomposed into: so many roundings as its declaration states.

A decomposition whose steps cancel has a large bound of its own, and would be forgiven any error up to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spyrec.compare.storage import SINGLE, Array, Floats, absolute_difference
from spyrec.compare.tracks import Track, pooled, statistical_bound
from spyrec.ir.opdef import Attributes, OpDef, Roundings

_INNER = 16.0 * 2.0**-24
"""What float32 arithmetic inside of an op may be worth, as an error of its operands."""

_SAMPLES = 8
_MIXED = 4
_SEED = 20261124


def held_to_op(definition: OpDef, attributes: Attributes, operands: Sequence[Track | None], track: Track) -> Track:
    """Return the track of an op's result with the smaller of its own bound and that of the op's roundings.

    Where an operand may be another one by a choice that rounding turned over, the track stays: samples do not show it.
    So it does where the op itself chooses, as frac does, and its operand is not known to the last digit.
    """
    stated = definition.stated_roundings(attributes)
    assert stated is not None
    if any(operand is not None and operand.jump is not None for operand in operands):
        return track
    op = _Op(definition, attributes, stated)
    bound = op.bound(operands, track)
    if stated.is_exact and op.is_sampled(operands):
        bound = np.where(track.jump_or_zero() > 0, np.inf, bound)
    jump = None if track.jump is None else np.minimum(track.jump, bound)
    return replace(track, error=np.minimum(track.bound(), bound), jump=jump)


class _Op:
    """The op at its operands."""

    def __init__(self, definition: OpDef, attributes: Attributes, roundings: Roundings) -> None:
        self._definition = definition
        self._attributes = attributes
        self._roundings = roundings

    def bound(self, operands: Sequence[Track | None], result: Track) -> Floats:
        exact = [operand and operand.exact for operand in operands]
        want = self._apply(exact)
        stored = result.storage.rounded(self._apply([operand and operand.device for operand in operands]))
        samples = [
            self._apply([operand and operand.sample(index) for operand in operands])
            for index in range(_SAMPLES if self.is_sampled(operands) else 0)
        ]
        bound = statistical_bound(want, stored, samples) if samples else absolute_difference(want, stored)
        if self._roundings.is_exact:
            return np.where(np.isnan(bound), np.inf, bound)
        bound = bound + self._spread(operands, exact, want) + self._vanishing(exact, want)
        bound = bound + result.storage.rounding_error(np.abs(want) + bound, self._roundings.result)
        if self._roundings.centre is not None:  # what is added up inside are positive functions of the distances
            bound = bound + _INNER * np.abs(want)
        return np.where(np.isnan(bound), np.inf, bound)

    @staticmethod
    def is_sampled(operands: Sequence[Track | None]) -> bool:
        """Whether an operand has been rounded since the inputs, of which the device's own rounding is known."""
        return any(operand is not None and operand.samples is not None for operand in operands)

    def _apply(self, operands: Sequence[Array | None]) -> Floats:
        return np.asarray(self._definition.reference(operands, self._attributes)[0], dtype=np.float64)

    def _spread(self, operands: Sequence[Track | None], exact: Sequence[Array | None], want: Floats) -> Floats:
        """Return the largest change where operands are off by their roundings.

        Each is off as a whole, up or down, in all combinations with the first one up (to first order, the others
        change the result by as much); then element by element, at random.
        """
        generator = np.random.Generator(np.random.PCG64(_SEED))
        worst = np.zeros(want.shape)
        floats = [at for at, value in enumerate(exact) if value is not None and value.dtype.kind == "f"]
        whole = 2 ** max(len(floats) - 1, 0)
        for corner in range(whole + _MIXED):
            moved: list[Array | None] = []
            for position, (operand, value) in enumerate(zip(operands, exact, strict=True)):
                if operand is None or value is None or position not in floats:
                    moved.append(value)
                    continue
                sign = 1.0 - 2.0 * (corner << 1 >> floats.index(position) & 1)
                signs = sign if corner < whole else generator.choice((-1.0, 1.0), size=value.shape)
                numbers = value.astype(np.float64, copy=False)
                moved.append(numbers + self._off(position, operand, numbers) * signs)
            np.maximum(worst, absolute_difference(self._apply(moved), want), out=worst)
        # where many elements of an operand meet in one, a few random ones may all but cancel there
        return np.maximum(worst, pooled(worst)) if self._roundings.operands else worst

    def _vanishing(self, exact: Sequence[Array | None], want: Floats) -> Floats:
        """Return the error of a float32 factor below the normal numbers, times what it multiplies."""
        if self._roundings.gated is None:
            return np.zeros(want.shape)
        off = SINGLE.flush * np.abs(self._roundings.gated(exact, self._attributes))
        return np.where(np.isfinite(want), np.fmin(off, np.abs(want)), 0.0)

    def _off(self, position: int, operand: Track, value: Floats) -> Floats:
        """Return how far an operand is off, by roundings and by arithmetic inside: infinities are not moved.

        What rounding leaves of a centre in the distances from it is taken out of them: roundings of it are left.  Below
        the smallest number of the format a rounding is absolute: distances of 2**-32 are stored as 0 or 2**-31, and
        what is left of a centre is off by as much in all distances.
        """
        centre, storage, count = self._roundings.centre, operand.storage, self._roundings.operands
        rate = count * storage.unit_roundoff + _INNER
        is_vanishing = (np.abs(value) < storage.smallest_normal) & (value != 0)
        moved, least = value, np.where(is_vanishing, count * storage.flush, 0.0)
        if centre is not None and position == 0:
            moved = value - centre.of(value, self._attributes) + rate * value
            least = np.full(value.shape, count * storage.flush)
        off = np.copysign(np.abs(rate * moved) + least, moved)
        return np.where(np.isfinite(off), off, 0.0)
