"""Start-up: the first run of an operation with an empty kernel cache, the same in a second process, ``spyrec run``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import spyrec
from benchmarks.emulator_parts.claims import below
from benchmarks.measure import Figures, interleaved, rounded

_ROOT = Path(__file__).resolve().parent.parent.parent
_FAMILIES = ("add", "exp", "sum", "matmul", "restickify", "gather", "topk")
_SLOW_KERNEL_SECONDS = 0.25


def first_runs() -> Figures:
    """One operation of each family: the run that finds an empty numba cache, and that of a second process."""
    found = {name: _cold_and_warm(name) for name in _FAMILIES}
    slowest = max(cast("float", item["cold_run_s"]) for item in found.values())
    again = max(cast("float", item["warm_run_s"]) for item in found.values())
    claims = [
        below("seconds of the first run of an operation with an empty cache", slowest, 2),
        below("of these in a second process", again / slowest, 0.5),
    ]
    return {**found, "claims": claims}


def _cold_and_warm(name: str) -> Figures:
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (_process(name, cache) for _ in range(2))
    kernels = cast("dict[str, float]", cold["compiled_s"])
    slow = {kernel: rounded(value, 3) for kernel, value in kernels.items() if value >= _SLOW_KERNEL_SECONDS}
    return {
        "cold_run_s": rounded(cast("float", cold["first_run_s"])),
        "warm_run_s": rounded(cast("float", warm["first_run_s"])),
        "import_s": rounded(cast("float", warm["import_s"])),
        "slow_kernels_s": slow,
        "compiled_in_second_process": sorted(cast("dict[str, float]", warm["compiled_s"])),
    }


def _process(name: str, cache: str) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.emulator_parts.first_run", name]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, check=True, cwd=_ROOT, env=environment, stdout=subprocess.PIPE)  # noqa: S603
    return cast("dict[str, object]", json.loads(done.stdout))


def spyrec_run() -> Figures:
    """``spyrec run`` of one add of [64,64], kernels cached, in a process of its own; beside a bare Python."""
    inputs = [{"name": name, "shape": [64, 64], "dtype": "float16"} for name in "ab"]
    nodes = [{"name": "y", "op": "add", "inputs": ["a", "b"]}]
    graph = {"format": "spyrec.graph/1", "name": "add", "inputs": inputs, "nodes": nodes, "outputs": ["y"]}
    with tempfile.TemporaryDirectory() as directory:
        bundle = Path(directory) / "bundle"
        spyrec.compile(graph).save(bundle)
        candidates = {
            "run": _python("-m", "spyrec", "run", str(bundle), "--random", "1"),
            "python": _python("-c", "pass"),
        }
        seconds = interleaved(candidates, rounds=7, statistic=min)
    figures = {f"{name}_s": rounded(value) for name, value in seconds.items()}
    return {**figures, "claims": [below("seconds of `spyrec run` of a tiny bundle", seconds["run"], 1.5)]}


def _python(*arguments: str) -> Callable[[], object]:
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, cwd=_ROOT, stdout=subprocess.DEVNULL)  # noqa: S603 -- our own
