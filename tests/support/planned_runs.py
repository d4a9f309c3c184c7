"""One graph planned in several ways, emitted and run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.front import checked_profile, emit, schedule
from spyrec.hardware.target import STICK_BYTES, Target
from spyrec.ir.kernel import KernelGraph
from spyrec.options import RunResult
from spyrec.passes.planning.traffic import plan_figures
from tests.support.graphs import Arrays, JsonObject


def small_target(usable_sticks: int) -> Target:
    """Return the device with so many sticks of scratchpad on each core, all of them usable."""
    return Target(lx_bytes=usable_sticks * STICK_BYTES, lx_reserved_fraction=0.0)


def planned(data: JsonObject, options: CompileOptions | None = None) -> KernelGraph:
    """Return the scheduled kernels of a graph."""
    graph = schedule(data, options or CompileOptions(), Path())
    assert isinstance(graph, KernelGraph)
    return graph


def emitted_files(bundle: Bundle) -> dict[str, bytes]:
    """Return the files of a bundle's programs."""
    files: dict[str, bytes] = {}
    for number, program in enumerate(bundle.programs):
        files[f"{number}/bundle.mlir"] = print_program(program.program).encode()
        files.update({f"{number}/{name}": to_bytes(dsc) for name, dsc in program.superdscs.items()})
    return files


def reorders_sums(graph: KernelGraph) -> bool:
    """Whether an operation divides what it folds among cores: then sums have another order than in one piece."""
    return any(
        slices > 1 and variable.dim in kernel.reduced
        for kernel in graph.kernels
        for variable, slices in zip(kernel.placed.variables, kernel.division or (), strict=False)
    )


def sums_in_tiles(graph: KernelGraph) -> bool:
    """Whether a sum is made of tiles, or its matmuls are divided among cores in another way than without loops."""
    return any(".total" in kernel.output.buffer or kernel.op == "spyre.batchmatmul" for kernel in graph.kernels)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A plan, and what a run of it gave."""

    graph: KernelGraph
    result: RunResult
    predicted_bytes: int
    lower_bound_bytes: int

    @property
    def measured_bytes(self) -> int:
        """What the emulator counted in device memory."""
        total = self.result.stats.total
        return total.hbm_read_bytes + total.hbm_write_bytes

    @property
    def output_bytes(self) -> dict[str, bytes]:
        """The outputs, bit for bit."""
        return {name: values.tobytes() for name, values in self.result.outputs.items()}


def run_planned(
    data: JsonObject, arrays: Arrays, options: CompileOptions | None = None, run: RunOptions | None = None
) -> PlannedRun:
    """Compile and run a graph."""
    chosen = options or CompileOptions()
    graph = planned(data, chosen)
    figures = plan_figures(graph, chosen.target, checked_profile(chosen))
    result = spyrec.run(emit(graph, chosen), arrays, run or RunOptions())
    return PlannedRun(graph, result, figures.hbm_read_bytes + figures.hbm_write_bytes, figures.lower_bound_bytes)
