"""The text form of the IR: text to IR to text and IR to text to IR, at every stage of random graphs' compilation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import CALIBRATED
from spyrec.ir.graph import Graph
from spyrec.ir.reader import read_graph_data
from spyrec.ir.text import print_ir, read_ir
from spyrec.passes.base import PipelineOptions, Refused
from spyrec.passes.chosen_passes import read_stage
from spyrec.passes.driver import DriverOptions, PassRecord, Stage, run_pass, run_pipeline
from spyrec.passes.pipelines import COMPILE
from spyrec.passes.stages import device_stages
from tests.ir.graphs import everything, read_file, write_files
from tests.support.examples import examples
from tests.support.fuzzing.mutations import exchanged_text, mutated_text
from tests.support.graphs import JsonObject, graph_data, node, tensor
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.relayouts import RelayoutGraph
from tests.support.same_ir import difference
from tests.support.symbolic import with_symbolic_dim


def _plain(seed: int) -> JsonObject:
    return random_graph(seed)[0]


def _looped(seed: int) -> JsonObject:
    return looped_graph(seed)[0]


def _symbolic(seed: int) -> JsonObject:
    return with_symbolic_dim(looped_graph(seed)[0], Random(seed))[0]


def _windows(seed: int) -> JsonObject:
    """Return a pool or a convolution, with a bias that is written out and weights that are one number."""
    rng = Random(seed)
    channels, side, taps = rng.choice([3, 64, 70]), rng.choice([4, 6]), rng.choice([2, 3])
    x = tensor("x", 1, channels, side, side)
    if rng.random() < 0.4:
        how = {"kernel_size": [taps, taps], "stride": [rng.choice([1, 2])] * 2, "padding": [rng.choice([0, 1])] * 2}
        return graph_data([x], [node("y", "avg_pool2d", "x", **how)], ["y"])
    bias = {**tensor("b", channels), "value": [round(rng.random(), 3) for _ in range(channels)]}
    weights = {**tensor("w", channels, channels, taps, taps), "value": 0.25}
    return graph_data([x], [node("y", "conv2d", "x", "w", "b")], ["y"], constants=[bias, weights])


def _pinned(seed: int) -> JsonObject:
    return RelayoutGraph(seed).data()


KINDS: dict[str, Callable[[int], JsonObject]] = {
    "plain": _plain,
    "looped": _looped,
    "symbolic": _symbolic,
    "windows": _windows,
    "pinned": _pinned,
}


EXAMPLES = {"plain": 12, "looped": 10, "symbolic": 6, "windows": 3, "pinned": 6}


def _hold(stage: Stage) -> None:
    """Hold a stage against what its text reads back as, and the text against that of what was read."""
    text = stage.text()
    read = read_ir(text)
    assert difference(stage.graph, read.graph) is None
    assert difference(stage.source, read.source) is None
    again = print_ir(read.graph, read.has, None, None if read.source is read.graph else read.source)
    assert again == text


def _graph(data: JsonObject) -> Graph | None:
    try:
        return read_graph_data(data)
    except SpyrecError:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_of_a_compilation_is_what_its_text_says(kind: str) -> None:
    options = PipelineOptions(has_windows=kind == "windows")

    @examples(EXAMPLES[kind])
    @given(st.integers(0, 1 << 20))
    def check(seed: int) -> None:
        graph = _graph(KINDS[kind](seed))
        if graph is None:
            return
        seen: list[PassRecord] = []
        try:
            run_pipeline(graph, options, DriverOptions(observe=seen.append))
        except SpyrecError:
            return
        _hold(Stage(graph, frozenset(), graph))
        assert [record.name for record in seen] == [item.name for item in COMPILE]
        for record in seen:
            _hold(record.stage)

    check()


def test_passes_that_begin_with_a_text_make_what_they_make_of_the_graph() -> None:
    @examples(10)
    @given(st.integers(0, 1 << 20), st.sampled_from(["plain", "looped", "symbolic"]))
    def check(seed: int, kind: str) -> None:
        graph = _graph(KINDS[kind](seed))
        if graph is None:
            return
        stage = read = Stage(graph, frozenset(), graph)
        for item in COMPILE:
            try:
                made = run_pass(item, stage, PipelineOptions(), DriverOptions())
            except SpyrecError:
                return
            again = run_pass(item, _read(read.text(), read), PipelineOptions(), DriverOptions())
            if isinstance(made, Refused) or isinstance(again, Refused):
                assert type(made) is type(again)
                return
            stage, read = made.stage, again.stage
            assert read.text() == stage.text()

    check()


def _read(text: str, stage: Stage) -> Stage:
    found = read_ir(text)
    return Stage(found.graph, stage.established, found.source)


CLAUSES = (
    "dim A = 64", "1..512 in steps of 64", "constant", 'file "w.safetensors" tensor "w"', 'file "sub/n.npy"',
    "bytes ", " seen [", "layout dim_order=", "layout [64, ", " node ", "split {", " written ", "on host", " @",
    "in 2 tiles", "in tiles of", "update ", "mask ", "source graph", " has numbers_bound", "null", "+inf", "true",
    "strides [", " pin ", " host [", " home [", " named ", " op ", " unnamed", " rule contraction", " reduced [",
    " with {", " elidable", " tiled [[", " pinned [", " owners ", " window ", " because ", "at most", " in LX at",
    " in pool at", "place ", "cost ", "expects ", "note ", " against ", "planner ", "//64", "%", "*l0",
)  # fmt: skip
"""What some text has to show, so that reading it back is tried."""


def test_every_clause_of_the_form_is_printed_and_read_back(tmp_path: Path) -> None:
    read_file(write_files(tmp_path), everything())
    texts: list[str] = []

    def take(stage: Stage) -> None:
        text = stage.text(tmp_path)
        read = read_ir(text)
        again = Stage(read.graph, stage.established, read.source)
        assert again.text() == text
        texts.append(text)

    graphs = [(read_file(tmp_path / "graph.json", everything()), False)]
    graphs += [(read_graph_data(data), "conv2d" in str(data)) for data in _SHOWN]
    graphs += [(read_graph_data(RelayoutGraph(seed).data()), False) for seed in range(6)]
    for graph, has_windows in graphs:
        take(Stage(graph, frozenset(), graph))
        options = PipelineOptions(has_windows=has_windows, profile=CALIBRATED)  # under which shuffles pay
        for stage in device_stages(graph, options):
            try:
                run_pipeline(stage.source, options, DriverOptions(observe=lambda record: take(record.stage)))
            except SpyrecError:
                continue
    shown = "\n".join(texts)
    missing = [clause for clause in CLAUSES if clause not in shown]
    assert not missing, missing


_ROWS = {**tensor("x", 64, 130), "shape": ["A", 130]}
_SHOWN: list[JsonObject] = [
    graph_data([tensor("q", 1, 2, 70, 64)],
               [node("y", "scaled_dot_product_attention", "q", "q", "q", is_causal=True)], ["y"]),
    graph_data([tensor("x", 128)], [node("y", "add", "x", "w")], ["y"],
               constants=[{**tensor("w", 128), "value": [index / 8 for index in range(128)]}]),
    graph_data([tensor("x", 2, 64)], [node("y", "sum", "x", dim=[0, 1])], ["y"]),
    graph_data([_ROWS], [{**node("y", "neg", "x"), "work_division": {"out.0": 2}}], ["y"], dims={"A": 64}),
    graph_data([{**tensor("x", 40, 60), "layout": {"device_size": [38, 64], "stride_map": [64, 1]}}],
               [node("y", "neg", "x")], ["y"]),
    graph_data([tensor("x", 4), tensor("s", 4)], [node("y", "add", "x", "s")], ["y"], updates={"y": "s"}),
    graph_data([{**tensor("x", 1, 1), "shape": ["S", 64]}], [node("y", "sum", "x", dim=[0])], ["y"],
               dims={"S": {"min": 1, "max": 512, "multiple_of": 64}}),
    graph_data([{**tensor("i", 4), "dtype": "int64"}, tensor("x", 4)],
               [node("f", "to", "j", dtype="float16"), node("y", "mul", "f", "x")], ["y"],
               prologue=[node("j", "add", "i", 1)]),
    graph_data([tensor("x", 1, 3, 6, 6), tensor("w", 3, 3, 3, 3)], [node("y", "conv2d", "x", "w")], ["y"]),
    graph_data([tensor("x", 4, 64), tensor("m", 64)],
               [node("y", "clamp", "x", None, "m"), node("z", "minimum", "y", "inf")], ["z"]),
    graph_data([{**tensor("x", 2, 64), "layout": {"device_size": [1, 2, 64], "stride_map": [128, 64, 1]}}],
               [node("y", "neg", "x")], ["y"]),
    graph_data([{**tensor("x", 1, 1), "shape": ["S", 64]}], [node("y", "neg", "x")], ["y"],
               dims={"S": {"min": 1, "max": 512, "multiple_of": 64}},
               loops=[{"dim": "S", "tile_size": 64, "body": ["y"]}]),
    graph_data([tensor("x", 4, 64)], [node("r", "reshape", "x", shape=[256]), node("y", "neg", "r")], ["y"]),
    graph_data([tensor("x", 4, 64)], [node("y", "layer_norm", "x", normalized_shape=[64])], ["y"]),
]  # fmt: skip


def test_mutated_texts_are_read_or_refused_with_one_place() -> None:
    texts: list[str] = []
    for seed, kind in enumerate([*KINDS, *KINDS]):
        graph = _graph(KINDS[kind](seed))
        if graph is not None:
            try:
                options = PipelineOptions(has_windows=True)
                run_pipeline(graph, options, DriverOptions(observe=lambda record: texts.append(record.stage.text())))
            except SpyrecError:
                continue
    assert len(texts) > 20

    @examples(200)
    @given(st.integers(0, 1 << 30))
    def check(seed: int) -> None:
        rng = Random(seed)
        text = (mutated_text if seed % 2 else exchanged_text)(rng.choice(texts), rng)
        try:
            read_stage(text)
        except SpyrecError as error:
            (found,) = error.diagnostics
            assert found.location is not None
            assert found.location.line is not None
            assert 1 <= found.location.line <= text.count("\n") + 1
            assert cast("Any", found.location.column) >= 1

    check()
