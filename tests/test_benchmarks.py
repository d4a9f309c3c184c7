"""The benchmarks' own arithmetic, and the names they answer to; what they measure is no test's matter."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.emulator_parts.claims import at_least, below
from benchmarks.emulator_parts.growth import fit
from benchmarks.emulator_parts.loops import looped_add, whole_add
from benchmarks.guard import COMMITTED, GUARDED, Guarded, committed_ratios, measured, record, worse
from benchmarks.measure import Figures, interleaved_seconds
from spyrec.files.host_processor import host_processor


def test_every_benchmark_can_be_measured_and_every_part_of_one() -> None:
    for name in benchmarks.names():
        assert callable(import_module(f"benchmarks.{name}").measure)
        assert all(map(callable, benchmarks.parts_of(name).values()))
    assert "softmax" in benchmarks.parts_of("emulator")


WITHOUT_PYTEST = """
import importlib, pkgutil, sys
sys.modules |= {"pytest": None, "hypothesis": None}
import benchmarks
for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
    importlib.import_module(module.name)
from benchmarks.emulator_parts.first_run import OPERATIONS
print(*OPERATIONS)
"""


def test_benchmarks_need_no_package_of_the_tests() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gather" in done.stdout.split()


@pytest.mark.parametrize("name", ["nothing", "emulator:nothing", "compile:nothing", "measure", "emulator_parts"])
def test_a_name_that_is_none_is_refused_with_those_there_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main([name]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert "there are:" in printed.err


def test_a_part_is_measured_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def figures() -> Figures:
        return {"answer": 42}

    monkeypatch.setattr(import_module("benchmarks.emulator"), "PARTS", {"one": figures})
    assert benchmarks.main(["emulator:one"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["benchmark"], printed["answer"]) == ("emulator:one", 42)
    assert printed["machine"]["kernels"] == host_processor().variant.name
    assert set(printed["machine"]["vector_features"]) <= set(host_processor().used_features)
    assert printed["machine"]["vector_features"] or host_processor().variant.name == "portable"
    assert printed["machine"]["processor"]


def test_both_clocks_are_read_in_the_same_rounds_and_the_first_one_does_not_count() -> None:
    order: list[str] = []

    def wait() -> None:
        order.append("wait")
        time.sleep(0.2 if len(order) == 1 else 0.02)

    def work() -> None:
        order.append("work")
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass

    found = interleaved_seconds({"wait": wait, "work": work}, 2, pause_seconds=0, statistic=max)
    assert order == ["wait", "work"] * 3
    assert found["wait"].wall >= 0.02
    assert found["wait"].cpu < 0.015
    assert 0.02 <= found["work"].cpu < 0.15


def test_a_line_is_found_and_a_curve_is_none() -> None:
    sizes = [1, 2, 4, 8]
    line = fit(sizes, [3e-9 * size + 5e-3 for size in sizes], "element")
    assert (line["slope_ns_per_element"], line["intercept_ms"], line["r_squared"]) == pytest.approx((3, 5, 1))
    curve = fit(sizes, [size**3 for size in sizes], "element")
    assert isinstance(curve["r_squared"], float)
    assert curve["r_squared"] < 0.95


def test_a_claim_says_whether_it_held_and_is_open_where_nothing_was_measured() -> None:
    found = [at_least("x", value, 2)["held"] for value in (None, 1.0, 2.0)] + [below("x", 2.0, 2)["held"]]
    assert found == [None, False, True, False]


@pytest.mark.parametrize("cores", [1, 4])
def test_the_add_in_loops_is_the_add_in_one_piece(cores: int) -> None:
    looped, whole = looped_add(8, 3, cores), whole_add(8, 3)
    looped.launch()
    whole.launch()
    assert np.array_equal(looped.result("t2"), whole.result("t2"))


_GUARDED = (
    Guarded("one", ("time",), 0.25),
    Guarded("one", ("claims", 0, "measured"), 0.1, is_speed=True),
)


def _runs(*times: float) -> Callable[[str], Figures]:
    left = iter(times)
    return lambda name: {"time": next(left), "claims": [{"measured": 2.0 if name == "one" else 0.0}]}


def test_a_guarded_ratio_is_the_median_of_runs_in_turns() -> None:
    assert measured(_GUARDED, _runs(3.0, 1.0, 2.0)) == {"one time": 2.0, "one claims 0 measured": 2.0}


@pytest.mark.parametrize(
    ("time", "speed", "names"),
    [(1.24, 1.81, []), (1.26, 1.81, ["one time"]), (0.1, 1.79, ["one claims 0 measured"]), (0.1, 9.0, [])],
)
def test_what_is_beyond_its_tolerance_is_worse(time: float, speed: float, names: list[str]) -> None:
    now, committed = ({"one time": t, "one claims 0 measured": s} for t, s in ((time, speed), (1.0, 2.0)))
    assert [line.partition(":")[0] for line in worse(_GUARDED, now, committed)] == names


def test_ratios_are_kept_by_class_of_processor(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    assert committed_ratios(file, "avx2") == {}
    record(file, "avx2", {"one time": 1.0})
    record(file, "avx512", {"one time": 2.0})
    record(file, "avx2", {"one time": 3.0})
    assert committed_ratios(file, "avx2") == {"one time": 3.0}
    assert committed_ratios(file, "avx512") == {"one time": 2.0}


def test_what_is_committed_is_what_is_guarded() -> None:
    """Every class has a figure for each ratio, and none for a ratio that is gone; each names a benchmark there is."""
    names = {item.name for item in GUARDED}
    for ratios in json.loads(COMMITTED.read_text()).values():
        assert set(ratios) == names
    assert all(benchmarks.unknown_in(item.benchmark) is None for item in GUARDED)
