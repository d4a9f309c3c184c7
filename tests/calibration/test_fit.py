"""A fit finds what was planted, prices are sane, and what is no list of measurements is refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spyrec.calibration import fit
from spyrec.calibration.fit import FreeChoice, cases_of, cross_validated, families, fitted, regrets
from spyrec.calibration.measurements import Measurement, graph_of, read_measurements
from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.cost import BatchOrder, OperationClass, OperationRecord, Unit, Walk, cost_of
from spyrec.hardware.profile_file import figure_names, profile_to_json, read_profile, with_figures
from spyrec.hardware.target import MEASURED_2026_08
from tests.support.measured import listed, row, rows


def test_planted_figures_are_found_again(tmp_path: Path) -> None:
    cases = cases_of(read_measurements(listed(tmp_path, rows())))
    planted = with_figures(
        MEASURED_2026_08,
        {"memory_bytes_per_us": 140_000.0, "streams.partial_turnaround": 0.9, "matmul_macs_per_us": 900_000.0},
        "planted",
    )
    measured = [
        dataclasses.replace(
            case, measurement=dataclasses.replace(case.measurement, measured_us=case.simulated_us(planted))
        )
        for case in cases
    ]
    names = {case.measurement.name: case.simulated_us(MEASURED_2026_08) for case in cases}
    before = families([case.measurement for case in measured], names)[-1]
    profile = fitted(measured, "a test")
    after = families(
        [case.measurement for case in measured],
        {case.measurement.name: case.simulated_us(profile) for case in measured},
    )[-1]
    assert before.rms > 0.1
    assert after.rms < 0.02
    assert after.rank_correlation > 0.99


def test_a_card_of_half_the_rates_is_fitted_as_well(tmp_path: Path) -> None:
    """Its fit starts at half of the published rates, so that a few steps bring it as far."""
    cases = cases_of(read_measurements(listed(tmp_path, rows())))
    halved = [
        dataclasses.replace(
            case,
            measurement=dataclasses.replace(case.measurement, measured_us=2.0 * case.simulated_us(MEASURED_2026_08)),
        )
        for case in cases
    ]
    profile = fitted(halved, "a test", steps=6)
    times = {case.measurement.name: case.simulated_us(profile) for case in halved}
    assert families([case.measurement for case in halved], times)[-1].rms < 0.05
    assert profile.memory_bytes_per_us == pytest.approx(MEASURED_2026_08.memory_bytes_per_us / 2.0, rel=0.15)


def test_a_preferred_division_that_is_measured_slower_is_regretted(tmp_path: Path) -> None:
    lines = [row("mm", "1x2048x2048x2048", split=split, us=us) for split, us in (("4x8", 40.0), ("32x1", 10.0))]
    (found,) = regrets(cases_of(read_measurements(listed(tmp_path, lines))), MEASURED_2026_08)
    assert (found.choice, found.ways, found.ratio) == (FreeChoice.DIVISION, 2, 4.0)


_TURNED = ("operands A and B in default dim order (0,1,2)", "A and B in alternative order (1,0,2)")


def test_an_order_of_operands_that_the_plan_takes_is_held_against_the_others(tmp_path: Path) -> None:
    lines = [
        row("bmm", "4x256x256x512", split="4x8", us=us, layout=layout)
        for layout, us in zip(_TURNED, (10.0, 25.0), strict=True)
    ]
    (found,) = regrets(cases_of(read_measurements(listed(tmp_path, lines))), MEASURED_2026_08)
    assert (found.choice, found.ways, found.ratio, found.is_planned) == (FreeChoice.ORDER, 2, 2.5, True)


def test_tiles_that_the_model_prefers_are_held_against_the_others(tmp_path: Path) -> None:
    lines = [row("softmax", "2048x512", tiles=tiles, us=us) for tiles, us in ((1, 30.0), (8, 20.0))]
    (found,) = regrets(cases_of(read_measurements(listed(tmp_path, lines))), MEASURED_2026_08)
    assert (found.choice, found.ways, found.ratio, found.is_planned) == (FreeChoice.TILES, 2, 1.5, False)


def test_a_division_that_was_forced_is_pinned(tmp_path: Path) -> None:
    lines = [
        row("mm", "1x512x1024x512", split="2x4k2"),
        row("bmm", "4x64x128x64", split="2x1b4"),
        row("mm", "1x64x64x64", split="auto"),
    ]
    first, second, third = read_measurements(listed(tmp_path, lines))
    assert graph_of(first)["nodes"][0]["work_division"] == {"out.0": 2, "out.1": 4, "reduce.0": 2}
    assert graph_of(second)["nodes"][0]["work_division"] == {"out.1": 2, "out.0": 4}
    assert "work_division" not in graph_of(third)["nodes"][0]
    assert (first.is_judged, third.is_judged) == (True, False)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([row("neg", "12x")], "shape"),
        ([row("neg", "12x12x12")], "2 sizes"),
        ([row("neg", "99999999999x4")], "must be 1 to"),
        ([row("neg", "64x64", us=float("nan"))], "positive number"),
        ([row("neg", "64x64", us=-1.0)], "positive number"),
        ([row("neg", "64x64", cores=33)], "cores"),
        ([row("mm", "1x64x64x64", split="4by8")], "split"),
        ([row("neg", "64x64").rsplit(",", 3)[0]], "ends before"),
        (['"neg'], "no CSV"),
        ([row("neg", "64x64"), row("neg", "64x64", us=2.0)], "line 2 has it too"),
    ],
)
def test_what_is_no_measurement_is_refused_with_its_line(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(SpyrecError) as refused:
        read_measurements(listed(tmp_path, lines))
    (found,) = refused.value.diagnostics
    assert found.code == "SPY0789"
    assert said in found.message


def test_as_many_rows_as_a_fit_needs_are_enough_to_judge_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the shapes is left out of each of three more fits, which then have fewer rows."""
    monkeypatch.setattr(fit, "_STEPS", 1)
    cases = cases_of(read_measurements(listed(tmp_path, rows()[-40:])))
    fitted(cases, "a test", steps=1)
    assert set(cross_validated(cases, "a test", MEASURED_2026_08)) == {case.measurement.name for case in cases}
    with pytest.raises(SpyrecError):
        fitted(cases[1:], "a test", steps=1)


def test_too_few_measurements_leave_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, output = listed(tmp_path, [row("neg", "64x64")]), tmp_path / "mine.json"
    assert main(["calibrate", str(file), "-o", str(output)]) == 1
    assert "SPY0789" in capsys.readouterr().err
    assert not output.exists()


def test_a_profile_file_gives_the_profile_back(tmp_path: Path) -> None:
    profile = dataclasses.replace(MEASURED_2026_08, name="mine")
    file = tmp_path / "mine.json"
    file.write_text(profile_to_json(profile), encoding="utf-8")
    again = read_profile(file)
    assert profile_to_json(again) == profile_to_json(profile)
    assert again.name == "mine"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"format": "spyrec.profile/2", "name": "a"}',
        '{"format": "spyrec.profile/1", "name": "calibrated"}',
        '{"format": "spyrec.profile/1", "name": "../a"}',
        '{"format": "spyrec.profile/1", "name": "a", "extra": 1}',
        '{"format": "spyrec.profile/1", "name": "a", "figures": {"streams.nothing": 1}}',
        '{"format": "spyrec.profile/1", "name": "a", "figures": {"memory_bytes_per_us": 0}}',
        '{"format": "spyrec.profile/1", "name": "a", "figures": {"memory_bytes_per_us": 1e9}}',
        '{"format": "spyrec.profile/1", "name": "a", "figures": {"overlap": true}}',
        '{"format": "spyrec.profile/1", "name": "a", "figures": {"streams.half_share": 0}}',
        '{"format": "spyrec.profile/1", "name": "a", "uncertainty": {"matmul": -1}}',
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "profile.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SpyrecError) as refused:
        read_profile(file)
    assert [item.code for item in refused.value.diagnostics] == ["SPY0791"]


def test_compile_takes_a_profile_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, graph = tmp_path / "mine.json", tmp_path / "graph.json"
    slow: dict[str, float] = {"memory_bytes_per_us": 1_000.0}
    mine = dataclasses.replace(with_figures(MEASURED_2026_08, slow, "a test"), name="mine")
    file.write_text(profile_to_json(mine), encoding="utf-8")
    graph.write_text(
        '{"format": "spyrec.graph/1", "name": "g", "inputs": [{"name": "x", "shape": [256, 256], "dtype": "float16"}], '
        '"nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}], "outputs": ["y"]}',
        encoding="utf-8",
    )
    assert main(["compile", str(graph), "--explain-plan", "--profile", str(file)]) == 0
    said = capsys.readouterr().out
    assert "profile mine" in said
    assert "us (± " in said


def pointwise(kind: OperationClass, rows: int, columns: int, cores: int, *, reads_pool: bool) -> OperationRecord:
    size = rows * columns * 128
    return OperationRecord(
        operation_class=kind,
        unit=Unit.SFP,
        cores=cores,
        core_points=rows * columns * 64 // cores,
        core_rows=0,
        element_bytes=2,
        passes=1,
        flops=rows * columns * 64,
        result_elements=rows * columns * 64,
        read_bytes=size,
        core_read_bytes=size,
        write_bytes=size,
        walk=Walk(rows, columns, rows),
        reads_pool=reads_pool,
    )


SIZES = st.integers(0, 16).map(lambda power: 1 << power)
KINDS = st.sampled_from([kind for kind in OperationClass if kind is not OperationClass.MATMUL])


def resonates(kind: OperationClass, rows: int, cores: int) -> bool:
    """Whether it is a fold of half of the cores or fewer with 256 rows on each: there a time is higher."""
    return kind is OperationClass.REDUCTION and cores <= 16 and rows == 256 * cores


@settings(max_examples=80)
@given(kind=KINDS, rows=SIZES, columns=SIZES, cores=st.integers(0, 5), pool=st.booleans())
def test_times_are_sane_beyond_what_was_measured(
    kind: OperationClass, rows: int, columns: int, cores: int, *, pool: bool
) -> None:
    record = pointwise(kind, rows, columns, 1 << cores, reads_pool=pool)
    time_us = cost_of(record, MEASURED_2026_08).total_us
    assert time_us >= (record.read_bytes + record.write_bytes) / 204_800  # the stated peak of the memory
    if cores < 5:
        more = pointwise(kind, rows, columns, 2 << cores, reads_pool=pool)
        dearer = 1.1 if resonates(kind, rows, 2 << cores) else 1.0
        assert cost_of(more, MEASURED_2026_08).total_us <= time_us * (dearer + 1e-12)
    longer = dataclasses.replace(record, read_bytes=2 * record.read_bytes, write_bytes=2 * record.write_bytes)
    assert cost_of(longer, MEASURED_2026_08).total_us >= time_us * (1 - 1e-12)


def test_every_figure_of_a_fit_says_where_it_is_from() -> None:
    assert len(figure_names()) == len(set(figure_names()))
    assert all(share.source for _, share in MEASURED_2026_08.uncertainty)


def product(rows: int, depth: int, columns: int, grid: tuple[int, int], element_bytes: int) -> OperationRecord:
    cores, lanes = grid[0] * grid[1], 128 // element_bytes
    columns, depth = columns * lanes, depth * lanes
    sizes = (rows * depth * element_bytes, depth * columns * element_bytes, rows * columns * 2)
    return OperationRecord(
        operation_class=OperationClass.MATMUL,
        unit=Unit.PT,
        cores=cores,
        core_points=rows * depth * columns // cores,
        core_rows=rows // grid[0],
        element_bytes=element_bytes,
        passes=1,
        flops=2 * rows * depth * columns,
        result_elements=rows * columns,
        read_bytes=sizes[0] + sizes[1],
        core_read_bytes=sizes[0] * grid[1] + sizes[1] * grid[0],
        write_bytes=sizes[2],
        core_columns=columns // grid[1],
        column_slices=grid[1],
    )


@settings(max_examples=120)
@given(
    sizes=st.tuples(st.integers(1, 5_000), st.integers(1, 300), st.integers(1, 300)),
    more=st.sampled_from((0, 1, 2)),
    grid=st.sampled_from(((1, 1), (2, 1), (1, 8), (4, 8), (8, 4), (32, 1), (1, 32), (5, 3))),
    element_bytes=st.sampled_from((1, 2)),
)
def test_times_of_products_are_sane_beyond_what_was_measured(
    sizes: tuple[int, int, int], more: int, grid: tuple[int, int], element_bytes: int
) -> None:
    """A product of any sizes takes no less than the peaks, and one that is twice as large in a dim no less than it."""

    def priced(rows: int, depth: int, columns: int) -> tuple[OperationRecord, float]:
        record = product(rows * grid[0], depth, columns * grid[1], grid, element_bytes)
        return record, cost_of(record, MEASURED_2026_08).total_us

    record, time_us = priced(*sizes)
    peak = 1_536_000 * (2 if element_bytes == 1 else 1)
    assert time_us >= max(record.core_points / peak, (record.read_bytes + record.write_bytes) / 204_800)
    _, longer_us = priced(*(size * (2 if place == more else 1) for place, size in enumerate(sizes)))
    resonates = sizes[2] in (6, 12) and more == 2  # six and twelve sticks of columns per core are dearer
    assert longer_us >= time_us * (0.6 if resonates else 1 - 1e-12)


@settings(max_examples=150)
@given(
    kind=KINDS,
    rows=st.integers(1, 1_000_000),
    columns=st.integers(1, 5_000),
    cores=st.integers(0, 5),
    wide=st.booleans(),
)
def test_a_row_or_a_stick_more_takes_no_less_time_away_from_the_resonance(
    kind: OperationClass, rows: int, columns: int, cores: int, *, wide: bool
) -> None:
    """Where rows and columns of sticks are as many a division of either has another length of runs: there it falls."""
    first = pointwise(kind, rows, columns, 1 << cores, reads_pool=False)
    second = pointwise(kind, rows + (not wide), columns + wide, 1 << cores, reads_pool=False)
    is_near = max(rows + 1, columns + 1) < 2 * min(rows, columns) + 2
    if not is_near and not resonates(kind, rows, 1 << cores):
        assert cost_of(second, MEASURED_2026_08).total_us >= cost_of(first, MEASURED_2026_08).total_us * (1 - 1e-9)


@settings(max_examples=120)
@given(
    sizes=st.tuples(st.integers(1, 2_000), st.integers(1, 100), st.integers(1, 100)),
    more=st.sampled_from((0, 1, 2)),
    batches=st.sampled_from((1, 2, 4, 8, 32, 3_200)),
    strewn=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    grid=st.sampled_from(((1, 1), (4, 8), (16, 2), (2, 16), (32, 1), (1, 32))),
    shared=st.booleans(),
)
def test_times_of_batches_are_sane_beyond_what_was_measured(
    sizes: tuple[int, int, int],
    more: int,
    batches: int,
    strewn: tuple[bool, bool, bool],
    grid: tuple[int, int],
    *,
    shared: bool,
) -> None:
    """In any order of operands; more batches take no less, a batch order is never quicker than none."""

    def priced(rows: int, depth: int, columns: int, batches: int, *, is_strewn: bool = True) -> tuple[float, float]:
        one = product(rows * grid[0], depth, columns * grid[1], grid, 2)
        moved = (one.read_bytes * batches, one.write_bytes * batches)
        orders = [batches if has and is_strewn else 1 for has in strewn]
        record = dataclasses.replace(
            one,
            core_points=one.core_points * batches,
            result_elements=one.result_elements * batches,
            read_bytes=moved[0],
            write_bytes=moved[1],
            batch_order=BatchOrder(*orders, has_shared_right=shared),
        )
        least_us = max(record.core_points / 1_536_000, sum(moved) / 204_800)
        return cost_of(record, MEASURED_2026_08).total_us, least_us

    time_us, least_us = priced(*sizes, batches)
    assert math.isfinite(time_us)
    assert time_us >= least_us
    assert time_us >= priced(*sizes, batches, is_strewn=False)[0] * (1 - 1e-12)
    assert priced(*sizes, 2 * batches)[0] >= time_us * (1 - 1e-12)
    rows, depth, columns = (size * (2 if place == more else 1) for place, size in enumerate(sizes))
    resonates = sizes[2] in (6, 12) and more == 2
    assert priced(rows, depth, columns, batches)[0] >= time_us * (0.6 if resonates else 1 - 1e-12)


@settings(max_examples=25)
@given(
    op=st.sampled_from(("neg", "add", "bcast", "bcastcol", "cat0", "cat1", "transpose", "sumrow", "sumcol", "softmax")),
    rows=st.sampled_from((1, 2, 31, 64, 4_096, 409_600)),
    columns=st.sampled_from((1, 64, 65, 2_048, 204_800)),
    cores=st.sampled_from((1, 8, 31, 32)),
)
def test_plans_of_any_size_take_a_time_above_the_limit_of_the_memory(
    op: str, rows: int, columns: int, cores: int
) -> None:
    """Of what a compiler plans: one row, one stick, a hundred times what was measured, one core and all."""
    if rows * columns > 1 << 30:
        rows = 4_096
    found = cases_of([planned(op, rows, columns, cores)])
    assume(found)  # few cores do not reach the span of the largest
    (case,) = found
    moved = sum((record.read_bytes + record.write_bytes) * count for record, count in case.parts)
    time_us = case.simulated_us(MEASURED_2026_08)
    assert math.isfinite(time_us)
    assert time_us >= moved / 204_800 > 0.0
    for slower in cases_of([planned(op, rows, columns, 1)]):
        assert time_us <= slower.simulated_us(MEASURED_2026_08) * (1 + 1e-9)


def planned(op: str, rows: int, columns: int, cores: int) -> Measurement:
    return Measurement("", "", op, (rows, columns), cores, {}, False, 1, False, (None, None), "in", frozenset(), 1.0)
