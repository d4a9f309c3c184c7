"""What the planner decided and why: one line per decision, for the plan report and for ``manifest.json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Decision(Enum):
    """What was decided about a buffer, a kernel, or a group of kernels."""

    RESIDENT = "resident"
    """A buffer lies in the scratchpads for all of its life."""
    STAGED = "staged"
    """An input is copied into the scratchpads once and read there."""
    DRAINED = "drained"
    """An output is collected in the scratchpads and copied out once."""
    IN_PLACE = "in place"
    """A buffer takes the place of an operand that dies there."""
    SPILLED = "spilled"
    """A buffer that could have lain in the scratchpads lies in device memory."""
    DIVISION = "division"
    """A kernel is divided among the cores otherwise than it alone would be, or one of its cuts was chosen."""
    SPLIT = "split"
    """A kernel became several because one SuperDSC cannot express it."""
    TILING = "tiling"
    """Loops were put around kernels, or were not."""


@dataclass(frozen=True, slots=True)
class PlanNote:
    """One decision: what it is about, why it was taken, and what the next best choice would have cost.

    ``subject``: name of the buffer or kernel, or the dim of a loop.  ``reason``: lower case, with the numbers.
    ``alternative``: the choice that lost; ``None`` where there was none.  ``saved_bytes``, ``saved_us``: device memory
    traffic and simulated time of the whole model by which the alternative is worse; negative where the decision costs
    more of it.
    """

    subject: str
    decision: Decision
    reason: str
    alternative: str | None = None
    saved_bytes: int = 0
    saved_us: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannerName:
    """Which scratchpad planner made the plan; the manifest states it."""

    name: str
    version: str
