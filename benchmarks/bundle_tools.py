"""Looking at bundles of 1,000 operations, whole processes: ``inspect``, and ``diff`` of bundles that differ everywhere.

``bundle_tools:inspect`` and ``bundle_tools:diff`` measure one of them.  Beside each stands what ``import numpy`` takes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import spyrec
from benchmarks.emulator_parts.claims import below
from benchmarks.measure import Figures
from benchmarks.startup import BARE, figures_of_processes, interleaved_processes

OPERATIONS = 1000
_ROUNDS = 5


def _chain(directory: Path, cores: int) -> str:
    """Compile a chain of elementwise operations, no two of which have the same file."""
    graph = spyrec.GraphBuilder("chain")
    value, weight = graph.input("x", (512, 1024), "float16"), graph.input("w", (1024,), "float16")
    for number in range(OPERATIONS):
        value = value + weight if number % 3 == 0 else value * weight if number % 3 == 1 else value - weight
    graph.output(value)
    path = directory / f"chain_{cores}"
    spyrec.compile(graph, spyrec.CompileOptions(cores=cores)).save(path)
    return str(path)


def inspect() -> Figures:
    """Show a bundle, and one operation of it on one core."""
    with tempfile.TemporaryDirectory() as folder:
        path = _chain(Path(folder), 32)
        verb = ("-m", "spyrec", "inspect", path)
        commands = {**BARE, "inspect": verb, "inspect_one": (*verb, "500", "--core", "3")}
        spent = interleaved_processes(commands, _ROUNDS, lambda: Path(folder) / "kernels")
    claims = [below(f"wall seconds of `spyrec inspect` of {OPERATIONS} operations", spent["inspect"].wall_s, 1.0)]
    return {**figures_of_processes(spent), "claims": claims}


def diff() -> Figures:
    """Compare 16 cores with 32, in words and places, and in meaning alone."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [_chain(Path(folder), cores) for cores in (32, 16)]
        program = (
            "import sys; from spyrec.cli import main; code = main(sys.argv[1:]); assert code == 1, code"  # they differ
        )
        verb = ("-c", program, "diff", *paths)
        commands = {**BARE, "diff": (*verb, "--stat"), "diff_semantic": (*verb, "--semantic")}
        spent = interleaved_processes(commands, _ROUNDS, lambda: Path(folder) / "kernels")
    claims = [
        below(f"wall seconds of `spyrec diff --stat` of {OPERATIONS} SuperDSCs", spent["diff"].wall_s, 2.0),
        below(f"wall seconds of `spyrec diff --semantic` of {OPERATIONS}", spent["diff_semantic"].wall_s, 2.0),
    ]
    return {**figures_of_processes(spent), "claims": claims}


PARTS: Mapping[str, Callable[[], Figures]] = {"inspect": inspect, "diff": diff}


def measure() -> Figures:
    """Measure both."""
    return {name: part() for name, part in PARTS.items()}
