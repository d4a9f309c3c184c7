"""What ``--sanitize all`` costs beside the plain run; claim: at most 5 times, on digits and the narrow Granite block."""

from __future__ import annotations

import tempfile
from pathlib import Path

import spyrec
from benchmarks.measure import Figures, interleaved, rounded
from examples.granite_block import make_graph
from spyrec.front import open_session
from spyrec.runtime.random_inputs import random_inputs

_DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "graph.json"
_ROUNDS = 7


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


def measure() -> Figures:
    """Return the cost on both models."""
    digits = _cost(spyrec.compile(_DIGITS))
    with tempfile.TemporaryDirectory() as directory:
        granite = _cost(spyrec.compile(make_graph.write(Path(directory), make_graph.NARROW)))
    return {"digits": digits, "granite_narrow": granite, "claim": "ratio <= 5"}
