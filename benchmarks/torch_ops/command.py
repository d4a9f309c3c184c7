"""``python -m benchmarks torch_ops [--way WAY] [--samples N] [--json] [NAME ...]``: PyTorch's tests, a row for each."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec

from benchmarks.torch_ops.samples import OPERATIONS, WAYS, Row, operations, row_of


def main(arguments: Sequence[str]) -> int:
    """Take the operations through; exit code 0 where all are right, 1 where not, 2 where they cannot be tried."""
    options = _parser().parse_args(arguments)
    absent = [name for name in ("torch", "expecttest") if find_spec(name) is None]
    if absent:
        print(f"PyTorch's tests need {' and '.join(absent)}", file=sys.stderr)
        return 2
    known = operations()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"PyTorch has no tests of {unknown[0]!r}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in options.names or OPERATIONS:
        for way in [options.way] if options.way else WAYS:
            row = row_of(known[name], way, options.samples)
            if not row.samples:
                continue
            rows.append(row)
            if not options.json:
                print(_line(row), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    right, samples = sum(row.right for row in rows), sum(row.samples for row in rows)
    whole = sum(row.right == row.samples for row in rows)
    print(f"{right} of {samples} samples right, {whole} of {len(rows)} rows", file=sys.stderr)
    return 0 if right == samples else 1


def _line(row: Row) -> str:
    state = f"{row.right:3} of {row.samples:3} right"
    times = f"{row.seconds:6.2f} s, eager {row.eager_seconds * 1e3:6.2f} ms"
    lines = [f"{row.name:44} {row.way:8} {state}  worst {row.worst_share:5.2f}  {times}"]
    lines += [f"    sample {number}: {text}" for number, text in sorted({**row.wrong, **row.refused}.items())]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks torch_ops", description="PyTorch's tests, compiled.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="an operation; the benchmark's own by default")
    parser.add_argument("--way", choices=WAYS, help="only these samples, or this dtype on the device")
    parser.add_argument("--samples", type=int, default=4, help="at most so many samples of each (4)")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    return parser
