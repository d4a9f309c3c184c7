"""``python -m benchmarks calibration FILE [--profile NAME] [--validate]``: simulated times against measured ones.

``FILE``: a CSV of measured kernel times as ``spyrec calibrate`` takes it; it is no part of the project, and without it
there is nothing to measure.  ``--validate``: a profile is fitted three times without a third of the shapes, and the
table is of the thirds left out; else it is of the profile as it stands.  Printed are a table by family and the
regret of divisions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from spyrec.calibration.fit import Case, cases_of, cross_validated, families, regrets, uncertainty
from spyrec.calibration.measurements import Measurement, read_measurements
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import MEASURED_2026_08, PROFILES

_MOST_REGRETS = 12


def main(arguments: Sequence[str]) -> int:
    """Print the tables of a file; exit code 1 for one that is no list of measurements."""
    options = _parser().parse_args(arguments)
    try:
        measurements = read_measurements(options.file)
    except SpyrecError as error:
        print(error, file=sys.stderr)
        return 1
    profile = PROFILES[options.profile]
    cases = cases_of(measurements, profile)
    if options.validate:
        times = cross_validated(cases, "a fold", MEASURED_2026_08)
    else:
        times = {case.measurement.name: case.simulated_us(profile) for case in cases}
    print("\n".join([*_table(measurements, times), "", *_regrets(cases, options.profile)]))
    for limit, share in uncertainty(cases, times).items():
        print(f"nine of ten times limited by {limit} are off by at most {100 * share:.1f} %")
    return 0


def _table(measurements: Sequence[Measurement], times: dict[str, float]) -> list[str]:
    head = "| family | n | median error % | RMS % | mean % | Spearman | within 10 % |"
    rows = [
        f"| {row.family} | {row.count} | {100 * row.median:.1f} | {100 * row.rms:.1f} | {100 * row.mean:+.1f} "
        f"| {row.rank_correlation:.3f} | {100 * row.near:.0f} |"
        for row in families(measurements, times)
    ]
    return [head, "|---|---:|---:|---:|---:|---:|---:|", *rows]


def _regrets(cases: Sequence[Case], name: str) -> list[str]:
    found = regrets(cases, PROFILES[name])
    if not found:
        return []
    chosen_best = sum(item.ratio == 1.0 for item in found)
    mean = sum(item.ratio for item in found) / len(found)
    best = f"of {len(found)} products measured in several divisions the preferred one is the fastest for {chosen_best}"
    lines = [f"{best}; regret {mean:.3f} in the mean, {found[0].ratio:.3f} at most"]
    for item in found[:_MOST_REGRETS]:
        if item.ratio > 1.0:
            shape = "x".join(map(str, item.shape))
            lines.append(f"  {item.op} {shape} on {item.cores} cores, {item.divisions} divisions: {item.ratio:.3f}")
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks calibration", description=__doc__)
    parser.add_argument("file", type=Path, help="measured kernel times, CSV")
    parser.add_argument("--profile", choices=sorted(PROFILES), default=MEASURED_2026_08.name)
    parser.add_argument("--validate", action="store_true", help="cross-validate a fit instead of taking the profile")
    return parser
