"""``spyrec calibrate``: a timing profile fitted to measured kernel times."""

from __future__ import annotations

from pathlib import Path

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath


@click.command(name="calibrate")
@click.argument("measurements", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "output", required=True, type=OutputPath(), help="The profile file to write.")
@click.option("--name", help="The profile's name; that of the file to write without one.")
@click.option("--force", is_flag=True, help="Replace a file that spyrec did not write.")
def command(*, measurements: Path, output: Path, name: str | None, force: bool) -> int:
    """Fit a timing profile to MEASUREMENTS, a CSV of kernel times, and write it for --profile.

    The uncertainty in it is judged on thirds of the shapes that the fit did not see.
    """
    from dataclasses import replace

    from spyrec.calibration.fit import cases_of, cross_validated, families, fitted, uncertainty
    from spyrec.calibration.measurements import read_measurements
    from spyrec.files.file_kinds import PROFILE
    from spyrec.files.whole_file import refuse_unwritable, write_file
    from spyrec.hardware.profile_file import checked_name, profile_to_json
    from spyrec.hardware.target import DEFAULT_PROFILE, Figure, Trust

    chosen = checked_name(name or output.stem)
    refuse_unwritable(output, PROFILE, force=force)
    found = read_measurements(measurements)
    source = f"fitted to {measurements.name}"[:256]
    console = current_console()
    with console.progress("planning what was measured"):
        cases = cases_of(found)
    with console.progress("fitting"):
        profile = fitted(cases, source)
        times = cross_validated(cases, source, DEFAULT_PROFILE)
    shares = tuple((limit, Figure(share, source, Trust.FITTED)) for limit, share in uncertainty(cases, times).items())
    text = profile_to_json(replace(profile, name=chosen, uncertainty=shares))
    write_file(output, PROFILE, text.encode(), force=force)
    for row in families([case.measurement for case in cases], times):
        say(
            f"{row.family:<16} {row.count:>4}  median {100 * row.median:5.1f} %  RMS {100 * row.rms:5.1f} %  "
            f"rank correlation {row.rank_correlation:.3f}  within a tenth {100 * row.near:3.0f} %"
        )
    return 0
