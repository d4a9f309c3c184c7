"""``python -m benchmarks calibration FILE [--profile NAME] ...``: simulated times against measured ones.

``FILE``: a CSV of measured kernel times as ``spyrec calibrate`` takes it; it is no part of the project, and without it
there is nothing to measure.  ``--validate``: a profile is fitted three times without a third of the shapes, and the
table is of the thirds left out; else it is of the profile as it stands.  Printed are a table by family and
the regret of every configuration that was measured in several divisions, orders of operands or tiles; with ``--terms``
what each term earns in a fit that is judged on what it did not see.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

from spyrec.calibration.fit import Case, cases_of, cross_validated, families, regrets, uncertainty
from spyrec.calibration.measurements import Measurement, read_measurements
from spyrec.diagnostics import SpyrecError
from spyrec.files.file_kinds import PICTURE_MARK
from spyrec.hardware.cost import OperationClass, OperationRecord, cost_of
from spyrec.hardware.profile_file import figure_names
from spyrec.hardware.target import MEASURED_2026_08, PROFILES, TargetProfile


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
    print("\n".join(_tiled_sums(measurements, profile)))
    if options.terms:
        print("\n".join(_terms(cases)))
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


def _terms(cases: Sequence[Case]) -> list[str]:
    """Return what each term earns: the RMS errors that are left out of the fit, with it and where a fit lacks it.

    Of the family that needs it most, and of the one that is best without.  It takes a few seconds a term.
    """
    whole = _errors(cases, ())
    lines: list[str] = []
    for name in figure_names():
        if name.startswith(("streams.", "matmul.")):
            lacking = _errors(cases, (name,))
            first, *_, last = sorted(whole, key=lambda item: whole[item] - lacking[item])
            lines.append(
                f"{name}: RMS of {first} {100 * whole[first]:.1f} %, without it {100 * lacking[first]:.1f} %; "
                f"of {last} {100 * whole[last]:.1f} and {100 * lacking[last]:.1f} %"
            )
    return lines


def _errors(cases: Sequence[Case], without: Sequence[str]) -> dict[str, float]:
    times = cross_validated(cases, "a fold", MEASURED_2026_08, without=without)
    return {row.family: row.rms for row in families([case.measurement for case in cases], times)}


def _regrets(cases: Sequence[Case], name: str) -> list[str]:
    """Return tables of what was measured in several ways: a line for each kind of choice and family, then each case."""
    found = regrets(cases, PROFILES[name])
    kinds = list(dict.fromkeys((item.choice, item.family) for item in found))
    lines = [
        "| choice | family | n | fastest chosen | median regret | 90 % | worst | plan measured |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for choice, family in kinds:
        own = [item for item in found if (item.choice, item.family) == (choice, family)]
        ratios = sorted(item.ratio for item in own)
        best, planned = (sum(item.ratio == 1.0 for item in own), sum(item.is_planned for item in own))
        lines.append(
            f"| {choice.value} | {family} | {len(own)} | {best} | {statistics.median(ratios):.3f} "
            f"| {ratios[math.ceil(0.9 * len(ratios)) - 1]:.3f} | {ratios[-1]:.3f} | {planned} |"
        )
    lines += [
        "",
        "| choice | configuration | cores | ways | chosen / fastest | plan |",
        "|---|---|---:|---:|---:|---|",
    ]
    for item in found:
        shape = "x".join(map(str, item.shape))
        planned = "yes" if item.is_planned else "not measured"
        row = f"| {item.choice.value} | {item.op} {shape} | {item.cores} | {item.ways} | {item.ratio:.3f} | {planned} |"
        lines.append(row)
    return [*lines, ""] if found else []


def _tiled_sums(measurements: Sequence[Measurement], profile: TargetProfile) -> list[str]:
    """Return how far sums in a loop are off where the program is priced that was measured, not ours.

    Times say that it copied every tile, in 16 bits, and summed the copy: through memory, or in LX where tiles have
    fewer rows than columns of sticks, so that both divide the columns.  Ours converts tiles to float32 (D115).
    """
    judged = [item for item in measurements if item.family == "tiled_reduction" and item.is_judged]
    errors: list[float] = []
    for item in judged:
        rows, columns = item.shape[0] // item.tiles, item.shape[1] // _LANES
        (case,) = cases_of([replace(item, uses_lx=item.uses_lx and rows < columns)], profile)
        time_us = sum(cost_of(_in_16_bits(record), profile).total_us * count for record, count in case.parts)
        errors.append(time_us / item.measured_us - 1.0)
    if not errors:
        return []
    rms = math.sqrt(sum(error**2 for error in errors) / len(errors))
    return [f"tiled_reduction as the program that was measured: {len(errors)} of RMS {100 * rms:.1f} %"]


_LANES = 64


def _in_16_bits(record: OperationRecord) -> OperationRecord:
    """Return what a tile of a sum takes without float32: half of what the conversion writes and the fold reads."""
    if record.operation_class is OperationClass.OUTER_REDUCTION:
        read_bytes, lx_bytes = record.read_bytes // 2, record.lx_read_bytes // 2
        return replace(record, read_bytes=read_bytes, lx_read_bytes=lx_bytes, element_bytes=2, reads_pool=False)
    if 2 * record.read_bytes == record.write_bytes:
        return replace(record, write_bytes=record.write_bytes // 2, element_bytes=2)
    return record


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks calibration", description=__doc__)
    parser.add_argument("file", type=Path, help="measured kernel times, CSV")
    parser.add_argument("--profile", choices=sorted(PROFILES), default=MEASURED_2026_08.name)
    parser.add_argument("--validate", action="store_true", help="cross-validate a fit instead of taking the profile")
    parser.add_argument("--svg", type=Path, help="also: write the errors over the measured times as a picture")
    parser.add_argument("--terms", action="store_true", help="also: what each term of the profile is worth")
    return parser
