"""``spyrec.load``: a bundle that stays loaded between calls, shared by threads, whole again after an error."""

from __future__ import annotations

import dataclasses
import gc
import json
import subprocess
import sys
import threading
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.emulator import attached_memory
from spyrec.emulator.backend import EmulatorBackend
from spyrec.emulator.device import EmulatedDevice
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.memory.allocator import FlexAllocator
from spyrec.runtime.streams.background_thread import BackgroundThread
from tests.runtime.test_dims import bundle_of, program
from tests.runtime.test_dims import drawn as drawn_singles

Halves = npt.NDArray[np.float16]


def chain() -> spyrec.GraphBuilder:
    """Return a graph of two products with a constant between them: programs, constants, pools and two outputs."""
    builder = spyrec.GraphBuilder("chain")
    x, w = builder.input("x", (64, 128)), builder.input("w", (128, 64))
    hidden = builder.softmax(builder.matmul(x, w, name="hidden") * 0.25, dim=-1, name="scores")
    builder.output(hidden)
    builder.output(builder.matmul(hidden, builder.input("v", (64, 128)), name="mixed"))
    return builder


def summed() -> spyrec.GraphBuilder:
    builder = spyrec.GraphBuilder("summed")
    rows = builder.dim("rows", 64)
    x, y = builder.input("x", (rows, 128)), builder.input("y", (rows, 128))
    builder.output(builder.add(x, y, name="total"))
    return builder


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return spyrec.compile(chain())


@pytest.fixture(scope="module")
def sums() -> Bundle:
    return spyrec.compile(summed())


def drawn(seed: int, **shapes: tuple[int, ...]) -> dict[str, Halves]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return {name: generator.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}


def chained(seed: int) -> dict[str, Halves]:
    return drawn(seed, x=(64, 128), w=(128, 64), v=(64, 128))


def equal(found: dict[str, npt.NDArray[np.generic]], expected: dict[str, npt.NDArray[np.generic]]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_call_returns_what_a_run_returns_by_name_in_graph_order(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "chain.bundle")
    with spyrec.load(bundle) as model, spyrec.load(tmp_path / "chain.bundle") as from_files:
        assert model.inputs == ("x", "w", "v")
        for seed in range(3):
            expected = spyrec.run(bundle, chained(seed)).outputs
            assert list(expected) == ["scores", "mixed"]
            equal(model(**chained(seed)), expected)
            equal(from_files(**chained(seed)), expected)


def test_a_result_of_a_run_has_the_same_counters_at_every_call(bundle: Bundle) -> None:
    expected = spyrec.run(bundle, chained(1))
    brought: list[int] = []
    with spyrec.load(bundle) as model:
        for _ in range(3):
            found = model.run(chained(1))
            equal(found.outputs, expected.outputs)
            assert found.stats.ops == expected.stats.ops
            brought.append(found.stats.total.dma_h2d_bytes)
            assert dataclasses.replace(found.stats.total, dma_h2d_bytes=brought[0]) == expected.stats.total
            assert (found.dtypes, found.warnings, found.tiles) == (expected.dtypes, expected.warnings, expected.tiles)
    assert [brought[0] - item for item in brought] == [0, 128, 128]  # the constant is brought by the first call


def test_a_second_call_loads_plans_and_allocates_nothing(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()

    def count(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def counting(*arguments: object, **options: object) -> object:
            counted[f"{getattr(owner, '__name__', owner)}.{name}"] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    for owner, name in (
        (EmulatorBackend, "__init__"),
        (EmulatorBackend, "operand_check"),
        (EmulatedDevice, "load"),
        (ExecutionPlan, "__init__"),
        (ExecutionPlan, "_load_blocks"),
        (BackgroundThread, "__init__"),
        (attached_memory, "backed"),
    ):
        count(owner, name)
    with spyrec.load(bundle) as model:
        model(**chained(0))
        first = counted.copy()
        assert set(first) == {
            "EmulatorBackend.__init__",
            "EmulatorBackend.operand_check",
            "EmulatedDevice.load",
            "ExecutionPlan.__init__",
            "ExecutionPlan._load_blocks",
            "BackgroundThread.__init__",
            "spyrec.emulator.attached_memory.backed",
        }
        count(FlexAllocator, "allocate")
        for seed in range(1, 4):
            model(**chained(seed))
        pools = 3 * sum(
            1 for wired in ExecutionPlan(bundle).wired_jobs if wired.job.binary and wired.job.binary.table.pool_bytes
        )
        assert counted["FlexAllocator.allocate"] <= pools, "tensors were allocated anew"
        del counted["FlexAllocator.allocate"]
        counted["ExecutionPlan.__init__"] -= 1  # that of this test
        assert counted == first


def test_results_are_copies_of_their_own(sums: Bundle) -> None:
    given = drawn(2, x=(64, 128), y=(64, 128))
    with spyrec.load(sums) as model:
        first = model(**given)["total"]
        kept = first.copy()
        second = model(**drawn(3, x=(64, 128), y=(64, 128)))["total"]
        np.testing.assert_array_equal(first, kept)
        first[:] = 0
        assert not np.array_equal(second, first)
        np.testing.assert_array_equal(model(**given)["total"], kept)


def test_a_loop_that_drops_its_results_gets_their_memory_and_one_that_keeps_them_does_not() -> None:
    builder = spyrec.GraphBuilder("large")
    builder.output(builder.relu(builder.input("x", (512, 2048)), name="y"))
    x = drawn(1, x=(512, 2048))["x"]
    with spyrec.load(spyrec.compile(builder)) as model:
        places: list[int] = []
        y = model(x=x)["y"]
        for _ in range(24):
            y = model(x=x)["y"]
            places.append(y.ctypes.data)
        # two take turns; the device's thread may hold on to one of them a moment longer, which costs a third
        assert len(set(places)) <= 4
        kept = [model(x=np.full_like(x, number))["y"] for number in range(4)]
        del y
    assert [int(item.min()) for item in kept] == [int(item.max()) for item in kept] == [0, 1, 2, 3]


def test_calls_of_other_shapes_launch_in_tiles_as_a_run_does(sums: Bundle) -> None:
    with spyrec.load(sums) as model:
        for rows in (64, 192, 64, 100, 128):
            given = drawn(rows, x=(rows, 128), y=(rows, 128))
            expected = spyrec.run(sums, given)
            found = model.run(given)
            equal(found.outputs, expected.outputs)
            assert (found.stats, found.tiles) == (expected.stats, expected.tiles)


def test_calls_of_other_extents_of_a_symbolic_dim() -> None:
    symbolic = bundle_of(program(8, 128, 2))
    with spyrec.load(symbolic) as model:
        for rows in (8, 2, 6, 8, 4):
            given = {name: drawn_singles((2, rows, 64), rows + place) for place, name in enumerate("xy")}
            expected = spyrec.run(symbolic, given)
            assert next(iter(expected.outputs.values())).shape == (2, rows, 64)
            found = model.run(given)
            equal(found.outputs, expected.outputs)
            assert found.stats == expected.stats


def test_a_refused_call_leaves_everything_loaded(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = spyrec.run(bundle, chained(1)).outputs
    with spyrec.load(bundle) as model:
        model(**chained(0))
        monkeypatch.setattr(EmulatorBackend, "__init__", None)
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("SPY0760", {"x": chained(0)["x"]}),
            ("SPY0761", {**chained(0), "z": chained(0)["x"]}),
            ("SPY0762", {**chained(0), "x": chained(0)["x"][:3]}),
            ("SPY0763", {**chained(0), "x": chained(0)["x"].astype(np.float64)}),
            ("SPY0763", {**chained(0), "x": [1.0]}),
        ]
        for code, given in wrong:
            with pytest.raises(spyrec.SpyrecError, match=code):
                model(**given)
            equal(model(**chained(1)), expected)


def test_a_call_that_fails_on_the_device_leaves_the_model_usable(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = spyrec.run(bundle, chained(1)).outputs
    with spyrec.load(bundle) as model:
        model(**chained(0))
        for error in (AssertionError("broken"), KeyboardInterrupt(), ValueError("odd")):
            with monkeypatch.context() as patch:

                def failing(*_: object, error: BaseException = error, **__: object) -> None:
                    raise error

                patch.setattr(EmulatedDevice, "launch", failing)
                with pytest.raises(BaseException):  # noqa: B017, PT011 -- whatever comes of it
                    model(**chained(1))
            equal(model(**chained(1)), expected)


def test_calls_of_several_threads_are_serialised(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [spyrec.run(bundle, chained(seed)).outputs for seed in range(8)]
    inside, most = [0], [0]
    lock, launch = threading.Lock(), EmulatedDevice.launch

    def watched(*arguments: object, **options: object) -> object:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        try:
            return launch(*arguments, **options)  # type: ignore[arg-type]
        finally:
            with lock:
                inside[0] -= 1

    monkeypatch.setattr(EmulatedDevice, "launch", watched)
    with spyrec.load(bundle) as model, ThreadPoolExecutor(4) as pool:

        def called(seed: int) -> dict[str, npt.NDArray[np.generic]]:
            return model(**chained(seed % 8))

        found = list(pool.map(called, range(32)))
    for seed, outputs in enumerate(found):
        equal(outputs, expected[seed % 8])
    assert most[0] == 1


def test_a_call_after_close_has_a_code_and_closing_twice_does_nothing(sums: Bundle) -> None:
    given = drawn(1, x=(64, 128), y=(64, 128))
    with spyrec.load(sums) as model:
        assert not model.is_closed
    assert model.is_closed
    model.close()
    for call in (lambda: model(**given), lambda: model.run(given), model.__enter__):
        with pytest.raises(spyrec.SpyrecError, match=r'SPY0781.*"summed"'):
            call()


def test_inputs_go_by_name_alone(bundle: Bundle) -> None:
    with spyrec.load(bundle) as model, pytest.raises(spyrec.SpyrecError, match="SPY0782") as caught:
        model(chained(0)["x"], w=chained(0)["w"], v=chained(0)["v"])
    assert caught.value.diagnostics[0].advice == "name every input: model(x=..., w=..., v=...)"


def test_an_input_may_be_called_self() -> None:
    builder = spyrec.GraphBuilder("odd")
    builder.output(builder.relu(builder.input("self", (64, 64)), name="out"))
    with spyrec.load(spyrec.compile(builder)) as model:
        x = np.arange(-32, 32, dtype=np.float16).repeat(64).reshape(64, 64)
        np.testing.assert_array_equal(model(self=x)["out"], np.maximum(x, 0))


def test_a_call_that_a_check_finds_wrong_raises_and_a_run_reports(sums: Bundle) -> None:
    given = drawn(1, x=(64, 128), y=(64, 128))
    graph = json.loads(sums.graph_json or "")
    graph["nodes"][0]["op"] = "sub"
    lying = dataclasses.replace(sums, graph_json=json.dumps(graph).encode())
    with spyrec.load(lying, spyrec.RunOptions(check=True)) as model:
        assert not model.run(given).is_ok
        with pytest.raises(spyrec.SpyrecError, match=r'SPY0783.*check of "total"'):
            model(**given)
    with spyrec.load(sums, spyrec.RunOptions(check=True)) as model:
        equal(model(**given), spyrec.run(sums, given).outputs)


def test_a_sanitizer_sees_every_call_as_the_first(sums: Bundle) -> None:
    given, options = drawn(1, x=(64, 128), y=(64, 128)), spyrec.RunOptions(sanitize="all")
    expected = spyrec.run(sums, given, options)
    with spyrec.load(sums, options) as model:
        for _ in range(2):
            found = model.run(given)
            equal(found.outputs, expected.outputs)
            assert (found.sanitizer, found.warnings, found.stats) == ((), expected.warnings, expected.stats)


def test_what_is_wrong_with_bundle_and_options_shows_at_loading(sums: Bundle, tmp_path: Path) -> None:
    with pytest.raises(spyrec.SpyrecError, match="SPY06"):
        spyrec.load(tmp_path / "nothing")
    with pytest.raises(spyrec.SpyrecError, match="SPY0771"):
        spyrec.load(sums, spyrec.RunOptions(numerics="no such"))
    with pytest.raises(spyrec.SpyrecError, match="SPY0767"):
        spyrec.load(sums, spyrec.RunOptions(max_executions=0))


@pytest.mark.filterwarnings("error")
def test_a_dropped_model_leaves_neither_thread_nor_device(sums: Bundle) -> None:
    given = drawn(1, x=(64, 128), y=(64, 128))
    before = threading.active_count()
    model = spyrec.load(sums)
    model(**given)
    opened = model._opened  # pyright: ignore[reportPrivateUsage] -- what only a look inside shows
    assert opened is not None
    device = weakref.ref(opened.device)
    del model, opened
    gc.collect()
    assert device() is None
    for thread in threading.enumerate():
        if thread.name == "spyrec device":
            thread.join(60)
    assert threading.active_count() <= before


def test_a_process_that_forgets_to_close_ends_quietly(sums: Bundle, tmp_path: Path) -> None:
    sums.save(tmp_path / "sums.bundle")
    program = (
        "import numpy, spyrec, sys\n"
        "model = spyrec.load(sys.argv[1])\n"
        "x = numpy.ones((64, 128), numpy.float16)\n"
        "total = model(x=x, y=x)['total']\n"
        "print(total.min(), total.max())\n"
    )
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", program, str(tmp_path / "sums.bundle")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0 2.0\n", "")


def test_what_was_decoded_of_an_input_is_void_when_the_next_call_copies_another_one(bundle: Bundle) -> None:
    generator = np.random.default_rng(7)
    x = generator.standard_normal((64, 128)).astype(np.float16)
    v = generator.standard_normal((64, 128)).astype(np.float16)
    weights = [generator.standard_normal((128, 64)).astype(np.float16) for _ in range(2)]
    with spyrec.load(bundle) as model:
        for number in (0, 0, 0, 1, 0, 1):  # a matrix is kept decoded from its second use on
            alone = spyrec.run(bundle, {"x": x, "w": weights[number], "v": v}).outputs
            found = model(x=x, w=weights[number], v=v)
            assert all(np.array_equal(found[name], alone[name]) for name in alone)


def _adding(dtype: str, **layouts: object) -> dict[str, object]:
    """Return a graph that counts its calls in an input that results replace."""
    layout = {name: {"layout": {"dim_order": order}} for name, order in layouts.items()}
    return {
        "format": "spyrec.graph/1",
        "name": "adding",
        "inputs": [{"name": "s", "shape": [128, 64], "dtype": dtype, **layout.get("s", {})}],
        "nodes": [{"name": "n", "op": "add", "inputs": ["s", 1], **layout.get("n", {})}],
        "outputs": ["n"],
        "updates": {"n": "s"},
    }


@pytest.mark.parametrize("sanitize", [None, "all"])
@pytest.mark.parametrize(
    "graph",
    [_adding("int64"), _adding("float16"), _adding("float16", s=[1, 0], n=[0, 1])],
    ids=("host", "device", "layouts"),
)
def test_what_a_caller_writes_into_arrays_changes_no_state(graph: dict[str, object], sanitize: str | None) -> None:
    with spyrec.load(spyrec.compile(graph), spyrec.RunOptions(sanitize=sanitize)) as model:
        given = np.zeros((128, 64), "int64" if "int64" in str(graph) else "float16")
        found = model(s=given)["n"]
        given[:], found[:] = 50, 99
        np.testing.assert_array_equal(model()["n"], np.full((128, 64), 2))


def test_outputs_of_the_host_share_memory_with_nothing() -> None:
    builder = spyrec.GraphBuilder("g")
    s = builder.input("s", (2,), "int64")
    same = builder.flip(s, dims=[], name="same")
    builder.output(same, builder.reshape(same, shape=[1, 2], name="wide"), s)
    given = np.arange(2)
    with spyrec.load(spyrec.compile(builder)) as model:
        found = [given, *model(s=given).values()]
    assert not any(np.may_share_memory(a, b) for place, a in enumerate(found) for b in found[:place])
