"""Tensors that change owners inside the scratchpads: the same numbers, exact figures, and only where it pays."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.front import checked_profile, emit, schedule
from spyrec.hardware.plan_record import Decision
from spyrec.hardware.target import CALIBRATED, RING_CORES, Figure
from spyrec.ir.kernel import Kernel, KernelGraph, Owners
from spyrec.passes.base import PipelineOptions
from spyrec.passes.planning.shares import Share, moved_ring_bytes
from spyrec.passes.planning.traffic import plan_figures
from spyrec.passes.verify_kernels import verify_kernels
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, scheduled, tensor
from tests.support.planned_records import emulated_records, planned_records
from tests.support.planned_runs import planned, run_planned, small_target
from tests.support.relayouts import RelayoutGraph
from tests.support.scratchpad_replay import scratchpad_faults

_NO_SHUFFLES = "torch-spyre@2026-06"


def _pinned(written: JsonObject, **slices: int) -> JsonObject:
    return {**written, "work_division": {dim.replace("_", "."): count for dim, count in slices.items()}}


def _rows_then_columns(rows: int = 64, columns: int = 2048, *, readers: int = 1) -> JsonObject:
    """Return a tensor that one operation writes in rows and others read in columns."""
    nodes = [_pinned(node("a", "exp", "x"), out_0=32)]
    nodes += [_pinned(node(f"y{number}", "neg", "a"), out_1=32) for number in range(readers)]
    return graph_data([tensor("x", rows, columns)], nodes, [f"y{number}" for number in range(readers)])


def _shuffles(graph: KernelGraph) -> list[Kernel]:
    return [kernel for kernel in graph.kernels if kernel.op_func == "shuffle"]


def _simulated_us(graph: KernelGraph, options: CompileOptions) -> float:
    return plan_figures(graph, options.target, checked_profile(options)).simulated_us


# What is computed does not change


@examples(12)
@given(seed=st.integers(0, 1 << 40))
def test_shuffles_change_no_number(seed: int) -> None:
    """Bit for bit what device memory alone gives; every figure as counted; sanitizers silent; the reference agrees."""
    builder = RelayoutGraph(seed)
    data = builder.data()
    arrays = random_arrays(data, seed)
    target = small_target(random.Random(seed).choice((4, 16, 64, 1 << 14)))
    options = CompileOptions(cores=builder.cores, target=target, auto_tile=seed % 4 == 0, profile=CALIBRATED.name)
    try:
        plain = run_planned(data, arrays, replace(options, lx_planner="none", auto_tile=False))
    except SpyrecError:  # a pin that the graph's loops do not leave
        return
    watched = RunOptions(check=True, sanitize="all", profile=CALIBRATED.name)
    found = run_planned(data, arrays, options, watched)
    assert found.result.is_ok, (found.result.check, found.result.sanitizer)
    assert found.measured_bytes == found.predicted_bytes
    assert not scratchpad_faults(found.graph)
    bundle = emit(found.graph, options)
    assert planned_records(found.graph) == emulated_records(bundle)
    figures, total = bundle.manifest.figures, found.result.stats.total
    assert figures is not None
    assert figures.simulated_us == pytest.approx(total.simulated_us)
    assert figures.lx.peak_bytes == total.lx_peak_bytes <= target.lx_usable_bytes
    june = replace(options, compat=_NO_SHUFFLES)
    before = run_planned(data, arrays, june)
    assert not _shuffles(before.graph)
    if not options.auto_tile:  # loops are chosen by bytes
        assert _simulated_us(found.graph, options) <= _simulated_us(before.graph, june) * (1 + 1e-9)
        assert found.output_bytes == before.output_bytes == plain.output_bytes
    if seed % 4 == 1:
        slow = spyrec.run(bundle, arrays, RunOptions(engine="reference"))
        assert {name: values.tobytes() for name, values in slow.outputs.items()} == found.output_bytes
    if seed % 4 == 2:
        checked = spyrec.run(bundle, arrays, RunOptions(bisect=True))
        assert checked.bisect is not None
        assert checked.bisect.ok, checked.bisect.divergence


def test_random_graphs_of_these_tests_do_shuffle() -> None:
    count = in_loops = 0
    for seed in range(40):
        builder = RelayoutGraph(seed)
        options = CompileOptions(cores=builder.cores, auto_tile=False, profile=CALIBRATED.name)
        try:
            shuffles = _shuffles(planned(builder.data(), options))
        except SpyrecError:
            continue
        count += bool(shuffles)
        in_loops += any(kernel.loops for kernel in shuffles)
    assert count > 20
    assert in_loops > 1


# When there is one


def test_a_tensor_that_changes_owners_sees_no_device_memory() -> None:
    data = _rows_then_columns()
    arrays = random_arrays(data)
    found = run_planned(data, arrays, run=RunOptions(check=True, sanitize="all"))
    (shuffle,) = _shuffles(found.graph)
    assert [own.division for own in shuffle.owners] == [(32, 1), (1, 32)]
    assert found.measured_bytes == found.predicted_bytes == found.lower_bound_bytes
    without = run_planned(data, arrays, CompileOptions(compat=_NO_SHUFFLES))
    assert without.measured_bytes == 2 * found.measured_bytes
    assert without.output_bytes == found.output_bytes


def test_one_shuffle_serves_all_readers_of_a_division() -> None:
    graph = planned(_rows_then_columns(readers=3))
    assert len(_shuffles(graph)) == 1
    assert {kernel.inputs[0].buffer for kernel in graph.kernels[2:]} == {"a.lx1"}


def test_what_leaves_the_program_is_stored_once_and_shuffled() -> None:
    """``a`` is an output: it goes to device memory, and its reader takes it from the scratchpads all the same."""
    data = _rows_then_columns()
    data["outputs"] = ["y0", "a"]
    found = run_planned(data, random_arrays(data), run=RunOptions(check=True, sanitize="all"))
    assert len(_shuffles(found.graph)) == 1
    assert found.measured_bytes == found.lower_bound_bytes
    assert found.result.is_ok


def test_an_input_that_is_read_in_two_divisions_is_fetched_once() -> None:
    nodes = [_pinned(node("y", "exp", "x"), out_0=32), _pinned(node("z", "neg", "x"), out_1=32)]
    data = graph_data([tensor("x", 64, 2048)], nodes, ["y", "z"])
    found = run_planned(data, random_arrays(data), run=RunOptions(check=True, sanitize="all"))
    assert len(_shuffles(found.graph)) == 1
    assert found.measured_bytes == found.lower_bound_bytes


def test_two_states_that_do_not_fit_beside_each_other_go_through_memory() -> None:
    """A core's part is 64 sticks; room for 127 holds no two of them."""
    data = _rows_then_columns()
    for sticks, count in ((127, 0), (128, 1)):
        options = CompileOptions(target=small_target(sticks), auto_tile=False)
        found = run_planned(data, random_arrays(data), options, RunOptions(check=True, sanitize="all"))
        assert len(_shuffles(found.graph)) == count
        assert found.result.is_ok


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({"out_0": 32}, {"out_1": 16}, id="fewer cores read it"),
        pytest.param({"out_0": 16}, {"out_1": 32}, id="fewer cores write it"),
        pytest.param({"out_0": 32}, {"out_0": 32}, id="one division"),
    ],
)
def test_divisions_that_are_not_one_to_one_between_the_same_cores_are_not_shuffled(
    first: dict[str, int], then: dict[str, int]
) -> None:
    nodes = [_pinned(node("a", "exp", "x"), **first), _pinned(node("y", "neg", "a"), **then)]
    assert not _shuffles(planned(graph_data([tensor("x", 64, 2048)], nodes, ["y"])))


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions(compat=_NO_SHUFFLES),
        CompileOptions(lx_planner="none"),
        CompileOptions(cores=32, profile="datasheet", compat=_NO_SHUFFLES),
    ],
)
def test_without_shuffles_there_are_none(options: CompileOptions) -> None:
    assert not _shuffles(planned(_rows_then_columns(), options))


@pytest.mark.parametrize("compat", [None, "torch-spyre", "torch-spyre@2026-08"])
@pytest.mark.parametrize("symbolic", [True, False])
def test_the_newest_dialect_has_them(compat: str | None, symbolic: bool) -> None:
    if compat is not None and not symbolic:
        return
    data = _rows_then_columns()
    bundle = spyrec.compile(data, CompileOptions(compat=compat, symbolic_args=symbolic))
    (program,) = bundle.programs
    assert [item.op_func_name for item in program.superdscs.values()] == ["exp", "shuffle", "neg"]
    assert spyrec.run(bundle, random_arrays(data), RunOptions(check=True, sanitize="all")).is_ok


def test_a_shuffle_that_takes_longer_than_memory_is_not_made() -> None:
    """Planted: a ring a thousand times slower than it is."""
    figure = CALIBRATED.ring_bytes_per_us
    slow = replace(CALIBRATED, ring_bytes_per_us=Figure(figure / 1000, figure.source, figure.trust))
    assert len(_shuffles(scheduled(_rows_then_columns(), PipelineOptions()))) == 1
    assert not _shuffles(scheduled(_rows_then_columns(), PipelineOptions(profile=slow)))


# What is said of it


def test_the_plan_says_what_is_shuffled_and_what_that_saves() -> None:
    data = _rows_then_columns()
    bundle = spyrec.compile(data)
    figures = bundle.manifest.figures
    assert figures is not None
    (note,) = [note for note in figures.notes if note.decision is Decision.SHUFFLED]
    operation = figures.operations[1]
    moved = _ring_bytes_by_hand(64, 32, 32)
    assert (operation.op, operation.output, operation.ring_bytes) == ("shuffle", "a.lx1", moved)
    assert (dict(operation.source_slices), dict(operation.slices)) == ({"d0": 32}, {"d1": 32})
    assert note.subject == "a"
    assert f'from d0 32 to d1 32 as "a.lx1", {moved} bytes over the ring' in note.reason
    assert note.saved_bytes == 64 * 2048 * 2
    (kept,) = [note for note in figures.notes if note.decision is Decision.RESIDENT]
    june = spyrec.compile(data, CompileOptions(compat=_NO_SHUFFLES)).manifest.figures
    assert june is not None
    assert note.saved_us + kept.saved_us == pytest.approx(june.simulated_us - figures.simulated_us)


def _ring_bytes_by_hand(rows: int, sticks: int, cores: int) -> int:
    """Return what comes to the core that gets most of a tensor whose rows were divided and whose sticks now are."""
    owner = {(row, stick): row * cores // rows for row in range(rows) for stick in range(sticks)}
    got = [0] * cores
    for (_, stick), core in owner.items():
        wanted = stick * cores // sticks
        got[wanted] += 128 * min(abs(core - wanted), RING_CORES - abs(core - wanted))
    return max(got)


@given(st.data())
def test_ring_bytes_are_those_of_every_stick_by_itself(data: st.DataObject) -> None:
    cores = data.draw(st.sampled_from([2, 4, 8, 16, 32]))
    splits = [cut for cut in itertools.product((1, 2, 4, 8, 16, 32), repeat=2) if cut[0] * cut[1] == cores]
    full = [32 * data.draw(st.integers(1, 2)) for _ in range(2)]
    shares = [_share(full, data.draw(st.sampled_from(splits)), flip=data.draw(st.booleans())) for _ in range(2)]
    held = [{place: core for core in range(cores) for place in _sticks(share, core)} for share in shares]
    got = [0] * cores
    for place, core in held[1].items():
        apart = abs(core - held[0][place])
        got[core] += 128 * min(apart, RING_CORES - apart)
    assert moved_ring_bytes(*shares) == max(got)


def _share(full: Sequence[int], counts: Sequence[int], *, flip: bool) -> Share:
    rows, columns = counts
    slices = [
        (core // columns, core % columns) if flip else (core % rows, core // rows) for core in range(rows * columns)
    ]
    return Share(tuple(slices), (full[0] // rows, full[1] // columns))


def _sticks(share: Share, core: int) -> list[tuple[int, ...]]:
    ranges = [range(own * size, (own + 1) * size) for own, size in zip(share.slices[core], share.extents, strict=True)]
    return list(itertools.product(*ranges))


# What is wrong with one is told

Change = Callable[[Kernel], Kernel]


def _owned(place: int, division: tuple[int, ...], order: tuple[int, ...] = (0, 1)) -> Change:
    def change(kernel: Kernel) -> Kernel:
        owners = list(kernel.owners)
        owners[place] = Owners(division, order)
        return replace(kernel, owners=tuple(owners), division=owners[-1].division)

    return change


def _with_owners(count: int) -> Change:
    return lambda kernel: replace(kernel, owners=kernel.owners[:count])


def _named(op_func: str) -> Change:
    return lambda kernel: replace(kernel, op_func=op_func)


def _divided(*slices: int) -> Change:
    return lambda kernel: replace(kernel, division=slices)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(_owned(1, (2, 16)), "SPY0444", id="the reader has another division"),
        pytest.param(_owned(0, (2, 16)), "SPY0444", id="the writer has another division"),
        pytest.param(_owned(1, (2, 16), (1, 0)), "SPY0444", id="another order of cores"),
        pytest.param(_owned(1, (1, 16)), "SPY0445", id="too few cores"),
        pytest.param(_owned(1, (1, 32), (0, 0)), "SPY0445", id="a dim twice"),
        pytest.param(_with_owners(1), "SPY0445", id="one owner"),
        pytest.param(_with_owners(0), "SPY0445", id="no owners"),
        pytest.param(_named("identity"), "SPY0445", id="a copy"),
        pytest.param(_divided(32, 1), "SPY0445", id="divided as its source"),
    ],
)
def test_a_wrong_shuffle_is_told(change: Change, code: str) -> None:
    graph = planned(_rows_then_columns())
    assert not verify_kernels(graph)
    kernels = tuple(change(kernel) if kernel.owners else kernel for kernel in graph.kernels)
    assert any(line.startswith(code) for line in verify_kernels(replace(graph, kernels=kernels)))


def test_a_reader_that_was_not_shuffled_to_is_told() -> None:
    """Planted: the reader takes the tensor as it was written, which only device memory could serve."""
    graph = planned(_rows_then_columns())
    first, shuffle, reader = graph.kernels
    wrong = replace(reader, inputs=(replace(reader.inputs[0], buffer="a"),))
    problems = verify_kernels(replace(graph, kernels=(first, shuffle, wrong)))
    assert [line[:7] for line in problems] == ["SPY0444"]


def test_states_that_overlap_or_lie_elsewhere_are_told() -> None:
    graph = planned(_rows_then_columns())
    (program,) = graph.programs
    for offsets in ({"a": 0, "a.lx1": 128}, {"a": 0}):
        wrong = replace(graph, programs=(replace(program, lx_offsets=offsets),))
        assert any(line.startswith("SPY0446") for line in verify_kernels(wrong)), offsets


def test_the_device_finds_a_shuffle_to_another_division() -> None:
    """Planted behind the compiler's own checks: the result is not where its reader looks for it (rule V8)."""
    graph = schedule(_rows_then_columns(), CompileOptions(), Path())
    assert isinstance(graph, KernelGraph)
    wrong = replace(graph, kernels=tuple(_owned(1, (2, 16))(item) if item.owners else item for item in graph.kernels))
    bundle = emit(wrong, CompileOptions())
    with pytest.raises(SpyrecError, match="SPY0718"):
        spyrec.run(bundle, {"x": np.zeros((64, 2048), np.float16)})
