"""Compilations that are kept: the same bytes as without, never those of anything else, whatever stands there."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, compilation_cache, front
from spyrec.bundle.bundle import Bundle, DeviceProgram
from spyrec.cli import main
from spyrec.codegen import emit as emit_programs
from spyrec.codegen.known_code import KnownCode
from spyrec.compilation_cache import compilation_key, latest_key
from spyrec.diagnostics import SpyrecError
from spyrec.files.entry_store import EntryStore
from spyrec.files.packed_files import PackedContent
from spyrec.front import read_source
from spyrec.hardware.target import Target
from spyrec.ir.kept_answers import KeptAnswers
from tests.support.examples import examples
from tests.support.random_graphs import random_graph

CHANGED: dict[str, Any] = {
    "cores": 3,
    "target": replace(Target(), cores=16),
    "symbolic_args": False,
    "fixed_io_layouts": True,
    "loops": "unroll",
    "profile": "datasheet",
    "lx_planner": "none",
    "auto_tile": False,
    "correction_slots": 2,
    "symbolic_strides": True,
    "tile_reductions": True,
    "compat": "torch-spyre@2026-08",
}

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "cores": st.sampled_from([1, 2, 32]),
        "symbolic_args": st.just(True),
        "fixed_io_layouts": st.booleans(),
        "loops": st.sampled_from(["keep", "unroll"]),
        "lx_planner": st.sampled_from(["best-fit", "none"]),
        "correction_slots": st.integers(1, 3),
        "symbolic_strides": st.booleans(),
        "tile_reductions": st.booleans(),
    },
)


def _files(bundle: Bundle) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "bundle"
        bundle.save(directory)
        return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def _graph(**members: object) -> dict[str, Any]:
    graph: dict[str, Any] = {
        "format": "spyrec.graph/1",
        "name": "g",
        "inputs": [{"name": "x", "shape": [24, 70], "dtype": "float16"}],
        "constants": [{"name": "w", "shape": [70, 65], "dtype": "float16", "data": {"file": "w.npy"}}],
        "nodes": [
            {"name": "m", "op": "mm", "inputs": ["x", "w"]},
            {"name": "s", "op": "softmax", "inputs": ["m"], "attrs": {"dim": -1}},
        ],
        "outputs": ["s"],
    }
    return {**graph, **members}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A graph file with weights beside it."""
    np.save(tmp_path / "w.npy", np.random.default_rng(0).standard_normal((70, 65)).astype(np.float16))
    (tmp_path / "graph.json").write_text(json.dumps(_graph()), encoding="utf-8")
    return tmp_path / "graph.json"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Compilations that passes ran for."""
    seen: list[object] = []
    whole = front.emit

    def emit(kernels: Any, options: CompileOptions, known: KnownCode | None = None) -> Bundle:  # noqa: ANN401
        seen.append(options)
        return whole(kernels, options, known)

    monkeypatch.setattr(front, "emit", emit)
    return seen


@examples(15)
@given(st.integers(0, 1 << 30), OPTIONS)
def test_a_kept_bundle_is_the_bundle(seed: int, chosen: dict[str, Any]) -> None:
    data = random_graph(seed)[0]
    options = CompileOptions(**chosen)
    plain = spyrec.compile(data, options)
    wanted = _files(plain)
    with TemporaryDirectory() as folder:
        kept = replace(options, cache=folder)
        first, second = spyrec.compile(data, kept), spyrec.compile(data, kept)
        assert len(list(Path(folder).iterdir())) == 2
        assert _files(first) == wanted
        assert _files(second) == wanted
        # read one by one, and written anew of what was read; simulated times are rounded, as in all that is read
        assert replace(second.manifest, figures=None) == replace(plain.manifest, figures=None)
        assert [dict(item.superdscs) for item in second.programs] == [dict(item.superdscs) for item in plain.programs]
        assert [item.program for item in second.programs] == [item.program for item in plain.programs]
        anew = tuple(DeviceProgram(item.directory, item.program, item.superdscs) for item in second.programs)
        assert _files(replace(second, kept_files=None, programs=anew)) == wanted


_SWAPPED = {"relu": "abs", "abs": "relu", "exp": "sigmoid", "sigmoid": "exp", "add": "maximum", "mul": "minimum"}


def _edited(data: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Return a graph with an op in place of another one, or with a node put behind one."""
    nodes = [dict(item) for item in data["nodes"]]
    at = place % len(nodes)
    name = nodes[at]["name"]
    if nodes[at]["op"] in _SWAPPED:
        nodes[at]["op"] = _SWAPPED[nodes[at]["op"]]
        return {**data, "nodes": nodes}
    for item in nodes[at + 1 :]:
        item["inputs"] = ["inserted" if operand == name else operand for operand in item["inputs"]]
    nodes.insert(at + 1, {"name": "inserted", "op": "clone", "inputs": [name]})
    return {**data, "nodes": nodes}


@examples(15)
@given(st.integers(0, 1 << 30), st.integers(0, 30), OPTIONS)
def test_an_edited_graph_replaces_a_bundle_by_the_bytes_that_a_new_directory_gets(
    seed: int, place: int, chosen: dict[str, Any]
) -> None:
    data = random_graph(seed)[0]
    edited = _edited(data, place)
    options = CompileOptions(**chosen)
    with TemporaryDirectory() as folder:
        out, kept = Path(folder) / "out", replace(options, cache=Path(folder) / "cache")
        for graph in (data, edited, data):
            spyrec.compile(graph, kept).save(out, force=True)
            found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
            assert found == _files(spyrec.compile(graph, options))


def _net(
    *, op: str = "relu", eps: float = 1e-5, rows: int = 64, name: str = "bent", twice: bool = False
) -> dict[str, Any]:
    """Return two layers with different widths, between which something may change."""
    nodes: list[dict[str, Any]] = [
        {"name": "wide", "op": "mm", "inputs": ["x", "w0"]},
        {"name": name, "op": op, "inputs": ["wide"]},
        *([{"name": "again", "op": "exp", "inputs": [name]}] if twice else []),
        {"name": "narrow", "op": "mm", "inputs": ["again" if twice else name, "w1"]},
        {"name": "norm", "op": "layer_norm", "inputs": ["narrow"], "attrs": {"normalized_shape": [128], "eps": eps}},
        {"name": "shares", "op": "softmax", "inputs": ["norm"], "attrs": {"dim": -1}},
        {"name": "last", "op": "mm", "inputs": ["shares", "w2"]},
        {"name": "sum", "op": "add", "inputs": ["last", "x"]},
    ]
    shapes = {"x": [rows, 128], "w0": [128, 256], "w1": [256, 128], "w2": [128, 128]}
    inputs = [{"name": key, "shape": shape, "dtype": "float16"} for key, shape in shapes.items()]
    return {"format": "spyrec.graph/1", "name": "net", "inputs": inputs, "nodes": nodes, "outputs": ["sum"]}


VARIANTS: Mapping[str, dict[str, Any]] = {
    "an op": _net(op="sigmoid"),
    "an attribute": _net(eps=1e-3),
    "a shape": _net(rows=128),
    "a name": _net(name="other"),
    "an argument's name": json.loads(json.dumps(_net()).replace('"w1"', '"v1"')),
    "a node put in": _net(twice=True),
    "one program": {**_net(), "nodes": _net()["nodes"][:2], "outputs": ["bent"]},
    "an output more": {**_net(), "outputs": ["sum", "norm"]},
}


def _differing(kept: CompileOptions, variants: Mapping[str, dict[str, Any]] = VARIANTS) -> list[str]:
    """Return the variants whose bundle is another one after the plain graph was kept: there must be none."""
    plain = replace(kept, cache=None)
    spyrec.compile(_net(), kept)
    return [
        name for name, graph in variants.items()
        if _files(spyrec.compile(graph, kept)) != _files(spyrec.compile(graph, plain))
    ]  # fmt: skip


@pytest.mark.parametrize("symbolic", [True, False])
def test_what_stays_of_a_graph_is_taken_and_the_bytes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbolic: bool
) -> None:
    options = CompileOptions(symbolic_args=symbolic, cache=tmp_path / "cache")
    assert _differing(options) == []
    generated: list[object] = []
    whole = emit_programs._generated  # pyright: ignore[reportPrivateUsage] -- it is counted

    def counted(*given: Any) -> Any:  # noqa: ANN401 - handed on as it is
        generated.append(given)
        return whole(*given)

    monkeypatch.setattr(emit_programs, "_generated", counted)
    spyrec.compile(_net(eps=0.5), options)
    count = len(generated)
    bundle = spyrec.compile(_net(eps=0.25), options)
    assert 1 <= len(generated) - count < len(bundle.programs), "only the program with the number is generated anew"


@pytest.mark.parametrize(("place", "variant"), [(0, "an op"), (3, "an attribute")])  # the others follow from 0 today
def test_without_a_part_of_what_code_follows_from_other_code_would_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, variant: str
) -> None:
    whole = KnownCode.digest_of

    def without(self: KnownCode, facts: tuple[tuple[object, ...], bool]) -> str:
        key, is_only = facts
        return whole(self, ((*key[:place], *key[place + 1 :]), is_only))

    monkeypatch.setattr(KnownCode, "digest_of", without)
    found: list[str] = []
    try:
        found = _differing(CompileOptions(cache=tmp_path / "cache"), {variant: VARIANTS[variant]})
    except (AssertionError, KeyError, SpyrecError):  # what another program says does not even fit
        return
    assert found


def test_code_of_other_options_is_not_taken() -> None:
    facts = ("facts",)
    assert KnownCode("made by one").digest_of(facts) != KnownCode("made by another").digest_of(facts)


@pytest.mark.parametrize("named", [b"", b"\xff" * 64, b"0" * 64, b"../../graph".ljust(64, b"0")])
def test_a_name_of_the_latest_that_names_nothing_is_no_harm(model: Path, named: bytes) -> None:
    options = CompileOptions(cache=model.parent / "cache")
    spyrec.compile(model, options)
    graph = read_source(_graph(outputs=["s", "m"]), model.parent)
    EntryStore(model.parent / "cache", 1 << 20).keep(latest_key(graph, options), named)
    assert _files(spyrec.compile(graph, options)) == _files(spyrec.compile(graph))


@pytest.mark.parametrize("beside", [b"", b"[]", b"{", b'{"a": 1}'])
def test_answers_that_are_none_are_found_anew(model: Path, monkeypatch: pytest.MonkeyPatch, beside: bytes) -> None:
    options = CompileOptions(cache=model.parent / "cache")

    def written(answers: KeptAnswers) -> bytes:
        assert answers.used
        return beside

    monkeypatch.setattr(compilation_cache, "answers_text", written)
    spyrec.compile(model, options)
    graph = read_source(_graph(outputs=["s", "m"]), model.parent)
    assert _files(spyrec.compile(graph, options)) == _files(spyrec.compile(graph))


def test_a_second_compilation_runs_no_pass_and_computes_the_same(model: Path, counted: list[object]) -> None:
    options = CompileOptions(cache=model.parent / "cache")
    x = np.random.default_rng(1).standard_normal((24, 70)).astype(np.float16)
    first = spyrec.run(spyrec.compile(model, options), {"x": x}).outputs["s"]
    again = json.loads(model.read_text())  # another way to write the same graph
    second = spyrec.compile({key: again[key] for key in reversed(again)}, options, base_dir=model.parent)
    assert len(counted) == 1
    assert spyrec.run(second, {"x": x}).outputs["s"].tobytes() == first.tobytes()


def test_weights_of_the_same_size_and_time_are_told_by_their_bytes(model: Path, counted: list[object]) -> None:
    options = CompileOptions(cache=model.parent / "cache")
    weights = model.parent / "w.npy"
    before = _files(spyrec.compile(model, options))
    found = weights.stat()
    text = bytearray(weights.read_bytes())
    text[-1] ^= 1
    weights.write_bytes(text)
    os.utime(weights, ns=(found.st_atime_ns, found.st_mtime_ns))
    after = _files(spyrec.compile(model, options))
    assert len(counted) == 2
    assert {name for name in before if before[name] != after[name]} == {"constants.safetensors", "manifest.json"}


def test_every_option_and_the_code_of_spyrec_are_in_the_key(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_source(model, model.parent)
    plain = compilation_key(graph, CompileOptions())
    assert plain == compilation_key(graph, CompileOptions(cache="somewhere", cache_bytes=7))
    keys = {compilation_key(graph, replace(CompileOptions(), **{name: value})) for name, value in CHANGED.items()}
    assert len(keys | {plain}) == len(CHANGED) + 1
    assert CHANGED.keys() | {"cache", "cache_bytes"} == {item.name for item in fields(CompileOptions)}
    monkeypatch.setattr(compilation_cache, "program_digest", lambda: "another version")
    assert compilation_key(graph, CompileOptions()) != plain


@pytest.mark.parametrize("changed", ["name", "attribute", "shape", "output", "order"])
def test_whatever_changes_in_a_graph_is_in_the_key(model: Path, changed: str) -> None:
    nodes: list[dict[str, Any]] = _graph()["nodes"]
    graphs: Mapping[str, dict[str, Any]] = {
        "name": _graph(name="h"),
        "attribute": _graph(nodes=[nodes[0], {**nodes[1], "attrs": {"dim": 0}}]),
        "shape": _graph(inputs=[{"name": "x", "shape": [25, 70], "dtype": "float16"}]),
        "output": _graph(outputs=["s", "m"]),
        "order": _graph(outputs=["m", "s"]),
    }
    keys = [compilation_key(read_source(item, model.parent), CompileOptions()) for item in (_graph(), graphs[changed])]
    assert keys[0] != keys[1]


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path) -> None:
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 16
    path.write_bytes(text)


def _linked(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def _foreign(path: Path) -> None:
    """A content whose hash is right, and that no bundle was packed to."""
    EntryStore(path.parent, 1 << 20).keep(path.stem, b"\0" * 100)


@pytest.mark.parametrize("harm", [_empty, _cut, _flip, _linked, _foreign])
def test_what_is_damaged_is_compiled_anew_and_kept_again(
    model: Path, counted: list[object], harm: Callable[[Path], None]
) -> None:
    options = CompileOptions(cache=model.parent / "cache")
    wanted = _files(spyrec.compile(model, options))
    entry = max((model.parent / "cache").iterdir(), key=lambda path: path.stat().st_size)
    harm(entry)
    assert _files(spyrec.compile(model, options)) == wanted
    assert _files(spyrec.compile(model, options)) == wanted
    assert len(counted) == 2


def test_a_kept_file_that_is_not_what_it_was_is_never_written(model: Path, tmp_path: Path) -> None:
    options = CompileOptions(cache=model.parent / "cache")
    spyrec.compile(model, options)
    bundle = spyrec.compile(model, options)
    assert bundle.kept_files is not None
    kept = dict(bundle.kept_files.files)
    (name, *_) = [name for name in kept if name.startswith("sdsc")]
    content = kept[name]
    assert isinstance(content, PackedContent)
    kept[name] = replace(content, digest="0" * 64)
    with pytest.raises(SpyrecError) as caught:
        bundle.keeping(kept, bundle.kept_files.manifest_text).save(tmp_path / "out")
    assert caught.value.diagnostics[0].code == "SPY0775"
    assert not (tmp_path / "out").exists()


def test_a_directory_that_cannot_be_used_is_a_warning(model: Path) -> None:
    (model.parent / "file").write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="SPY0775"):
        found = spyrec.compile(model, CompileOptions(cache=model.parent / "file"))
    assert _files(found) == _files(spyrec.compile(model))
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(model, CompileOptions(cache=model.parent / "cache", cache_bytes=-1))
    assert caught.value.diagnostics[0].code == "SPY0771"


def test_a_directory_without_a_name_is_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = model.parent / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(model, CompileOptions(cache=""))
    assert caught.value.diagnostics[0].code == "SPY0771"
    assert main(["compile", str(model), "-o", str(model.parent / "a"), "--cache", ""]) == 1
    assert 'error[SPY0771]: cache is ""' in capsys.readouterr().err
    assert list(here.iterdir()) == []
    assert not (model.parent / "a").exists()


def test_a_bundle_larger_than_the_directory_may_hold_is_not_kept(model: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spyrec.compile(model, CompileOptions(cache=model.parent / "cache", cache_bytes=1000))
    assert list((model.parent / "cache").iterdir()) == []


def test_the_verb_takes_the_directory(model: Path, counted: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    folder = model.parent
    for name in ("a", "b"):
        line = ["compile", str(model), "-o", str(folder / name), "--cache", str(folder / "cache"), "--explain-plan"]
        assert main(line) == 0
    said = capsys.readouterr().out.replace(str(folder / "b"), str(folder / "a")).splitlines()
    assert said[: len(said) // 2] == said[len(said) // 2 :]
    assert main(["diff", str(folder / "a"), str(folder / "b")]) == 0
    assert len(counted) == 1
    assert main(["compile", str(model), "-o", str(folder / "c"), "--cache", str(model)]) == 0
    assert "SPY0775" in capsys.readouterr().err
    # who wants to see passes sees them run
    assert (
        main(["compile", str(model), "-o", str(folder / "d"), "--cache", str(folder / "cache"), "--time-passes"]) == 0
    )
    assert len(counted) >= 2
