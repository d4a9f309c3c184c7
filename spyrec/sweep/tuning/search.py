"""Searches the plans that pins make: all of them where they are few, else neighbours of the planner's, then TPE.

Whatever the number of workers, the same plans are tried in the same order: proposals come in batches of one size, and
what they were worth is told in the order of the proposals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice, product

from spyrec.dataclass import dataclass
from spyrec.passes.choices import Choice, Pin
from spyrec.sweep.tuning.sampler import Assignment, Sampler
from spyrec.sweep.tuning.trial import Score

BATCH = 8
"""Plans that are proposed before it is told what any of them was worth."""

MOST_EXHAUSTIVE = 1000
"""Plans that are all tried where only minutes are given."""

_MOST_REPEATS = 100
"""Proposals in a row that were tried before, after which the sampler has nothing new."""


@dataclass(frozen=True, slots=True)
class Space:
    """The plans that can be pinned."""

    choices: tuple[Choice, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Alternatives of each choice, the planner's own decision among them."""
        return tuple([1 + len(choice.pins) for choice in self.choices])

    @property
    def plans(self) -> int:
        """How many there are."""
        return math.prod(self.sizes)

    @property
    def planner(self) -> Assignment:
        """The planner's own plan."""
        return (0,) * len(self.choices)

    def pins(self, assignment: Assignment) -> list[tuple[Choice, Pin]]:
        """Return what an assignment pins."""
        pairs = zip(self.choices, assignment, strict=True)
        return [(choice, choice.pins[number - 1]) for choice, number in pairs if number]

    def neighbours(self) -> Iterator[Assignment]:
        """Yield the plans with one pin, by turns of the choices, those that the planner would prefer first."""
        for number in range(1, max(self.sizes, default=1)):
            for place, size in enumerate(self.sizes):
                if number < size:
                    yield _with(self.planner, place, number)

    def all(self) -> Iterator[Assignment]:
        """Yield every plan, each once: the planner's, those with one pin, the others."""
        yield self.planner
        yield from self.neighbours()
        yield from (item for item in product(*map(range, self.sizes)) if sum(map(bool, item)) > 1)


def _with(assignment: Assignment, place: int, number: int) -> Assignment:
    return (*assignment[:place], number, *assignment[place + 1 :])


Evaluate = Callable[[Sequence[Assignment]], Sequence[Score]]
"""Scores plans, in their order."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may take: so many plans, or until ``is_over``; ``seed`` of the sampler."""

    trials: int | None
    is_over: Callable[[], bool]
    seed: int = 0


@dataclass(slots=True)
class Search:
    """The plans that were tried, with their scores in that order.  ``advance`` is told of every plan."""

    space: Space
    evaluate: Evaluate
    advance: Callable[[], None] = lambda: None
    scores: dict[Assignment, Score] = field(default_factory=dict[Assignment, Score])
    trials: int = 0
    is_exhaustive: bool = False

    def run(self, budget: Budget) -> Assignment:
        """Try plans as far as the budget reaches, and return the quickest, of those the one with fewest pins.

        Then pins that save nothing are dropped, which takes a few plans more.  Errors: SPY0846.
        """
        most = budget.trials
        if self.space.plans <= (MOST_EXHAUSTIVE if most is None else most):
            self.is_exhaustive = self._try_all(self.space.all(), budget)
        else:
            near = self.space.neighbours()
            self._try_all([self.space.planner], budget)
            self._try_all(near if most is None else islice(near, (most - 1) // 2), budget)
            self._sample(budget)
        self.trials = len(self.scores)
        return self._without_idle_pins(self._best())

    def _try_all(self, plans: Sequence[Assignment] | Iterator[Assignment], budget: Budget) -> bool:
        """Try plans in batches; return whether all of them were tried."""
        left = iter(plans)
        while batch := list(islice(left, BATCH)):
            if self.scores and budget.is_over():
                return False
            self._score(batch)
        return True

    def _sample(self, budget: Budget) -> None:
        sampler = Sampler(self.space.sizes, budget.seed)
        for assignment, score in self.scores.items():
            sampler.learn(assignment, _worth(score))
        repeats = 0
        while repeats < _MOST_REPEATS and not budget.is_over():
            wanted = BATCH if budget.trials is None else min(BATCH, budget.trials - len(self.scores))
            if wanted <= 0:
                return
            asked = [sampler.ask() for _ in range(wanted)]
            new = list(dict.fromkeys(assignment for assignment, _ in asked if assignment not in self.scores))
            repeats = 0 if new else repeats + len(asked)
            self._score(new)
            for assignment, trial in asked:
                sampler.tell(trial, _worth(self.scores[assignment]))

    def _score(self, plans: Sequence[Assignment]) -> None:
        for assignment, score in zip(plans, self.evaluate(plans) if plans else (), strict=True):
            self.scores[assignment] = score
            self.advance()

    def _best(self) -> Assignment:
        """Return the quickest plan, of equal ones that with fewest pins, then that which was tried first."""
        return min(self.scores, key=lambda item: (self.scores[item].us, sum(map(bool, item))))

    def _without_idle_pins(self, best: Assignment) -> Assignment:
        """Return a plan as quick without the pins that it is no slower without."""
        while any(best):
            freed = self.without_each(best)
            dropped = min(freed.values(), key=lambda item: self.scores[item].us)
            if self.scores[dropped].us > self.scores[best].us:
                return best
            best = dropped
        return best

    def without_each(self, best: Assignment) -> Mapping[int, Assignment]:
        """Return a plan without each of its pins, by the choice's place; all of them are tried."""
        freed = {place: _with(best, place, 0) for place, number in enumerate(best) if number}
        self._score([item for item in dict.fromkeys(freed.values()) if item not in self.scores])
        return freed

    def refused(self) -> dict[str, int]:
        """Return how many plans were refused, by code."""
        found: dict[str, int] = {}
        for score in list(self.scores.values())[: self.trials]:
            if score.code:
                found[score.code] = found.get(score.code, 0) + 1
        return dict(sorted(found.items()))


def _worth(score: Score) -> float | None:
    return None if math.isinf(score.us) else score.us
