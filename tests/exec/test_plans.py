"""Plans of the execution contract: data dependencies across streams, whatever the schedule."""

from __future__ import annotations

import pytest

from spyrec.exec import Context, Graph, Plan
from spyrec.exec.errors import BackendFailed, NoVariant
from spyrec.runtime.spyre_device import SpyreDevice
from tests.support.spyre_devices import Cells, opened

EDGES = ((1, 0), (2, 0), (3, 1), (3, 2))


def diamond(device: SpyreDevice, context: Context, edges: tuple[tuple[int, int], ...]) -> tuple[Plan, Cells]:
    """One = 1; two = one + 2; three = one + 3; four += two * 2 + three: on three streams."""
    cells = Cells(device, 5)
    device.default_stream.flex.enqueue([cells.kernel([], 4)])
    device.synchronize()
    plan = context.plan()
    streams = [context.stream(), context.stream(), context.stream()]
    work: tuple[tuple[list[int], int, int, int], ...] = (
        ([], 1, 1, 0),
        ([1], 2, 2, 1),
        ([1], 3, 3, 2),
        ([2, 2, 3, 4], 4, 0, 0),
    )
    for sources, target, add, stream in work:
        graph = context.graph(f"to {target}")
        graph.capture(
            0, lambda recording, s=sources, t=target, a=add: recording.flex.enqueue([cells.kernel(s, t, add=a)])
        )
        plan.add(graph, 0, streams[stream])
    for edge in edges:
        plan.after(*edge)
    return plan, cells


def test_a_diamond_over_three_streams_has_one_result_under_any_schedule() -> None:
    for seed in range(10):
        with opened(f"random:{seed}", finds_races=seed < 3) as device, Context(device) as context:
            plan, cells = diamond(device, context, EDGES)
            for _ in range(100):  # each is a schedule of its own: the chooser draws on
                cells.view(4)[:] = 0
                plan.execute(0)
                plan.sync()
                assert cells.value(4) == 10
            assert device.findings == ()


@pytest.mark.parametrize("missing", range(4))
def test_without_any_of_its_edges_a_diamond_is_a_race(missing: int) -> None:
    edges = tuple(edge for number, edge in enumerate(EDGES) if number != missing)
    results: set[int] = set()
    for seed in range(3):
        with opened(f"random:{seed}", finds_races=True) as device, Context(device) as context:
            plan, cells = diamond(device, context, edges)
            for _ in range(10):
                for cell in range(1, 5):
                    cells.view(cell)[:] = 0
                plan.execute(0)
                device.synchronize()
                results.add(cells.value(4))
            assert any(finding.code == "SPY0980" for finding in device.findings)
    assert len(results) > 1  # the race is real


def counting(device: SpyreDevice, context: Context) -> tuple[Graph, Cells]:
    cells, graph = Cells(device, 1), context.graph("count")
    graph.capture(0, lambda stream: stream.flex.enqueue([cells.kernel([0], 0, add=1)]))
    return graph, cells


def test_a_plan_whose_stream_has_an_error_enqueues_nothing() -> None:
    with opened() as device, Context(device) as context:
        graph, cells = counting(device, context)
        streams, plan = [context.stream(), context.stream()], context.plan()
        for stream in streams:
            plan.add(graph, 0, stream)
        broken = context.runtime_stream(streams[1])
        broken.flex.enqueue([cells.kernel([], 0, fail=1)])
        with pytest.raises(BackendFailed):
            plan.sync()
        with pytest.raises(BackendFailed, match="SPY0935"):
            plan.execute(0)
        assert device.pending == 0
        broken.clear_error()
        plan.execute(0)
        plan.sync()
        assert cells.value(0) == 2


def test_a_plan_reports_an_error_and_still_waits_for_its_other_streams() -> None:
    with opened() as device, Context(device) as context:
        graph, cells = counting(device, context)
        bad, plan = context.graph("bad"), context.plan()
        bad.capture(0, lambda stream: stream.flex.enqueue([cells.kernel([], 0, fail=1)]))
        one, two = context.stream(), context.stream()
        plan.add(bad, 0, one)
        plan.add(graph, 0, two)
        plan.execute(0)
        with pytest.raises(BackendFailed, match="the kernel is broken"):
            plan.sync()
        assert context.runtime_stream(two).query()
        assert device.pending == 0
        context.runtime_stream(one).clear_error()


def test_a_missing_key_counts_as_a_use_of_nothing() -> None:
    with opened() as device, Context(device) as context:
        _, cells = counting(device, context)
        graph, plan = context.graph("two", 2), context.plan()
        for key in (1, 2):
            graph.capture(key, lambda stream: stream.flex.enqueue([cells.kernel([0], 0, add=1)]))
        plan.add(graph, 1, 0)
        plan.add(graph, 7, 0)
        with pytest.raises(NoVariant):
            plan.execute(0)
        graph.capture(3, lambda _: None)
        assert [graph.has_variant(key) for key in (1, 2, 3)] == [False, True, True]
