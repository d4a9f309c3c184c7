"""What a user waits for before anything is computed: whole processes, each beside a bare Python in the same rounds.

``python -m benchmarks startup:verbs`` measures ``--help``, ``compile`` of a small graph and ``run`` of a tiny bundle
with kernels that are kept; ``startup:first_runs`` the first run of each family of operations, with no kernel kept;
``startup:warmed`` the same after ``spyrec doctor --warm``, when nothing is compiled any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import spyrec
from benchmarks.emulator_parts.claims import below
from benchmarks.measure import Figures, rounded
from spyrec.codegen.opspec import OpSpecFile
from spyrec.codegen.opspec_json import write_opspecs
from spyrec.frontends.value import Value
from tests.support.window_specs import Problem, spec_of

_ROOT = Path(__file__).resolve().parent.parent
_VERB_ROUNDS = 9
_FIRST_ROUNDS = 3
_FLOAT = "float16"


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process took, its children's work included."""

    wall_s: float
    cpu_s: float


def spent_by(command: Sequence[str], kernels: Path) -> Spent:
    """Return what a Python of its own takes for a command; ``kernels``: where it keeps compiled kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(_ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody's installation compiles its sources at each start
    start = time.perf_counter()
    arguments = [sys.executable, *command]
    with subprocess.Popen(arguments, env=environment, cwd=_ROOT, stdout=subprocess.DEVNULL) as started:  # noqa: S603
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode != 0:
        raise subprocess.CalledProcessError(started.returncode, arguments)
    return Spent(time.perf_counter() - start, used.ru_utime + used.ru_stime)


def interleaved_processes(
    commands: Mapping[str, Sequence[str]], rounds: int, kernels: Callable[[], Path]
) -> dict[str, Spent]:
    """Return the medians of each command over ``rounds``, after one round that is not counted."""
    spent: dict[str, list[Spent]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            found = spent_by(command, kernels())
            if number > 0:
                spent[name].append(found)
    return {
        name: Spent(median(item.wall_s for item in items), median(item.cpu_s for item in items))
        for name, items in spent.items()
    }


BARE: Mapping[str, Sequence[str]] = {"python": ("-c", "pass"), "numpy": ("-c", "import numpy")}


def figures_of_processes(spent: Mapping[str, Spent]) -> Figures:
    """Return seconds, and how many times what ``import numpy`` takes."""
    numpy = spent["numpy"]
    return {
        name: {
            "wall_s": rounded(item.wall_s, 3),
            "cpu_s": rounded(item.cpu_s, 3),
            "cpu_of_import_numpy": rounded(item.cpu_s / numpy.cpu_s, 3),
        }
        for name, item in spent.items()
    }


def _save(graph: spyrec.GraphBuilder, path: Path) -> Path:
    spyrec.compile(graph).save(path)
    return path


def _tiny(directory: Path) -> Path:
    graph = spyrec.GraphBuilder("add")
    graph.output(graph.input("x", (64, 64), _FLOAT) + graph.input("y", (64, 64), _FLOAT))
    return _save(graph, directory / "add")


def verbs() -> Figures:
    """``--help``, ``compile`` and ``run`` of the smallest things, the kernels of the last kept by the first round."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        commands = {
            **BARE,
            "help": ("-m", "spyrec", "--help"),
            "compile": (
                "-m", "spyrec", "compile", "examples/seed_add_mul/graph.json", "-o", str(directory / "out"), "--force",
            ),
            "run": ("-m", "spyrec", "run", str(_tiny(directory)), "--random", "1"),
        }  # fmt: skip
        spent = interleaved_processes(commands, _VERB_ROUNDS, lambda: directory / "kernels")
    claims = [
        below("wall seconds of `spyrec --help`", spent["help"].wall_s, 0.15),
        below("wall seconds of `spyrec compile` of a small graph", spent["compile"].wall_s, 0.5),
        below("wall seconds of `spyrec run` of a tiny bundle", spent["run"].wall_s, 0.8),
    ]
    return {**figures_of_processes(spent), "claims": claims}


def _graph(name: str, record: Callable[[spyrec.GraphBuilder], Value]) -> spyrec.GraphBuilder:
    graph = spyrec.GraphBuilder(name)
    graph.output(record(graph))
    return graph


_GRAPHS: Mapping[str, Callable[[spyrec.GraphBuilder], Value]] = {
    "add": lambda g: g.input("x", (64, 64), _FLOAT) + g.input("y", (64, 64), _FLOAT),
    "matmul": lambda g: g.input("x", (64, 128), _FLOAT) @ g.input("y", (128, 64), _FLOAT),
    "sum": lambda g: g.sum(g.input("x", (64, 128), _FLOAT), dim=-1),
    "softmax": lambda g: g.softmax(g.input("x", (64, 128), _FLOAT), dim=-1),
    "gelu": lambda g: g.gelu(g.input("x", (64, 128), _FLOAT)),
    "layer_norm": lambda g: g.layer_norm(g.input("x", (64, 128), _FLOAT), normalized_shape=128),
    "cast": lambda g: g.to(g.input("x", (64, 128), _FLOAT), dtype="float32"),
}
_WINDOWS = {
    "pool": Problem("avgpoolfwd", 2, 64, (3, 4), (2, 2), (2, 2)),
    "conv": Problem("conv2d", 1, 64, (4, 3), (3, 3)),
}
_SPECS = ("gather", "topk")


def _first_commands(directory: Path) -> dict[str, Sequence[str]]:
    commands: dict[str, Sequence[str]] = {
        name: ("-m", "spyrec", "run", str(_save(_graph(name, record), directory / name)), "--random", "1")
        for name, record in _GRAPHS.items()
    }
    for name, problem in _WINDOWS.items():
        source, bundle = directory / f"{name}.json", directory / name
        source.write_text(
            write_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=True, specs=(spec_of(problem),))),
            encoding="utf-8",
        )
        spent_by(("-m", "spyrec", "codegen", str(source), "-o", str(bundle)), directory / "kernels")
        commands[name] = ("-m", "spyrec", "run", str(bundle), "--random", "1")
    return commands | {name: ("-m", "benchmarks.emulator_parts.first_run", name) for name in _SPECS}


def first_runs() -> Figures:
    """One operation of each family in a process that finds no kernel, and in one that finds all of them."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        commands = _first_commands(directory)
        emptied = (directory / f"empty{number}" for number in range(1 << 20))
        cold = interleaved_processes({**BARE, **commands}, _FIRST_ROUNDS, lambda: next(emptied))
        warm = interleaved_processes({**BARE, **commands}, _FIRST_ROUNDS, lambda: directory / "kernels")
    claims = [
        below(f"wall seconds of the first run of {name}, no kernel kept", cold[name].wall_s, 2) for name in commands
    ]
    return {"none_kept": figures_of_processes(cold), "all_kept": figures_of_processes(warm), "claims": claims}


def warmed() -> Figures:
    """One operation of each family after ``spyrec doctor --warm``, and the kernels that they compiled none the less."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        commands = _first_commands(directory)
        kernels = directory / "warmed"
        warming = spent_by(("-m", "spyrec", "doctor", "--warm"), kernels)
        kept = _files_in(kernels)
        first = {name: spent_by(command, kernels) for name, command in commands.items()}
        compiled = len(_files_in(kernels) - kept)
    claims = [below(f"wall seconds of the first run of {name}, warmed", first[name].wall_s, 2) for name in commands]
    seconds = {name: rounded(item.wall_s, 3) for name, item in first.items()}
    figures: Figures = {"wall_s": rounded(warming.wall_s, 3), "cpu_s": rounded(warming.cpu_s, 3), "kernels": len(kept)}
    return {
        "warm": figures,
        "first_run_s": seconds,
        "compiled_since": compiled,
        "claims": [*claims, below("kernels compiled by first runs, warmed", compiled, 1)],
    }


def _files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.kernel")}


PARTS: Mapping[str, Callable[[], Figures]] = {"verbs": verbs, "first_runs": first_runs, "warmed": warmed}
"""Name of a part -> what measures it."""


def measure() -> Figures:
    """Return the figures of every part by name."""
    return {name: part() for name, part in PARTS.items()}
