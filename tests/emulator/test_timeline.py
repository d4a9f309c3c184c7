"""The discrete-event model: closed forms, even contention, and records that say what a SuperDSC does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.timeline.cost_record import record_of, writers_of
from spyrec.emulator.timeline.execution import CoreGroup, simulate, timeline_of
from spyrec.hardware.cost import OperationClass, OperationRecord, OperationWork, Unit
from spyrec.hardware.target import CALIBRATED
from spyrec.runtime.timeline_records import CoreEngine, OperationTimeline
from tests.emulator.builders import Operation, Tensor, program_of, superdsc_of, table_of
from tests.emulator.example_cases import load_kernel, right_kernels


def work(overlap: float = 0.0, compute_us: float = 0.0, ring_us: float = 0.0, core_rate: float = 1e9) -> OperationWork:
    """Work on a memory that passes 100 bytes per microsecond; the loads stand in the groups."""
    return OperationWork(0.0, 0.0, 100.0, core_rate, compute_us, ring_us, 0.0, overlap)


def windows(timeline: OperationTimeline, group: int = 0) -> dict[CoreEngine, tuple[float, float]]:
    return {item.engine: (item.first_us, item.last_us) for item in timeline.groups[group].activities}


def test_one_core_fetches_computes_combines_and_stores_in_turn() -> None:
    timeline = simulate([CoreGroup((0,), 1000.0, 500.0)], work(compute_us=7.0, ring_us=2.0), Unit.PT)
    assert windows(timeline) == {
        CoreEngine.DMA_IN: (0.0, 10.0),
        CoreEngine.PT: (10.0, 17.0),
        CoreEngine.RING: (17.0, 19.0),
        CoreEngine.DMA_OUT: (19.0, 24.0),
    }
    assert timeline.total_us == 24.0


@pytest.mark.parametrize(("compute_us", "total_us"), [(7.0, 15.0), (40.0, 40.0)])
def test_with_full_overlap_the_dearer_part_is_the_time(compute_us: float, total_us: float) -> None:
    timeline = simulate([CoreGroup((0,), 1000.0, 500.0)], work(1.0, compute_us), Unit.SFP)
    assert windows(timeline)[CoreEngine.SFP] == (0.0, compute_us)
    assert timeline.total_us == total_us


def test_memory_is_shared_evenly_and_dealt_again_when_a_core_is_done() -> None:
    groups = [CoreGroup((0,), 1000.0, 0.0), CoreGroup((1, 2, 3), 2000.0, 0.0)]
    timeline = simulate(groups, work(), Unit.SFP)
    # four at 25 bytes/us for 40 us; then three share 100 for the 1000 bytes that each has left
    assert windows(timeline, 0)[CoreEngine.DMA_IN] == (0.0, 40.0)
    assert windows(timeline, 1)[CoreEngine.DMA_IN] == (0.0, pytest.approx(70.0))


def test_a_core_draws_no_more_than_its_own_rate() -> None:
    timeline = simulate([CoreGroup((0, 1), 1000.0, 0.0)], work(core_rate=20.0), Unit.SFP)
    assert timeline.total_us == pytest.approx(50.0)


LOADS = st.floats(0.0, 1e12) | st.sampled_from([0.0, 1e-12, 1.0, 1e15])


@settings(max_examples=300)
@given(
    loads=st.lists(st.tuples(LOADS, LOADS), min_size=1, max_size=6),
    overlap=st.sampled_from([0.0, 1e-9, 0.3, 1.0]),
    compute_us=LOADS,
)
def test_every_execution_ends_and_takes_as_long_as_its_bytes(
    loads: list[tuple[float, float]], overlap: float, compute_us: float
) -> None:
    groups = [CoreGroup((index,), read, written) for index, (read, written) in enumerate(loads)]
    timeline = simulate(groups, work(overlap, compute_us), Unit.PT)
    memory_us = sum(read + written for read, written in loads) / 100.0
    assert timeline.total_us >= max(memory_us, compute_us) * (1 - 1e-9)
    # compute waits for the core's own bytes, which at the worst wait for everybody's
    assert timeline.total_us <= (memory_us + compute_us) * (1 + 1e-9)


def test_shares_of_each_engine_add_up_whatever_the_overlap() -> None:
    for overlap in (0.0, 0.3, 1.0):
        for compute_us in (1.0, 30.0):
            groups = [CoreGroup((0, 1), 700.0, 300.0), CoreGroup((2,), 700.0, 0.0)]
            timeline = simulate(groups, work(overlap, compute_us, 1.0), Unit.PT)
            for group in timeline.groups:
                shares = dict.fromkeys(CoreEngine, 0.0)
                for item in group.activities:
                    assert 0.0 <= item.first_us < item.last_us <= timeline.total_us
                    shares[item.engine] += item.share
                stores = 1.0 if group.cores == (0, 1) else 0.0
                want = {
                    CoreEngine.DMA_IN: 1,
                    CoreEngine.PT: 1,
                    CoreEngine.RING: 1,
                    CoreEngine.DMA_OUT: stores,
                    CoreEngine.SFP: 0,
                }
                assert shares == pytest.approx(want)


def record_and_writers(operation: Operation) -> tuple[OperationRecord, tuple[int, ...]]:
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation))
    (planned,) = loaded.planned.values()
    return record_of(planned.setting, planned.binding, planned.traffic), writers_of(planned.setting)


def matmul_operation(m: int, n: int, k: int, *, is_k_first: bool) -> Operation:
    dims = {"mb": (64, m), "out": (256, n), "in": (256, k)}
    if is_k_first:
        dims = {"in": dims["in"], "mb": dims["mb"], "out": dims["out"]}
    tensors = (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), Tensor(("mb", "out"), "out"))
    return Operation("batchmatmul", dims, tensors, unit="pt")


def test_the_record_of_a_matmul_says_how_it_is_divided() -> None:
    record, writers = record_and_writers(matmul_operation(2, 4, 1, is_k_first=False))
    assert (record.operation_class, record.unit, record.cores) == (OperationClass.MATMUL, Unit.PT, 8)
    assert (record.core_points, record.core_rows, record.element_bytes) == (64 * 256 * 256 // 8, 32, 2)
    left, right = 2 * 64 * 256, 2 * 256 * 256
    assert [(item.distinct_bytes, item.sharing_cores) for item in record.shared_reads] == [(left, 4), (right, 2)]
    assert (record.read_bytes, record.core_read_bytes) == (left + right, 4 * left + 2 * right)
    assert record.combination.slices == 1
    assert writers == tuple(range(8))


@pytest.mark.parametrize(("is_k_first", "hops", "writers"), [(False, 4, (12, 13, 14, 15)), (True, 1, (3, 7, 11, 15))])
def test_partial_sums_travel_as_far_as_the_core_order_says(
    is_k_first: bool, hops: int, writers: tuple[int, ...]
) -> None:
    record, storing = record_and_writers(matmul_operation(2, 2, 4, is_k_first=is_k_first))
    assert (record.combination.slices, record.combination.hops) == (4, hops)
    assert record.combination.core_result_bytes == 4 * (64 // 2) * (256 // 2)
    assert storing == writers
    timeline = timeline_of(record, CALIBRATED, range(16), storing)
    assert [group.cores for group in timeline.groups] == [writers, tuple(set(range(16)) - set(writers))]
    assert all(CoreEngine.RING in windows(timeline, group) for group in range(2))
    assert CoreEngine.DMA_OUT not in windows(timeline, 1)


def test_reductions_are_told_apart_by_what_they_reduce() -> None:
    order = ("mb", "out")
    over_stick = Operation(
        "sum", {"mb": (64, 4), "out": (256, 1)}, (Tensor(order, "out"), Tensor(order, "out", {"out": -2}))
    )
    over_rows = Operation(
        "sumnonstick", {"mb": (64, 1), "out": (256, 4)}, (Tensor(order, "out"), Tensor(order, "out", {"mb": -1}))
    )
    assert record_and_writers(over_stick)[0].operation_class is OperationClass.REDUCTION
    assert record_and_writers(over_stick)[0].result_elements == 64
    assert record_and_writers(over_rows)[0].operation_class is OperationClass.OUTER_REDUCTION


def test_every_example_has_a_time_and_scratchpad_operands_cost_no_memory() -> None:
    for kernel in right_kernels():
        loaded = EmulatedDevice().load(kernel.program, kernel.superdscs, kernel.table)
        for planned in loaded.planned.values():
            assert loaded.call_times.of(planned, planned.traffic).timeline.total_us > 0.0
    chain = load_kernel("softmax_lx")
    loaded = EmulatedDevice().load(chain.program, chain.superdscs, chain.table)
    records = [record_of(item.setting, item.binding, item.traffic) for item in loaded.planned.values()]
    # x is read twice; the maximum and the difference stay in LX
    assert [record.lx_write_bytes > 0 for record in records] == [True, True, False]
    assert [record.lx_read_bytes > 0 for record in records] == [False, True, True]
    assert records[2].read_bytes == 0


def test_an_operation_on_the_scratchpad_alone_only_computes() -> None:
    kernel = load_kernel("layernorm")
    loaded = EmulatedDevice().load(kernel.program, kernel.superdscs, kernel.table)
    scale = next(item for item in loaded.planned.values() if item.call.superdsc.op_func_name == "layernormscale")
    record = record_of(scale.setting, scale.binding, scale.traffic)
    busy = windows(timeline_of(record, CALIBRATED, range(record.cores), writers_of(scale.setting)))
    assert set(busy) == {CoreEngine.SFP}
