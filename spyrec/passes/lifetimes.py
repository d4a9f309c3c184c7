"""From which kernel to which a buffer holds something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spyrec.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Positions of the first and the last kernel that use a buffer."""

    first: int
    last: int


def lifetimes(kernels: Sequence[Kernel]) -> dict[str, Lifetime]:
    """Return the lifetime of every buffer that a kernel uses."""
    found: dict[str, Lifetime] = {}
    for position, kernel in enumerate(kernels):
        for use in kernel.uses:
            known = found.get(use.buffer)
            found[use.buffer] = Lifetime(position if known is None else known.first, position)
    return found
