"""``spyrec inspect-layout BUNDLE --lx``: what lies in the scratchpads when, from the files alone."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import Bundle, CompileOptions
from spyrec.cli import main
from spyrec.cli._lx_map_text import draw_text
from spyrec.compare.lx_map import LoopSpan, LxMap, LxRegion, LxStep, lx_maps
from spyrec.diagnostics import SpyrecError
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, tensor
from tests.support.random_loops import looped_graph

Capture = pytest.CaptureFixture[str]

TILED = graph_data(
    [{"name": name, "shape": ["A", "B"], "dtype": "float16"} for name in "abc"],
    [node("y", "add", "a", "b"), node("z", "mul", "y", "c")],
    ["z"],
    dims={"A": 256, "B": 512},
    loops=[{"dim": "A", "tiles": 2, "body": [{"dim": "B", "tiles": 4, "body": ["y", "z"]}]}],
)
TWO_WIDTHS = graph_data(
    [tensor("p", 30, 64), tensor("q", 32, 64)],
    [node("p1", "exp", "p"), node("p2", "neg", "p1"), node("q1", "exp", "q"), node("q2", "neg", "q1")],
    ["p2", "q2"],
)


def _saved(data: JsonObject, path: Path) -> str:
    spyrec.compile(data).save(path / "bundle")
    return str(path / "bundle")


def _bundle(data: JsonObject, options: CompileOptions | None = None) -> Bundle | None:
    try:
        return spyrec.compile(data, options)
    except SpyrecError:
        return None


def assert_a_map_is_sound(found: LxMap) -> None:
    """Everything read was written before, and what lives together lies apart, but for what is stored over."""
    for place, step in enumerate(found.steps):
        living = [item for item in found.regions if item.begin <= place <= item.end]
        for first, past in (*step.reads, *step.writes):
            assert any(item.first <= first and past <= item.past and place in item.uses for item in living)
        for one, other in itertools.combinations(living, 2):
            is_apart = one.past <= other.first or other.past <= one.first
            assert is_apart or other.begin == place == one.end


@examples(20)
@given(seed=st.integers(0, 1 << 40))
def test_the_map_shows_the_plans_tensors_where_and_when_the_plan_puts_them(seed: int) -> None:
    bundle = _bundle(looped_graph(seed)[0])
    if bundle is None:
        return
    figures = bundle.manifest.figures
    assert figures is not None
    maps = lx_maps(bundle)
    for found in maps:
        assert_a_map_is_sound(found)
    shown = {(found.program, item.name, item.first, item.past, item.end) for found in maps for item in found.regions}
    planned = {
        (
            bundle.programs[item.program].directory,
            item.name,
            item.offset_bytes,
            item.offset_bytes + item.core_bytes,
            item.last,
        )
        for item in figures.lx.residents
    }
    assert shown == planned
    assert max((found.peak_bytes for found in maps), default=0) == figures.lx.peak_bytes


@examples(8)
@given(seed=st.integers(0, 1 << 40))
def test_unrolled_programs_have_sound_maps_of_nameless_tensors(seed: int) -> None:
    bundle = _bundle(looped_graph(seed)[0], CompileOptions(loops="unroll"))
    for found in lx_maps(bundle) if bundle is not None else ():
        assert_a_map_is_sound(found)
        assert not found.loops


def test_loops_are_shown_with_their_rounds_around_their_operations(tmp_path: Path, capsys: Capture) -> None:
    assert main(["inspect-layout", _saved(TILED, tmp_path), "--lx"]) == 0
    lines = capsys.readouterr().out.splitlines()
    places = [next(n for n, line in enumerate(lines) if text in line) for text in ("2 rounds", "4 rounds", " add ")]
    assert places == sorted(places)
    picture = lines[places[-1]].partition("|")[2].rpartition("|")[0]
    assert set(picture) == {"A"}
    assert any(line.split()[0] == "A" and line.endswith(" y") for line in lines[places[-1] :])


def test_what_a_loop_reads_and_an_earlier_operation_wrote_stays_to_the_loops_end() -> None:
    inputs: list[JsonObject] = [
        {"name": name, "shape": shape, "dtype": "float16"} for name, shape in (("x", ["A", "B"]), ("v", ["B"]))
    ]
    nodes = [node("w", "exp", "v"), node("y", "mul", "x", "w"), node("z", "neg", "y"), node("q", "abs", "z")]
    loops = [{"dim": "A", "tiles": 2, "body": ["y", "z", "q"]}]
    (found,) = lx_maps(spyrec.compile(graph_data(inputs, nodes, ["q"], dims={"A": 64, "B": 2048}, loops=loops)))
    (kept,) = (item for item in found.regions if item.name == "w")
    assert (kept.begin, kept.uses, kept.end) == (0, (0, 1), 3)
    (picture,) = (line for line in draw_text(found) if "sdsc_3.json abs" in line)
    assert "a" in picture.partition("|")[2]


def test_the_text_of_a_map_is_drawn_to_scale() -> None:
    steps = (
        LxStep("sdsc_0.json", "exp", 0, (), ()),
        LxStep("sdsc_1.json", "mul", 1, (), ((256, 512),)),
        LxStep("sdsc_2.json", "neg", 1, (), ((0, 128),)),
        LxStep("sdsc_3.json", "add", 1, ((0, 128), (256, 512)), ()),
    )
    regions = (LxRegion("y", 256, 512, 1, 3, (1, 3)), LxRegion("z", 0, 128, 2, 3, (2, 3)))
    found = LxMap(".", (0, 1, 3), 1024, steps, (LoopSpan("i_0", None, 1, 3, 0),), regions)
    assert draw_text(found) == [
        "program ., cores 0-1, 3: 512 of 1,024 usable bytes of each core (50.0 %); a column is 128 bytes",
        "  1 operation without LX",
        "  loop i_0, as many rounds as a run needs",
        "    sdsc_1.json mul  |..AA|",
        "    sdsc_2.json neg  |B.aa|",
        "    sdsc_3.json add  |B.AA|",
        "  A  [256, 512)  sdsc_1.json to sdsc_3.json  y",
        "  B  [0, 128)    sdsc_2.json to sdsc_3.json  z",
    ]


def test_cores_that_hold_different_things_have_maps_of_their_own(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(TWO_WIDTHS, tmp_path)
    maps = lx_maps(Bundle.load(path))
    cores = Counter(core for found in maps for core in found.cores)
    assert set(cores) == set(range(32))
    names = {core: {item.name for found in maps if core in found.cores for item in found.regions} for core in (0, 31)}
    assert names == {0: {"p1", "q1"}, 31: {"q1"}}
    assert main(["inspect-layout", path, "--lx"]) == 0
    assert "cores 30-31" in capsys.readouterr().out


def test_the_picture_and_the_json_show_every_tensor_and_loop(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "map.svg"
    assert main(["inspect-layout", _saved(TILED, tmp_path), "--lx", "--svg", str(picture), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in found["regions"]] == ["y"]
    assert [(item["rounds"], item["depth"]) for item in found["loops"]] == [(2, 0), (4, 1)]
    root = ET.fromstring(picture.read_text(encoding="utf-8"))
    texts = [item.text or "" for item in root.iter() if item.text]
    assert any(text.startswith("y: bytes [0, ") for text in texts)
    assert [text for text in texts if text.endswith(" x")] == ["i_0: 2 x", "i_1: 4 x"]


@pytest.mark.parametrize("more", [["--at", "0,0"], ["--tensor", "a"]])
def test_questions_about_tensors_are_no_part_of_the_map(more: list[str], tmp_path: Path, capsys: Capture) -> None:
    assert main(["inspect-layout", _saved(TILED, tmp_path), "--lx", *more]) == 2
    assert "--json and --svg only" in capsys.readouterr().err


def test_the_map_of_a_graph_file_is_refused(tmp_path: Path, capsys: Capture) -> None:
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps(TILED), encoding="utf-8")
    assert main(["inspect-layout", str(graph), "--lx"]) == 2
    assert "give its directory" in capsys.readouterr().err


def test_a_bundle_without_scratchpad_tensors_says_so(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(graph_data([tensor("x", 64, 64)], [node("y", "relu", "x")], ["y"]), tmp_path)
    assert main(["inspect-layout", path, "--lx"]) == 0
    assert capsys.readouterr().out == "nothing lies in the scratchpads\n"


def test_a_superdsc_that_breaks_its_own_rules_is_refused_not_drawn() -> None:
    bundle = spyrec.compile(TILED)
    (program,) = bundle.programs
    name, superdsc = next(iter(program.superdscs.items()))
    wrong = replace(superdsc, compute=replace(superdsc.compute, outputs=(7,)))
    damaged = replace(bundle, programs=(replace(program, superdscs={**program.superdscs, name: wrong}),))
    with pytest.raises(SpyrecError) as caught:
        lx_maps(damaged)
    assert caught.value.diagnostics[0].location is not None
    assert caught.value.diagnostics[0].location.file == name
