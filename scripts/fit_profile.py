"""``python -m scripts.fit_profile FILE``: the figures of the profile ``measured-2026-08``, fitted to measured times.

``FILE``: a CSV of kernel times as ``spyrec calibrate`` takes it; it is no part of the project.  Printed is a line for
each figure of ``spyrec/hardware/target.py``, to be written there, and the uncertainties, judged on thirds of the shapes
that a fit did not see.  Nothing in it is random.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spyrec.calibration.fit import cases_of, cross_validated, fitted, uncertainty
from spyrec.calibration.measurements import read_measurements
from spyrec.hardware.profile_file import figure_names, figure_of
from spyrec.hardware.target import MEASURED_2026_08


def main(arguments: Sequence[str]) -> int:
    """Print the figures; exit code 2 without a file."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    cases = cases_of(read_measurements(Path(arguments[0])))
    profile = fitted(cases, "measured times")
    for name in figure_names():
        print(f"{name} {figure_of(profile, name):g}", flush=True)
    times = cross_validated(cases, "measured times", MEASURED_2026_08)
    for limit, share in uncertainty(cases, times).items():
        print(f"uncertainty {limit}: {share}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
