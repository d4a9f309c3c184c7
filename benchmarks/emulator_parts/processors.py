"""Products by every variant of kernels that the processor can execute, beside NumPy's sgemm, in one run.

Each candidate is a process of its own, as neither numba nor OpenBLAS changes its processor in one; they take turns.
sgemm is there as it comes, and for AVX2 alone (``OPENBLAS_CORETYPE=Haswell``); which kernel it took is in the figures.
Of each turn that a variant and a rival took the ratio of seconds is formed; given are its median, and the ratio of
the best.  CPU seconds are those of all threads: they say more where the machine has others to serve.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.emulator_parts.claims import at_least
from benchmarks.emulator_parts.operations import PRODUCTS, normal, product_of
from benchmarks.machine import sgemm_kernel
from benchmarks.measure import Figures, rounded
from spyrec.files.host_processor import VARIABLE, host_processor

_ROOT = Path(__file__).resolve().parent.parent.parent
_SGEMM = "sgemm"
_RIVALS: Mapping[str, Mapping[str, str]] = {_SGEMM: {}, "sgemm_haswell": {"OPENBLAS_CORETYPE": "Haswell"}}
_PAUSE_SECONDS = 0.1  # an idle BLAS thread spins for a while
_LEAST = {"mm": 0.85, "bmm": 0.8}


@dataclass(frozen=True, slots=True)
class _Turn:
    wall_s: float
    cpu_s: float


@dataclass(slots=True)
class _Candidate:
    """A process that computes one product whenever it is asked to."""

    process: subprocess.Popen[str]
    name: str
    turns: list[_Turn] = field(default_factory=list[_Turn])

    def take_turn(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.turns.append(_Turn(*map(float, self.process.stdout.readline().split())))

    def best(self, figure: str) -> float:
        return min(getattr(turn, figure) for turn in self.turns)


@contextmanager
def _candidate(product: str, kind: str, settings: Mapping[str, str]) -> Generator[_Candidate]:
    command = [sys.executable, "-m", "benchmarks.emulator_parts.processors", product, kind]
    kept = {name: value for name, value in os.environ.items() if name not in {VARIABLE, "OPENBLAS_CORETYPE"}}
    with subprocess.Popen(  # noqa: S603 -- our own
        command, cwd=_ROOT, env={**kept, **settings}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield _Candidate(process, process.stdout.readline().strip())


def variants() -> Figures:
    """Matrix products of [4096,4096] and 16 of [1024,1024] by each variant, and by sgemm."""
    return {product: _measured(product, rounds) for product, rounds in {"mm": 5, "bmm": 9}.items()}


def _measured(product: str, rounds: int) -> Figures:
    with ExitStack() as stack:
        settings = {**_RIVALS, **{name: {VARIABLE: name} for name in host_processor().executable}}
        every = {
            name: stack.enter_context(_candidate(product, _SGEMM if name in _RIVALS else "emulated", own))
            for name, own in settings.items()
        }
        for number in range(rounds + 1):
            for candidate in every.values():
                time.sleep(_PAUSE_SECONDS)
                candidate.take_turn()
                if number == 0:
                    candidate.turns.clear()
    seconds: Figures = {
        f"{name} ({item.name})" if name in _RIVALS else name: {
            "best_ms": rounded(1e3 * item.best("wall_s")),
            "median_ms": rounded(1e3 * median(turn.wall_s for turn in item.turns)),
            "best_cpu_ms": rounded(1e3 * item.best("cpu_s")),
        }
        for name, item in every.items()
    }
    speeds = {
        f"{name} of {rival}": _speeds(every[name], every[rival])
        for name in every
        if name not in _RIVALS
        for rival in _RIVALS
    }
    claims = [
        at_least(f"speed, {name} of {rival}'s", _best(speeds[f"{name} of {rival}"]), _LEAST[product])
        for name, rival in (("avx512", _SGEMM), ("avx2", _SGEMM), ("avx2", "sgemm_haswell"))
        if name in every
    ]
    return {**seconds, "speeds": speeds, "claims": claims}


def _speeds(own: _Candidate, rival: _Candidate) -> Mapping[str, float]:
    pairs = list(zip(own.turns, rival.turns, strict=True))
    return {
        "best": rounded(rival.best("wall_s") / own.best("wall_s")),
        "median": rounded(median(other.wall_s / turn.wall_s for turn, other in pairs)),
        "best_cpu": rounded(rival.best("cpu_s") / own.best("cpu_s")),
        "median_cpu": rounded(median(other.cpu_s / turn.cpu_s for turn, other in pairs)),
    }


def _best(speeds: Mapping[str, float]) -> float:
    return speeds["best"]


def _main(product: str, kind: str) -> None:
    """Print what computes, then for each line of the input the seconds of one product, and of all threads."""
    left, right = normal(2, *PRODUCTS[product])
    if kind == _SGEMM:
        out = np.empty(left.shape, np.float32)
        name = sgemm_kernel()

        def action() -> object:
            return np.matmul(left, right, out=out)
    else:
        action, name = product_of(product, left, right).ready().launch, host_processor().variant.name
    print(name, flush=True)
    for _ in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        action()
        print(time.perf_counter() - wall, time.process_time() - processor, flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
