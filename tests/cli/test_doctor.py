"""``spyrec doctor``: facts as others know them, what makes it fail, and kernels compiled beforehand."""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numba
import numpy as np
import pytest

import spyrec
from spyrec import cli
from spyrec.cli._doctor_facts import extras
from spyrec.diagnostics import refuse
from spyrec.emulator.every_kernel import every_kernel
from spyrec.files import host_processor, kernel_cache, kernel_compiler
from spyrec.files.kernel_operands import OperandKind
from spyrec.files.machine_code import MachineCode

ROOT = Path(__file__).resolve().parent.parent.parent

REALLY_COMPILED = kernel_compiler.compiled


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kernels are kept in a directory of the test's own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "c"))
    monkeypatch.setattr(kernel_cache, "_store", vars(kernel_cache)["_store"].__wrapped__)
    return tmp_path / "c" / "spyrec-kernels"


@pytest.fixture(autouse=True)
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what is compiled; of the product's kernels nothing is, which would take 15 s."""
    names: list[str] = []

    def compiled(function: Callable[..., object], operands: Sequence[OperandKind]) -> MachineCode:
        names.append(function.__qualname__)
        is_small = function.__module__ == "spyrec.cli._doctor_facts"
        return REALLY_COMPILED(function, operands) if is_small else MachineCode("f", "none", (), b"no object file")

    monkeypatch.setattr(kernel_compiler, "compiled", compiled)
    return names


def test_what_it_says_is_what_others_say(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["ok"], found["diagnostics"]) == ("spyrec.doctor/1", True, [])
    versions = found["versions"]
    assert versions["spyrec"] == spyrec.__version__
    assert versions["python"] == platform.python_version()
    assert (versions["numpy"], versions["numba"]) == (np.__version__, numba.__version__)
    assert found["threads"] == os.cpu_count()
    assert found["processor"]["variant"] in found["processor"]["executable"]
    if platform.machine() == "x86_64" and "SPYREC_PROCESSOR" not in os.environ:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("flags")[2].partition("\n")[0].split()
        assert ("avx2" in found["processor"]["features"]) == ("avx2" in flags)
    cache = found["kernel_cache"]
    assert (cache["path"], cache["trouble"], cache["files"], cache["kept"]) == (str(own_cache), None, 0, 0)
    assert cache["needed"] == len(every_kernel())


def test_the_text_has_the_same_facts_in_sixty_columns(
    own_cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines() if str(own_cache) not in line) <= 60
    words = " ".join(text.split())
    for version in found["versions"].values():
        assert version in words
    for extra in found["extras"]:
        assert extra["name"] in words
        assert (extra["pip"] in words) == (not extra["installed"])
    assert " ".join(found["processor"]["features"]) in words
    assert "of this user alone" in words
    assert f"0 of {len(every_kernel())} kernels" in words


def test_extras_are_those_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    found = {extra["name"]: extra for extra in json.loads(capsys.readouterr().out)["extras"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(found) == set(project["optional-dependencies"]) - {"dev"}
    for name, extra in found.items():
        assert extra["pip"] == f"pip install 'spyrec[{name}]'"
        assert extra["installed"] == (None not in extra["distributions"].values())


def test_an_extra_is_installed_where_all_of_it_is() -> None:
    required = [
        'numpy>=2; extra == "b"',
        "nobody-has-this ; extra == 'b'",
        'numba>=0.6; extra=="a"',
        'x; extra == "dev"',
    ]
    first, second = extras([*required, "click>=8"])
    assert (first.name, first.is_installed, first.distributions) == ("a", True, {"numba": numba.__version__})
    assert (second.name, second.is_installed) == ("b", False)
    assert second.distributions == {"numpy": np.__version__, "nobody-has-this": None}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("read by others", "its mode is 0755"),
        ("a link", "it is a link"),
        ("a file", "it is no directory"),
        ("no place", "it cannot be made: Not a directory"),
        ("of another user", "it belongs to user"),
    ],
)
def test_a_directory_that_is_not_this_users_alone_is_a_failure(
    spoil: str, said: str, own_cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.parent.mkdir()
    match spoil:
        case "read by others":
            own_cache.mkdir()
            own_cache.chmod(0o755)
        case "a link":
            (own_cache.parent / "theirs").mkdir(mode=0o700)
            own_cache.symlink_to(own_cache.parent / "theirs")
        case "a file":
            own_cache.write_bytes(b"")
        case "no place":
            own_cache.parent.rmdir()
            own_cache.parent.write_bytes(b"")
        case _:
            own_cache.mkdir(mode=0o700)
            monkeypatch.setattr(os, "geteuid", lambda: own_cache.stat().st_uid + 1)
    assert cli.main(["doctor", "--warm"]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("SPY0754") == 1
    assert said in printed.err
    assert str(own_cache) in printed.err
    assert "not used" in printed.out
    assert not own_cache.is_dir() or list(own_cache.iterdir()) == []
    assert cli.main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], [item["code"] for item in found["diagnostics"]]) == (False, ["SPY0754"])
    assert said in found["kernel_cache"]["trouble"]


def test_a_compiler_that_fails_is_a_failure(
    own_cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(function: object, operands: object) -> MachineCode:
        raise OSError("libLLVM is\nmissing")

    monkeypatch.setattr(kernel_compiler, "compiled", broken)
    assert cli.main(["doctor", "--warm"]) == 1
    assert "error[SPY0796]: kernels cannot be compiled: OSError: libLLVM is missing" in capsys.readouterr().err
    assert list(own_cache.iterdir()) == []


def test_a_compiler_that_computes_something_else_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def two_more(number: int) -> int:
        return number + 2

    def compiled(_: object, operands: Sequence[OperandKind]) -> MachineCode:
        return REALLY_COMPILED(two_more, operands)

    monkeypatch.setattr(kernel_compiler, "compiled", compiled)
    assert cli.main(["doctor"]) == 1
    assert "SPY0796" in capsys.readouterr().err


def test_a_processor_that_is_none_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> object:
        raise refuse("SPY0753", "SPYREC_PROCESSOR: this processor cannot execute avx512")

    monkeypatch.setattr(host_processor, "host_processor", refused)
    assert cli.main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert "SPY0753" in printed.err
    assert "numpy" in printed.out


def test_what_is_compiled_beforehand_is_kept_and_not_compiled_again(
    own_cache: Path, capsys: pytest.CaptureFixture[str], compilations: list[str]
) -> None:
    count = len(every_kernel())
    assert cli.main(["doctor", "--warm"]) == 0
    assert capsys.readouterr().out.startswith(f"{count} kernels compiled in ")
    assert len(compilations) == count + 1
    assert len(list(own_cache.iterdir())) == count
    for path in list(own_cache.iterdir())[:3]:
        path.unlink()
    assert cli.main(["doctor", "--warm", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["warmed"]["compiled"], found["warmed"]["kept"]) == (3, count - 3)
    cache = found["kernel_cache"]
    assert (cache["kept"], cache["needed"], cache["files"]) == (count, count, count)
    assert cache["bytes"] == sum(path.stat().st_size for path in own_cache.iterdir())
    assert len(compilations) == count + 5
