"""The options that decide a plan: what has to be said again to get the same plan of a graph again."""

from __future__ import annotations

from dataclasses import dataclass

from spyrec.target import CALIBRATED


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a bundle was planned with, its target apart.

    ``cores``: most that one operation may be divided among.  ``profile``: name of the parameters of the times that
    plans are compared by.  ``lx_planner``: what packed the scratchpads.  ``auto_tile``: whether the compiler chose
    loops; where it might have but did not need to, the plan is the same without.
    """

    cores: int
    fixed_io_layouts: bool = False
    profile: str = CALIBRATED.name
    lx_planner: str = "best-fit"
    auto_tile: bool = False
