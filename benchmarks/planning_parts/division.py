"""How matmuls divide among the cores: the chosen plan's simulated time over that of the best even division.

Claims: at most 1.1 under every profile; at most 287 us for M=64, N=K=4096 under ``planner-2026-06``; within 15 % of
the published device times under ``calibrated``.  The optimum is searched here, with a record of its own.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.measure import Figures, rounded
from benchmarks.timeline import PUBLISHED_US
from spyrec.hardware.cost import BatchOrder, Combination, OperandRead, OperationClass, OperationRecord, Unit, cost_of
from spyrec.hardware.target import CALIBRATED, PROFILES, STICK_BYTES, TargetProfile
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, run_pipeline
from spyrec.passes.planning.record import record_of

_LANES = 64


@dataclass(frozen=True, slots=True)
class Matmul:
    """``[batch, rows, depth] @ [batch, depth, columns]`` in 16 bits."""

    batch: int
    rows: int
    columns: int
    depth: int

    def __str__(self) -> str:
        batch = f"{self.batch} of " if self.batch > 1 else ""
        return f"{batch}{self.rows}x{self.depth} @ {self.depth}x{self.columns}"


PLANNED = (
    Matmul(1, 8, 1024, 1024),
    Matmul(1, 512, 4096, 4096),
    Matmul(1, 512, 12800, 4096),
    Matmul(1, 1024, 12800, 4096),
    Matmul(1, 2048, 4096, 4096),
    Matmul(1, 4096, 4096, 4096),
    Matmul(1, 2, 4096, 4096),
    Matmul(32, 512, 512, 128),
    Matmul(1, 64, 4096, 4096),
    Matmul(1, 32, 4096, 4096),
    Matmul(1, 41, 4096, 4096),
    Matmul(8, 256, 256, 64),
    Matmul(32, 512, 128, 512),
)
"""The shapes with published planner scores."""

OF_MODELS = (
    Matmul(1, 12, 14336, 4096),
    Matmul(1, 1, 128256, 4096),
    Matmul(1, 12, 4096, 14336),
    Matmul(1, 14, 131072, 5120),
    Matmul(1, 855, 32768, 5120),
    Matmul(1, 1064, 4096, 1024),
    Matmul(1, 11, 4096, 2880),
    Matmul(44, 1, 5760, 2880),
    Matmul(1, 11, 201088, 2880),
    Matmul(1, 1, 49159, 4096),
    Matmul(1, 41, 49159, 4096),
    Matmul(1, 512, 49159, 4096),
    Matmul(1, 512, 49159, 2048),
    Matmul(1, 1, 49159, 2048),
    Matmul(1, 11, 100352, 1536),
    Matmul(1, 5, 1024, 1536),
)
"""Shapes of Llama-3.1, Ministral, Mistral-Small, gpt-oss and Granite: primes, ragged sticks, large vocabularies."""


def chosen_us(matmul: Matmul, profile: TargetProfile) -> tuple[float, str]:
    """Return the simulated time of what the planner makes of a matmul alone, and its divisions."""
    rows, columns = [matmul.rows, matmul.depth], [matmul.depth, matmul.columns]
    shapes = (
        {"a": rows, "b": columns} if matmul.batch == 1 else {"a": [matmul.batch, *rows], "b": [matmul.batch, *columns]}
    )
    options = PipelineOptions(profile=profile)
    graph = read_graph_data(
        {
            "format": "spyrec.graph/1",
            "name": "matmul",
            "inputs": [{"name": name, "shape": shape, "dtype": "float16"} for name, shape in shapes.items()],
            "nodes": [{"name": "y", "op": "matmul", "inputs": ["a", "b"]}],
            "outputs": ["y"],
        }
    )
    planned = run_pipeline(graph, options, DriverOptions(stop_after="divide-work"))
    assert isinstance(planned, KernelGraph)
    total = sum(cost_of(record_of(planned, kernel, frozenset()), profile).total_us for kernel in planned.kernels)
    return total, " + ".join("x".join(map(str, kernel.division or ())) for kernel in planned.kernels)


def best_even_us(matmul: Matmul, profile: TargetProfile, cores: int = 32) -> float:
    """Return the least simulated time of any even division in one piece that keeps the span limit; else infinity."""
    return min(
        (cost_of(_record(matmul, slices), profile).total_us for slices in _even(matmul, cores)), default=float("inf")
    )


def _even(matmul: Matmul, cores: int) -> Iterator[tuple[int, int, int, int]]:
    sizes = (matmul.batch, matmul.rows, -(-matmul.columns // _LANES), -(-matmul.depth // _LANES))
    choices = [[count for count in range(1, min(size, cores) + 1) if size % count == 0] for size in sizes]
    for b, m, n, k in itertools.product(*choices):
        depth = sizes[3] * _LANES  # the second operand has a row for every lane of the first
        span_sticks = (sizes[2] // n - 1) * depth * matmul.batch + (matmul.batch // b - 1) * depth + depth // k
        if b * m * n * k <= cores and span_sticks * STICK_BYTES <= 256 << 20:
            yield b, m, n, k


def _record(matmul: Matmul, slices: tuple[int, int, int, int]) -> OperationRecord:
    b, m, n, k = slices
    columns, depth = (-(-extent // _LANES) * _LANES for extent in (matmul.columns, matmul.depth))
    left = 2 * matmul.batch * matmul.rows * depth
    right = 2 * matmul.batch * depth * columns
    result = matmul.batch * matmul.rows * columns
    cores = b * m * n * k
    return OperationRecord(
        operation_class=OperationClass.MATMUL,
        unit=Unit.PT,
        cores=cores,
        core_points=result * depth // cores,
        core_rows=matmul.rows // m,
        element_bytes=2,
        passes=1,
        flops=2 * result * depth,
        result_elements=result,
        read_bytes=left + right,
        core_read_bytes=left * n + right * m,
        write_bytes=2 * result,
        shared_reads=(OperandRead(left, n), OperandRead(right, m)),
        combination=Combination(k, 1, 4 * result * k // cores),
        batch_slices=b,
        batch_cuts=b,
        core_columns=columns // n,
        column_slices=n,
        # the default layout has the batches innermost
        batch_order=BatchOrder(matmul.batch, matmul.batch, matmul.batch),
    )


def division() -> Figures:
    """Print the table on stderr; return the worst ratio of each profile, and the errors against published times."""
    figures: Figures = {}
    for name, profile in PROFILES.items():
        print(f"simulated us under {name}: chosen, best even division in one piece, ratio", file=sys.stderr)
        ratios: list[float] = []
        for matmul in (*PLANNED, *OF_MODELS):
            (chosen, plan), best = chosen_us(matmul, profile), best_even_us(matmul, profile)
            ratios.append(chosen / best)  # 0 where no division in one piece is legal
            print(f"{matmul!s:>28} {chosen:>10.1f} {best:>10.1f} {ratios[-1]:>6.3f}  {plan}", file=sys.stderr)
        figures[f"worst_ratio {name}"] = rounded(max(ratios))
    few_rows = chosen_us(Matmul(1, 64, 4096, 4096), PROFILES["planner-2026-06"])[0]
    errors = [chosen_us(Matmul(1, 2048, 2048, depth), CALIBRATED)[0] / us - 1 for depth, us in PUBLISHED_US.items()]
    claims = "worst_ratio <= 1.1; few_rows_us <= 287; abs(worst_published_error) <= 0.15"
    worst = rounded(max(errors, key=abs))
    return {**figures, "few_rows_us": rounded(few_rows), "worst_published_error": worst, "claims": claims}
