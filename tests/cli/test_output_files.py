"""Where verbs write files: over their own and nothing else, through what is no file, and never in part."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest
from safetensors.numpy import save_file

import spyrec
from spyrec.cli import group, main
from spyrec.diagnostics import SpyrecError
from spyrec.files.file_kinds import OUTPUTS, OUTPUTS_MARK
from spyrec.files.whole_file import refuse_unwritable
from spyrec.runtime.inputs.tensor_files import write_npz

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "g",
    "inputs": [{"name": "x", "shape": [4, 64], "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"],
}
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    spyrec.compile(GRAPH).save(folder / "bundle")
    return folder / "bundle"


@dataclass(frozen=True)
class Verb:
    """One verb that writes a file: its arguments before the file's name, and the code of one that cannot be written."""

    arguments: Callable[[Path], list[str]]
    code: str


VERBS = {
    "outputs": Verb(lambda bundle: ["run", str(bundle), "--random", "1", "--outputs"], "SPY0766"),
    "trace": Verb(lambda bundle: ["run", str(bundle), "--random", "1", "--trace"], "SPY0751"),
    "svg": Verb(lambda _: ["inspect-layout", "--shape", "4,64", "--svg"], "SPY0322"),
    "lx": Verb(lambda bundle: ["inspect-layout", str(bundle), "--lx", "--svg"], "SPY0322"),
}
EVERY = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


def codes_of(capture: Capture) -> list[str]:
    return re.findall(r"\[(SPY\d{4})\]", capture.readouterr().err)


@EVERY
def test_a_file_is_replaced_where_spyrec_wrote_it_or_by_force(
    verb: Verb, bundle: Path, tmp_path: Path, capsys: Capture
) -> None:
    place = tmp_path / "file"
    command = [*verb.arguments(bundle), str(place)]
    assert main(command) == 0
    written = place.read_bytes()
    assert main(command) == 0
    assert place.read_bytes() == written
    for content in (b"precious", b"", b'{"format": "spyrec.graph/1"}', b"PK" + b"x" * 100, b"<svg></svg>"):
        place.write_bytes(content)
        capsys.readouterr()
        assert main(command) == 1
        assert codes_of(capsys) == ["SPY0752"]
        assert place.read_bytes() == content
    place.chmod(0o600)
    assert main([*command, "--force"]) == 0
    assert place.read_bytes() == written
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [place]


def test_the_mark_of_one_kind_is_none_of_another(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    for name, verb in VERBS.items():
        assert main([*verb.arguments(bundle), str(tmp_path / name)]) == 0
    for name, verb in VERBS.items():
        for other, its in VERBS.items():
            may_replace = its.code == verb.code
            capsys.readouterr()
            content = (tmp_path / other).read_bytes()
            assert main([*verb.arguments(bundle), str(tmp_path / other)]) == (0 if may_replace else 1), (name, other)
            if not may_replace:
                assert codes_of(capsys) == ["SPY0752"]
                assert (tmp_path / other).read_bytes() == content


@EVERY
def test_a_device_is_written_and_stays_a_device(verb: Verb, bundle: Path, capsys: Capture) -> None:
    assert main([*verb.arguments(bundle), "/dev/null"]) == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    capsys.readouterr()
    assert main([*verb.arguments(bundle), "/dev/full"]) == 1
    assert codes_of(capsys) == [verb.code]
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


@EVERY
def test_a_pipe_is_written_where_somebody_reads_it(verb: Verb, bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main([*verb.arguments(bundle), str(pipe)]) == 1
    assert codes_of(capsys) == [verb.code]
    read: list[bytes] = []
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)

    def collect() -> None:
        with os.fdopen(handle, "rb") as stream:
            read.append(stream.read())

    keeps_open = os.open(pipe, os.O_WRONLY)  # a reader that begins before the writer sees no end
    reader = threading.Thread(target=collect)
    reader.start()
    assert main([*verb.arguments(bundle), str(pipe)]) == 0
    os.close(keeps_open)
    reader.join()
    assert pipe.is_fifo()
    assert main([*verb.arguments(bundle), str(tmp_path / "file")]) == 0
    assert len(read[0]) > 0
    if verb.code != "SPY0766":  # an archive that cannot be gone back in says sizes behind its members
        assert read[0] == (tmp_path / "file").read_bytes()
        return
    (tmp_path / "piped.npz").write_bytes(read[0])
    with np.load(tmp_path / "piped.npz") as piped, np.load(tmp_path / "file") as whole:
        np.testing.assert_array_equal(piped["y"], whole["y"])


@EVERY
def test_a_link_stays_a_link_and_its_file_has_the_rights_of_one(
    verb: Verb, bundle: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    link = tmp_path / "link"
    link.symlink_to("target")
    assert main([*verb.arguments(bundle), str(link)]) == 1
    assert codes_of(capsys) == ["SPY0752"]
    assert main([*verb.arguments(bundle), str(link), "--force"]) == 0
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() != b"precious"
    (tmp_path / "target").unlink()
    capsys.readouterr()
    assert main([*verb.arguments(bundle), str(link), "--force"]) == 1
    assert codes_of(capsys) == [verb.code]
    assert list(tmp_path.iterdir()) == [link]


@EVERY
def test_a_place_for_no_file_is_refused_before_any_work(
    verb: Verb, bundle: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    places = [tmp_path / "absent/x", tmp_path / "file/x"]
    if verb.code != "SPY0322":  # whose option takes no directory
        places.append(tmp_path)
    for place in places:
        capsys.readouterr()
        assert main([*verb.arguments(bundle), str(place)]) == 1
        assert codes_of(capsys) == [verb.code]
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.mark.parametrize("redirect", ["> out.npz", ">> out.npz", "| cat > out.npz"])
def test_outputs_go_to_wherever_stdout_leads(redirect: str, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "out.npz").write_bytes(b"")
    before = (tmp_path / "out.npz").stat().st_ino
    code = "import sys; from pathlib import Path; import numpy as np\n"
    code += (
        "from spyrec.runtime.inputs.tensor_files import write_npz; write_npz(Path('/dev/stdout'), {'y': np.arange(5)})"
    )
    line = f'"{sys.executable}" -c "{code}" {redirect}'
    done = subprocess.run(line, shell=True, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.npz").stat().st_ino == before
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_array_equal(archive["y"], np.arange(5))


@pytest.mark.parametrize("metadata", [{"format": OUTPUTS_MARK}, {"format": "pt"}, None])
def test_a_safetensors_file_is_ours_by_its_metadata(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / "y.safetensors"
    save_file({"y": np.arange(5)}, path, metadata=metadata)
    if metadata == {"format": OUTPUTS_MARK}:
        refuse_unwritable(path, OUTPUTS)
        return
    with pytest.raises(SpyrecError) as caught:
        refuse_unwritable(path, OUTPUTS)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0752"]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "y.npz"
    write_npz(path, {"y": np.arange(5)})
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(SpyrecError):
        write_npz(path, {"y": np.arange(6)})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_front_and_the_profile_know_force_too(bundle: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text("mine")
    x = {"x": np.ones((4, 64), np.float16)}
    with pytest.raises(SpyrecError) as caught:
        spyrec.run(bundle, x, spyrec.RunOptions(trace=trace))
    assert [item.code for item in caught.value.diagnostics] == ["SPY0752"]
    assert trace.read_text() == "mine"
    spyrec.run(bundle, x, spyrec.RunOptions(trace=trace, force=True))
    assert json.loads(trace.read_text())["format"] == "spyrec.trace/1"
    with spyrec.open_device() as device, spyrec.runtime.profile(device, trace):
        pass
    assert json.loads(trace.read_text())["format"] == "spyrec.trace/1"


def path_options() -> dict[str, click.Parameter]:
    """Return every argument and option of a verb that is a path."""
    context = click.Context(group)
    commands = {verb: group.get_command(context, verb) for verb in group.list_commands(context)}
    return {
        f"{verb} {item.name}": item
        for verb, command in commands.items()
        for item in (command.params if command is not None else ())
        if isinstance(item.type, click.Path)
    }


def test_no_verb_takes_an_empty_path() -> None:
    found = path_options()
    assert len(found) > 15
    for name, item in found.items():
        if name == "compile cache":
            continue  # refused with other values of that option (SPY0771)
        with pytest.raises(click.BadParameter, match=r"empty|does not exist"):
            item.type.convert("", item, None)


@pytest.mark.parametrize("arguments", [["compile", "g.json", "--force", "-o"], ["examples", "seed_add_mul", "-o"]])
def test_an_empty_path_is_one_message_and_nothing_is_written(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.json").write_text(json.dumps(GRAPH))
    assert main([*arguments, ""]) == 2
    assert capsys.readouterr().err.count("the path is empty") == 1
    assert [item.name for item in tmp_path.iterdir()] == ["g.json"]
