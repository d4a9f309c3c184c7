"""``python -m benchmarks model_ops FILE... [--json | --markdown | --torch] [--jobs N] [--max-elements N | --full]``.

``--only OP`` runs the calls of one function.  ``--torch`` runs nothing on the device: it holds the oracle against
PyTorch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from benchmarks.model_ops.report import Report, as_markdown, as_text
from benchmarks.model_ops.run import Verdict, verdict_of
from benchmarks.model_ops.torch_judge import opinion_of
from spyrec.diagnostics import SpyrecError
from spyrec.sweep.model_calls.cases import Case, read_lists
from spyrec.sweep.model_calls.scale import scaled_or_same
from spyrec.sweep.model_calls.signatures import public_name

MAX_ELEMENTS = 1 << 20


def main(arguments: Sequence[str]) -> int:
    """Run the calls of the lists; exit code 0 where all are right, 1 where not, 2 for a file that is no list."""
    options = _parser().parse_args(arguments)
    try:
        calls, entries = read_lists([Path(name) for name in options.files])
    except SpyrecError as error:
        print(error, file=sys.stderr)
        return 2
    if options.only:
        calls = {case: models for case, models in calls.items() if public_name(case.op) in options.only}
    most = None if options.full else options.max_elements
    if options.torch:
        return _against_torch(list(dict.fromkeys(scaled_or_same(case, most) for case in calls)))
    report = Report(calls, verdicts_of(list(calls), most, options.jobs), entries)
    if options.json:
        print(json.dumps({**report.rows(), "reasons": report.reasons()}, indent=1))
    else:
        print(as_markdown(report) if options.markdown else as_text(report), end="" if options.markdown else "\n")
    return 0 if report.is_right else 1


def _against_torch(cases: Sequence[Case]) -> int:
    """Print where the oracle's results are not PyTorch's; exit code 0 where they all are, 2 without torch."""
    if find_spec("torch") is None:
        print("--torch needs torch (extra: torch)", file=sys.stderr)
        return 2
    same, differing = 0, 0
    for case in cases:
        complaint = opinion_of(case).complaint
        same += complaint == ""
        if complaint:
            differing += 1
            print(f"{public_name(case.op)}: {complaint}: {case}")
    unsaid = len(cases) - same - differing
    print(f"{same} calls as PyTorch computes them, {differing} not, {unsaid} of which it says nothing")
    return 1 if differing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks model_ops", description="Run the calls that models make."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a list of calls (JSON)")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the tables as docs/model_calls.md has them")
    parser.add_argument("--torch", action="store_true", help="hold the oracle against PyTorch instead (needs torch)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--max-elements", type=int, default=MAX_ELEMENTS, help="scale larger tensors down to so many")
    parser.add_argument("--full", action="store_true", help="run the true shapes, of gigabytes")
    parser.add_argument("--only", action="append", metavar="OP", help="only calls of this function; may be repeated")
    return parser


def verdicts_of(cases: Sequence[Case], most: int | None, jobs: int) -> Mapping[Case, Verdict]:
    """Return the verdict of each case; those that scale to the same call run once."""
    forms = {case: scaled_or_same(case, most) for case in cases}
    distinct = list(dict.fromkeys(forms.values()))
    found = dict(zip(distinct, _run_all(distinct, most, jobs)))
    return {case: found[form] for case, form in forms.items()}


def _run_all(cases: Sequence[Case], most: int | None, jobs: int) -> Iterator[Verdict]:
    run = partial(verdict_of, most_elements=most)
    if jobs == 1:
        yield from map(run, cases)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(run, cases, chunksize=8)
