"""A sweep file is read with all that is wrong in it told at its place, and nothing is begun then."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyrec.diagnostics import Location, SpyrecError
from spyrec.sweep.cases import combinations
from spyrec.sweep.settings import SweepFile, read_settings

HEAD = 'format = "spyrec.sweep/1"\n'
GRAPHS = '[[graphs]]\nfiles = ["a.json"]\n'


def read(tmp_path: Path, text: str | bytes) -> SweepFile:
    path = tmp_path / "SWEEP.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(path)


def test_what_a_file_leaves_out_has_its_default(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + GRAPHS)
    assert (found.name, found.checks.executes, found.keep.bundles, found.limits.seconds) == (
        "sweep",
        False,
        "none",
        300,
    )


@pytest.mark.parametrize(
    ("text", "places", "fact"),
    [
        (HEAD + GRAPHS + "[grid]\ncoers = [1]\n", ["/grid/coers"], 'key "coers" is unknown'),
        (HEAD + GRAPHS + "[grid]\ncores = [1, 0, true]\n", ["/grid/cores/1", "/grid/cores/2"], "found 0"),
        (HEAD + GRAPHS + "[grid]\ncores = 8\n", ["/grid/cores"], "found 8"),
        (HEAD + GRAPHS + '[grid]\nloops = ["kept"]\n', ["/grid/loops/0"], '"kept"'),
        (HEAD + GRAPHS + "[limits]\nseconds = nan\n", ["/limits/seconds"], "finite"),
        (HEAD + GRAPHS + "[limits]\nseconds = 1979-05-27\n", ["/limits/seconds"], "1979-05-27"),
        (HEAD + GRAPHS + '[checks]\nsanitize = "bonds"\n', ["/checks/sanitize"], "bonds"),
        (HEAD + GRAPHS + "[checks]\nseeds = [-1]\n", ["/checks/seeds/0"], "found -1"),
        (HEAD + GRAPHS + '[keep]\nbundles = "some"\n', ["/keep/bundles"], '"some"'),
        (HEAD + GRAPHS + '[[options]]\nloops = ["unroll"]\n[[options]]\nlops = []\n', ["/options/1/lops"], "lops"),
        (HEAD, ["/graphs"], "missing"),
        (HEAD + "graphs = []\n", ["/graphs"], "at least 1"),
        (HEAD + "[[graphs]]\n", ["/graphs/0"], "of none"),
        (HEAD + '[[graphs]]\nfiles = ["a"]\ncalls = ["b"]\n', ["/graphs/0"], "files and calls"),
        (HEAD + GRAPHS + "max_elements = 5\n", ["/graphs/0/max_elements"], "of graphs that are calls"),
        (HEAD + GRAPHS + 'dims = { S = "8" }\n', ["/graphs/0/dims"], "of graphs that are models"),
        (HEAD + '[[graphs]]\ncalls = ["a"]\ndtype = "keep"\n', ["/graphs/0/dtype"], "these are calls"),
        (GRAPHS, ["/format"], "missing"),
        ('format = "spyrec.sweep/2"\n' + GRAPHS, ["/format"], "spyrec.sweep/2"),
    ],
)
def test_what_is_wrong_stands_at_its_place(tmp_path: Path, text: str, places: list[str], fact: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        read(tmp_path, text)
    found = caught.value.diagnostics
    assert {item.code for item in found} == {"SPY0843"}
    assert [item.location.pointer for item in found if item.location is not None] == places
    assert fact in found[0].message
    assert all(item.location is not None and item.location.resolved().line for item in found)


@pytest.mark.parametrize(
    ("text", "line", "fact"),
    [
        (HEAD + "[grid\n", 2, "expected ']'"),
        (HEAD + "a = 1\na = 2\n", 3, "overwrite"),
        (b"\xef\xbb\xbf" + HEAD.encode(), None, "byte order mark"),
        (b"\xff", None, "UTF-8 at byte 0"),
        ("x = " + "[" * 100_000, None, "no TOML"),
        (b"#" * ((1 << 20) + 1), None, "at most 1048576 bytes"),
    ],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str | bytes, line: int | None, fact: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        read(tmp_path, text)
    (found,) = caught.value.diagnostics
    assert found.code == "SPY0843"
    assert found.location is not None
    assert found.location.line == line
    assert fact in found.message


def test_the_grid_is_tried_with_each_of_the_options_and_nothing_twice(tmp_path: Path) -> None:
    text = (
        HEAD + GRAPHS + "[grid]\ncores = [8, 32]\ntiles.A = [2, 4]\n"
        '[[options]]\nlx_planner = ["none"]\n[[options]]\nloops = ["unroll"]\n[[options]]\nlx_planner = ["none"]\n'
    )
    found = combinations(read(tmp_path, text), Location("SWEEP.toml"))
    shown = [" ".join(f"{name}={value}" for name, value in item.shown().items()) for item in found]
    assert shown == [
        "cores=8 lx_planner=none tiles.A=2",
        "cores=8 loops=unroll tiles.A=2",
        "cores=8 lx_planner=none tiles.A=4",
        "cores=8 loops=unroll tiles.A=4",
        "cores=32 lx_planner=none tiles.A=2",
        "cores=32 loops=unroll tiles.A=2",
        "cores=32 lx_planner=none tiles.A=4",
        "cores=32 loops=unroll tiles.A=4",
    ]


@pytest.mark.parametrize(
    ("grid", "code"),
    [("cores = [33]", "SPY0771"), ('profile = ["nosuch"]', "SPY0750"), ('lx_planner = ["nosuch"]', "SPY0414"),
     ('target = ["nosuch"]', "SPY0771"), ('compat = ["nosuch"]', "SPY0771")],
)  # fmt: skip
def test_options_that_no_graph_is_compiled_with_are_refused_at_once(tmp_path: Path, grid: str, code: str) -> None:
    settings = read(tmp_path, f"{HEAD}{GRAPHS}[grid]\n{grid}\n")
    with pytest.raises(SpyrecError) as caught:
        combinations(settings, Location("SWEEP.toml"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.location) == (code, Location("SWEEP.toml", "/grid"))
