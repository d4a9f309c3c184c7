"""100,000 damaged files of every kind, through the verbs that read them: cases per second, and what must not be.

A find is a case that ends in something else than a result or diagnostics: see ``tests/support/fuzzing/trials.py``.
"""

from __future__ import annotations

import os
import sys

from benchmarks.emulator_parts.claims import below
from benchmarks.measure import Figures, rounded
from tests.support.fuzzing.campaign import Find, run
from tests.support.fuzzing.trials import MOST_SECONDS

CASES = 100_000
RUN_SEED = 1


def _tell(find: Find) -> None:
    print(f"case {find.number} of {find.reader}: {find.where}", file=sys.stderr, flush=True)


def measure(cases: int = CASES) -> Figures:
    """Run the cases, in a process per core; finds are told at once."""
    found = run(range(cases), RUN_SEED, workers=len(os.sched_getaffinity(0)), told=_tell)
    count = sum(found.cases.values())
    readers = {
        name: {
            "cases": found.cases[name],
            "refused": rounded(found.refused[name] / found.cases[name], 2),
            "per_cpu_s": rounded(found.cases[name] / max(found.seconds[name], 1e-3), 3),
        }
        for name in sorted(found.cases)
    }
    claims = [
        below("finds", len(found.finds), 1),
        below("processor seconds of the slowest case", found.slowest_s, MOST_SECONDS),
    ]
    return {
        "cases": count,
        "wall_s": rounded(found.wall_s),
        "cases_per_wall_s": rounded(count / found.wall_s, 3),
        "cases_per_cpu_s": rounded(count / found.seconds.total(), 3),
        "readers": readers,
        "finds": [f"{item.reader} {item.number}: {item.where}" for item in found.finds],
        "claims": claims,
    }
