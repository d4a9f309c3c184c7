"""What a worker does with one case: make it from its number's seed, or take it, try it, and say what became of it.

Of some cases the branches of ``spyrec`` that were taken are counted, too: only those come back that this process has
not sent before, so that what travels grows with what is new.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import orjson

from benchmarks.campaign.kinds import KINDS, Kind
from benchmarks.campaign.verdicts import FAILURE, PACKAGE, Case, Verdict
from spyrec.diagnostics.json_reading import JsonValue

FUNCTION = "benchmarks.campaign.task:run_case"

Arcs = dict[str, list[tuple[int, int]]]
"""Branches taken by file, each from a line to a line."""

_UNMADE = "unmade"

_sent: dict[str, set[tuple[int, int]]] = {}


def can_count_branches() -> bool:
    """Whether coverage.py is installed."""
    return find_spec("coverage") is not None


def made(kind: Kind, seed: int) -> Case:
    """Return the case of a seed; the seed alone where the generator is what breaks."""
    try:
        return kind.make(seed)
    except Exception:  # noqa: BLE001 -- it is told where a worker makes the case
        return {_UNMADE: seed}


def is_unmade(case: Case) -> bool:
    """Whether it is the seed of a case that could not be made: there is nothing to make small."""
    return _UNMADE in case


def parts_of(kind: Kind, case: Case) -> tuple[str, ...]:
    """Return what a case is made of."""
    return (f"generator of {kind.name}",) if is_unmade(case) else tuple(kind.parts(case))


def request_of(kind: str, case: Case) -> Mapping[str, JsonValue]:
    """Return what a worker takes to try a case again."""
    return {"kind": kind, "seed": case[_UNMADE]} if is_unmade(case) else {"kind": kind, "case": case}


def run_case(payload: bytes, held: Path) -> bytes:
    """Run the case of ``{"kind", "seed" or "case", "cover"}``; of a failure the answer has the case and its parts."""
    del held
    request = cast("Mapping[str, JsonValue]", orjson.loads(payload))
    kind = KINDS[str(request["kind"])]
    found: dict[str, object] = {}

    def run() -> tuple[Case, Verdict]:
        case = cast("Case", request["case"]) if "case" in request else kind.make(cast("int", request["seed"]))
        return case, kind.trial(case)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if request.get("cover"):
            (case, verdict), found["arcs"] = _covered(run)
        else:
            case, verdict = run()
    found |= verdict.to_json()
    if verdict.end == FAILURE:
        found |= {"case": case, "parts": [*kind.parts(case)]}
    return orjson.dumps(found)


def _covered(run: Callable[[], tuple[Case, Verdict]]) -> tuple[tuple[Case, Verdict], Arcs]:
    """Run something and return the branches that it took for the first time in this process."""
    coverage: Any = import_module("coverage")
    watcher = coverage.Coverage(data_file=None, branch=True, source_dirs=[str(PACKAGE)], config_file=False)
    watcher.start()
    try:
        result = run()
    finally:
        watcher.stop()
    data = watcher.get_data()
    new: Arcs = {}
    for file in data.measured_files():
        name = Path(file).relative_to(PACKAGE).as_posix()
        known = _sent.setdefault(name, set())
        fresh = sorted(set(cast("list[tuple[int, int]]", data.arcs(file) or [])) - known)
        if fresh:
            new[name] = fresh
            known.update(fresh)
    return result, new
