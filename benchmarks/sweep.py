"""What a sweep costs beside its cases: 2,000 that compute nothing, on 1, 2 and 4 local workers, rows kept on disk.

``sweep:engine`` measures tasks alone, without plan and rows; ``sweep:one_by_one`` tasks that travel each by itself,
which is what the scheduler itself takes; ``sweep:bytes`` what a case and its row weigh on the way and on the disk.
The processes are started, and have their modules, before anything is measured.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import orjson

from benchmarks.measure import Figures
from spyrec.sweep import batches
from spyrec.sweep.case_run import run_case
from spyrec.sweep.clusters import Scheduler, cluster_at, usable_processors
from spyrec.sweep.engine import Engine
from spyrec.sweep.results import Results
from spyrec.sweep.rows import ROW
from spyrec.sweep.run import Plan, planned, row_of, run_sweep
from spyrec.sweep.settings import read_settings
from spyrec.sweep.tasks import End, Limits, Outcome, Task

CASES = 2000
WORKERS = (1, 2, 4)
_ALONE = 300
_FUNCTION = "benchmarks.sweep:empty"
_LIMITS = Limits(60.0, 4 << 30)


def empty(payload: bytes, _: Path) -> bytes:
    """Do nothing: a task of the engine's."""
    return payload


def _tasks(name: str, count: int) -> Iterator[Task]:
    return (Task(f"{name}-{number}", _FUNCTION, b"{}") for number in range(count))


def _warm(engine: Engine) -> None:
    """Have every worker start its process: it is not known which one a task goes to."""
    for round_number in range(3):
        assert all(item.end is End.DONE for item in engine.run(_tasks(f"warm-{round_number}", 64)))


def _plan(folder: Path, results: Results, count: int) -> Plan:
    """Return a plan of calls of a usage counter, each with another name: cases of which nothing is computed."""
    entries = [
        {"op": "torch._C._log_api_usage_once", "inputs": [{"py": f"'{number}'"}], "models": {"m": 1}}
        for number in range(count)
    ]
    (folder / "calls.json").write_text(json.dumps(entries))
    (folder / "SWEEP.toml").write_text('format = "spyrec.sweep/1"\n[[graphs]]\ncalls = ["calls.json"]\n')
    return planned(read_settings(folder / "SWEEP.toml"), folder / "SWEEP.toml", results)


def _swept(cluster: Scheduler) -> Figures:
    """Return what a whole sweep of empty cases takes on a cluster, its processes started by a small one before."""
    for count in (256, CASES):
        with tempfile.TemporaryDirectory() as name, Results(Path(name) / "results") as results:
            begin = time.perf_counter()
            plan = _plan(Path(name), results, count)
            planned_s = time.perf_counter() - begin
            results.begin("empty", [case.key for case in plan.cases])
            begin = time.perf_counter()
            rows = list(run_sweep(plan, results, cluster))
            took_s = time.perf_counter() - begin
            assert {row.status for row in rows} == {"empty"}
    return {"plan_ms_per_case": _ms(planned_s, CASES), "ms_per_case": _ms(took_s, CASES), "seconds": round(took_s, 3)}


def _ms(seconds: float, count: int) -> float:
    return round(1000 * seconds / count, 3)


def whole() -> Figures:
    """Whole sweeps: from the plan to rows on the disk."""
    found: dict[str, object] = {"cores": usable_processors()}
    for workers in WORKERS:
        with cluster_at("local", workers) as cluster:
            found[f"workers_{workers}"] = _swept(cluster)
    return found


def engine() -> Figures:
    """Tasks alone."""
    found: dict[str, object] = {}
    for workers in WORKERS:
        with cluster_at("local", workers) as cluster, Engine(cluster, _LIMITS) as running:
            _warm(running)
            sent = running.batches
            begin = time.perf_counter()
            count = sum(1 for _ in running.run(_tasks("measured", CASES)))
            took_s = time.perf_counter() - begin
            assert count == CASES
            found[f"workers_{workers}"] = {"ms_per_task": _ms(took_s, CASES), "batches": running.batches - sent}
    return found


def one_by_one() -> Figures:
    """Tasks that travel each by itself: the scheduler's and the client's time for a task of Dask's, with its lease."""
    most = batches.MOST_TASKS
    batches.MOST_TASKS = 1
    try:
        with cluster_at("local", 2) as cluster, Engine(cluster, _LIMITS) as running:
            _warm(running)
            begin = time.perf_counter()
            count = sum(1 for _ in running.run(_tasks("alone", _ALONE)))
            return {"ms_per_batch": _ms(time.perf_counter() - begin, count)}
    finally:
        batches.MOST_TASKS = most


def sizes() -> Figures:
    """Bytes of a case with an operation: on its way there and back, on the disk, and in the plan's memory."""
    with tempfile.TemporaryDirectory() as name, Results(Path(name) / "results") as results:
        plan = _plan(Path(name), results, 100)
        case = plan.cases[0]
        answer = run_case(case.payload, Path(name))
        row = row_of(case, Outcome(case.task(), End.DONE, orjson.loads(answer), "", 0.001, "tcp://127.0.0.1:40000"))
        return {
            "request_bytes": len(case.payload) + len(case.key) + len(case.task().function),
            "answer_bytes": len(answer),
            "row_bytes": len(orjson.dumps(ROW.write(row))) + 1,
        }


PARTS: Mapping[str, Callable[[], Figures]] = {
    "whole": whole,
    "engine": engine,
    "one_by_one": one_by_one,
    "bytes": sizes,
}


def measure() -> Figures:
    """Return all parts; the aim is below 5 ms for each empty case where workers are no more than cores."""
    return {"aim": "ms_per_case below 5", **{name: part() for name, part in PARTS.items()}}
