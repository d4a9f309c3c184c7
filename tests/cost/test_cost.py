"""The cost model against published times and scores, and its own laws."""

from __future__ import annotations

import copy
import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.timeline import PUBLISHED_US, matmul
from spyrec.emulator.timeline.execution import timeline_of
from spyrec.hardware.cost import (
    Combination,
    OperandRead,
    OperationClass,
    OperationRecord,
    Unit,
    cost_of,
    peak_flops_per_us,
    roofline_of,
)
from spyrec.hardware.target import CALIBRATED, DATASHEET, PLANNER_2026_06, PROFILES, Figure, TargetProfile, Trust
from spyrec.ir.kernel_form import Rule
from spyrec.passes.planning.record import record_of
from tests.support.graphs import after, graph_data, node, read, tensor

Sizes = tuple[int, int, int, int]
"""Of b, m, n, k."""


def assumed(value: float) -> Figure:
    return Figure(value, "a test", Trust.ASSUMED)


def divided_matmul(sizes: Sizes, slices: Sizes) -> OperationRecord:
    """``[b, m, k] @ [b, k, n]`` in 16 bits; sizes and slices in the order b, m, n, k."""
    (batch, rows, columns, depth), (b, m, n, k) = sizes, slices
    cores = b * m * n * k
    left, right, result = 2 * batch * rows * depth, 2 * batch * depth * columns, 2 * batch * rows * columns
    return OperationRecord(
        operation_class=OperationClass.MATMUL,
        unit=Unit.PT,
        cores=cores,
        core_points=batch * rows * columns * depth // cores,
        core_rows=rows // m,
        element_bytes=2,
        passes=1,
        flops=2 * batch * rows * columns * depth,
        result_elements=batch * rows * columns,
        read_bytes=left + right,
        core_read_bytes=left * n + right * m,
        write_bytes=result,
        shared_reads=(OperandRead(left, n), OperandRead(right, m)),
        combination=Combination(k, 1, 2 * result * k // cores),
        batch_slices=b,
    )


PLANNER_SCORES = [
    ((1, 8, 1024, 1024), (1, 4, 8, 1), 160.883, (1, 2, 16, 1), 171.283),
    ((1, 512, 4096, 4096), (1, 4, 8, 1), 379.563, (1, 32, 1, 1), 1268.725),
    ((1, 512, 12800, 4096), (1, 4, 8, 1), 1142.613, (1, 32, 1, 1), 3578.187),
    ((1, 1024, 12800, 4096), (1, 4, 8, 1), 1773.227, (1, 32, 1, 1), 4318.538),
    ((1, 2048, 4096, 4096), (1, 4, 8, 1), 1026.731, (1, 32, 1, 1), 2009.771),
    ((1, 4096, 4096, 4096), (1, 4, 8, 1), 1889.621, (1, 32, 1, 1), 3364.181),
    ((1, 2, 4096, 4096), (1, 2, 8, 2), 317.078, (1, 1, 32, 1), 807.931),
    ((32, 512, 512, 128), (1, 4, 8, 1), 144.725, (1, 32, 1, 1), 635.211),
    ((1, 64, 4096, 4096), (1, 1, 8, 2), 249.351, (1, 32, 1, 1), 887.628),
    ((1, 64, 4096, 4096), (1, 1, 8, 2), 249.351, (1, 2, 8, 2), 286.554),
    ((1, 32, 4096, 4096), (1, 1, 8, 2), 265.644, (1, 1, 32, 1), 731.047),
    ((1, 32, 4096, 4096), (1, 1, 8, 2), 265.644, (1, 1, 8, 4), 286.897),
    ((1, 41, 4096, 4096), (1, 1, 8, 2), 257.723, (1, 1, 32, 1), 718.087),
    ((1, 41, 4096, 4096), (1, 1, 8, 2), 257.723, (1, 1, 8, 4), 287.260),
    ((8, 256, 256, 64), (1, 4, 4, 1), 9.045, (1, 32, 1, 1), 182.651),
    ((8, 256, 256, 64), (1, 4, 4, 1), 9.045, (2, 4, 4, 1), 22.069),
    ((32, 512, 128, 512), (1, 8, 2, 1), 166.571, (1, 32, 1, 1), 635.211),
    ((32, 512, 128, 512), (1, 8, 2, 1), 166.571, (1, 16, 2, 1), 326.654),
]
"""Sizes (b, m, n, k), the planner's best slices with their score, other slices with theirs."""


@pytest.mark.parametrize(("sizes", "best", "score", "other", "other_score"), PLANNER_SCORES)
def test_the_planner_profile_gives_the_planners_published_scores(
    sizes: Sizes, best: Sizes, score: float, other: Sizes, other_score: float
) -> None:
    for slices, expected in ((best, score), (other, other_score)):
        assert cost_of(divided_matmul(sizes, slices), PLANNER_2026_06).total_us == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(("sizes", "best"), dict.fromkeys((row[0], row[1]) for row in PLANNER_SCORES))
def test_no_division_scores_better_than_the_published_best(sizes: Sizes, best: Sizes) -> None:
    batch, rows, columns, depth = sizes
    counts = [_divisors(size) for size in (batch, rows, columns // 64, depth // 64)]
    scores = {
        (b, m, n, k): cost_of(divided_matmul(sizes, (b, m, n, k)), PLANNER_2026_06).total_us
        for b, m, n, k in itertools.product(*counts)
        if b * m * n * k <= 32
    }
    assert min(scores.values()) == pytest.approx(scores[best], rel=1e-12)


def _divisors(size: int) -> list[int]:
    return [count for count in range(1, min(size, 32) + 1) if size % count == 0]


@pytest.mark.parametrize(("sizes", "best", "score"), dict.fromkeys(row[:3] for row in PLANNER_SCORES if row[0][0] == 1))
def test_records_of_kernels_give_the_published_scores(sizes: Sizes, best: Sizes, score: float) -> None:
    _, rows, columns, depth = sizes
    inputs = [tensor("a", rows, depth), tensor("b", depth, columns)]
    graph = after("assign-layouts", read(graph_data(inputs, [node("y", "matmul", "a", "b")], ["y"])))
    (kernel,) = (item for item in graph.kernels if item.rule is Rule.CONTRACTION)
    record = record_of(graph, kernel, frozenset(), best[1:])
    assert cost_of(record, PLANNER_2026_06).total_us == pytest.approx(score, abs=6e-4)


@pytest.mark.parametrize(("depth", "published_us"), PUBLISHED_US.items())
def test_calibrated_matmuls_are_near_the_measured_times(depth: int, published_us: float) -> None:
    assert cost_of(matmul(2048, depth), CALIBRATED).total_us == pytest.approx(published_us, rel=0.075)


def test_calibrated_movement_runs_at_the_published_rates() -> None:
    size = 1 << 24

    def rate_gb_per_s(kind: OperationClass, read: int, written: int, cores: int = 32) -> float:
        record = dataclasses.replace(
            matmul(64, 64),
            operation_class=kind,
            unit=Unit.SFP,
            cores=cores,
            core_points=0,
            result_elements=1 << 30,
            read_bytes=read,
            core_read_bytes=read,
            write_bytes=written,
            shared_reads=(),
        )
        return (read + written) / cost_of(record, CALIBRATED).total_us / 1000

    assert rate_gb_per_s(OperationClass.POINTWISE, size, 0) == pytest.approx(150)
    assert rate_gb_per_s(OperationClass.POINTWISE, size, size) == pytest.approx(105, abs=0.5)
    assert rate_gb_per_s(OperationClass.RESTICKIFY, size, size) == pytest.approx(116)
    assert rate_gb_per_s(OperationClass.BROADCAST, 128, size) == pytest.approx(118)
    assert rate_gb_per_s(OperationClass.OUTER_REDUCTION, size, 128) == pytest.approx(113)
    assert rate_gb_per_s(OperationClass.REDUCTION, size, 0) == pytest.approx(114)
    assert rate_gb_per_s(OperationClass.REDUCTION, size, 0, cores=8) == pytest.approx(114 * 0.54)


def test_datasheet_time_is_that_of_the_dearer_part() -> None:
    bound_by_compute, bound_by_memory = matmul(4096, 4096), matmul(2048, 128)
    assert cost_of(bound_by_compute, DATASHEET).total_us == pytest.approx(4096**3 / 32 / 1.536e6)
    moved = bound_by_memory.read_bytes + bound_by_memory.write_bytes
    assert cost_of(bound_by_memory, DATASHEET).total_us == pytest.approx(moved / 204_800)
    assert peak_flops_per_us(Unit.PT, 2, 32, DATASHEET) == pytest.approx(98.304e6)


def test_the_roofline_says_what_limits_and_how_full_the_unit_is() -> None:
    record = matmul(4096, 4096)
    roof = roofline_of(record, DATASHEET, cost_of(record, DATASHEET).total_us, 32)
    assert (roof.limit, roof.utilisation) == ("compute", pytest.approx(1.0))
    assert roof.flops_per_byte == pytest.approx(2 * 4096**3 / (3 * 2 * 4096**2))
    assert roof.ridge == pytest.approx(98.304e6 / 204_800)
    thin = matmul(2048, 128)
    assert roofline_of(thin, DATASHEET, cost_of(thin, DATASHEET).total_us, 32).limit == "memory"


SLICES = st.sampled_from([1, 2, 4, 8])
RECORDS = st.builds(
    divided_matmul,
    st.tuples(st.just(8), st.sampled_from([8, 64, 512]), st.sampled_from([64, 512]), st.sampled_from([512, 4096])),
    st.tuples(st.sampled_from([1, 2]), SLICES, st.sampled_from([1, 2]), st.just(1)),
)
OVERLAPS = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])


@settings(max_examples=60)
@given(record=RECORDS, name=st.sampled_from(sorted(PROFILES)), overlap=OVERLAPS)
def test_the_closed_form_is_the_timeline_where_cores_do_the_same(
    record: OperationRecord, name: str, overlap: float
) -> None:
    profile = dataclasses.replace(PROFILES[name], overlap=assumed(overlap))
    cores = range(record.cores)
    simulated = timeline_of(record, profile, cores, cores).total_us
    assert simulated == pytest.approx(cost_of(record, profile).total_us, rel=1e-9)


FASTER = (
    "memory_bytes_per_us", "core_memory_bytes_per_us", "matmul_macs_per_us", "overlap", "ring_bytes_per_us",
    "broadcast_cores",
)  # fmt: skip


@settings(max_examples=60)
@given(record=RECORDS, overlap=OVERLAPS, field=st.sampled_from(FASTER), factor=st.floats(1.0, 8.0))
def test_more_of_anything_is_never_slower(record: OperationRecord, overlap: float, field: str, factor: float) -> None:
    base: TargetProfile = dataclasses.replace(CALIBRATED, overlap=assumed(overlap))
    more = dataclasses.replace(
        base, **{field: assumed(min(1.0, overlap * factor) if field == "overlap" else getattr(base, field) * factor)}
    )
    cores = range(record.cores)
    before, after = (timeline_of(record, profile, cores, cores).total_us for profile in (base, more))
    assert after <= before * (1 + 1e-12)


def test_every_figure_names_source_and_trust_and_survives_a_copy() -> None:
    for profile in PROFILES.values():
        for field in dataclasses.fields(profile):
            value = getattr(profile, field.name)
            if isinstance(value, float):
                assert isinstance(value, Figure)
                assert value.source
                again = copy.deepcopy(value)
                assert (again, again.source, again.trust) == (value, value.source, value.trust)
