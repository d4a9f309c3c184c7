"""Building the shared library: what is missing is said, with what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.exec.cabi import build as building
from spyrec.exec.cabi.__main__ import main
from spyrec.exec.cabi.header import functions


def test_without_cffi_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nothing_is_installed(_: str) -> None:
        return None

    monkeypatch.setattr(building, "find_spec", nothing_is_installed)
    assert main(["build", "anywhere"]) == 1
    printed = capsys.readouterr().err
    assert "SPY0937" in printed
    assert "pip install 'spyrec[cabi]'" in printed


def test_without_a_compiler_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building, "find_spec", str)  # cffi or not
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    with pytest.raises(SpyrecError, match=r"SPY0937.*no C compiler"):
        building.build(tmp_path)


@pytest.mark.parametrize("arguments", [[], ["make"], ["build", "a", "b"]])
def test_other_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "usage" in capsys.readouterr().err


def test_headers_are_read_with_their_callbacks() -> None:
    (found,) = [item for item in functions("exec.h") if item.name == "frt_graph_capture"]
    assert found.result == "int"
    assert [(item.type, item.name) for item in found.parameters] == [
        ("frt_graph", "graph"),
        ("frt_shape_key", "key"),
        ("callback", "record"),
        ("void*", "user"),
    ]
