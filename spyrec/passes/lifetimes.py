"""From which kernel to which a buffer holds something."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.dataclass import dataclass
from spyrec.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Positions of the first and the last kernel that use a buffer."""

    first: int
    last: int


def lifetimes(kernels: Sequence[Kernel]) -> dict[str, Lifetime]:
    """Return the lifetime of every buffer that a kernel uses.

    What is used inside of a loop and outside of it holds something from the loop's first kernel to its last.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for position, kernel in enumerate(kernels):
        for use in kernel.uses:
            first.setdefault(use.buffer, position)
            last[use.buffer] = position
    found = {name: Lifetime(position, last[name]) for name, position in first.items()}
    # from the inside out: a lifetime that outgrows a loop may cross the border of the next one
    for span in sorted(_loop_spans(kernels), key=lambda span: span.last - span.first):
        # a lifetime begins and ends at a use, or with a loop around one: what no kernel in here uses is here all along
        for kernel in kernels[span.first : span.last + 1]:
            for use in kernel.uses:
                life = found[use.buffer]
                if life.first < span.first or span.last < life.last:
                    found[use.buffer] = Lifetime(min(life.first, span.first), max(life.last, span.last))
    return found


def _loop_spans(kernels: Sequence[Kernel]) -> list[Lifetime]:
    """Return the first and the last kernel of each loop."""
    spans: dict[int, Lifetime] = {}
    for position, kernel in enumerate(kernels):
        for loop in kernel.loops:
            known = spans.get(loop)
            spans[loop] = Lifetime(position if known is None else known.first, position)
    return list(spans.values())


def start_of_loops(kernels: Sequence[Kernel], number: int, loops: tuple[int, ...], depth: int) -> int:
    """Return where something goes that stands in ``depth`` of the ``loops`` around place ``number``, before the rest.

    It is the first kernel of the loop around that place which is the next one inside these ``depth`` loops.
    """
    inner = loops[: depth + 1]
    while len(inner) > depth and number and kernels[number - 1].loops[: len(inner)] == inner:
        number -= 1
    return number
