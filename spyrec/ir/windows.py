"""Windows that slide over the last dims of a tensor: how many places they have, and which elements each place sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.opdef import OpError
from spyrec.ir.operands import Floats
from spyrec.ir.shapes import Shape, show


@dataclass(frozen=True, slots=True)
class Sliding:
    """A window along one dim: its extent, its steps, and how many elements are added before and after the dim."""

    kernel: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def span(self) -> int:
        """The elements from the first to the last that one place sees."""
        return self.dilation * (self.kernel - 1) + 1

    def places(self, extent: int, *, ceil_mode: bool = False) -> int:
        """Return how many places the window has; with ``ceil_mode`` one more where it begins within the dim or before.

        That one may be the only one: a window of 5 has a place in 4 elements.  Errors: SPY0234 none.
        """
        room = extent + self.before + self.after - self.span
        if room < 0 and not (ceil_mode and room + self.stride > 0 and extent + self.before > 0):
            padding = f"{self.before} + {self.after} of padding"
            raise OpError("SPY0234", f"a window of {self.span} elements does not fit into {extent} and {padding}")
        count = room // self.stride + 1
        if ceil_mode and room % self.stride and count * self.stride < extent + self.before:
            count += 1
        return count


def per_dim(values: Sequence[int], dims: int, attribute: str, least: int = 1) -> Shape:
    """Return one number for each of ``dims`` dims, of one for all or of as many.  Errors: SPY0209."""
    if len(values) not in (1, dims) or any(value < least for value in values):
        message = f"{attribute} {show(values)} is not one number, or {dims}, of {least} or more"
        raise OpError("SPY0209", message, attribute=attribute)
    return tuple(values) * (dims if len(values) == 1 else 1)


def padded(x: Floats, windows: Sequence[Sliding], counts: Sequence[int], fill: float) -> Floats:
    """Return ``x`` with its last dims widened so that every place of every window lies within."""
    widths = [(0, 0)] * (x.ndim - len(windows))
    for window, count, extent in zip(windows, counts, x.shape[x.ndim - len(windows) :]):
        needed = (count - 1) * window.stride + window.span
        widths.append((window.before, max(needed - extent - window.before, 0)))
    return np.pad(x, widths, constant_values=fill)


def seen(x: Floats, windows: Sequence[Sliding], counts: Sequence[int], at: Sequence[int]) -> Floats:
    """Return, of a padded tensor, what each place sees at kernel position ``at``."""
    index: list[slice] = [slice(None)] * (x.ndim - len(windows))
    for window, count, position in zip(windows, counts, at):
        first = position * window.dilation
        index.append(slice(first, first + (count - 1) * window.stride + 1, window.stride))
    return x[tuple(index)]
