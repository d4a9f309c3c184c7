"""Inputs that are larger than what a bundle was compiled for: as many tiles as one number per loop says."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Manifest

Arrays = dict[str, npt.NDArray[np.generic]]


def larger_inputs(random: Random, manifest: Manifest) -> Arrays:
    """Arrays whose dims are as many tiles, whole ones or not, as one number per loop says."""
    extents: dict[str, int] = {}
    shapes: dict[str, list[int]] = {}
    arguments = {item.name: item for item in manifest.arguments}
    for step in manifest.plan:
        contract = manifest.tile_contracts[step.program]
        for loop in contract.loops:
            whole = loop.tile * random.choice([1, 1, 2, 3])
            left_over = random.randint(0, loop.tile) if random.random() < 0.25 else 0
            extents.setdefault(loop.name, whole + left_over)
        for name, argument in zip(step.arguments, contract.arguments, strict=True):
            shape = shapes.setdefault(name, list(arguments[name].shape or ()))
            for axis, loop in enumerate(argument.axes or ()):
                if loop is not None:
                    shape[axis] = extents[loop]
    rng = np.random.default_rng(random.getrandbits(32))
    return {
        name: rng.uniform(-1, 1, shapes.get(name) or arguments[name].shape).astype(np.float16)
        for name in manifest.inputs
    }
