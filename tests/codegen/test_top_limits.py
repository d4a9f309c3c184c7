"""How many elements a top-k takes: what the target at hand has, in code generation, ``check`` and the manifest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026, NEWEST
from spyrec.cli import main
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpecFile
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.compare.validate_path import CheckOptions, ContentKind, validate_path
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import SPYRE_2026_06, SPYRE_2026_08, TARGETS, Target

CASE = Path(__file__).parents[1] / "fixtures" / "examples_2026_08" / "topk_k8_split" / "opspecs.json"
"""Eight elements of each row, divided among cores: four on each of two."""


def source() -> OpSpecFile:
    return read_opspecs(CASE.read_bytes(), str(CASE))


def refusal(target: Target | None) -> str:
    """Return what code generation says of the case for a target; nothing where it takes it."""
    try:
        emit_opspecs(source(), CodegenOptions(AUGUST_2026, target=target))
    except SpyrecError as error:
        (found,) = error.diagnostics
        assert found.code == "SPY0535"
        assert found.location is not None
        assert found.location.pointer == "/specs/0/iteration_space"
        return found.message
    return ""


def test_the_dialect_says_which_device_it_is_where_nobody_does() -> None:
    for dialect in (JUNE_2026, AUGUST_2026):
        assert CodegenOptions(dialect).device is TARGETS[dialect.name]
    assert CodegenOptions().device is TARGETS[NEWEST.name]
    assert CodegenOptions(AUGUST_2026, target=SPYRE_2026_06).device is SPYRE_2026_06
    assert CodegenOptions(replace(AUGUST_2026, name="2027-01")).device == Target()


def test_each_limit_is_asked_of_the_target() -> None:
    assert refusal(None) == refusal(SPYRE_2026_08) == ""
    assert 'takes 8 elements, target "2026-06" has at most 4 (topk_limit)' in refusal(SPYRE_2026_06)
    assert 'takes 8 elements, target "spyre" has at most 4 (topk_limit)' in refusal(Target())
    for limit in range(1, 7):
        found = refusal(replace(SPYRE_2026_08, topk_core_limit=limit))
        assert bool(found) is (limit < 8 // 2)
        assert not found or f'4 elements on each core, target "2026-08" has at most {limit} (topk_core_limit)' in found
    for limit in range(6, 11):
        found = refusal(replace(SPYRE_2026_08, topk_limit=limit))
        assert bool(found) is (limit < 8)


def test_the_command_line_takes_a_target_and_the_manifest_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, target = tmp_path / "b", tmp_path / "t.json"
    arguments = ["codegen", str(CASE), "-o", str(bundle)]
    assert main([*arguments, "--target", "2026-06"]) == 1
    assert "SPY0535" in capsys.readouterr().err
    assert not bundle.exists()
    assert main(arguments) == 0
    assert Bundle.load(bundle).manifest.target == SPYRE_2026_08
    assert main(["check", str(bundle)]) == 0
    assert main(["run", str(bundle), "--random", "1", "--check"]) == 0
    assert main(["check", str(bundle), "--target", "2026-06"]) == 1
    target.write_text(json.dumps({"format": "spyrec.target/1", "topk_limit": 8, "topk_core_limit": 4}))
    assert main([*arguments, "--force", "--target", str(target)]) == 0
    assert Bundle.load(bundle).manifest.target == Target("t", topk_limit=8, topk_core_limit=4)
    assert main(["check", str(bundle)]) == 0


def test_under_compat_its_own_writer_does_not_look_and_check_finds_it(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    arguments = ["codegen", str(CASE), "-o", str(bundle), "--compat", "torch-spyre@2026-08", "--target", "2026-06"]
    assert main(arguments) == 0
    assert {item.code for item in validate_path(bundle).diagnostics} == {"SPY0627"}


def test_check_holds_opspecs_against_a_target_too() -> None:
    verdict = validate_path(CASE)
    assert (verdict.kind, verdict.is_ok) == (ContentKind.OPSPECS, True)
    found = validate_path(CASE, CheckOptions(target=SPYRE_2026_06)).diagnostics
    assert {item.code for item in found} == {"SPY0535"}
