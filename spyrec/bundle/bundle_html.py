"""A bundle as notebooks show it: its programs, arguments, and what its plan is expected to cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spyrec.bundle.device_program import executes
from spyrec.bundle.manifest import Argument
from spyrec.hardware.plan_record import PlanFigures
from spyrec.hardware.target import STICK_BYTES
from spyrec.notebook import facts, page, table, time_text

if TYPE_CHECKING:
    from spyrec.bundle.bundle_content import BundleContent


def bundle_html(bundle: BundleContent) -> str:
    """Return a bundle as HTML: what is in it, its programs in order, its arguments; sizes in bytes."""
    manifest = bundle.manifest
    shown = facts(
        [
            ("programs", len(bundle.programs)),
            ("SuperDSCs", sum(len(program.superdscs) for program in bundle.programs)),
            ("host steps", len(manifest.host_steps) or None),
            ("inputs", ", ".join(manifest.inputs)),
            ("outputs", ", ".join(name for name, _ in manifest.outputs)),
            ("symbolic dims", ", ".join(f"{name} {dim}" for name, dim in manifest.symbolic_dims.items()) or None),
            ("dialect", manifest.dialect),
            *_predicted(manifest.figures),
        ]
    )
    return page("Bundle", manifest.name, shown, _programs(bundle), _arguments(bundle))


def _predicted(figures: PlanFigures | None) -> list[tuple[str, object]]:
    if figures is None:
        return []
    time = time_text(figures.simulated_us, figures.simulated_us_uncertainty)
    moved = figures.hbm_read_bytes + figures.hbm_write_bytes
    return [
        ("predicted time", f"{time}, profile {figures.profile}"),
        ("device memory traffic", f"{moved:,} bytes, at least {figures.lower_bound_bytes:,}"),
        ("LX", f"{figures.lx.peak_bytes:,} of {figures.lx.usable_bytes:,} bytes of a core"),
    ]


def _programs(bundle: BundleContent) -> str:
    rows = [
        (program.directory, sum(1 for _ in executes(program.program.body)), step.pool_bytes, ", ".join(step.arguments))
        for program, step in zip(bundle.programs, bundle.manifest.plan, strict=False)
    ]
    return table("programs, in order", ("program", "operations", "pool bytes", "arguments"), rows, (1, 2))


def _arguments(bundle: BundleContent) -> str:
    heads = ("argument", "role", "dtype", "shape", "device_size", "device_dtype", "bytes")
    return table("arguments", heads, [_argument(item) for item in bundle.manifest.arguments], (6,))


def _argument(item: Argument) -> tuple[object, ...]:
    size_bytes = STICK_BYTES * math.prod(item.device_size[:-1])
    dtype = "" if item.dtype is None else item.dtype.value
    shape = "" if item.shape is None else list(item.shape)
    return item.name, item.role.value, dtype, shape, list(item.device_size), item.device_dtype.name, size_bytes
