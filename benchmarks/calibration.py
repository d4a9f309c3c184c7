"""``python -m benchmarks calibration FILE [--profile NAME] ...``: simulated times against measured ones.

``FILE``: a CSV of measured kernel times as ``spyrec calibrate`` takes it; it is no part of the project, and without it
there is nothing to measure.  ``--validate``: a profile is fitted three times without a third of the shapes, and the
table is of the thirds left out; else it is of the profile as it stands.  Printed are a table by family and the
regret of divisions; with ``--terms`` what each term of the profile is worth to the family that needs it most.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from spyrec.calibration.fit import Case, cases_of, cross_validated, families, regrets, uncertainty
from spyrec.calibration.measurements import Measurement, read_measurements
from spyrec.diagnostics import SpyrecError
from spyrec.files.file_kinds import PICTURE_MARK
from spyrec.hardware.profile_file import figure_names, with_figures
from spyrec.hardware.target import MEASURED_2026_08, PROFILES, TargetProfile

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
    if options.terms:
        print("\n".join(_terms(cases, profile)))
    if options.svg is not None:
        options.svg.write_text(_picture(cases, times), encoding="utf-8")
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


_WIDTH, _HEIGHT, _MOST = 900, 300, 0.5
"""Of a picture, in its units; the largest error that it shows where it is."""


def _picture(cases: Sequence[Case], times: dict[str, float]) -> str:
    """Return the errors of judged cases over their measured times, as SVG: a colour and a title for each family."""
    judged = [case.measurement for case in cases if case.measurement.is_judged]
    names = sorted({item.family for item in judged})
    logs = [math.log10(item.measured_us) for item in judged]
    first, last = min(logs, default=0.0), max(logs, default=1.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 20 * len(names)}">',
        *(_level(share) for share in (-_MOST, -0.1, 0.0, 0.1, _MOST)),
    ]
    for item, log in zip(judged, logs, strict=True):
        error = max(-_MOST, min(_MOST, times[item.name] / item.measured_us - 1.0))
        x = 60 + (log - first) / max(last - first, 1e-9) * (_WIDTH - 80)
        colour = _colour(names.index(item.family), len(names))
        title = f"<title>{escape(item.name)}: {100 * error:+.1f} %</title>"
        lines.append(f'<circle cx="{x:.1f}" cy="{_y(error):.1f}" r="3" fill="{colour}">{title}</circle>')
    for place, name in enumerate(names):
        y, colour = _HEIGHT + 20 * place + 10, _colour(place, len(names))
        lines.append(f'<text x="60" y="{y}" font-size="12" fill="{colour}">{escape(name)}</text>')
    return "\n".join([PICTURE_MARK, *lines, "</svg>"]) + "\n"


def _y(error: float) -> float:
    return _HEIGHT / 2 - error / _MOST * (_HEIGHT / 2 - 15)


def _level(share: float) -> str:
    line = f'<line x1="60" x2="{_WIDTH - 20}" y1="{_y(share):.1f}" y2="{_y(share):.1f}" stroke="#ccc"/>'
    return f'{line}<text x="5" y="{_y(share) + 4:.1f}" font-size="12">{100 * share:+.0f} %</text>'


def _colour(place: int, count: int) -> str:
    return f"hsl({360 * place // max(1, count)}, 70%, 40%)"


_FACTORS = ("streams.half_share", "matmul.depth_split", "matmul.batch_split")


def _terms(cases: Sequence[Case], profile: TargetProfile) -> list[str]:
    """Return what each term is worth: the RMS error of the family that needs it most, with it and without."""
    measurements = [case.measurement for case in cases]
    whole = _errors(cases, measurements, profile)
    lines: list[str] = []
    for name in figure_names():
        if not name.startswith(("streams.", "matmul.")):
            continue
        neutral = 1.0 if name in _FACTORS else 0.0
        without = _errors(cases, measurements, with_figures(profile, {name: neutral}, "none"))
        family = max(whole, key=lambda item: without[item] - whole[item])
        lines.append(f"{name}: RMS of {family} {100 * whole[family]:.1f} %, without it {100 * without[family]:.1f} %")
    return lines


def _errors(cases: Sequence[Case], measurements: Sequence[Measurement], profile: TargetProfile) -> dict[str, float]:
    times = {case.measurement.name: case.simulated_us(profile) for case in cases}
    return {row.family: row.rms for row in families(measurements, times)}


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
    parser.add_argument("--svg", type=Path, help="also: write the errors over the measured times as a picture")
    parser.add_argument("--terms", action="store_true", help="also: what each term of the profile is worth")
    return parser
