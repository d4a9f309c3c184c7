"""What the workflows share: a matmul compiled for one tile, operands, and what the result must be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

import spyrec
from spyrec.compare.check import check_bundle
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime import ControlBlock, ExecutionPlan, SpyreDevice, SpyreTensor
from spyrec.runtime.launch.tile_major import tile_major_layout
from spyrec.runtime.streams.control_block import Kind

HalfArray = npt.NDArray[np.float16]

TILE = 1024
ROWS = 4 * TILE
SAMPLED_ROWS = 128


@cache
def matmul(rows: int = TILE, *, symbolic_strides: bool = False, name: str = "matmul") -> spyrec.Bundle:
    """Compile ``c = a @ b`` with ``rows`` rows of 1024 in ``a``, and 1024 columns."""
    builder = spyrec.GraphBuilder(name)
    a = builder.input("a", (rows, TILE), "float16")
    b = builder.input("b", (TILE, TILE), "float16")
    builder.output(builder.matmul(a, b, name="c"))
    return spyrec.compile(builder, spyrec.CompileOptions(symbolic_strides=symbolic_strides))


def operands(rows: int = TILE, seed: int = 0) -> tuple[HalfArray, HalfArray]:
    """Return normally distributed ``a`` and ``b``."""
    generator = np.random.default_rng(seed)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((rows, TILE), (TILE, TILE)))
    return a, b


def require_product(a: HalfArray, b: HalfArray, c: npt.NDArray[np.generic]) -> str:
    """Hold a result against NumPy's product in float64, within the bound of its roundings; say how close it is.

    Of the rows, which do not depend on each other, it looks at 128, spread over all tiles.
    """
    rows = slice(a.shape[0] // 256, None, a.shape[0] // SAMPLED_ROWS)
    report = check_bundle(matmul(SAMPLED_ROWS), {"a": a[rows], "b": b}, {"c": c[rows]})["c"]
    assert report.ok, f"{report.failed_elements} elements are wrong"
    return f"equal to numpy's, error/bound {report.bound_ratio:.2f}, max abs error {report.max_abs:.3f}"


def tile_major(plan: ExecutionPlan, name: str) -> DeviceLayout:
    """Return the layout of a tensor of 4096 rows in which a tiled launch moves nothing but its base."""
    contract = plan.jobs[0].signature.contract
    assert contract is not None
    argument = next(item for item in contract.arguments if item.name == name)
    layout = tile_major_layout(argument, (ROWS, TILE), [loop.name for loop in contract.loops])
    assert layout is not None
    return layout


def result_tensor(device: SpyreDevice, rows: int = TILE, layout: DeviceLayout | None = None) -> SpyreTensor:
    """Return room for ``c``."""
    return SpyreTensor.empty(device, (rows, TILE), "float16", layout)


def counts(blocks: Sequence[ControlBlock]) -> dict[str, int]:
    """Return what a launch has enqueued: iterations, HostOperations, control blocks, and those among them that copy."""
    iterations = [block for block in blocks if block.kind is Kind.COMPUTE]
    staging = [block for block in blocks if block.kind is Kind.D2D]
    return {
        "iterations": len(iterations),
        "HostOperations": sum(block.kind is Kind.HOST_OPERATION for block in blocks),
        "control blocks": sum(block.kind.is_control_block for block in blocks) - len(staging),
        "staging copies": len(staging),
    }
