"""The sanitizer of streams in ``spyrec run``: silent where the runtime orders its work, telling where it does not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.cli import main
from spyrec.runtime.findings import Sanitizer, sanitizers_named
from spyrec.runtime.streams import stream
from spyrec.runtime.streams.control_block import ControlBlock


@pytest.fixture(scope="module")
def product() -> spyrec.Bundle:
    builder = spyrec.GraphBuilder("product")
    a, b = builder.input("a", (64, 128), "float16"), builder.input("b", (128, 64), "float16")
    builder.output(builder.matmul(a, b, name="c"))
    return spyrec.compile(builder)


def arrays(rows: int = 64) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float16]]]:
    generator = np.random.default_rng(0)
    shapes = {"a": (rows, 128), "b": (128, 64)}
    return {name: generator.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}


def no_waits(*_: object) -> list[ControlBlock]:
    return []


def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let launches begin before their program is loaded."""
    monkeypatch.setattr(stream, "launch_waits", no_waits)


@pytest.mark.parametrize("kinds", ["sync", "all"])
def test_a_run_is_silent_and_its_outputs_are_those_of_a_run_without(product: spyrec.Bundle, kinds: str) -> None:
    plain = spyrec.run(product, arrays())
    watched = spyrec.run(product, arrays(), spyrec.RunOptions(sanitize=kinds))
    assert watched.sanitizer == ()
    assert watched.is_ok
    assert watched.outputs["c"].tobytes() == plain.outputs["c"].tobytes()
    assert Sanitizer.SYNC in sanitizers_named(kinds)


@pytest.mark.parametrize("kinds", ["sync", "all", "init,sync"])
def test_a_launch_that_does_not_wait_for_its_program_is_found(
    product: spyrec.Bundle, monkeypatch: pytest.MonkeyPatch, kinds: str
) -> None:
    without_waits(monkeypatch)
    result = spyrec.run(product, arrays(), spyrec.RunOptions(sanitize=kinds))
    assert not result.is_ok
    assert {item.sanitizer for item in result.sanitizer} == {Sanitizer.SYNC}
    first = result.sanitizer[0]
    assert "without order" in first.message
    assert any("load product" in detail for detail in first.details)
    assert any(detail.startswith("missing edge") for detail in first.details)
    assert first.to_diagnostic().code == "SPY0980"


def test_the_verb_prints_what_it_found_and_returns_1(
    product: spyrec.Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product.save(tmp_path / "product")
    command = ["run", str(tmp_path / "product"), "--random", "1", "--sanitize", "sync", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["sanitizer"] == []
    without_waits(monkeypatch)
    assert main(command) == 1
    printed = capsys.readouterr()
    assert "error[SPY0980]: sync: " in printed.err
    assert "wait_event(event)" in printed.err
    found = json.loads(printed.out)["sanitizer"][0]
    assert found["sanitizer"] == "sync"
    assert any("missing edge" in detail for detail in found["details"])


@pytest.mark.parametrize("kinds", ["sync", "init", "all"])
def test_a_run_in_tiles_is_watched_too(product: spyrec.Bundle, kinds: str) -> None:
    result = spyrec.run(product, arrays(256), spyrec.RunOptions(sanitize=kinds, check=True))
    assert result.is_ok
    assert result.tiles[0].counts.iterations == 4


def test_one_superdsc_alone_is_a_launch_too(product: spyrec.Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    options = spyrec.RunOptions(sanitize="sync", only="sdsc_0.json")
    assert spyrec.run(product, arrays(), options).sanitizer == ()
    without_waits(monkeypatch)
    assert spyrec.run(product, arrays(), options).sanitizer


def test_a_run_in_tiles_has_a_trace_with_its_tiles(product: spyrec.Bundle, tmp_path: Path) -> None:
    from tests.support.traces import problems_of

    path = tmp_path / "trace.json"
    spyrec.run(product, arrays(256), spyrec.RunOptions(trace=path))
    trace = json.loads(path.read_text())
    assert problems_of(trace) == []
    assert len([event for event in trace["traceEvents"] if event.get("cat") == "spyrec.tile"]) == 4
