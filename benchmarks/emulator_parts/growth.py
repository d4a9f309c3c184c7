"""How the emulator's cost grows: with elements, with SuperDSCs, with executions of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.emulator_parts.claims import at_least, below
from benchmarks.emulator_parts.loops import looped_add, whole_add
from benchmarks.measure import Figures, interleaved, rounded

_ROUNDS = 9
_STRAIGHT = 0.98
_ROWS = (512, 1024, 2048, 4096, 8192)
_LENGTHS = (10, 50, 100, 200, 300, 500)
_COUNT = 400
_FEW = 40
_CORES = 32


def fit(sizes: Sequence[int], seconds: Sequence[float], unit: str) -> Figures:
    """Return the line through the points: slope, intercept, and the part of the variance that it explains (R^2)."""
    x, y = np.array(sizes, np.float64), np.array(seconds)
    slope, intercept = np.polyfit(x, y, 1)
    rest = np.square(y - slope * x - intercept).sum()
    r_squared = 1 - rest / np.square(y - y.mean()).sum()
    points = {str(size): rounded(1e3 * value) for size, value in zip(sizes, seconds)}
    return {
        "points_ms": points,
        f"slope_ns_per_{unit}": rounded(slope * 1e9),
        "intercept_ms": rounded(intercept * 1e3),
        "r_squared": rounded(r_squared),
    }


def elements() -> Figures:
    """Softmax of [rows,4096] for five numbers of rows: launch time against elements."""
    launches = {str(rows): _softmax(rows) for rows in _ROWS}
    best = interleaved({name: item.launch for name, item in launches.items()}, _ROUNDS, statistic=min)
    line = fit([rows * 4096 for rows in _ROWS], [best[str(rows)] for rows in _ROWS], "element")
    return {**line, "claims": [_straight(line)]}


def superdscs() -> Figures:
    """Chains of 10 to 500 tiny operations, which can fuse (add) or not (mm): load and launch time against SuperDSCs."""
    found: Figures = {}
    claims: list[Figures] = []
    for op in ("add", "mm"):
        chains = {str(length): _chain(op, length) for length in _LENGTHS}
        launches = {name: DeviceLaunch(bundle, data) for name, (bundle, data) in chains.items()}
        load = interleaved({n: lambda c=chain: DeviceLaunch(*c) for n, chain in chains.items()}, 3, statistic=min)
        launch = interleaved({n: item.launch for n, item in launches.items()}, _ROUNDS, statistic=min)
        counts = [sum(len(program.superdscs) for program in chain[0].programs) for chain in chains.values()]
        for kind, best in (("load", load), ("launch", launch)):
            line = fit(counts, list(best.values()), "superdsc")
            found[f"{op}_{kind}"] = line
            claims.append({"what": f"{op}_{kind}", **_straight(line)})
    return {**found, "claims": claims}


def loops() -> Figures:
    """Dispatch an add of one stick 160,000 times from two nested loops, beside the same add as one operation."""
    looped, whole = looped_add(_COUNT, _COUNT), whole_add(_COUNT, _COUNT)
    looped.launch()
    whole.launch()
    assert np.array_equal(looped.result("t2"), whole.result("t2"))
    many = looped_add(_FEW * _CORES, _FEW, _CORES)
    candidates = {"looped": looped.launch, "whole": whole.launch, "many": many.launch}
    best = interleaved(candidates, 3, statistic=min)
    beyond = best["looped"] - best["whole"]
    return {
        "executions": _COUNT * _COUNT,
        "looped_s": rounded(best["looped"]),
        "arithmetic_s": rounded(best["whole"]),
        "us_per_execution_of_1_core": rounded(beyond / _COUNT**2 * 1e6),
        f"us_per_execution_of_{_CORES}_cores": rounded(best["many"] / _FEW**2 * 1e6),
        "claims": [below("seconds beyond the arithmetic", beyond, 1)],
    }


def _straight(line: Figures) -> Figures:
    r_squared = line["r_squared"]
    assert isinstance(r_squared, float)
    return at_least("R^2 of the line", r_squared, _STRAIGHT)


def _softmax(rows: int) -> DeviceLaunch:
    inputs = [{"name": "x", "shape": [rows, 4096], "dtype": "float16"}]
    nodes = [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": -1}}]
    graph = {"format": "spyrec.graph/1", "name": "softmax", "inputs": inputs, "nodes": nodes, "outputs": ["y"]}
    x = np.random.Generator(np.random.PCG64(0)).standard_normal((rows, 4096), dtype=np.float32)
    return DeviceLaunch(spyrec.compile(graph), {"x": x.astype(np.float16)})


def _chain(op: str, length: int) -> tuple[spyrec.Bundle, dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float16]]]]:
    names = ["x", *(f"y{number}" for number in range(length))]
    inputs = [{"name": name, "shape": [64, 64], "dtype": "float16"} for name in ("x", "w")]
    nodes = [{"name": to, "op": op, "inputs": [come, "w"]} for come, to in pairwise(names)]
    graph = {"format": "spyrec.graph/1", "name": op, "inputs": inputs, "nodes": nodes, "outputs": names[-1:]}
    bundle = spyrec.compile(graph, spyrec.CompileOptions(cores=2))
    return bundle, {name: np.eye(64, dtype=np.float16) for name in ("x", "w")}
