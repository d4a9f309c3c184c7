"""Bundles with loops on the command line: compile, run, check, diff, inspect-layout, stats and traces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spyrec.cli import main
from tests.support.graphs import JsonObject, node
from tests.support.tiling_cases import loop, looped
from tests.support.traces import problems_of, total

ROUNDS = 2 * 4


def _graph(path: Path) -> str:
    """Write a graph of two operations in a nest of 2 and 4 rounds, and one outside; return where."""
    nodes = [node("y", "add", "a", "b"), node("z", "mul", "y", "c"), node("w", "exp", "z")]
    body = loop("A", loop("B", "y", "z", tiles=4), tiles=2)
    data: JsonObject = looped({"A": 16, "B": 256}, {"a": "AB", "b": "AB", "c": "AB"}, nodes, [body])
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


def _bundle(directory: Path, *options: str) -> str:
    target = directory / ("bundle" + "".join(options))
    assert main(["compile", _graph(directory / "graph.json"), "-o", str(target), *options]) == 0
    return str(target)


def test_kept_unrolled_symbolic_and_baked_bundles_compute_the_same(tmp_path: Path) -> None:
    found: list[bytes] = []
    for options in ((), ("--loops", "keep"), ("--loops", "unroll"), ("--loops", "unroll", "--no-symbolic-args")):
        bundle, outputs = _bundle(tmp_path, *options), tmp_path / "outputs.npz"
        assert main(["run", bundle, "--random", "1", "--check", "--sanitize", "all", "--outputs", str(outputs)]) == 0
        found.append(np.load(outputs)["w"].tobytes())
    assert len(set(found)) == 1
    text = (tmp_path / "bundle" / "bundle.mlir").read_text(encoding="utf-8")
    assert (text.count("scf.for"), text.count("sdsc_execute")) == (2, 3)
    assert main(["diff", str(tmp_path / "bundle"), str(tmp_path / "bundle--loopskeep")]) == 0
    text = (tmp_path / "bundle--loopsunroll" / "bundle.mlir").read_text(encoding="utf-8")
    assert (text.count("scf.for"), text.count("sdsc_execute")) == (0, 2 * ROUNDS + 1)


def test_a_kept_loop_with_baked_addresses_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, target = _graph(tmp_path / "graph.json"), tmp_path / "out"
    assert main(["compile", graph, "-o", str(target), "--loops", "keep", "--no-symbolic-args"]) == 1
    error = capsys.readouterr().err
    assert "SPY0524" in error
    assert "hint" in error
    assert not target.exists()


def test_check_finds_nothing_wrong_with_looped_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (("--loops", "keep"), ("--loops", "unroll"), ("--loops", "unroll", "--no-symbolic-args")):
        assert main(["check", _bundle(tmp_path, *options)]) == 0
    assert not capsys.readouterr().err


def test_diff_tells_a_changed_trip_count_and_a_changed_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, other = _bundle(tmp_path), _bundle(tmp_path, "--cores", "32")
    assert main(["diff", bundle, other]) == 0
    path = Path(other) / "bundle.mlir"
    text = path.read_text(encoding="utf-8")
    for old, new in (("%loop_bound_1 = arith.constant 4", "%loop_bound_1 = arith.constant 3"), ("*d1)", "*d0)")):
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        capsys.readouterr()
        assert main(["diff", bundle, other]) == 1
        shown = capsys.readouterr()
        assert "bundle.mlir" in shown.out + shown.err


def test_stats_count_every_round_and_the_trace_shows_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, trace = _bundle(tmp_path), tmp_path / "trace.json"
    capsys.readouterr()
    assert main(["run", bundle, "--random", "1", "--json", "--stats", "--trace", str(trace)]) == 0
    stats = json.loads(capsys.readouterr().out)["stats"]
    assert [(item["op"], item["executions"]) for item in stats["ops"]] == [("add", ROUNDS), ("mul", ROUNDS), ("exp", 1)]
    add, mul, _ = stats["ops"]
    size = 16 * 256 * 2
    assert (add["hbm_read_bytes"], add["hbm_write_bytes"]) == (2 * size, 0), "y stays in LX"
    assert (mul["hbm_read_bytes"], mul["hbm_write_bytes"]) == (size, size)
    assert stats["total"]["lx_peak_bytes"] > 0
    shown = json.loads(trace.read_text(encoding="utf-8"))
    assert problems_of(shown) == []
    total_bytes = stats["total"]["hbm_read_bytes"] + stats["total"]["hbm_write_bytes"]
    assert total(shown, "spyrec.engine", "bytes") == total_bytes


def test_inspect_layout_shows_the_tensors_of_looped_graphs_and_bundles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = _bundle(tmp_path)
    for path in (bundle, str(tmp_path / "graph.json")):
        capsys.readouterr()
        assert main(["inspect-layout", path, "--json"]) == 0
        shown = capsys.readouterr().out
        assert json.loads(shown)
        assert '"a"' in shown


def test_what_the_passes_print_shows_loops_and_tiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = _graph(tmp_path / "graph.json")
    assert main(["compile", graph, "-o", str(tmp_path / "out"), "--print-after", "place-scratchpad"]) == 0
    shown = capsys.readouterr().out
    assert "  loop l0: 2 tiles of 8 along A {\n    loop l1: 4 tiles of 64 along B {\n" in shown
    assert "intermediate y: float16[8,64]" in shown
    assert '// "y" resident: 128 bytes per core at 0' in shown
