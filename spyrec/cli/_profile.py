"""``--profile NAME|FILE``: parameters of simulated times by name, or from a file that ``spyrec calibrate`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyrec.hardware.target import TargetProfile


def resolve_profile(name_or_file: str) -> str | TargetProfile:
    """Return the profile of a file where there is one of that name, else the name; errors as ``read_profile``."""
    from spyrec.hardware.target import PROFILES

    path = Path(name_or_file)
    if name_or_file in PROFILES or not path.is_file():
        return name_or_file
    from spyrec.hardware.profile_file import read_profile

    return read_profile(path)
