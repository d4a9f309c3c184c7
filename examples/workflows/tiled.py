"""Workflow 4: the program for ``[1024, 1024]`` launched on ``[4096, 1024]``, tile by tile, in three ways.

In the default layout the rows of a tile lie at other distances than in a tensor of the tile's shape: tiles are STAGED,
copied into scratch memory and out of it.  In the layout that the tile contract asks for only their place changes
(SLAB), and where the program was compiled with symbolic strides they are used in place as well (STRIDED).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import spyrec
from examples.workflows.matmul import (
    ROWS,
    TILE,
    HalfArray,
    counts,
    matmul,
    operands,
    require_product,
    result_tensor,
    tile_major,
)
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel
from spyrec.runtime.errors import RuntimeFault

SEED_COUNTS = {"iterations": 4, "HostOperations": 4, "control blocks": 8}
"""What seed 000 states of this launch."""


def launch(
    device: SpyreDevice, plan: ExecutionPlan, a: HalfArray, b: HalfArray, *, is_tile_major: bool
) -> tuple[npt.NDArray[np.generic], dict[str, int]]:
    """Launch the plan on 4096 rows; return the result and what was enqueued."""
    layouts = [tile_major(plan, name) if is_tile_major else None for name in ("a", "c")]
    tensors = [
        SpyreTensor.to_device(device, a, layouts[0]),
        SpyreTensor.to_device(device, b),
        result_tensor(device, ROWS, layouts[1]),
    ]
    blocks = launch_kernel(device.default_stream, plan, tensors)
    return tensors[-1].to_host(), counts(blocks)


def refused(device: SpyreDevice, plan: ExecutionPlan, a: HalfArray, b: HalfArray) -> str:
    """Launch where no tiles are allowed; return the refusal, which has enqueued nothing."""
    tensors = [*(SpyreTensor.to_device(device, array) for array in (a, b)), result_tensor(device, ROWS)]
    before = device.pending
    try:
        launch_kernel(device.default_stream, plan, tensors, allow_tiled_launch=False)
    except RuntimeFault as fault:
        assert device.pending == before
        return fault.message
    raise AssertionError("it was launched")


def show(device: SpyreDevice) -> None:
    """All three give the same bytes, and the seed's counts."""
    a, b = operands(ROWS)
    default, strided = ExecutionPlan(matmul()), ExecutionPlan(matmul(symbolic_strides=True))
    results: list[npt.NDArray[np.generic]] = []
    for title, plan, is_tile_major, copies in (
        ("tile-major layout (SLAB)", default, True, 0),
        ("default layout, symbolic strides (STRIDED)", strided, False, 0),
        ("default layout (STAGED)", default, False, 8),
    ):
        result, enqueued = launch(device, plan, a, b, is_tile_major=is_tile_major)
        print(f"{title}: " + ", ".join(f"{count} {name}" for name, count in enqueued.items()))
        assert enqueued == {**SEED_COUNTS, "staging copies": copies}
        print(f"  {require_product(a, b, result)}")
        results.append(result)
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    for first in range(0, ROWS, TILE):  # and so are launches of one tile each
        tile = [SpyreTensor.to_device(device, array) for array in (a[first : first + TILE], b)]
        launch_kernel(device.default_stream, default, [*tile, part := result_tensor(device)])
        assert part.to_host().tobytes() == results[0][first : first + TILE].tobytes()
    print(f"all alike, bit by bit; not allowed: {refused(device, default, a, b)}")


def main() -> None:
    """Open a device, and close it when nothing of the workflow is left on it."""
    with spyrec.open_device() as device:
        show(device)


if __name__ == "__main__":
    main()
