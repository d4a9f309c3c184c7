"""What ``import spyrec`` offers is what the documentation lists, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import spyrec

PUBLIC = {
    "Bundle",
    "CompileOptions",
    "DeviceLayout",
    "Diagnostic",
    "Graph",
    "GraphBuilder",
    "RunOptions",
    "RunResult",
    "SpyrecError",
    "__version__",
    "compile",
    "exec",
    "open_device",
    "run",
    "runtime",
}


def test_the_public_names_are_those_documented() -> None:
    assert set(spyrec.__all__) == PUBLIC
    assert set(dir(spyrec)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value: object = getattr(spyrec, name)
    assert value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        getattr(spyrec, "frobnicate")  # noqa: B009 -- the constant is the point


def test_the_version_is_that_of_the_installed_distribution() -> None:
    assert spyrec.__version__ == version("spyrec")


def test_the_module_runs_as_a_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "spyrec", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == ["spyrec,", "version", spyrec.__version__]
