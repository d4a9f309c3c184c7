"""Graphs of which the host computes parts, rows that an index names on the device, and inputs that results replace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.manifest import Manifest
from spyrec.diagnostics import SpyrecError
from spyrec.runtime import ExecutionPlan, launch_kernel

Array = npt.NDArray[Any]
CHECKED = spyrec.RunOptions(check=True)


def tensor(name: str, shape: list[int], dtype: str = "float16") -> dict[str, Any]:
    return {"name": name, "shape": shape, "dtype": dtype}


def node(name: str, op: str, inputs: list[Any], **attributes: object) -> dict[str, Any]:
    return {"name": name, "op": op, "inputs": inputs, "attrs": attributes}


def graph(inputs: list[Any], nodes: list[Any], outputs: list[str], **more: object) -> dict[str, Any]:
    return {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": nodes, "outputs": outputs, **more}


def halves(seed: int, *shape: int) -> Array:
    """Numbers that DLFloat16 and IEEE half both hold: what only moves them has to give the same bits."""
    exact = np.random.default_rng(seed).integers(-255, 256, shape) / 64
    return exact.astype(np.float16)


MIXED = graph(
    [tensor("x", [3, 70]), tensor("i", [3, 70], "int64")],
    [
        node("e", "exp", ["x"]),
        node("n", "to", ["e"], dtype="int64"),
        node("k", "add", ["n", "i"]),
        node("f", "to", ["k"], dtype="float16"),
        node("z", "mul", ["e", "f"]),
        node("c", "gt", ["z", 1.0]),
        node("s", "sum", ["c"]),
    ],
    ["z", "k", "s", "i"],
)


def test_host_and_device_take_turns() -> None:
    bundle = spyrec.compile(MIXED)
    steps = bundle.manifest.host_steps
    assert [(step.before, step.nodes) for step in steps] == [(1, ("n", "k", "f")), (2, ("s",))]
    assert (dict(steps[0].takes), dict(steps[0].gives)) == ({"e": "e"}, {"f": "f"})
    x, i = halves(1, 3, 70), np.arange(210).reshape(3, 70)
    result = spyrec.run(bundle, {"x": x, "i": i}, CHECKED)
    assert result.is_ok
    e = np.exp(x.astype(np.float64))
    near = np.abs(e - np.rint(e)) < 2.0**-7  # a rounding decides what to cut off
    wanted = np.trunc(e).astype(np.int64) + i
    assert (result.outputs["k"] == wanted)[~near].all()
    assert result.outputs["k"].dtype == np.int64
    assert result.outputs["s"] == np.count_nonzero(result.outputs["z"].astype(np.float64) > 1.0)
    np.testing.assert_array_equal(result.outputs["i"], i)
    # e and c come to the host, f goes to the device: whole sticks of 3 rows of 2
    assert result.stats.total.dma_d2h_bytes == 3 * 768


def test_a_bundle_with_host_steps_is_the_same_from_files(tmp_path: Path) -> None:
    bundle = spyrec.compile(MIXED)
    bundle.save(tmp_path / "b")
    loaded = spyrec.Bundle.load(tmp_path / "b")
    assert loaded.manifest.host_steps == bundle.manifest.host_steps
    inputs = {"x": halves(2, 3, 70), "i": np.arange(210).reshape(3, 70)}
    once, again = spyrec.run(bundle, inputs), spyrec.run(loaded, inputs, spyrec.RunOptions(sanitize="all"))
    assert not again.sanitizer
    for name, array in once.outputs.items():
        np.testing.assert_array_equal(array, again.outputs[name])


def test_an_integer_of_more_than_32_bits_is_refused_with_its_place() -> None:
    bundle = spyrec.compile(graph([tensor("i", [2, 3], "int64")], [node("y", "mul", ["i", 4])], ["y"]))
    numbers = np.zeros((2, 3), np.int64)
    numbers[1, 2] = 2**29
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(bundle, {"i": numbers})
    assert caught.value.diagnostics[0].code == "SPY0318"
    assert caught.value.diagnostics[0].message == f'"y" holds {2**31} at [1, 2], which 32 bits do not hold'


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**62])
def test_integers_of_more_than_32_bits_are_refused_though_their_result_fits(number: int) -> None:
    nodes = [node("y", "eq", ["i", "c"])]
    constants = [{"name": "c", "shape": [2], "dtype": "int64", "value": [0, number]}]
    with pytest.raises(spyrec.SpyrecError, match=f'SPY0318.*"c" holds {number} at') as caught:
        spyrec.compile({**graph([tensor("i", [2], "int64")], nodes, ["y"]), "constants": constants})
    assert caught.value.diagnostics[0].location is not None
    bundle = spyrec.compile(graph([tensor("i", [2], "int64")], [node("y", "eq", ["i", 3])], ["y"]))
    with pytest.raises(spyrec.SpyrecError, match=f'SPY0318.*"i" holds {number} at'):
        spyrec.run(bundle, {"i": np.array([3, number])})


def test_a_constant_that_nothing_reads_may_hold_any_integer() -> None:
    constants = [{"name": "c", "shape": [1], "dtype": "int64", "value": [2**40]}]
    data = graph([tensor("i", [2], "int64")], [node("y", "eq", ["i", 3]), node("unused", "add", ["i", "c"])], ["y"])
    found = spyrec.run(spyrec.compile({**data, "constants": constants}), {"i": np.array([3, 4])})
    np.testing.assert_array_equal(found.outputs["y"], [True, False])


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("number", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_what_is_no_number_becomes_no_integer(number: float, shown: str, source: str, dtype: str) -> None:
    data = graph([tensor("x", [2], source)], [node("y", "to", ["x"], dtype=dtype)], ["y"])
    x = np.array([1.0, number], np.float32)
    given = (x.view(np.uint32) >> 16).astype(np.uint16) if source == "bfloat16" else x.astype(source)
    bundle = spyrec.compile(data)
    for engine in ("fast", "reference"):
        with pytest.raises(spyrec.SpyrecError) as caught:
            spyrec.run(bundle, {"x": given}, spyrec.RunOptions(engine=engine))
        assert caught.value.diagnostics[0].code == "SPY0318"
        assert caught.value.diagnostics[0].message == f'"y" holds {shown} at [1], which 32 bits do not hold'


BUCKETS = [
    node("l", "log", ["p"]),
    node("n", "to", ["l"], dtype="int64"),
    node("g", "add", ["n", 3]),
    node("c", "gt", ["p", 0.0]),
    node("b", "where", ["c", "g", 7]),
]


def test_what_is_no_number_may_be_chosen_by_nobody() -> None:
    """As buckets of relative positions do with the logarithm of 0."""
    bundle = spyrec.compile(graph([tensor("p", [4], "float32")], BUCKETS, ["b"]))
    assert spyrec.run(bundle, {"p": np.array([0, 1, 8, np.nan], np.float32)}).outputs["b"].tolist() == [7, 3, 5, 7]


@pytest.mark.parametrize("output", ["n", "g", "m"])
def test_what_hangs_on_what_is_no_number_is_refused(output: str) -> None:
    nodes = [*BUCKETS, node("m", "minimum", ["g", 2])]
    bundle = spyrec.compile(graph([tensor("p", [2], "float32")], nodes, ["b", output]))
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(bundle, {"p": np.array([1, 0], np.float32)})
    assert caught.value.diagnostics[0].message == '"n" holds -inf at [1], which 32 bits do not hold'


@pytest.mark.parametrize("op", ["sum", "prod", "cumsum"])
@pytest.mark.parametrize(("number", "shown"), [(np.nan, "nan"), (-np.inf, "-inf"), (1e30, "1.0000000150474662e+30")])
def test_no_sum_of_integers_takes_what_is_none(op: str, number: float, shown: str) -> None:
    data = graph([tensor("x", [2], "float32")], [node("y", op, ["x"], dim=0, dtype="int64")], ["y"])
    if op != "cumsum":
        data["nodes"][0]["attrs"]["dim"] = [0]
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(spyrec.compile(data), {"x": np.array([1.0, number], np.float32)})
    assert caught.value.diagnostics[0].code == "SPY0318"
    assert f"{shown} is no int64" in caught.value.diagnostics[0].message


def test_narrow_integers_wrap_as_in_pytorch() -> None:
    bundle = spyrec.compile(graph([tensor("i", [2], "uint8")], [node("y", "mul", ["i", 3])], ["y"]))
    result = spyrec.run(bundle, {"i": np.array([100, 2], np.uint8)}, CHECKED)
    assert result.is_ok
    assert result.outputs["y"].tolist() == [44, 6]


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([node("y", "sum", ["x"], dim=[0])], np.zeros(5)),
        ([node("y", "cat", ["x", "w"])], np.ones((3, 5))),
        ([node("m", "matmul", ["t", "x"]), node("y", "add", ["m", 1.0]), node("t", "t", ["x"])], np.ones((5, 5))),
        ([node("y", "mul", ["x", 2.0])], np.zeros((0, 5))),
        ([node("y", "mean", ["x"])], np.array(np.nan)),
    ],
)
def test_tensors_without_elements(nodes: list[dict[str, Any]], wanted: Array) -> None:
    bundle = spyrec.compile(graph([tensor("x", [0, 5]), tensor("w", [3, 5])], nodes, ["y", "x"]))
    inputs = {"x": np.zeros((0, 5), np.float16), "w": np.ones((3, 5), np.float16)}
    result = spyrec.run(bundle, inputs, CHECKED)
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["y"], wanted.astype(np.float16))
    assert result.outputs["x"].shape == (0, 5)


def test_the_largest_of_nothing_is_refused() -> None:
    with pytest.raises(spyrec.SpyrecError, match="nothing is the largest"):
        spyrec.compile(graph([tensor("x", [0, 5])], [node("y", "amax", ["x"], dim=[0])], ["y"]))


def test_what_launches_take_no_host_steps() -> None:
    bundle = spyrec.compile(MIXED)
    with spyrec.open_device() as device, pytest.raises(spyrec.SpyrecError) as caught:
        launch_kernel(device.stream(), ExecutionPlan(bundle), [])
    assert caught.value.diagnostics[0].code == "SPY0785"
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(bundle, {}, spyrec.RunOptions(bisect=True))
    assert caught.value.diagnostics[0].code == "SPY0786"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"nodes": ["nothing"]}, "nothing"),
        ({"before": 9}, "before program 9"),
        ({"takes": {"e": "z.gone"}}, "z.gone"),
        ({"nodes": ["f"]}, "which nothing made before"),
    ],
)
def test_altered_steps_are_refused(tmp_path: Path, change: dict[str, object], word: str) -> None:
    spyrec.compile(MIXED).save(tmp_path / "b")
    file = tmp_path / "b" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["host_steps"][0].update(change)
    file.write_text(json.dumps(manifest))
    inputs = {"x": halves(3, 3, 70), "i": np.zeros((3, 70), np.int64)}
    with pytest.raises(spyrec.SpyrecError, match=word):
        spyrec.run(tmp_path / "b", inputs)


def _other_rows(graph: dict[str, Any]) -> None:
    graph["inputs"][0]["shape"] = graph["inputs"][1]["shape"] = [1, 70]


def _other_name(graph: dict[str, Any]) -> None:
    graph["nodes"][3]["outputs"] = ["g"]
    graph["nodes"][4]["inputs"] = ["e", "g"]


def _other_dtype(graph: dict[str, Any]) -> None:
    graph["inputs"][1]["dtype"] = "int32"


def _one_output_less(graph: dict[str, Any]) -> None:
    graph["outputs"].pop()


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (_other_rows, r'argument "x" holds float16\[3,70\], and graph.json says that "x" is float16\[1,70\]'),
        (_other_dtype, '"i" holds int64.* says that "i" is int32'),
        (_other_name, 'graph.json has no value "f"'),
        (_one_output_less, 'manifest.json has output "i", graph.json has none of that name'),
    ],
)
def test_a_graph_that_is_not_the_manifests_is_refused_before_anything_runs(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], fact: str
) -> None:
    """The host computes what the graph says on what the manifest says: where they disagree, shapes cannot agree."""
    spyrec.compile(MIXED).save(tmp_path / "b")
    file = tmp_path / "b" / "graph.json"
    altered = json.loads(file.read_text())
    change(altered)
    file.write_text(json.dumps(altered))
    bundle = spyrec.Bundle.load(tmp_path / "b", verify=False)
    inputs = {"x": halves(3, 3, 70), "i": np.zeros((3, 70), np.int64)}
    with pytest.raises(spyrec.SpyrecError, match=f"SPY0611.*{fact}"):
        spyrec.run(bundle, inputs)


def test_a_constant_that_is_not_the_graphs_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.arange(70))
    source = graph([tensor("i", [3, 70], "int64")], [node("k", "add", ["i", "w"])], ["k"])
    source["constants"] = [{**tensor("w", [70], "int64"), "data": {"file": "w.npy"}}]
    (tmp_path / "graph.json").write_text(json.dumps(source))
    spyrec.compile(tmp_path / "graph.json").save(tmp_path / "b")
    file = tmp_path / "b" / "graph.json"
    file.write_text(
        json.dumps(
            json.loads(file.read_text()) | {"constants": [{**tensor("w", [3, 1], "int64"), "data": {"file": "w.npy"}}]}
        )
    )
    bundle = spyrec.Bundle.load(tmp_path / "b", verify=False)
    with pytest.raises(spyrec.SpyrecError, match=r'constant "w" is int64\[3,1\] in the graph, and int64\[70\]'):
        spyrec.run(bundle, {"i": np.zeros((3, 70), np.int64)})


# --- rows by an index -------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(data=st.data())
def test_rows_are_read_on_the_device(data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 4))
    shape = [data.draw(st.integers(1, 9)) for _ in range(rank - 1)] + [data.draw(st.sampled_from([1, 7, 64, 70, 128]))]
    dim = data.draw(st.integers(0, rank - 2))
    count = data.draw(st.integers(1, 40))
    dtype = data.draw(st.sampled_from(["int32", "int64"]))
    bundle = spyrec.compile(
        graph(
            [tensor("x", shape), tensor("i", [count], dtype)],
            [node("r", "index_select", ["x", "i"], dim=dim), node("y", "neg", ["r"])],
            ["r", "y"],
        )
    )
    assert bool(bundle.manifest.host_steps) == (shape[-1] == 1)  # no stick to take a row of
    x = halves(4, *shape)
    index = np.random.default_rng(count).integers(0, shape[dim], count).astype(dtype)
    result = spyrec.run(bundle, {"x": x, "i": index}, CHECKED)
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["r"], np.take(x, index, axis=dim))
    np.testing.assert_array_equal(result.outputs["y"], -np.take(x, index, axis=dim))


@settings(max_examples=25)
@given(data=st.data())
def test_rows_are_written_on_the_device(data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 4))
    shape = [data.draw(st.integers(1, 9)) for _ in range(rank - 1)] + [data.draw(st.sampled_from([1, 7, 64, 70, 128]))]
    dim = data.draw(st.integers(0, rank - 2))
    index = data.draw(st.lists(st.integers(0, shape[dim] - 1), min_size=1, max_size=shape[dim], unique=True))
    rows = [*shape[:dim], len(index), *shape[dim + 1 :]]
    is_read_later = data.draw(st.booleans())
    reader = [node("o", "neg", ["x"])] if is_read_later else []
    bundle = spyrec.compile(
        graph(
            [tensor("x", shape), tensor("i", [len(index)], "int64"), tensor("s", rows)],
            [node("y", "index_copy", ["x", "i", "s"], dim=dim), *reader],
            ["y", *(item["name"] for item in reader)],
        )
    )
    assert bool(bundle.manifest.host_steps) == (shape[-1] == 1)
    x, source = halves(5, *shape), halves(6, *rows)
    result = spyrec.run(bundle, {"x": x, "i": np.array(index), "s": source}, CHECKED)
    assert result.is_ok
    wanted = x.copy()
    wanted[(*(slice(None),) * dim, index)] = source
    np.testing.assert_array_equal(result.outputs["y"], wanted)
    if is_read_later:
        np.testing.assert_array_equal(result.outputs["o"], -x)


def test_an_embedding_of_two_dims_of_ids_and_a_row_that_there_is_not() -> None:
    bundle = spyrec.compile(
        graph(
            [tensor("ids", [2, 6], "int64"), tensor("w", [50, 70])],
            [node("e", "embedding", ["ids", "w"]), node("y", "mul", ["e", 2.0])],
            ["y"],
        )
    )
    ids, table = np.arange(12).reshape(2, 6), halves(7, 50, 70)
    result = spyrec.run(bundle, {"ids": ids, "w": table}, CHECKED)
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["y"], table[ids] * np.float16(2))
    with pytest.raises(spyrec.SpyrecError, match="50"):
        spyrec.run(bundle, {"ids": ids + 39, "w": table})


def test_numbers_of_two_programs_around_rows_stay_apart() -> None:
    """Each part names its own numbers, and both call them the same."""
    nodes = [
        node("a", "mul", ["x", 2.0]),
        node("r", "index_select", ["a", "i"], dim=0),
        node("s", "mul", ["r", 0.25]),
        node("t", "add", ["s", 2.0]),
    ]
    bundle = spyrec.compile(graph([tensor("x", [6, 70]), tensor("i", [3], "int64")], nodes, ["t"]))
    x = halves(8, 6, 70)
    result = spyrec.run(bundle, {"x": x, "i": np.array([5, 0, 2])}, CHECKED)
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["t"], x[[5, 0, 2]] * np.float16(0.5) + np.float16(2))


# --- state ------------------------------------------------------------------------------------------------------------

STATE = graph(
    [
        tensor("x", [1, 4, 1, 128]),
        tensor("cache", [1, 4, 20, 128]),
        tensor("at", [1], "int64"),
        tensor("sum", [4]),
        tensor("count", [2], "int64"),
    ],
    [
        node("rows", "mul", ["x", 2.0]),
        node("kept", "index_copy", ["cache", "at", "rows"], dim=2),
        node("y", "amax", ["kept"], dim=[2]),
        node("total", "add", ["sum", 1.0]),
        node("number", "add", ["count", 1]),
    ],
    ["y", "kept", "total", "number"],
    updates={"kept": "cache", "total": "sum", "number": "count"},
)


def start() -> dict[str, Array]:
    return {
        "cache": np.zeros((1, 4, 20, 128), np.float16),
        "sum": np.zeros(4, np.float16),
        "count": np.array([0, 7]),
    }


@pytest.mark.parametrize("options", [CHECKED, spyrec.RunOptions(sanitize="all"), spyrec.RunOptions(engine="reference")])
def test_state_lives_between_calls_and_each_model_has_its_own(options: spyrec.RunOptions) -> None:
    bundle = spyrec.compile(STATE)
    assert dict(bundle.manifest.updates) == STATE["updates"]
    wanted = np.zeros((1, 4, 20, 128), np.float16)
    with spyrec.load(bundle, options) as model, spyrec.load(bundle, options) as other:
        x = halves(0, 1, 4, 1, 128)
        for number in range(3):
            x = halves(number, 1, 4, 1, 128)
            given = start() if number == 0 else {}
            if number == 0:
                other(x=x, at=np.array([19]), **start())
            result = model.run({"x": x, "at": np.array([5 * number]), **given})
            assert result.is_ok
            wanted[:, :, 5 * number] = 2 * x[:, :, 0]
            np.testing.assert_array_equal(result.outputs["kept"], wanted)
            np.testing.assert_array_equal(result.outputs["y"], wanted.max(axis=2))
            assert result.outputs["total"].tolist() == [number + 1] * 4
            assert result.outputs["number"].tolist() == [number + 1, number + 8]
        # given again, an input is what the caller says
        assert not model.run({"x": x, "at": np.array([0]), **start()}).outputs["kept"][0, 0, 1:].any()


def test_a_cache_is_written_in_place() -> None:
    """What is written is the rows: 4 heads of 2 sticks; the cache is neither copied on the device nor to it."""
    bundle = spyrec.compile(STATE)
    with spyrec.load(bundle, spyrec.RunOptions(outputs=("y",))) as model:
        x = halves(1, 1, 4, 1, 128)
        first = model.run({"x": x, "at": np.array([3]), **start()})
        second = model.run({"x": x, "at": np.array([4])})
    program = next(step.program for step in bundle.manifest.plan if "at" in step.arguments)
    (written,) = [item for item in second.stats.ops if item.file.startswith(program)]
    assert written.hbm_write_bytes == 4 * 2 * 128
    assert written.hbm_read_bytes == 4 * 2 * 128 + 128  # and the index
    cache_bytes = 4 * 20 * 2 * 128
    constant_bytes = 2 * 128  # the numbers 2 and 1, which are brought once
    brought = first.stats.total.dma_h2d_bytes - second.stats.total.dma_h2d_bytes
    assert brought == cache_bytes + 128 + constant_bytes  # and the sum
    assert list(second.outputs) == ["y"]
    assert second.stats.total.dma_d2h_bytes == 4 * 2 * 128


def test_a_state_that_nobody_gave_is_missing() -> None:
    with spyrec.load(spyrec.compile(STATE)) as model, pytest.raises(spyrec.SpyrecError) as caught:
        model(x=halves(1, 1, 4, 1, 128), at=np.array([0]))
    assert {item.code for item in caught.value.diagnostics} == {"SPY0760"}


@pytest.mark.parametrize(
    ("updates", "word"),
    [
        ({"nothing": "cache"}, "no output"),
        ({"y": "x"}, "which it replaces"),
        ({"kept": "rows"}, "no input"),
        ({"kept": "cache", "total": "sum", "number": "at"}, "which it replaces"),
    ],
)
def test_updates_that_are_none(updates: dict[str, str], word: str) -> None:
    with pytest.raises(spyrec.SpyrecError, match=word) as caught:
        spyrec.compile({**STATE, "updates": updates})
    assert caught.value.diagnostics[0].code == "SPY0150"


def test_updates_survive_the_file_and_the_builder(tmp_path: Path) -> None:
    builder = spyrec.GraphBuilder("g")
    n = builder.input("n", (4,))
    builder.update(builder.add(n, 1.0, name="m"), of=n)
    assert builder.to_json()["updates"] == {"m": "n"}
    spyrec.compile(builder).save(tmp_path / "b")
    manifest: Manifest = spyrec.Bundle.load(tmp_path / "b").manifest
    assert dict(manifest.updates) == {"m": "n"}
    with spyrec.load(tmp_path / "b") as model:
        model(n=np.zeros(4, np.float16))
        assert model()["m"].tolist() == [2, 2, 2, 2]


def test_a_step_of_the_host_reads_state_before_a_program_replaces_it() -> None:
    builder = spyrec.GraphBuilder("counting")
    state = builder.input("state", (4, 64))
    builder.update(builder.add(state, 1.0, name="next"), state)
    builder.output(builder.sin(state, name="wave"))
    with spyrec.load(spyrec.compile(builder)) as model:
        model(state=np.zeros((4, 64), np.float16))
        for count in (1.0, 2.0, 3.0):
            found = model()
            np.testing.assert_array_equal(found["next"], np.full((4, 64), count + 1, np.float16))
            np.testing.assert_array_equal(found["wave"], np.full((4, 64), np.sin(count), np.float16))


def test_one_output_replaces_one_input() -> None:
    builder = spyrec.GraphBuilder("twice")
    first, second = (builder.input(name, (4, 64)) for name in ("first", "second"))
    both = builder.add(first, second, name="both")
    builder.update(both, first)
    with pytest.raises(spyrec.SpyrecError, match=r'SPY0150.*"both" replaces "first"'):
        builder.update(both, second)


@pytest.mark.parametrize("missing", ["v", "u"])
def test_an_input_that_only_the_host_reads_is_required(missing: str) -> None:
    builder = spyrec.GraphBuilder("two_roads")
    v, u = (builder.input(name, (5, 64), "float16") for name in "vu")
    builder.output(builder.add(u, u, name="o"))
    builder.output(builder.cumsum(v, dim=0, name="c"))
    bundle = spyrec.compile(builder)
    assert all("v" not in step.arguments for step in bundle.manifest.plan), "the host alone reads it"
    inputs = {name: np.ones((5, 64), np.float16) for name in "vu" if name != missing}
    with pytest.raises(SpyrecError, match=f'SPY0760.*"{missing}" is missing'):
        spyrec.run(bundle, inputs)


def test_a_number_of_the_text_is_returned_by_a_bundle_of_parts(tmp_path: Path) -> None:
    constants: list[dict[str, Any]] = [
        {"name": "i", "shape": [3], "dtype": "int64", "value": [2, 0, 1]},
        {"name": "c", "shape": [], "dtype": "float16", "value": 2.5},
    ]
    nodes = [node("r", "relu", ["x"]), node("s", "index_select", ["r", "i"], dim=0), node("y", "exp", ["s"])]
    bundle = spyrec.compile(graph([tensor("x", [4, 64])], nodes, ["y", "c"], constants=constants))
    assert len(bundle.manifest.plan) == 3, "rows by an index are a part of their own"
    bundle.save(tmp_path / "b")
    for found in (bundle, tmp_path / "b"):
        outputs = spyrec.run(found, {"x": halves(4, 4, 64)}, CHECKED).outputs
        assert outputs["c"] == np.float16(2.5)
