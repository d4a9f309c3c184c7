"""State that is written in part: slices, one index, an index tensor; in place where rows are written, on every engine.

The oracle is NumPy's assignment to the part; the counters say what moved.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from tests.support.graph_files import JsonObject, graph_data, node, tensor

Array = npt.NDArray[np.generic]
Places = npt.NDArray[np.int64]
EVERY = slice(None)


class Write(NamedTuple):
    """A write of state: the op, its operands, the shapes of cache and source, and the part that is written."""

    op: str
    attributes: JsonObject
    cache: list[int]
    source: list[int]
    part: Any
    operands: tuple[str | None, ...] = ("cache", "x")
    at: tuple[int, ...] = ()
    dtype: str = "float16"

    def graph(self) -> JsonObject:
        inputs = [tensor("cache", *self.cache, dtype=self.dtype), tensor("x", *self.source, dtype=self.dtype)]
        if self.at:
            inputs.append(tensor("at", len(self.at), dtype="int64"))
        nodes = [
            node("kept", self.op, *self.operands, **self.attributes),
            node("y", "sum", "kept", dim=[0]),
        ]
        return graph_data(inputs, nodes, ["y", "kept"], updates={"kept": "cache"})

    def given(self, seed: int) -> dict[str, Array]:
        generator = np.random.default_rng(seed)
        found: dict[str, Array] = {"x": generator.integers(-4, 5, self.source).astype(self.dtype)}
        return {**found, "at": np.array(self.at)} if self.at else found


SLICES = [
    Write("slice_scatter", {"dim": 0, "start": 3, "end": 5}, [16, 128], [2, 128], np.s_[3:5]),
    Write("slice_scatter", {"dim": 0, "start": -2}, [16, 128], [2, 128], np.s_[-2:]),
    Write("slice_scatter", {"dim": -2, "start": 3, "end": 5}, [1, 4, 20, 128], [1, 4, 2, 128], np.s_[:, :, 3:5]),
    Write("slice_scatter", {"dim": 1, "start": 3, "end": 5}, [2, 16, 70], [2, 2, 70], np.s_[:, 3:5], dtype="float32"),
    Write("slice_scatter", {"dim": 0, "start": 1, "step": 4}, [16, 128], [4, 128], np.s_[1::4]),
    Write("index_copy", {"dim": 1}, [3, 16, 128], [3, 2, 128], np.s_[:, [1, 3]], ("cache", "at", "x"), (1, 3)),
    Write("index_put", {}, [16, 128], [2, 128], np.s_[[-1, 3]], ("cache", "at", "x"), (-1, 3)),
]
ROWS = [
    *SLICES,
    Write("select_scatter", {"dim": 0, "index": 5}, [16, 128], [128], np.s_[5]),
    Write("select_scatter", {"dim": 1, "index": -1}, [3, 16, 128], [3, 128], np.s_[:, -1], dtype="float32"),
    Write("index_put", {}, [3, 16, 128], [128], np.s_[:, [-1, 3]], ("cache", None, "at", "x"), (-1, 3)),
]
COPIES = [
    Write("slice_scatter", {"dim": 1, "start": 3, "end": 5}, [16, 128], [16, 2], np.s_[:, 3:5]),
    Write("select_scatter", {"dim": 1, "index": 64}, [16, 128], [16], np.s_[:, 64]),
    Write("slice_scatter", {"dim": 0, "start": 3, "end": 5}, [16], [2], np.s_[3:5]),
]
ENGINES = {
    "checked": spyrec.RunOptions(check=True),
    "one output": spyrec.RunOptions(outputs=("y",)),
    "reference": spyrec.RunOptions(engine="reference"),
    "sanitized": spyrec.RunOptions(sanitize="all"),
    "sanitized, one output": spyrec.RunOptions(sanitize="all", outputs=("y",)),
}


def title(write: Write) -> str:
    return f"{write.op}-{write.cache}-{write.attributes}"


def calls(bundle: Bundle, write: Write, options: spyrec.RunOptions) -> spyrec.RunResult:
    """Return the second call's result, which has to be NumPy's."""
    cache = np.random.default_rng(9).integers(-4, 5, write.cache).astype(write.dtype)
    wanted = cache.copy()
    with spyrec.load(bundle, options) as model:
        model.run({"cache": cache, **write.given(0)})
        result = model.run(write.given(1))
    wanted[write.part] = write.given(1)["x"]
    assert result.is_ok
    assert list(result.outputs) == list(options.outputs or ("y", "kept"))
    np.testing.assert_array_equal(result.outputs["y"], wanted.sum(axis=0))
    if options.outputs is None:
        np.testing.assert_array_equal(result.outputs["kept"], wanted)
    return result


@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("write", [*ROWS, *COPIES], ids=title)
def test_every_engine_keeps_state_that_is_written_in_part(write: Write, options: spyrec.RunOptions) -> None:
    calls(spyrec.compile(write.graph()), write, options)


@pytest.mark.parametrize("write", ROWS, ids=title)
def test_rows_are_written_in_place(write: Write) -> None:
    """The program writes the rows, 128 bytes to a stick; the state is neither read nor brought."""
    bundle = spyrec.compile(write.graph())
    result = calls(bundle, write, ENGINES["one output"])
    (program,) = [step.program for step in bundle.manifest.plan if step.arguments[-1] == "cache"]
    (written,) = [item for item in result.stats.ops if item.file.startswith(program)]
    *outer, last = np.zeros(write.cache)[write.part].shape
    size = np.dtype(write.dtype).itemsize
    rows = int(np.prod(outer)) * -(-last * size // 128) * 128
    assert written.hbm_write_bytes == rows
    assert written.hbm_read_bytes == rows + 128  # and the index
    given = write.given(1)
    assert result.stats.total.dma_h2d_bytes <= -(-given["x"].size // last) * -(-last * size // 128) * 128 + 128
    notes = bundle.manifest.figures.notes if bundle.manifest.figures is not None else ()
    assert not [item for item in notes if item.decision.value == "copied"]


@pytest.mark.parametrize("write", COPIES, ids=title)
def test_a_plan_says_why_state_is_copied(write: Write) -> None:
    figures = spyrec.compile(write.graph()).manifest.figures
    assert figures is not None
    (note,) = [item for item in figures.notes if item.decision.value == "copied"]
    assert note.subject == "kept"
    assert "along one dim that is not the last" in note.reason


def test_state_that_others_read_is_copied_and_the_plan_says_so() -> None:
    graph = SLICES[0].graph()
    graph["nodes"] = [*graph["nodes"], node("before", "exp", "cache")]  # pyright: ignore[reportGeneralTypeIssues]
    graph["outputs"] = ["y", "kept", "before"]
    bundle = spyrec.compile(graph)
    assert bundle.manifest.figures is not None
    (note,) = [item for item in bundle.manifest.figures.notes if item.decision.value == "copied"]
    assert note.reason == '"cache" is read by others, too, which need what it was'
    with spyrec.load(bundle) as model:
        cache = np.zeros((16, 128), np.float16)
        model.run({"cache": cache, **SLICES[0].given(0)})
        found = model.run(SLICES[0].given(1)).outputs
    cache[3:5] = SLICES[0].given(0)["x"]
    np.testing.assert_allclose(found["before"].astype(np.float64), np.exp(cache.astype(np.float64)), rtol=2**-9)
    cache[3:5] = SLICES[0].given(1)["x"]
    np.testing.assert_array_equal(found["kept"], cache)


def looped() -> JsonObject:
    """A cache that is written in part, and a sum of all calls that loops compute in four tiles."""
    states: list[JsonObject] = [{"name": name, "shape": ["R", 128], "dtype": "float16"} for name in ("cache", "total")]
    inputs = [*states, tensor("x", 4, 128), tensor("n", 2, dtype="int64")]
    nodes = [
        node("kept", "slice_scatter", "cache", "x", dim=0, start=8, end=12),
        node("half", "mul", "total", 0.5),
        node("sum", "add", "half", "kept"),
        node("count", "add", "n", 1),
    ]
    loops = [{"dim": "R", "tiles": 4, "body": ["half", "sum"]}]
    updates = {"kept": "cache", "sum": "total", "count": "n"}
    return graph_data(inputs, nodes, ["kept", "sum", "count"], updates=updates, loops=loops, dims={"R": 64})


@pytest.mark.parametrize(("loops", "engine"), list(product(("keep", "unroll"), ("checked", "reference", "sanitized"))))
def test_loops_keep_state(loops: str, engine: str) -> None:
    bundle = spyrec.compile(looped(), spyrec.CompileOptions(loops=loops))  # pyright: ignore[reportArgumentType]
    generator = np.random.default_rng(3)
    cache, total = np.zeros((64, 128)), np.zeros((64, 128))
    start = {"cache": cache.astype(np.float16), "total": total.astype(np.float16), "n": np.array([0, 7])}
    with spyrec.load(bundle, ENGINES[engine]) as model:
        for number in range(3):
            x = generator.integers(-4, 5, (4, 128))
            result = model.run({"x": x.astype(np.float16), **(start if number == 0 else {})})
            with pytest.raises(spyrec.SpyrecError):  # a call that is refused leaves state as it was
                model.run({"x": np.zeros((3, 128), np.float16)})
            cache[8:12] = x
            total = total / 2 + cache
            assert result.is_ok
            np.testing.assert_array_equal(result.outputs["kept"], cache)
            np.testing.assert_array_equal(result.outputs["sum"], total)
            assert result.outputs["count"].tolist() == [number + 1, number + 8]


def test_writes_of_a_chain_go_to_one_place() -> None:
    """Two slices, then rows by an index: three programs that write, and no copy."""
    inputs = [tensor("cache", 16, 128), *(tensor(name, 2, 128) for name in "abc"), tensor("at", 2, dtype="int64")]
    nodes = [
        node("one", "slice_scatter", "cache", "a", dim=0, start=0, end=2),
        node("two", "slice_scatter", "one", "b", dim=0, start=1, end=3),
        node("kept", "index_copy", "two", "at", "c", dim=0),
    ]
    bundle = spyrec.compile(graph_data(inputs, nodes, ["kept"], updates={"kept": "cache"}))
    assert [step.arguments[-1] for step in bundle.manifest.plan] == ["cache"] * 3
    generator = np.random.default_rng(0)
    a, b, c = (generator.integers(-4, 5, (2, 128)).astype(np.float16) for _ in "abc")
    wanted = np.zeros((16, 128), np.float16)
    with spyrec.load(bundle) as model:
        found = model.run({"cache": wanted, "a": a, "b": b, "c": c, "at": np.array([2, 9])}).outputs["kept"]
    wanted[0:2], wanted[1:3], wanted[[2, 9]] = a, b, c
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=25)
@given(st.data())
def test_slices_of_any_shape_are_numpys(data: st.DataObject) -> None:
    outer = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    shape = [*outer, data.draw(st.sampled_from([1, 3, 64, 70]))]
    dim = data.draw(st.integers(0, len(shape) - 1))
    start = data.draw(st.integers(0, shape[dim] - 1))
    end, step = data.draw(st.integers(start + 1, shape[dim])), data.draw(st.integers(1, 2))
    part = (*(EVERY,) * dim, slice(start, end, step))
    source = list(np.zeros(shape)[part].shape)
    write = Write("slice_scatter", {"dim": dim, "start": start, "end": end, "step": step}, shape, source, part)
    if data.draw(st.booleans()):
        part, source = (*(EVERY,) * dim, start), [*shape[:dim], *shape[dim + 1 :]]
        write = Write("select_scatter", {"dim": dim, "index": start}, shape, source, part)
    calls(spyrec.compile(write.graph()), write, ENGINES["checked"])


def _added(cache: Array, at: Places, x: Array) -> None:
    np.add.at(cache, at[:, 0], x)


def _set(cache: Array, at: Places, x: Array) -> None:
    np.put_along_axis(cache, at, x, 0)


def _scatter_added(cache: Array, at: Places, x: Array) -> None:
    columns = np.arange(x.shape[-1], dtype=np.int64)
    np.add.at(cache, (at, columns), x)


HOST_WRITES = {"index_add": _added, "scatter": _set, "scatter_add": _scatter_added}


@pytest.mark.parametrize("dtype", ["float16", "int64", "int8"])
@pytest.mark.parametrize("op", HOST_WRITES)
def test_state_that_the_host_writes_is_kept(op: str, dtype: str) -> None:
    """Three calls, and a second handle that shares nothing with the first."""
    at = np.stack([np.arange(70) % 8, (np.arange(70) + 3) % 8])
    index = at[:, 0] if op == "index_add" else at
    inputs = [tensor("cache", 8, 70, dtype=dtype), tensor("at", *index.shape, dtype="int64")]
    inputs.append(tensor("x", 2, 70, dtype=dtype))
    nodes = [node("kept", op, "cache", "at", "x", dim=0), node("y", "sum", "kept", dim=[0])]
    bundle = spyrec.compile(graph_data(inputs, nodes, ["y", "kept"], updates={"kept": "cache"}))
    random = np.random.default_rng(5)
    cache = random.integers(-4, 5, (8, 70)).astype(dtype)
    wanted, own = cache.copy(), cache.copy()
    options = spyrec.RunOptions(check=True)
    sources = [random.integers(-3, 4, (2, 70)).astype(dtype) for _ in range(3)]
    with spyrec.load(bundle, options) as model, spyrec.load(bundle, options) as other:
        for number, x in enumerate(sources):
            state = {} if number else {"cache": cache}
            result = model.run({**state, "at": index, "x": x})
            HOST_WRITES[op](wanted, at, x)
            assert result.is_ok
            np.testing.assert_array_equal(result.outputs["kept"], wanted)
            np.testing.assert_array_equal(result.outputs["y"], wanted.sum(axis=0))
        found = other.run({"cache": cache, "at": index, "x": sources[0]})
        HOST_WRITES[op](own, at, sources[0])
        np.testing.assert_array_equal(found.outputs["kept"], own)
