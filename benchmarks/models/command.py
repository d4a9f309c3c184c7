"""``python -m benchmarks models [--form pt2|onnx] [--json] [NAME ...]``: the models through import, one row each."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.models.architectures import ARCHITECTURES
from benchmarks.models.trip import Form, Trip, travel

FORMS: tuple[Form, ...] = ("pt2", "onnx")


def main(arguments: Sequence[str]) -> int:
    """Take the models through; exit code 0 where all are right, 1 where not, 2 for a name that is none."""
    options = _parser().parse_args(arguments)
    unknown = [name for name in options.names if name not in ARCHITECTURES]
    if unknown:
        print(f"no model {unknown[0]!r}; there are: {', '.join(ARCHITECTURES)}", file=sys.stderr)
        return 2
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


def _row(trip: Trip) -> str:
    state = "right" if trip.is_right else "WRONG"
    error = f"error {trip.error:.2e} of {trip.tolerance:.2e}"
    times = f"import {trip.import_s:.1f} s, compile {trip.compile_s:.1f} s, run {trip.run_s:.1f} s"
    return f"{trip.name:20} {trip.form:5} {state}  {trip.nodes:4} nodes  {error}  {times}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks models", description="Import, compile and run models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model; all of them by default")
    parser.add_argument("--form", choices=FORMS, help="only this way into spyrec")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    return parser
