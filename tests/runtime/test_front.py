"""The Python front: lazy names, options, the three numerics, and graphs given in three forms."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import spyrec
from spyrec.cli import main
from spyrec.ir.reader import read_graph
from tests.handmade import add_bundle

SHAPE = (1024, 4096)

GRAPH: dict[str, Any] = {
    "format": "spyrec.graph/1",
    "name": "pair",
    "inputs": [{"name": name, "shape": [6, 100], "dtype": "float16"} for name in ("a", "b")],
    "constants": [{"name": "half", "shape": [], "dtype": "float16", "value": 0.5}],
    "nodes": [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "mul", "inputs": ["y", "half"]},
    ],
    "outputs": ["z"],
}


def test_importing_the_front_imports_no_heavy_library() -> None:
    code = "import spyrec, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "numba", "click", "pydantic"} & set(done.stdout.split())


def test_every_public_name_has_a_home() -> None:
    for name in spyrec.__all__:
        assert getattr(spyrec, name) is not None
    assert set(dir(spyrec)) == set(spyrec.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = spyrec.no_such_name  # pyright: ignore[reportAttributeAccessIssue] -- that is what is tested


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> spyrec.Bundle:
    return add_bundle(tmp_path_factory.mktemp("handmade"))


def halves(seed: int) -> np.ndarray[Any, np.dtype[np.float16]]:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float16)


def test_ieee_numerics_are_those_of_numpy(bundle: spyrec.Bundle) -> None:
    a, b = halves(1), halves(2)
    result = spyrec.run(bundle, {"t0": a, "t1": b}, spyrec.RunOptions(numerics="ieee"))
    np.testing.assert_array_equal(result.outputs["t2"], (a.astype(np.float32) + b).astype(np.float16))


def test_f32_numerics_round_once_on_the_way_out(bundle: spyrec.Bundle) -> None:
    a, b = halves(1), halves(2)
    result = spyrec.run(bundle, {"t0": a, "t1": b}, spyrec.RunOptions(numerics="f32"))
    np.testing.assert_array_equal(result.outputs["t2"], (a.astype(np.float32) + b).astype(np.float16))


def test_a_run_counts_what_it_moved(bundle: spyrec.Bundle) -> None:
    result = spyrec.run(bundle, {"t0": halves(1), "t1": halves(2)})
    size_bytes = 2 * SHAPE[0] * SHAPE[1]
    total = result.stats.total
    assert (total.hbm_read_bytes, total.hbm_write_bytes) == (2 * size_bytes, size_bytes)
    assert (total.dma_h2d_bytes, total.dma_d2h_bytes) == (2 * size_bytes, size_bytes)
    assert [operation.op for operation in result.stats.ops] == ["add"]
    assert result.check is None
    assert result.is_ok


def test_a_bundle_may_be_given_by_its_path(bundle: spyrec.Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    inputs = {"t0": halves(1), "t1": halves(2)}
    by_path = spyrec.run(tmp_path / "out", inputs).outputs["t2"]
    np.testing.assert_array_equal(by_path, spyrec.run(bundle, inputs).outputs["t2"])


@pytest.mark.parametrize("options", [spyrec.RunOptions(numerics="fp64"), spyrec.RunOptions(max_executions=-1)])
def test_a_run_option_out_of_range_is_refused(bundle: spyrec.Bundle, options: spyrec.RunOptions) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(bundle, {}, options)
    assert caught.value.diagnostics[0].code == "SPY0771"


def test_a_check_needs_the_graph(bundle: spyrec.Bundle) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(bundle, {"t0": halves(1), "t1": halves(2)}, spyrec.RunOptions(check=True))
    assert caught.value.diagnostics[0].code == "SPY0769"


@pytest.mark.parametrize("target", ["spyre", None, 3])
def test_what_is_no_target_is_refused(target: object) -> None:
    options = spyrec.CompileOptions(target=target)  # pyright: ignore[reportArgumentType] -- as who has no checker does
    with pytest.raises(spyrec.SpyrecError, match="no Target") as caught:
        spyrec.compile(GRAPH, options)
    assert caught.value.diagnostics[0].code == "SPY0771"


@pytest.mark.parametrize("cores", [0, -1, 33])
def test_cores_that_the_target_has_not_are_refused(cores: int) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.compile(GRAPH, spyrec.CompileOptions(cores=cores))
    assert caught.value.diagnostics[0].code == "SPY0771"


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_graph_as_file_object_or_ir_gives_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "pair.json"
    file.write_text(json.dumps(GRAPH), encoding="utf-8")
    for index, source in enumerate([file, str(file), GRAPH, read_graph(file)]):
        spyrec.compile(source, spyrec.CompileOptions(cores=4)).save(tmp_path / str(index))
    first = files_of(tmp_path / "0")
    assert "manifest.json" in first
    for index in (1, 2, 3):
        assert files_of(tmp_path / str(index)) == first


@pytest.mark.parametrize("symbolic_args", [True, False])
@pytest.mark.parametrize("numerics", ["dl16", "ieee", "f32"])
def test_a_compiled_graph_runs_and_passes_its_check(symbolic_args: bool, numerics: str) -> None:
    bundle = spyrec.compile(GRAPH, spyrec.CompileOptions(cores=2, symbolic_args=symbolic_args))
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((6, 100)).astype(np.float16) for _ in range(2))
    result = spyrec.run(bundle, {"a": a, "b": b}, spyrec.RunOptions(numerics=numerics, check=True))
    assert result.is_ok
    assert result.check is not None
    assert result.check["z"].has_bound
    assert result.outputs["z"].dtype == np.float16


@pytest.mark.parametrize("numerics", ["dl16", "ieee", "f32"])
def test_float32_and_bool_cross_the_border_exactly_under_all_numerics(numerics: str) -> None:
    """Under f32 the device's memory is twice as wide, and formats of other widths lie in half-empty slots."""
    graph: dict[str, Any] = {
        "format": "spyrec.graph/1",
        "name": "mixed",
        "inputs": [
            {"name": "s", "shape": [5, 70], "dtype": "float32"},
            {"name": "t", "shape": [5, 70], "dtype": "float32"},
            {"name": "h", "shape": [5, 70], "dtype": "float16"},
        ],
        "nodes": [
            {"name": "sum", "op": "add", "inputs": ["s", "t"]},
            {"name": "is_positive", "op": "gt", "inputs": ["h", 0]},
        ],
        "outputs": ["sum", "is_positive"],
    }
    generator = np.random.default_rng(4)
    s, t = (generator.standard_normal((5, 70)).astype(np.float32) for _ in range(2))
    h = generator.standard_normal((5, 70)).astype(np.float16)
    result = spyrec.run(spyrec.compile(graph), {"s": s, "t": t, "h": h}, spyrec.RunOptions(numerics=numerics))
    np.testing.assert_array_equal(result.outputs["sum"], s + t)
    assert result.outputs["is_positive"].dtype == np.bool_
    np.testing.assert_array_equal(result.outputs["is_positive"], h > 0)


def as_json(value: object) -> object:
    """Return dataclasses as objects and tuples as lists: the shape that ``--json`` prints."""
    if isinstance(value, tuple | list):
        return [as_json(item) for item in cast("Sequence[object]", value)]
    fields = getattr(type(value), "__dataclass_fields__", None)
    return value if fields is None else {name: as_json(getattr(value, name)) for name in fields}


def test_a_result_has_the_fields_that_run_json_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled = spyrec.compile(GRAPH)
    compiled.save(tmp_path / "out")
    assert main(["run", str(tmp_path / "out"), "--random", "1", "--check", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    generator = np.random.Generator(np.random.PCG64(1))
    inputs = {name: generator.standard_normal((6, 100), dtype=np.float32).astype(np.float16) for name in ("a", "b")}
    result = spyrec.run(spyrec.Bundle.load(tmp_path / "out"), inputs, spyrec.RunOptions(check=True))
    assert printed.keys() - {"format", "ok"} <= {item.name for item in dataclasses.fields(result)}
    assert result.check is not None
    shown = {name: cast("dict[str, object]", as_json(report)) for name, report in result.check.items()}
    assert all(report.pop("cells") is not None for report in shown.values())  # for --record alone
    assert printed["check"] == shown
    assert result.check["z"].worst.index == tuple(printed["check"]["z"]["worst"]["index"])
    assert printed["stats"]["total"] == as_json(result.stats.total)
    for operation, shown in zip(result.stats.ops, printed["stats"]["ops"], strict=True):
        assert {name: getattr(operation, name) for name in shown} == shown
        assert printed["stats"]["total"].keys() <= shown.keys()
    assert [operation.dma_h2d_bytes for operation in result.stats.ops] == [None, None]


@pytest.mark.parametrize("value", [[1, 2], 3.0, None, "x", object()], ids=lambda value: type(value).__name__)
def test_an_input_that_is_no_array_is_refused(value: object, bundle: spyrec.Bundle) -> None:
    inputs: Any = {"t0": value, "t1": halves(2)}
    for options in (spyrec.RunOptions(), spyrec.RunOptions(numerics="f32")):
        with pytest.raises(spyrec.SpyrecError) as caught:
            spyrec.run(bundle, inputs, options)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "SPY0763"
        assert type(value).__name__ in diagnostic.message
        assert diagnostic.hint is not None


def test_a_scalar_of_numpy_is_an_array_of_rank_0() -> None:
    shape: list[int] = []
    graph = GRAPH | {"inputs": [{"name": name, "shape": shape, "dtype": "float16"} for name in ("a", "b")]}
    inputs: Any = {"a": np.float16(1), "b": np.float16(2)}
    result = spyrec.run(spyrec.compile(graph), inputs, spyrec.RunOptions(check=True))
    assert (float(result.outputs["z"]), result.is_ok) == (1.5, True)


def test_a_part_of_a_bundle_is_not_checked_as_the_whole(tmp_path: Path) -> None:
    part = spyrec.RunOptions(check=True, only="sdsc_0.json")
    zeros = {name: np.zeros((6, 100), np.float16) for name in ("a", "b")}
    with pytest.raises(spyrec.SpyrecError, match="SPY0771") as caught:
        spyrec.run(spyrec.compile(GRAPH), zeros, part)
    assert "sdsc_0.json" in caught.value.diagnostics[0].message
    whole = GRAPH | {"nodes": GRAPH["nodes"][:1], "outputs": ["y"]}
    assert spyrec.run(spyrec.compile(whole), zeros, part).is_ok


def test_a_broken_rule_names_bundle_program_and_file(tmp_path: Path) -> None:
    inputs = [{"name": f"x{number}", "shape": [64], "dtype": "float16"} for number in range(9)]
    nodes = [
        {"name": f"s{number}", "op": "add", "inputs": [f"s{number - 1}" if number > 1 else "x0", f"x{number}"]}
        for number in range(1, 9)
    ]
    graph = {"format": "spyrec.graph/1", "inputs": inputs, "nodes": nodes, "outputs": ["s8"]}
    path = tmp_path / "out"
    spyrec.compile(graph).save(path)
    broken = max(path.glob("kernels/*/sdsc_0.json"))
    broken.write_text(broken.read_text().replace('_add"', '_nop"').replace('"add"', '"nop"'))
    zeros = {f"x{number}": np.zeros(64, np.float16) for number in range(9)}
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(spyrec.Bundle.load(path, verify=False), zeros)
    assert {item.code for item in caught.value.diagnostics} == {"SPY0724"}
    assert {item.location.file for item in caught.value.diagnostics if item.location} == {str(broken)}


def test_a_copy_that_cannot_be_made_names_its_table_and_argument(bundle: spyrec.Bundle, tmp_path: Path) -> None:
    path = tmp_path / "out"
    bundle.save(path)
    loaded = spyrec.Bundle.load(path)
    other = spyrec.DeviceLayout.default((512, 4096), "float16").dci("h2d")
    wrong = dataclasses.replace(loaded, dci={**loaded.dci, "dci/t1.h2d.json": other})
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.run(wrong, {"t0": halves(1), "t1": halves(2)})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.location is not None
    assert diagnostic.location.file == str(path / "dci" / "t1.h2d.json")
    assert 'argument "t1"' in "".join(diagnostic.notes)
