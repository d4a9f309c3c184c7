"""MLIR's own parser and verifier on programs: what is written is right, and what is wrong is refused."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import spyrec
from spyrec.bundle.mlir_dialect import SDSCBUNDLE
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_generic
from spyrec.bundle.program import (
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    DeviceMemoryAllocate,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.cli import main
from spyrec.compare import mlir_bindings
from spyrec.compare.mlir_bindings import verify_with_mlir
from spyrec.options import CompileOptions
from tests.support.random_loops import looped_graph

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "tests" / "fixtures" / "examples").glob("*/bundle.mlir"), *(ROOT / "examples").rglob("bundle.mlir")]


def test_the_definition_of_the_dialect_verifies() -> None:
    ir = import_module("torch_mlir.ir")
    with ir.Context():
        assert ir.Module.parse(SDSCBUNDLE).operation.verify()


def test_every_reference_and_golden_program_verifies() -> None:
    assert len(FILES) > 30
    for path in FILES:
        verify_with_mlir(parse_program(path.read_bytes(), path.name), str(path))


@pytest.mark.parametrize("loops", ["keep", "unroll"])
def test_programs_of_looped_graphs_verify(loops: str) -> None:
    nested = 0
    for seed in range(12):
        for program in spyrec.compile(looped_graph(seed)[0], CompileOptions(loops=loops)).programs:
            verify_with_mlir(program.program, "bundle.mlir")
            nested += any(isinstance(item, For) for item in program.program.body)
    assert bool(nested) == (loops == "keep")


EXTRACT = ArgumentExtract("a", "arg_0_base_addr")
ARGUMENT = InputArgument("arg_0_base_addr")


def of(*body: Statement, parameters: tuple[InputArgument, ...] = (ARGUMENT,)) -> Program:
    return Program((AffineMap("map_0", (64,)),), parameters, body)


def test_limits_memory_and_loops_verify() -> None:
    limited = InputArgument("S_value", 64, 4096)
    inner = (AffineApply("b", "map_0", ("i",), "a"), SdscExecute("sdsc_0.json", ("b",), (-1,)))
    body = (
        EXTRACT,
        ArgumentExtract("s", "S_value"),
        Constant("c0", 0),
        Constant("c1", 1),
        DeviceMemoryAllocate("m", 4096),
        For("i", "c0", "s", "c1", inner),
        SdscExecute("sdsc_1.json"),
        SdscExecute("sdsc_2.json", (), ()),
    )
    verify_with_mlir(of(*body, parameters=(ARGUMENT, limited)), "bundle.mlir")


WRONG = {
    "a value that nothing defines": of(SdscExecute("sdsc_0.json", ("b",), (-1,))),
    "a value defined twice": of(EXTRACT, EXTRACT),
    "a parameter used as an address": of(SdscExecute("sdsc_0.json", ("arg_0_base_addr",), (-1,))),
    "an address taken from an address": of(EXTRACT, ArgumentExtract("b", "a")),
    "too few loop variables": of(EXTRACT, AffineApply("b", "map_0", (), "a")),
    "a map that is not there": of(EXTRACT, Constant("c", 0), AffineApply("b", "map_1", ("c",), "a")),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_mlirs_reason(name: str) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        verify_with_mlir(WRONG[name], "bundle.mlir")
    (found,) = caught.value.diagnostics
    assert found.code == "SPY0822"
    assert found.message.startswith('MLIR refuses the program: "-":')


def printed_as(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    """Let a part of every generic form be another."""

    def printed(program: Program) -> str:
        return print_generic(program).replace(right, wrong)

    monkeypatch.setattr(mlir_bindings, "print_generic", printed)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('part = "value"', 'part = "granularity"'),
        ("input_arg<index>", "input_arg<i32>"),
        ("array<i64: -1>", '"no list"'),
        ('sdsc_filename = "sdsc_0.json"', "sdsc_filename = 3"),
        ('"sdscbundle.sdsc_execute"', '"sdscbundle.launch"'),
        ("(index) -> ()", "(!sdscbundle.input_arg<index>) -> ()"),
    ],
)
def test_the_dialect_is_verified_operation_by_operation(
    right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = of(EXTRACT, SdscExecute("sdsc_0.json", ("a",), (-1,)))
    text = print_generic(program)
    assert right in text
    verify_with_mlir(program, "bundle.mlir")
    printed_as(monkeypatch, right, wrong)
    with pytest.raises(spyrec.SpyrecError, match="MLIR refuses"):
        verify_with_mlir(program, "bundle.mlir")


def test_check_asks_mlir_about_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spyrec.compile(looped_graph(3)[0]).save(tmp_path / "bundle")
    assert main(["check", str(tmp_path / "bundle"), "--mlir"]) == 0
    printed_as(monkeypatch, "-1", "-1, x")
    assert main(["check", str(tmp_path / "bundle")]) == 0
    assert main(["check", str(tmp_path / "bundle"), "--mlir"]) == 1
    assert "SPY0822" in capsys.readouterr().err
