"""Several entries of one loaded model: weights and state lie on the device once, and every entry works on them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.entries import BundleEntries
from spyrec.ir.graph import LayoutPin

Halves = npt.NDArray[np.float16]
_RANDOM = np.random.default_rng(20261123)
_WEIGHT: Halves = (_RANDOM.standard_normal((64, 64)) / 8).astype(np.float16)
_HEADS, _LENGTH = 2, 32
_EMPTY = np.zeros((1, _HEADS, _LENGTH, 64), np.float16)
_ROW_BYTES = 128


def caching(rows: int) -> spyrec.GraphBuilder:
    """Return a graph that computes ``rows`` rows, puts them into a cache, and sums the cache up."""
    builder = spyrec.GraphBuilder("caching")
    cache = builder.input("cache", _EMPTY.shape, "float16")
    x, position = builder.input("x", (1, _HEADS, rows, 64)), builder.input("position", (rows,), "int64")
    w = builder.constant("w", _WEIGHT)
    written = builder.index_copy(cache, position, builder.matmul(x, w), dim=2, name="written")
    builder.output(builder.sum(written, dim=[2], name="total"))
    builder.update(written, cache)
    return builder


def summing(rows: int) -> spyrec.GraphBuilder:
    """Return a graph whose state is made anew by each call: beside what it was."""
    builder = spyrec.GraphBuilder("summing")
    state, x = builder.input("state", (rows, 64)), builder.input("x", (rows, 64))
    builder.output(builder.mul(state, 2.0, name="twice"))
    builder.update(builder.add(state, x, name="next"), state)
    return builder


def reading(rows: int) -> spyrec.GraphBuilder:
    """Return a graph that reads the state of another, and writes none."""
    builder = spyrec.GraphBuilder("reading")
    builder.output(builder.mul(builder.input("state", (rows, 64)), 3.0, name="thrice"))
    return builder


def drawn(*shape: int) -> Halves:
    return _RANDOM.integers(-8, 9, shape).astype(np.float16)


def allocated_bytes(model: spyrec.Model) -> int:
    opened = model._opened  # pyright: ignore[reportPrivateUsage] -- what only a look inside shows
    assert opened is not None
    return opened.device.allocator.statistics().allocated_bytes


@pytest.fixture(scope="module")
def entries() -> BundleEntries:
    return spyrec.compile_entries({"prefill": caching(8), "decode": caching(1)})


@pytest.fixture(scope="module")
def sums() -> BundleEntries:
    return spyrec.compile_entries({"step": summing(4), "other": summing(4), "read": reading(4)})


def placed(entries: BundleEntries, entry: str, name: str) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    argument = next(item for item in entries.bundles[entry].manifest.arguments if item.name == name)
    return argument.device_size, argument.stride_map


def test_entries_share_weights_and_a_cache_whose_rows_are_written_in_place(
    entries: BundleEntries, tmp_path: Path
) -> None:
    entries.save(tmp_path / "B")
    text = drawn(1, _HEADS, _LENGTH, 64)
    exact = text.astype(np.float64) @ _WEIGHT.astype(np.float64)
    options = spyrec.RunOptions(outputs=("total",))
    plan = entries.bundles["decode"].manifest.plan
    (writer,) = [step.program for step in plan if step.arguments[-1] == "cache" and "position" in step.arguments]
    with spyrec.load(entries.bundles["decode"], options) as model:
        model(x=text[:, :, :1], position=np.array([0]), cache=_EMPTY)
        alone = allocated_bytes(model)
    with spyrec.load(tmp_path / "B", options) as model:
        assert model.entries == ("prefill", "decode")
        given = {"x": text[:, :, :8], "position": np.arange(8), "cache": _EMPTY}
        found = [model.prefill(**given)["total"]]
        before = allocated_bytes(model)
        for row in range(8, _LENGTH):
            result = model.decode.run({"x": text[:, :, row : row + 1], "position": np.array([row])})
            found.append(result.outputs["total"])
            # a row of each head and its position go to the device, and neither weights nor cache
            assert result.stats.total.dma_h2d_bytes == (_HEADS + 1) * _ROW_BYTES
            (written,) = [item for item in result.stats.ops if item.file.startswith(f"{writer}/")]
            assert written.hbm_write_bytes == _HEADS * _ROW_BYTES
        # of what the entry needs alone, weights and cache were there
        assert allocated_bytes(model) - before == alone - _WEIGHT.nbytes - _EMPTY.nbytes
    for total, end in zip(found, range(8, _LENGTH + 1), strict=True):
        wanted = exact[:, :, :end].sum(2)
        # each row is rounded once, its weights are exact, and so is the sum once
        assert np.abs(total - wanted).max() <= 2.0**-9 * np.abs(exact[:, :, :end]).sum(2).max()


def test_equal_constants_are_brought_and_stored_once(entries: BundleEntries, tmp_path: Path) -> None:
    assert set(entries.tensors["prefill"].values()) == set(entries.tensors["decode"].values())
    given = {"x": drawn(1, _HEADS, 1, 64), "position": np.array([3]), "cache": _EMPTY}
    alone = spyrec.run(entries.bundles["decode"], given).stats.total.dma_h2d_bytes
    with spyrec.load(entries) as model:
        model.prefill(x=drawn(1, _HEADS, 8, 64), position=np.arange(8), cache=_EMPTY)
        shared = model.decode.run(given).stats.total.dma_h2d_bytes
    assert alone - shared == _WEIGHT.nbytes
    entries.save(tmp_path / "B")
    size = sum(path.stat().st_size for path in tmp_path.rglob("constants.safetensors"))
    assert _WEIGHT.nbytes < size < 2 * _WEIGHT.nbytes
    again = tmp_path / "again"
    BundleEntries.load(tmp_path / "B").save(again)
    for path in (tmp_path / "B").rglob("*"):
        assert path.is_dir() or path.read_bytes() == (again / path.relative_to(tmp_path / "B")).read_bytes()


def test_entries_that_replace_the_same_keep_all_files_but_what_tells_their_time(
    sums: BundleEntries, tmp_path: Path
) -> None:
    def numbers() -> dict[str, int]:
        files = [path for path in (tmp_path / "B").rglob("*") if path.is_file()]
        return {path.relative_to(tmp_path / "B").as_posix(): path.stat().st_ino for path in files}

    sums.save(tmp_path / "B")
    sums.save(tmp_path / "fresh")
    before = numbers()
    sums.save(tmp_path / "B", force=True)
    after = numbers()
    new = {name for name, number in after.items() if number != before[name]}
    assert {name for name in new if name.endswith(".json") and "sdsc" not in name} >= {
        "entries.json", "step/manifest.json", "other/manifest.json", "read/manifest.json"
    }  # fmt: skip
    assert len(new) < len(after) / 2
    assert all((tmp_path / "B" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes() for name in after)


def test_state_that_is_made_beside_its_memory_is_what_every_entry_finds(sums: BundleEntries) -> None:
    state = drawn(4, 64)
    wanted = state.astype(np.float64)
    with spyrec.load(sums) as model:
        model.step(x=np.zeros((4, 64), np.float16), state=state)
        for turn in range(6):
            x = drawn(4, 64)
            entry = model["other"] if turn % 3 == 1 else model.step
            result = entry.run({"x": x})
            np.testing.assert_array_equal(result.outputs["twice"], 2 * wanted)
            wanted = wanted + x
            np.testing.assert_array_equal(result.outputs["next"], wanted)
            np.testing.assert_array_equal(model.read()["thrice"], 3 * wanted)
            assert model.read.run({}).stats.total.dma_h2d_bytes == 0
        given = drawn(4, 64)
        model.read(state=given)  # what a call was given stays
        np.testing.assert_array_equal(model.other(x=given)["next"], 2 * given)
    with spyrec.load(sums) as model, pytest.raises(spyrec.SpyrecError, match="SPY0760"):
        model.read()


@pytest.mark.parametrize("options", [spyrec.RunOptions(sanitize="all"), spyrec.RunOptions(check=True)])
def test_what_watches_and_checks_a_call_knows_the_state(sums: BundleEntries, options: spyrec.RunOptions) -> None:
    state, x = drawn(4, 64), drawn(4, 64)
    with spyrec.load(sums, options) as model:
        model.step(x=x, state=state)
        found = model.other.run({"x": x})
        np.testing.assert_array_equal(found.outputs["next"], state + 2 * x)
        assert found.is_ok
        np.testing.assert_array_equal(model.read()["thrice"], 3 * (state + 2 * x))


def test_an_entry_takes_the_layout_that_another_has(sums: BundleEntries) -> None:
    graph, order = summing(4).build(), LayoutPin(dim_order=(1, 0))
    values = {name: replace(graph.values[name], pin=order) for name in ("state", "next")}
    graph = replace(graph, values={**graph.values, **values})
    found = spyrec.compile_entries({"turned": graph, "plain": summing(4)})
    assert placed(found, "turned", "state") != placed(sums, "step", "state")
    assert placed(found, "plain", "state") == placed(found, "turned", "state")
    state, x = drawn(4, 64), drawn(4, 64)
    with spyrec.load(found) as model:
        model.turned(state=state, x=x)
        result = model.plain.run({"x": x})
        np.testing.assert_array_equal(result.outputs["next"], state + 2 * x)
    # two that insist on layouts of their own: the state goes through the host, and is right
    apart = BundleEntries.of({"turned": found.bundles["turned"], "plain": sums.bundles["step"]})
    with spyrec.load(apart) as model:
        model.turned(state=state, x=x)
        for turn in range(2, 5):
            entry = model.plain if turn % 2 else model.turned
            np.testing.assert_array_equal(entry(x=x)["next"], state + turn * x)


def test_a_call_names_its_entry(sums: BundleEntries) -> None:
    named = BundleEntries.of({"close": sums.bundles["read"], "run": sums.bundles["step"]})
    state = drawn(4, 64)
    with spyrec.load(named) as model:
        np.testing.assert_array_equal(model["close"](state=state)["thrice"], 3 * state)
        for call in (lambda: model(state=state), lambda: model.run({"state": state}), lambda: model.inputs):
            with pytest.raises(spyrec.SpyrecError, match="SPY0784"):
                call()
        with pytest.raises(spyrec.SpyrecError, match="SPY0788"):
            model["other"]
        with pytest.raises(AttributeError, match="its entries are close, run"):
            _ = model.other
        with pytest.raises(spyrec.SpyrecError, match="SPY0782"):
            model["run"](state)
    with pytest.raises(spyrec.SpyrecError, match="SPY0781"):
        model["close"](state=state)
    with spyrec.load(sums.bundles["read"]) as alone:
        assert alone.entries == ()
        np.testing.assert_array_equal(alone(state=state)["thrice"], 3 * state)
        with pytest.raises(spyrec.SpyrecError, match="SPY0788"):
            alone["read"]
    with spyrec.load(BundleEntries.of({"one": sums.bundles["read"]})) as one:
        np.testing.assert_array_equal(one(state=state)["thrice"], 3 * state)
    with pytest.raises(spyrec.SpyrecError, match="SPY0771"):
        spyrec.compile_entries({"no name": reading(4)})


def test_options_are_for_the_entries_that_have_what_they_name(sums: BundleEntries) -> None:
    state = drawn(4, 64)
    with spyrec.load(sums, spyrec.RunOptions(outputs=("next",))) as model:
        assert list(model.step(state=state, x=state)) == ["next"]
        assert model.read() == {}
    for options, code in (
        (spyrec.RunOptions(outputs=("none",)), "SPY0787"),
        (spyrec.RunOptions(only="sdsc_0.json"), "SPY0771"),
        (spyrec.RunOptions(dims={"S": 3}), "SPY0993"),
    ):
        with pytest.raises(spyrec.SpyrecError, match=code):
            spyrec.load(sums, options)


def test_threads_take_turns_over_the_whole_model(sums: BundleEntries) -> None:
    one = np.ones((4, 64), np.float16)
    with spyrec.load(sums) as model:
        model.step(x=0 * one, state=0 * one)
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(model[name], x=one) for name in ["step", "other"] * 20]
            for call in calls:
                call.result()
        np.testing.assert_array_equal(model.read()["thrice"], 3 * 40 * one)


def test_damaged_entries_are_refused(entries: BundleEntries, tmp_path: Path) -> None:
    entries.save(tmp_path / "B")

    def refused(change: Mapping[str, object] | None, name: str, content: bytes | None = None) -> str:
        root = tmp_path / "damaged"
        shutil.copytree(tmp_path / "B", root)
        if change is not None:
            text = json.loads((root / "entries.json").read_text())
            (root / "entries.json").write_text(json.dumps({**text, **change}))
        if content is not None:
            (root / name).write_bytes(content)
        with pytest.raises(spyrec.SpyrecError) as raised:
            BundleEntries.load(root) if name != "decode" else spyrec.Bundle.load(root / "decode")
        shutil.rmtree(root)
        return raised.value.diagnostics[0].code

    constants = (tmp_path / "B" / "constants.safetensors").read_bytes()
    good = cast("dict[str, dict[str, dict[str, str]]]", json.loads((tmp_path / "B" / "entries.json").read_text()))
    assert refused(None, "constants.safetensors", constants[:-1] + b"\7") == "SPY0602"
    assert refused(None, "decode/manifest.json", b"{}") == "SPY0602"
    assert refused({"entries": {}}, "entries.json") == "SPY0610"
    assert refused({"entries": {"../decode": {}}}, "entries.json") == "SPY0610"
    assert refused({"format": "spyrec.entries/2"}, "entries.json") == "SPY0610"
    assert refused({"files": {}}, "entries.json") == "SPY0610"
    lost: dict[str, dict[str, str]] = {**good["entries"], "decode": {}}
    assert refused({"entries": lost}, "entries.json") == "SPY0616"
    assert refused({"entries": lost}, "decode") == "SPY0616"
    other = {**good["entries"], "decode": dict.fromkeys(good["entries"]["decode"], "absent")}
    assert refused({"entries": other}, "entries.json") == "SPY0616"
    (tmp_path / "B" / "decode").rename(tmp_path / "elsewhere")
    (tmp_path / "B" / "decode").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(spyrec.SpyrecError, match="SPY0603"):
        BundleEntries.load(tmp_path / "B")
