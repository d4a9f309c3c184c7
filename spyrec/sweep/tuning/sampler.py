"""Proposes plans by what earlier ones were worth: Optuna's TPE, of which this is the one place that knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast

from spyrec.diagnostics import refuse

Assignment = tuple[int, ...]
"""Of each choice the number of its alternative, 0 where the planner decides."""


class _Trial(Protocol):
    params: Mapping[str, int]


class _Study(Protocol):
    """What is used of a study."""

    def ask(self, fixed_distributions: Mapping[str, object]) -> _Trial:
        """Return a proposal."""
        ...

    def tell(self, trial: _Trial, values: float | None = None, state: object = None) -> object:
        """Take what a proposal was worth."""
        ...

    def enqueue_trial(self, params: Mapping[str, int]) -> None:
        """Propose this next."""
        ...


def require_optuna() -> None:
    """Refuse where Optuna is not installed.  Errors: SPY0846."""
    if find_spec("optuna") is None:
        raise refuse("SPY0846", "Optuna, which proposes plans to spyrec tune, is not installed")


class Sampler:
    """Proposals for choices of so many alternatives each, the same ones for the same seed and what was told.

    Errors: SPY0846 Optuna is not installed.
    """

    def __init__(self, sizes: Sequence[int], seed: int) -> None:
        require_optuna()
        optuna: Any = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._pruned: object = optuna.trial.TrialState.PRUNED
        # one dim after the other: of dozens of choices together there are never trials enough
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=False, constant_liar=True)
        self._study = cast("_Study", optuna.create_study(sampler=sampler))
        self._names = [f"{number:04}" for number in range(len(sizes))]
        self._space: Mapping[str, object] = {
            name: optuna.distributions.CategoricalDistribution(tuple(range(size)))
            for name, size in zip(self._names, sizes, strict=True)
        }

    def learn(self, assignment: Assignment, us: float | None) -> None:
        """Take what a plan that nobody asked for is worth; ``None``: it was refused."""
        self._study.enqueue_trial(dict(zip(self._names, assignment, strict=True)))
        found, trial = self.ask()
        assert found == assignment, "what is enqueued comes first"
        self.tell(trial, us)

    def ask(self) -> tuple[Assignment, _Trial]:
        """Return a proposal, and what it is told of by."""
        trial = self._study.ask(self._space)
        return tuple([trial.params[name] for name in self._names]), trial

    def tell(self, trial: _Trial, us: float | None) -> None:
        """Take what a proposal is worth; ``None``: it was refused."""
        if us is None:
            self._study.tell(trial, state=self._pruned)
        else:
            self._study.tell(trial, us)
