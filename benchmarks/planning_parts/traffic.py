"""What plans move: bytes of device memory that the emulator counts over the lower bound, with and without LX.

Claims: 1.00 for softmax, norms, pointwise chains and residual blocks, at most 1.15 for attention and MLP; the same for
models that need loops which the compiler chooses; what was predicted is what is counted; 500 operations plan in 10 s.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import spyrec
from benchmarks.measure import Figures, rounded
from benchmarks.planning_parts.workloads import SHOWN, TILED, Workload, pointwise_chain
from spyrec import CompileOptions
from spyrec.front import read_source

_MEASURED_BYTES = 512 << 20
"""Plans that move more are predicted only: to run them takes the emulator long."""

_VARIANTS = {
    "planned": CompileOptions(),
    "no auto tile": CompileOptions(auto_tile=False),
    "no lx": CompileOptions(lx_planner="none", auto_tile=False),
}


def _moved(workload: Workload, options: CompileOptions) -> tuple[int, int, int | None]:
    """Return bytes predicted, the lower bound, and the bytes counted in a run where that is made."""
    bundle = spyrec.compile(workload.data, options)
    figures = bundle.manifest.figures
    assert figures is not None
    predicted = figures.hbm_read_bytes + figures.hbm_write_bytes
    if predicted > _MEASURED_BYTES:
        return predicted, figures.lower_bound_bytes, None
    total = spyrec.run(bundle, _inputs(workload)).stats.total
    return predicted, figures.lower_bound_bytes, total.hbm_read_bytes + total.hbm_write_bytes


def _inputs(workload: Workload) -> Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Return zeros: what moves does not depend on the numbers."""
    graph = read_source(workload.data, Path())
    shapes = {name: graph.type_of(name) for name in graph.inputs}
    return {name: np.zeros(found.shape, found.dtype.carrier) for name, found in shapes.items()}


def traffic() -> Figures:
    """Print the table on stderr; return the worst ratio of those that claim 1.00, of all, and seconds."""
    wrong: list[str] = []
    excess: list[float] = []
    figures: Figures = {}
    print(f"{'bytes / lower bound':>28} {'measured':>9}  " + "  ".join(_VARIANTS), file=sys.stderr)
    for name, workload in {**SHOWN, **TILED}.items():
        ratios: list[float] = []
        marks: list[str] = []
        for options in _VARIANTS.values():
            predicted, least, counted = _moved(workload, options)
            wrong += [name] if counted is not None and counted != predicted else []
            ratios.append(predicted / least)
            marks.append("-" if counted is None else "=" if counted == predicted else "WRONG")
        excess.append(ratios[0] / workload.most_ratio)
        figures[name] = " ".join(f"{ratio:.4f}" for ratio in ratios)
        print(f"{name:>28} {' '.join(marks):>9}  {figures[name]}", file=sys.stderr)
    start = time.process_time()
    spyrec.compile(pointwise_chain(500, 64, 256))
    seconds = time.process_time() - start
    return {
        **figures,
        "worst_over_claim": rounded(max(excess)),
        "predicted_wrongly": len(wrong),
        "seconds_500_ops": rounded(seconds, 2),
        "claims": "worst_over_claim <= 1; predicted_wrongly == 0; seconds_500_ops <= 10",
    }
