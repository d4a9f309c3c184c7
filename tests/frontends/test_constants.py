"""Constants from memory: their numbers, what a written graph does with them, and that bundles hold them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec import Graph, GraphBuilder, SpyrecError
from spyrec.bundle.bundle import Bundle
from spyrec.frontends.saved_graph import inline_json
from spyrec.ir.constants import MAX_INLINE_ELEMENTS, is_inline, load_constant
from spyrec.ir.numbers import decode
from spyrec.ir.reader import read_graph, read_graph_data
from spyrec.ir.verify import verify

Array = npt.NDArray[np.generic]
GENERATOR = np.random.default_rng(5)


def built(value: object, dims: object = None, dtype: object = None) -> Graph:
    builder = GraphBuilder()
    builder.output(builder.constant("w", value, dims, dtype))  # pyright: ignore[reportArgumentType] -- any of them
    graph = builder.build()
    assert verify(graph) == []
    return graph


def numbers(graph: Graph) -> Array:
    return decode(load_constant(graph, "w"), graph.type_of("w").dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (2, None, "float16"),
        (0.1, None, "float16"),
        (True, None, "bool"),
        ([[1, 2], [3, 4]], None, "float16"),
        ([1, 2], "int64", "int64"),
        (np.arange(3), None, "int64"),
        (np.arange(3, dtype=np.uint8), "float32", "float32"),
        (np.float32(0.1), None, "float32"),
        (np.linspace(0, 1, 7), "float16", "float16"),
        (np.linspace(0, 1, 7), np.float32, "float32"),
        (np.linspace(0, 1, 7).astype(">f4"), None, "float32"),
        (np.asfortranarray(GENERATOR.standard_normal((3, 4)).astype(np.float16)), None, "float16"),
        ([1.0, 0.0], "bool", "bool"),
        ([float("inf"), -1.0], None, "float16"),
    ],
)
def test_numbers_are_those_given_rounded_to_the_dtype(value: object, dtype: object, wanted: str) -> None:
    graph = built(value, None, dtype)
    assert graph.type_of("w").dtype.value == wanted
    expected = np.asarray(value).astype(wanted)
    np.testing.assert_array_equal(load_constant(graph, "w"), expected)
    assert read_graph_data(json.loads(json.dumps(inline_json(graph)))) == graph


def test_bfloat16_comes_as_bits_or_as_numbers_and_8_bit_floats_as_bits() -> None:
    np.testing.assert_array_equal(numbers(built(np.array([0x3F80, 0x4000], np.uint16), None, "bfloat16")), [1.0, 2.0])
    np.testing.assert_array_equal(numbers(built([1.0, 2.00001], None, "bfloat16")), [1.0, 2.0])
    np.testing.assert_array_equal(numbers(built(np.array([0x38, 0x40], np.uint8), None, "float8_e4m3fn")), [1.0, 2.0])


def test_one_number_for_all_takes_no_memory_and_stands_as_one_number() -> None:
    graph = built(0.5, (2**20, 2**20))
    array = load_constant(graph, "w")
    assert array.shape == (2**20, 2**20)
    assert '"value": 0.5}' in json.dumps(inline_json(graph))


def test_a_constant_does_not_follow_the_array_it_came_from() -> None:
    source = np.ones(4, np.float16)
    graph = built(source)
    source[:] = 7
    np.testing.assert_array_equal(numbers(graph), np.ones(4))
    assert not load_constant(graph, "w").flags.writeable


def test_an_array_that_nobody_can_write_to_is_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones((64, 64), np.float16))
    mapped = np.load(tmp_path / "w.npy", mmap_mode="r")
    assert np.shares_memory(load_constant(built(mapped), "w"), mapped)
    view = np.ones(64, np.float16)[:32]
    view.setflags(write=False)
    assert not np.shares_memory(load_constant(built(view), "w"), view), "its base can be written to"


def test_text_holds_small_constants_and_those_it_has_a_form_for() -> None:
    for value, wanted in (
        (np.arange(MAX_INLINE_ELEMENTS, dtype=np.float16), True),
        (np.arange(MAX_INLINE_ELEMENTS + 1).astype(np.float16), False),
        (np.array([np.nan, 1], np.float16), False),
        (np.array([np.inf, 1], np.float16), True),
    ):
        graph = built(value)
        assert is_inline(graph.constants["w"], graph.type_of("w")) is wanted
    fp8 = built(np.array([1], np.uint8), None, "float8_e4m3fn")
    assert not is_inline(fp8.constants["w"], fp8.type_of("w"))


def model() -> GraphBuilder:
    """Return a graph with a constant of every kind: large and padded, large and unused by kernels, small, with NaN."""
    builder = GraphBuilder("model")
    rows = builder.dim("R", 40)
    x = builder.input("x", (rows, 100))
    large = builder.constant(
        "large",
        (GENERATOR.standard_normal((100, 70)) / 8).astype(np.float16),
        (100, "C") if builder.dim("C", 70) else None,
    )
    bias = builder.constant("bias", GENERATOR.standard_normal(70).astype(np.float16), ("C",))
    table = builder.constant("table", GENERATOR.standard_normal((40, 200)).astype(np.float16))
    builder.output(builder.relu(x @ large + bias, name="y"), builder.neg(table, name="n"), table)
    return builder


def test_saved_graphs_read_as_the_graph_and_its_numbers(tmp_path: Path) -> None:
    builder = model()
    builder.save(tmp_path / "saved")
    assert sorted(item.name for item in (tmp_path / "saved").iterdir()) == ["constants.safetensors", "graph.json"]
    graph, wanted = read_graph(tmp_path / "saved" / "graph.json"), builder.build()
    assert (graph.nodes, graph.values, graph.dims) == (wanted.nodes, wanted.values, wanted.dims)
    for name in wanted.constants:
        np.testing.assert_array_equal(load_constant(graph, name), load_constant(wanted, name))
    with pytest.raises(SpyrecError, match="SPY0612"):
        builder.save(tmp_path / "saved")
    with pytest.raises(SpyrecError, match="SPY0613"):
        builder.save(tmp_path / "nowhere" / "saved")


def test_a_graph_without_large_constants_is_saved_as_text_alone(tmp_path: Path) -> None:
    builder = GraphBuilder()
    builder.output(builder.input("x", (2,)) + builder.constant("w", [1.0, 2.0]))
    builder.save(tmp_path / "saved")
    assert [item.name for item in (tmp_path / "saved").iterdir()] == ["graph.json"]


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spyrec.frontends.saved_graph.write_constants", fail)
    with pytest.raises(SpyrecError, match="SPY0613"):
        model().save(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_a_builder_compiles_to_the_bundle_of_its_saved_graph_and_runs_right(tmp_path: Path) -> None:
    builder = model()
    builder.save(tmp_path / "saved")
    options = spyrec.CompileOptions(cores=4)
    spyrec.compile(builder, options).save(tmp_path / "one")
    spyrec.compile(builder.build(), options).save(tmp_path / "two")
    spyrec.compile(tmp_path / "saved" / "graph.json", options).save(tmp_path / "three")
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("one", "two", "three")
    ]
    assert files[0] == files[1] == files[2]
    x = (GENERATOR.standard_normal((40, 100)) / 4).astype(np.float16)
    for bundle in (spyrec.compile(builder, options), Bundle.load(tmp_path / "one")):
        result = spyrec.run(bundle, {"x": x}, spyrec.RunOptions(check=True))
        assert result.check is not None
        assert all(report.ok and report.has_bound for report in result.check.values())
        held = load_constant(builder.build(), "table")
        np.testing.assert_array_equal(result.outputs["table"].astype(np.float32), dl16(held))


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def dl16(array: Array) -> Array:
    """Round to the device's 16-bit floats and back, as copies do: 9 fraction bits, ties away from zero."""
    mantissa, exponent = np.frexp(array.astype(np.float64))
    scaled = np.abs(mantissa) * 2.0**10
    return (
        (np.copysign(np.floor(scaled + 0.5), mantissa) * 2.0 ** (exponent - 10.0)).astype(np.float16).astype(np.float32)
    )
