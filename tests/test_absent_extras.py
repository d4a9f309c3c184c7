"""What is said about absent extras is true: only files that import a package of the extra are named."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from scripts import absent_extras
from tests.conftest import NEEDS


def test_imports_are_found_however_they_are_written() -> None:
    text = "import a.b\nfrom c.d import e\nfrom . import f\ng = import_module('h.i')\ndef j():\n    import k"
    assert sorted(absent_extras.imported_by(text)) == ["a", "c", "h", "k"]


def test_only_extras_that_something_depends_on_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_is_installed(_: str) -> None:
        return None

    monkeypatch.setattr(absent_extras, "find_spec", nothing_is_installed)
    lines = absent_extras.report("torch", ["torch==2.13.0"])
    without = [line.split(": ")[1] for line in lines]
    assert {
        "benchmarks/calls.py does without",
        "benchmarks/emulator_parts/outside.py does without",
        "benchmarks/model_ops/torch_judge.py does without",
        "spyrec/frontends/torch_export/reader.py does without",
    } <= set(without)
    files = {f"tests/{file}" for file, (package, _) in NEEDS.items() if package == "torch"}
    left_out = {line.removesuffix(" is not collected") for line in without if line.endswith("is not collected")}
    assert left_out == files | {"tests/support/torch_samples.py"}
    (line,) = absent_extras.report("train", ["scikit-learn>=1.6"])
    assert line.endswith("examples/digits/train.py does without")
    assert absent_extras.report("none", ["nobody-imports-this>=1"]) == []


def test_every_test_file_that_needs_a_package_is_left_out_without_it() -> None:
    packages = {package for package, _ in NEEDS.values()}
    users = [path for path in absent_extras.users_of(packages) if path.startswith("tests/") and "/support/" not in path]
    assert users == sorted(f"tests/{file}" for file in NEEDS)
    installed = {name for name in packages if find_spec(name)}
    assert absent_extras.report("torch", ["torch"]) == [] or "torch" not in installed
