"""Makes a failing case small: the smallest that still fails the same way, tried on the workers, many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from benchmarks.campaign.kinds import Kind
from benchmarks.campaign.verdicts import DEATH, HANG, MEMORY, Case, Verdict

Tried = Callable[[Sequence[Case]], Sequence[Verdict]]
"""Runs cases and returns what became of each, in their order."""

MOST_TRIALS = 600
_MOST_SLOW_TRIALS = 40
"""Of cases that hang, or take their process with them: each costs the whole time limit, or a new process."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case that was found, what becomes of it, and how many were tried on the way.

    ``is_stable``: the case failed the same way when it was tried again.
    """

    case: Case
    verdict: Verdict
    trials: int
    is_stable: bool = True


def reduced(case: Case, verdict: Verdict, kind: Kind, tried: Tried, width: int) -> Reduced:
    """Return a case that fails as ``case`` does and has no smaller one that does; ``width``: tried at once."""
    (again,) = tried([case])
    if again.way != verdict.way:
        return Reduced(case, verdict, 1, is_stable=False)
    trials, verdict = 1, again
    most = _MOST_SLOW_TRIALS if verdict.what in (HANG, MEMORY, DEATH) else MOST_TRIALS
    candidates = kind.smaller(case)
    while trials < most:
        batch = list(islice(candidates, width))
        if not batch:
            break
        found = tried(batch)
        trials += len(batch)
        failing = [place for place, item in enumerate(found) if item.way == verdict.way]
        if failing:  # the first of them, whatever came back first: the same case makes the same small one
            case, verdict = batch[failing[0]], found[failing[0]]
            candidates = kind.smaller(case)  # what did not work before may do so now
    return Reduced(case, verdict, trials)
