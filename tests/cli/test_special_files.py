"""A bundle that holds a pipe, a socket or a link to a device is refused with a code: nothing waits, nothing is read."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from types import FrameType

import pytest

from spyrec.cli import main
from spyrec.files.reading import open_regular

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "g",
    "inputs": [{"name": "x", "shape": [4, 64], "dtype": "float16"}],
    "constants": [{"name": "c", "shape": [64], "dtype": "float16", "value": [float(number) for number in range(64)]}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["x", "c"]}],
    "outputs": ["y"],
}
Refused = Callable[[list[str]], tuple[int, list[str]]]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "graph.json").write_text(json.dumps(GRAPH))
    assert main(["compile", str(folder / "graph.json"), "-o", str(folder / "bundle")]) == 0
    return folder / "bundle"


def files_of(bundle: Path) -> list[str]:
    return sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())


@contextmanager
def no_longer_than(seconds: float) -> Generator[None]:
    """Fail where what is inside waits for a pipe that nobody writes."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    def run(arguments: list[str]) -> tuple[int, list[str]]:
        capsys.readouterr()
        with no_longer_than(60):
            code = main(["--diagnostics=json", *arguments])
        return code, [json.loads(line)["code"] for line in capsys.readouterr().err.splitlines()]

    return run


def test_every_verb_refuses_a_bundle_of_which_any_file_is_a_pipe(
    compiled: Path, tmp_path: Path, refused: Refused
) -> None:
    names = files_of(compiled)
    assert {"bundle.mlir", "manifest.json", "constants.safetensors", "dci/x.h2d.json", "spyreCodeDir/init.bin"} <= {
        *names
    }
    for number, name in enumerate(names):
        broken = tmp_path / str(number)
        copytree(compiled, broken)
        (broken / name).unlink()
        os.mkfifo(broken / name)
        for arguments in (
            ["diff", str(broken), str(compiled)],
            ["diff", str(compiled), str(broken)],
            ["diff", str(broken), str(broken)],
            ["check", str(broken)],
            ["run", str(broken), "--random", "1"],
            ["run", str(broken), "--random", "1", "--no-verify"],
            ["inspect-layout", str(broken)],
        ):
            code, codes = refused(arguments)
            assert (code, "SPY0605" in codes) == (1, True), (name, arguments, codes)


@pytest.mark.parametrize("name", ["bundle.mlir", "sdsc_0.json", "spyreCodeDir/spyrecode.json"])
def test_a_bundle_of_others_is_refused_for_a_pipe_too(
    name: str, compiled: Path, tmp_path: Path, refused: Refused
) -> None:
    copytree(compiled, tmp_path / "other")
    (tmp_path / "other/manifest.json").unlink()
    (tmp_path / "other" / name).unlink()
    os.mkfifo(tmp_path / "other" / name)
    for arguments in (["diff", str(tmp_path / "other"), str(compiled)], ["check", str(tmp_path / "other")]):
        code, codes = refused(arguments)
        assert code == 1
        assert codes


def test_a_pipe_for_a_manifest_makes_no_bundle_that_force_replaces(
    compiled: Path, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "mine").mkdir()
    os.mkfifo(tmp_path / "mine/manifest.json")
    graph = compiled.parent / "graph.json"
    assert refused(["compile", str(graph), "-o", str(tmp_path / "mine"), "--force"]) == (1, ["SPY0614"])
    assert (tmp_path / "mine/manifest.json").is_fifo()


def test_inputs_are_read_from_files_alone(compiled: Path, tmp_path: Path, refused: Refused) -> None:
    for name in ("x.npz", "x.safetensors"):
        os.mkfifo(tmp_path / name)
        assert refused(["run", str(compiled), "--inputs", str(tmp_path / name)]) == (1, ["SPY0764"])


def test_a_named_file_without_end_is_read_to_its_limit(
    compiled: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spyrec.ir.reader.MAX_TEXT_BYTES", 1000)
    monkeypatch.setattr("spyrec.diagnostics.json_reading.MAX_TEXT_BYTES", 1000)
    output = str(compiled.parent / "never")
    assert refused(["compile", "/dev/zero", "-o", output]) == (1, ["SPY0104"])
    assert refused(["codegen", "/dev/zero", "-o", output]) == (1, ["SPY0528"])


def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "piped").symlink_to("pipe")
    for name in ("file", "link"):
        with open_regular(tmp_path / name) as stream:
            assert stream.read() == b"content"
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # a socket's path is short
        server.bind("socket")
        for path in (tmp_path / "pipe", tmp_path / "piped", tmp_path / "socket", tmp_path, Path("/dev/zero")):
            with no_longer_than(20), pytest.raises(OSError, match="regular"):
                open_regular(path)
