"""A bundle with a manifest, made without the compiler: the reference example ``add_unaligned_stick`` or ``add``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.manifest import Role
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from tests.foreign import EXAMPLES, argument_table, write_table


def add_bundle(directory: Path) -> Bundle:
    """Return ``t2 = t0 + t1`` on float16 [1024, 4096] with conversion tables, as ``spyrec compile`` would make it."""
    foreign = load_foreign(EXAMPLES / "add", write_table(directory, argument_table("add")))
    layout = DeviceLayout.default((1024, 4096), "float16")
    names = [argument.name for argument in foreign.manifest.arguments]
    arguments = tuple(
        dataclasses.replace(
            argument,
            shape=(1024, 4096),
            dtype=DType.FLOAT16,
            host_strides=(4096, 1),
            stride_map=layout.stride_map,
            dci={way: f"dci/{argument.name}.{way}.json" for way in ("h2d", "d2h")},
        )
        for argument in foreign.manifest.arguments
    )
    manifest = dataclasses.replace(
        foreign.manifest,
        name="handmade",
        arguments=arguments,
        inputs=tuple(item.name for item in arguments if item.role is Role.INPUT),
        outputs=(("t2", "t2"),),
    )
    tables = {f"dci/{name}.{way}.json": layout.dci(way) for name in names for way in ("h2d", "d2h")}
    return dataclasses.replace(foreign, manifest=manifest, dci=tables)
