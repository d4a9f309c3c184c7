"""``spyrec opt``: chosen passes over graphs and over texts, what it refuses, and crashes that happen again."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from pathlib import Path
from random import Random

import pytest

from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from spyrec.passes.base import PipelineOptions, TileGroup
from spyrec.passes.chosen_passes import read_stage
from spyrec.passes.driver import PassCrash, Stage
from spyrec.passes.pass_options import chosen_pass
from spyrec.passes.pipelines import COMPILE
from spyrec.passes.reproducer import MARK, read_reproducer, reproducer_text
from tests.support.examples import seeds
from tests.support.graphs import graph_data, node, read, tensor

NAMES = [item.name for item in COMPILE]
X = {**tensor("x", 64, 130), "shape": ["A", 130]}
GRAPH = graph_data([X], [node("y", "exp", "x"), node("s", "softmax", "y", dim=-1)], ["s"], dims={"A": 64})


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(GRAPH), encoding="utf-8")
    return str(path)


def _text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["opt", *arguments]) == 0
    return capsys.readouterr().out


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str]]:
    capsys.readouterr()
    assert main(["--diagnostics=json", "opt", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    found = [json.loads(line) for line in captured.err.splitlines()]
    return [(item["code"], item["message"] + "; " + (item["hint"] or "")) for item in found]


def test_the_passes_one_by_one_make_what_the_compiler_makes(
    graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", graph, "-o", str(tmp_path / "out"), "--no-auto-tile", "--print-after", "all"]) == 0
    sections = re.split(r"^// after (.*)$", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    expected = {
        name: "\n".join(line for line in text.splitlines() if line and not line.startswith("//"))
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert list(expected) == NAMES
    file = tmp_path / "ir.txt"
    current = graph
    for name in NAMES:
        assert main(["opt", current, "--pass", name, "-o", str(file)]) == 0
        current = str(file)
        assert file.read_text(encoding="utf-8").splitlines() == expected[name].splitlines()[: _lines(file)]


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_without_a_pass_the_rest_of_the_pipeline_runs(
    graph: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = _text(capsys, graph)
    half = _text(capsys, graph, "--stop-after", "divide-work")
    assert "has numbers_bound, device_ops, folds_masked, kernels, loops, layout, division {" in half
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(half.encode())))
    assert _text(capsys, "-") == whole
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(GRAPH).encode())))
    assert _text(capsys, "-") == whole


def test_graphs_are_shown_before_and_after_passes_and_times_as_they_end(
    graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--stop-after", "form-kernels", "--print-before", "all", "--print-after", "decompose", "--time-passes"]
    assert main(["opt", graph, *arguments]) == 0
    captured = capsys.readouterr()
    shown = [line for line in captured.out.splitlines() if line.startswith("// ")]
    expected = [f"// before {name}" for name in NAMES[:4]]
    expected.insert(2, "// after decompose")
    assert shown == expected
    assert [line.split()[-1] for line in captured.err.splitlines()] == NAMES[:4]
    last = captured.out[captured.out.rindex("kernels small") :]
    assert last == _text(capsys, graph, "--stop-after", "form-kernels")


def test_a_pass_is_timed_before_the_next_one_begins(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def noted(_: object, text: str) -> None:
        events.append(text.rsplit(maxsplit=1)[-1])

    def echoed(text: str, **_: object) -> None:
        events.append(text)

    monkeypatch.setattr("spyrec.cli._console.Console.note", noted)
    monkeypatch.setattr("click.echo", echoed)
    assert main(["opt", graph, "--stop-after", "form-kernels", "--print-before", "all", "--time-passes"]) == 0
    seen = [event.removeprefix("// before ") for event in events if event.startswith("// ") or event in NAMES]
    assert seen == [name for name in NAMES[:4] for _ in range(2)]


def test_what_compile_prints_is_a_text_that_opt_reads(
    graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", graph, "--stop-after", "divide-work", "--print-after", "divide-work"]) == 0
    file = tmp_path / "ir.txt"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert _text(capsys, str(file)) == _text(capsys, graph)


def test_a_pipe_is_read_once(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(Path(graph).read_bytes(),))
    writer.start()
    shown = _text(capsys, str(pipe), "--stop-after", "canonicalize")
    writer.join()
    assert shown == _text(capsys, graph, "--stop-after", "canonicalize")


@pytest.mark.parametrize(
    ("content", "code"), [("", "SPY0180"), ("[]", "SPY0110"), ("{", "SPY0101"), ("graph", "SPY0180"), ("\0", "SPY0180")]
)
def test_what_is_no_graph_is_refused(
    content: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    assert [found for found, _ in _refused(capsys, str(path))] == [code]
    assert main(["opt", str(tmp_path)]) == 2


def test_options_of_a_pass_change_what_it_does(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ir.txt"
    assert main(["opt", graph, "--stop-after", "assign-layouts", "-o", str(file)]) == 0
    assert "on 32x1 cores" in _text(capsys, str(file), "--pass", "divide-work")
    fewer = _text(capsys, str(file), "--pass", "divide-work=cores:8,has-shuffles:false")
    assert "on 8x1 cores" in fewer
    assert "on 32x1 cores" not in fewer


@pytest.mark.parametrize(
    ("argument", "code", "said"),
    [
        ("divide_work", "SPY0413", 'did you mean "divide-work"'),
        ("divide-work=cores", "SPY0415", "no list of option:value"),
        ("divide-work=core:8", "SPY0415", 'did you mean "cores"'),
        ("divide-work=cores:0", "SPY0415", 'cores is "0"'),
        ("divide-work=cores:33", "SPY0415", "has 32"),
        ("divide-work=has-shuffles:yes", "SPY0415", "true or false"),
        ("divide-work=lx-planner:worst-fit", "SPY0415", "best-fit"),
        ("tile-loops=tile-groups:1", "SPY0415", "no option"),
        ("form-kernels", "SPY0416", "run decompose, mask-folds first"),
        ("assign-layouts", "SPY0416", "form-kernels"),
    ],
)
def test_what_cannot_run_is_refused_with_what_to_do(
    argument: str, code: str, said: str, graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ((found, message),) = _refused(capsys, graph, "--pass", argument)
    assert found == code
    assert said in message


def test_a_pass_does_not_run_twice_over_kernels(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ir.txt"
    assert main(["opt", graph, "-o", str(file)]) == 0
    assert _text(capsys, str(file)) == file.read_text(encoding="utf-8")
    masked = tmp_path / "masked.txt"
    assert main(["opt", graph, "--stop-after", "mask-folds", "-o", str(masked)]) == 0
    assert _text(capsys, str(masked), "--pass", "decompose") == masked.read_text(encoding="utf-8")
    ((code, _),) = _refused(capsys, str(masked), "--pass", "mask-folds")
    assert code == "SPY0416"
    for name in ("canonicalize", "form-kernels", "divide-work"):
        ((code, _),) = _refused(capsys, str(file), "--pass", name)
        assert code == "SPY0416"
    ((code, _),) = _refused(capsys, str(file), "--stop-after", "divide-work")
    assert code == "SPY0416"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" has numbers_bound", " has everything, numbers_bound", "everything"),
        (", division", "", "does not have division"),
        (" on 32x1 cores", "", "has division"),
        ("i0<64", "i0<65", ""),
        (" layout [3, 64, 64] of [h1/64, h0, h1]", "", "has layout"),
        ("[h1/64, h0, h1]", "[h1/64, h7, h1]", '"h" with a number below 2'),
        ("= exp(", "= expo(", 'did you mean "exp"'),
        (" @y", " @nobody", 'no node "nobody"'),
        ("y: float16[A=64,130] = exp(x)", "y: float16[A=64,131] = exp(x)", "exp makes float16[64,130]"),
        ("reduced [1]", "reduced [9]", "9 is not within"),
    ],
)
def test_a_text_that_says_what_is_not_so_is_refused(old: str, new: str, said: str, graph: str, tmp_path: Path) -> None:
    file = tmp_path / "ir.txt"
    assert main(["opt", graph, "--stop-after", "divide-work", "-o", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(SpyrecError) as caught:
        read_stage(text.replace(old, new, 1), "ir.txt")
    (found,) = caught.value.diagnostics
    assert said in found.message
    assert found.location is not None
    assert found.location.line is not None


def test_a_part_is_chosen_where_the_host_computes_between(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("a", "exp", "x"), node("i", "to", "a", dtype="int64"), node("j", "mul", "i", 2)]
    nodes += [node("f", "to", "j", dtype="float16"), node("z", "neg", "f")]
    path = tmp_path / "parts.json"
    path.write_text(json.dumps(graph_data([tensor("x", 4, 64)], nodes, ["z"])), encoding="utf-8")
    ((code, message),) = _refused(capsys, str(path))
    assert code == "SPY0417"
    assert "--part 1 to 2" in message
    assert "= exp(x)" in _text(capsys, str(path), "--part", "1", "--stop-after", "canonicalize")
    assert "= neg(f)" in _text(capsys, str(path), "--part", "2", "--stop-after", "canonicalize")


# --- crashes ---


def _plant(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> object:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("spyrec.passes.divide_work.cut_kernels", crash)


@pytest.mark.parametrize("verb", ["compile", "opt", "cached"])
def test_a_crash_leaves_what_makes_it_happen_again(
    verb: str, graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    out = tmp_path / "made" / "out"
    out.parent.mkdir()
    with monkeypatch.context() as planted:
        _plant(planted)
        more = ["--cores", "8"] if verb != "opt" else []
        more += ["--cache", str(tmp_path / "cache")] if verb == "cached" else []
        assert main(["opt" if verb == "opt" else "compile", graph, "-o", str(out), *more]) == 70
        reproducer = out.parent / "graph.reproducer.txt"
        assert [path.name for path in out.parent.iterdir()] == [reproducer.name]
        assert f"`spyrec opt {reproducer}` does it again" in capsys.readouterr().err
        text = reproducer.read_text(encoding="utf-8")
        assert text.startswith(MARK)
        found = read_reproducer(text, None)
        assert found is not None
        assert found.chosen.item.name == "divide-work"
        assert found.options.cores == (32 if verb == "opt" else 8)
        assert main(["opt", str(reproducer), "--crash-dir", str(tmp_path / "second")]) == 70
        assert "ZeroDivisionError: planted" in capsys.readouterr().err
        again = (tmp_path / "second" / "graph.reproducer.txt").read_text(encoding="utf-8")
        assert read_stage(again).text() == read_stage(text).text()
    assert f"on {8 if verb != 'opt' else 32}x1 cores" in _text(capsys, str(reproducer))


def test_what_a_pass_may_not_make_is_its_crash_and_nothing_of_others_is_written_over(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def planted(*_: object) -> list[str]:
        return ["planted"]

    monkeypatch.setattr("spyrec.passes.driver.verify_kernels", planted)
    mine = tmp_path / "graph.reproducer.txt"
    mine.write_text("mine")
    assert main(["compile", graph, "-o", str(tmp_path / "out")]) == 70
    assert mine.read_text() == "mine"
    written = tmp_path / "temporary" / "graph.reproducer.txt"
    assert '"pass": "form-kernels"' in written.read_text(encoding="utf-8")
    assert str(written) in capsys.readouterr().err


def test_all_options_come_back_from_a_reproducer() -> None:
    groups = (TileGroup(frozenset({("y", 0), ("s", 1)}), 64, 8),)
    options = PipelineOptions(cores=5, lx_planner="none", tile_groups=groups, has_windows=True, spare_arguments=2)
    source = read(GRAPH)
    crash = PassCrash("decompose", options, Stage(source, frozenset(), source), ZeroDivisionError("x\ny"))
    found = read_reproducer(reproducer_text(crash, ["spyrec", "compile"], "1.0"), None)
    assert found is not None
    assert (found.options, found.chosen) == (options, chosen_pass("decompose"))


def test_a_damaged_reproducer_is_refused_with_a_diagnostic() -> None:
    source = read(GRAPH)
    crash = PassCrash("decompose", PipelineOptions(), Stage(source, frozenset(), source), ZeroDivisionError())
    text = reproducer_text(crash, ["spyrec"], "1.0")
    head = text.index("graph small")
    refused = 0
    for seed in seeds(150):
        rng = Random(seed)
        at = rng.randrange(len(MARK) + 1, head)
        new = rng.choice(["", "[", "}", "null", '"', "-1", "1e999", "\n", "9" * 30, "true"])
        try:
            read_reproducer(text[:at] + new + text[at + rng.randint(0, 6) :], "file")
        except SpyrecError:
            refused += 1
    assert refused > 50
