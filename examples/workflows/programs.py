"""The workflows in the terms of seed 001: programs of instructions, and a DMA engine that is told places."""

from __future__ import annotations

import numpy as np

import spyrec
from examples.workflows.matmul import ROWS, TILE, matmul, operands, require_product, tile_major
from spyrec.runtime import DMAEngine, ExecutionPlan, MemoryKind, Program, SpyreDevice, SpyreTensor, launch_kernel


def show(device: SpyreDevice) -> None:
    """Copy a program and tensors to places in segments, launch strictly and tiled, copy back."""
    engine, program = DMAEngine(device), Program(ExecutionPlan(matmul()))
    place = engine.allocate(program.size_bytes, MemoryKind.PROGRAM)
    engine.copy(program, place)
    print(f"{len(program.instructions)} instruction, at segment {place.segment_id}, offset {place.vf_offset}")
    a, b = operands(ROWS)
    layout = tile_major(program.plan, "a")
    spyre_a = engine.copy(a, engine.allocate(layout.nbytes), layout)
    spyre_b = engine.copy(b, engine.allocate(b.nbytes))
    print(f'"a" at segment {spyre_a.segment_id}, offset {spyre_a.vf_offset}')
    tile = engine.copy(a[:TILE].copy(), engine.allocate(b.nbytes))
    part = SpyreTensor.empty(device, (TILE, TILE), "float16")
    program.launch([tile, spyre_b, part])  # strict; returns when it is done
    whole = SpyreTensor.empty(device, (ROWS, TILE), "float16", tile_major(program.plan, "c"))
    launch_kernel(program, [spyre_a, spyre_b, whole])  # larger than compiled for: launch_tiled
    assert device.pending == 0
    results = [np.zeros(tensor.shape, np.float16) for tensor in (part, whole)]
    for tensor, result in zip((part, whole), results, strict=True):
        engine.copy(tensor, result)
    print(f"strict: {require_product(a[:TILE], b, results[0])}")
    print(f"tiled:  {require_product(a, b, results[1])}")


def main() -> None:
    """Open a device, and close it when nothing of the workflow is left on it."""
    with spyrec.open_device() as device:
        show(device)


if __name__ == "__main__":
    main()
