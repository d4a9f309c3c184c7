"""The simulated times against the published ones: matmul 2048x2048xK on 32 cores, divided 4 ways in M and 8 in N.

Claim: within 15 % under ``calibrated``.  Both readings of the published notes are printed: compute plus memory at the
peak rate (what ``calibrated`` does), and the larger of the two at the rate of the later upstream model.
"""

from __future__ import annotations

import dataclasses
import sys
import time

from benchmarks.measure import Figures, rounded
from spyrec.emulator.timeline.execution import timeline_of
from spyrec.hardware.cost import OperandRead, OperationClass, OperationRecord, Unit, cost_of
from spyrec.hardware.target import CALIBRATED, PROFILES, Figure, TargetProfile, Trust

PUBLISHED_US = {512: 163.4, 1024: 244.1, 2048: 389.0, 4096: 667.5, 8192: 1240.7}
"""Published device times by K: notes of the upstream cost model."""

_LATER = "later upstream cost model: the larger of compute and memory, 1140 MAC/ns per core"
LARGER_OF_BOTH = dataclasses.replace(
    CALIBRATED,
    name="larger of both",
    overlap=Figure(1, _LATER, Trust.FITTED),
    matmul_macs_per_us=Figure(1_140_000, _LATER, Trust.FITTED),
)


def matmul(size: int, depth: int, row_slices: int = 4, column_slices: int = 8) -> OperationRecord:
    """Return the record of ``[size, depth] @ [depth, size]`` in 16-bit elements."""
    cores = row_slices * column_slices
    operand_bytes = 2 * size * depth
    return OperationRecord(
        operation_class=OperationClass.MATMUL,
        unit=Unit.PT,
        cores=cores,
        core_points=size * size * depth // cores,
        core_rows=size // row_slices,
        element_bytes=2,
        passes=1,
        flops=2 * size * size * depth,
        result_elements=size * size,
        read_bytes=2 * operand_bytes,
        core_read_bytes=operand_bytes * (row_slices + column_slices),
        write_bytes=2 * size * size,
        core_columns=size // column_slices,
        column_slices=column_slices,
        shared_reads=(OperandRead(operand_bytes, column_slices), OperandRead(operand_bytes, row_slices)),
    )


def measure() -> Figures:
    """Print the table on stderr; return the errors, and what simulating one operation costs on this machine."""
    profiles: list[TargetProfile] = [*PROFILES.values(), LARGER_OF_BOTH]
    heads = ["K", "published us", *(f"{item.name} (simulated us)" for item in profiles)]
    print("  ".join(heads), file=sys.stderr)
    errors: dict[str, list[float]] = {item.name: [] for item in profiles}
    for depth, published in PUBLISHED_US.items():
        cells = [f"{depth:>4}", f"{published:>12.1f}"]
        for head, profile in zip(heads[2:], profiles):
            simulated = timeline_of(matmul(2048, depth), profile, range(32), range(32)).total_us
            errors[profile.name].append(simulated / published - 1)
            cells.append(f"{simulated:.1f} ({100 * errors[profile.name][-1]:+.1f} %)".rjust(len(head)))
        print("  ".join(cells), file=sys.stderr)
    worst = {f"worst_error {name}": rounded(max(values, key=abs)) for name, values in errors.items()}
    return {**worst, "simulate_us": _simulate_us(), "claim": "abs(worst_error calibrated) <= 0.15"}


def _simulate_us() -> float:
    record = matmul(2048, 2048)
    start = time.perf_counter()
    for _ in range(200):
        timeline_of(record, CALIBRATED, range(32), range(32))
        cost_of(record, CALIBRATED)
    return rounded((time.perf_counter() - start) / 200 * 1e6)
