"""Cases that are random programs of OpSpecs of one kind of operation: files, both engines and NumPy agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import cast

from benchmarks.campaign.verdicts import Case, Verdict, WrongResultError, verdict_of
from spyrec.diagnostics import SpyrecError
from tests.support.kinds.kinds import KINDS
from tests.support.kinds.program import EXACT, OWN, RandomProgram, hold


def make(seed: int) -> Case:
    """Return the kind and the seed of a program."""
    return {"operations": sorted(KINDS)[seed % len(KINDS)], "seed": seed}


def trial(case: Case) -> Verdict:
    """Execute a program by both engines, and hold memory and counters against each other and against NumPy."""
    name = str(case["operations"])

    def held() -> None:
        program = KINDS[name](Random(cast("int", case["seed"])))  # noqa: S311 -- no secret
        try:
            _hold(program)
        except AssertionError as error:
            raise WrongResultError(f"program of {name}", str(error)[:300]) from None

    return verdict_of(held)


def _hold(program: RandomProgram) -> None:
    """Hold a program; what the upstream form refuses, which counts by the places of dims, in our own."""
    try:
        hold(program)
    except SpyrecError:
        if program.options is not EXACT:
            raise
        hold(replace(program, options=OWN))


def smaller(case: Case) -> Iterator[Case]:
    """Yield nothing: a program is small as it is, and follows from its seed."""
    del case
    yield from ()


def size(case: Case) -> tuple[int, ...]:
    """Return the same for all."""
    del case
    return (1,)


def parts(case: Case) -> list[str]:
    """Return the kind."""
    return [str(case["operations"])]
