"""``python -m benchmarks models [--form pt2|onnx | --medium] [--json] [NAME ...]``: models through import, a row each.

``--medium``: larger ones beside PyTorch in float32, with the time of each step.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.machine import machine
from benchmarks.measure import Seconds
from benchmarks.models.architectures import ARCHITECTURES
from benchmarks.models.medium import MEDIUM, Journey, beside, journey
from benchmarks.models.trip import Form, Trip, travel
from spyrec.compare.random_roundings import SAYS_NOTHING

FORMS: tuple[Form, ...] = ("pt2", "onnx")


def main(arguments: Sequence[str]) -> int:
    """Take the models through; exit code 0 where all are right, 1 where not, 2 for a name that is none."""
    options = _parser().parse_args(arguments)
    models = MEDIUM if options.medium else ARCHITECTURES
    unknown = [name for name in options.names if name not in models]
    if unknown:
        print(f"no model {unknown[0]!r}; there are: {', '.join(models)}", file=sys.stderr)
        return 2
    if options.medium:
        return _medium(options.names or list(MEDIUM), as_json=options.json)
    trips: list[Trip] = []
    failures: dict[str, str] = {}
    for name in options.names or ARCHITECTURES:
        for form in [options.form] if options.form else FORMS:
            try:
                trip = travel(name, form)
            except Exception as error:  # noqa: BLE001 -- whatever fails is a row, and the others are told
                failures[f"{name} {form}"] = f"{type(error).__name__}: {error}"[:300]
                print(f"{name:20} {form:5} {failures[f'{name} {form}']}", flush=True)
                continue
            trips.append(trip)
            if not options.json:
                print(_row(trip), flush=True)
    if options.json:
        print(json.dumps({"models": [asdict(trip) for trip in trips], "failures": failures}, indent=1))
    right = sum(trip.is_right for trip in trips)
    print(f"{right} of {len(trips) + len(failures)} right", file=sys.stderr)
    return 0 if right == len(trips) + len(failures) else 1


def _medium(names: Sequence[str], *, as_json: bool) -> int:
    """Time the models of medium size; exit code as :func:`main`."""
    if not as_json:
        print(f"{machine()['processor']}, kernels {machine()['kernels']}; beside {beside()}", flush=True)
    journeys: list[Journey] = []
    for name in names:
        journeys.append(journey(name, MEDIUM[name]))
        if not as_json:
            print(_medium_row(journeys[-1]), flush=True)
    if as_json:
        models = [{**asdict(item), "over_eager": item.over_eager, "cpu_over_eager": item.cpu_over_eager}
                  for item in journeys]  # fmt: skip
        print(json.dumps({"machine": machine(), "beside": beside(), "models": models}, indent=1))
    return 0 if all(item.is_right for item in journeys) else 1


def _medium_row(found: Journey) -> str:
    steps = [f"import {_seconds(found.imported)}", f"compile {_seconds(found.compiled)}",
             f"first run {_seconds(found.first_run)}", f"warm {_seconds(found.warm_run)}",
             f"eager {_seconds(found.eager)}"]  # fmt: skip
    ratios = f"over eager {found.over_eager:.2f} (processor {found.cpu_over_eager:.2f})"
    return f"{found.name:14} {_verdict(found)}  {', '.join(steps)}, {ratios}"


def _seconds(found: Seconds) -> str:
    """Return seconds, and in brackets those of the processor."""
    return f"{found.wall:.2f} s ({found.cpu:.2f})"


def _verdict(found: Trip | Journey) -> str:
    state = "right" if found.is_right else "WRONG"
    says_nothing = found.is_right and found.tolerance >= SAYS_NOTHING
    note = " (it says nothing: roundings alone may change all of it)" if says_nothing else ""
    return f"{state}  {found.nodes:4} nodes  error {found.error:.2e} of {found.tolerance:.2e}{note}"


def _row(trip: Trip) -> str:
    times = f"import {trip.import_s:.1f} s, compile {trip.compile_s:.1f} s, run {trip.run_s:.1f} s"
    return f"{trip.name:20} {trip.form:5} {_verdict(trip)}  {times}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks models", description="Import, compile and run models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model; all of them by default")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--form", choices=FORMS, help="only this way into spyrec")
    kinds.add_argument("--medium", action="store_true", help="models of medium size, beside PyTorch in float32")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    return parser
