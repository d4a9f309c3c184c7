"""What ``--sanitize all`` costs beside a plain run, on digits and the narrow Granite block; claim: at most 5 times.

And 1,000 random right programs under all of them; claim: no finding.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import spyrec
from benchmarks.measure import Figures, interleaved, rounded
from examples.granite_block import make_graph
from spyrec.front import open_session
from spyrec.runtime.random_inputs import random_inputs
from tests.support.random_graphs import random_graph

_DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "graph.json"
_ROUNDS = 7
_PROGRAMS = 1000


def _cost(bundle: spyrec.Bundle) -> Figures:
    """Return the milliseconds of runs of ready sessions: plain, each sanitizer alone, all together."""
    kinds = (None, "bounds", "init", "lx", "race", "gap", "all")
    sessions = {str(kind): open_session(bundle, spyrec.RunOptions(sanitize=kind)) for kind in kinds}
    inputs = random_inputs(sessions["all"].inputs, 1)
    candidates = {name: (lambda s=session: s.run(inputs)) for name, session in sessions.items()}
    seconds = interleaved(candidates, _ROUNDS)
    figures: Figures = {f"{name}_ms": rounded(value * 1e3) for name, value in seconds.items() if name != "None"}
    watched = sessions["all"].observer
    assert watched is not None
    assert not watched.findings
    return {"plain_ms": rounded(seconds["None"] * 1e3), **figures, "ratio": rounded(seconds["all"] / seconds["None"])}


def _silence(programs: int) -> Figures:
    """Return how many random right programs ran under all sanitizers, and the seeds of those with findings."""
    noisy: list[int] = []
    refused: list[int] = []
    for seed in range(programs):
        graph, data = random_graph(seed)
        options = spyrec.CompileOptions(cores=(1, 2, 8, 32)[seed % 4])
        try:
            bundle = spyrec.compile(graph, options)
        except spyrec.SpyrecError:  # another benchmark's matter: nothing was run
            refused.append(seed)
            continue
        if spyrec.run(bundle, data, spyrec.RunOptions(sanitize="all")).sanitizer:
            noisy.append(seed)
    return {"programs": programs - len(refused), "with_findings": noisy, "not_compiled": refused}


def measure() -> Figures:
    """Return the cost on both models, and the silence on right programs."""
    digits = _cost(spyrec.compile(_DIGITS))
    with tempfile.TemporaryDirectory() as directory:
        granite = _cost(spyrec.compile(make_graph.write(Path(directory), make_graph.NARROW)))
    return {"digits": digits, "granite_narrow": granite, "random": _silence(_PROGRAMS), "claim": "ratio <= 5"}
