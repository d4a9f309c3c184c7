"""Bundles that torch-spyre's writer of August 2026 made from the OpSpecs beside them, or from June's of that name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spyrec.bundle.dialects import AUGUST_2026, DIALECTS, JUNE_2026
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import DiagnosticSink, SpyrecError

FIXTURES = Path(__file__).parent.parent / "fixtures"
AUGUST = FIXTURES / "examples_2026_08"
CASES = sorted(path.name for path in AUGUST.iterdir())

EXACT = CodegenOptions(dialect=AUGUST_2026, is_exact=True)


def opspecs_of(case: str) -> Path:
    own = AUGUST / case / "opspecs.json"
    return own if own.exists() else FIXTURES / "examples" / case / "opspecs.json"


def emit(case: str, options: CodegenOptions = EXACT) -> EmittedProgram:
    path = opspecs_of(case)
    return emit_opspecs(read_opspecs(path.read_bytes(), str(path)), options)


def written(case: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (AUGUST / case).iterdir() if path.name != "opspecs.json"}


@pytest.mark.parametrize("case", CASES)
def test_codegen_reproduces_every_byte(case: str) -> None:
    emitted = emit(case)
    files = {name: to_bytes(superdsc) for name, superdsc in emitted.superdscs.items()}
    assert files | {"bundle.mlir": print_program(emitted.program).encode()} == written(case)


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_written_again(case: str) -> None:
    for name, text in written(case).items():
        if name == "bundle.mlir":
            assert print_program(parse_program(text.decode())).encode() == text
            continue
        sink = DiagnosticSink()
        superdsc = parse_superdsc(text, name, sink)
        assert superdsc.dialect is AUGUST_2026
        assert to_bytes(superdsc) == text


@pytest.mark.parametrize("case", sorted(path.name for path in (FIXTURES / "examples").iterdir()))
def test_older_files_are_told_by_what_is_in_them(case: str) -> None:
    for path in (FIXTURES / "examples" / case).glob("sdsc_*.json"):
        assert parse_superdsc(path.read_bytes()).dialect is JUNE_2026


@pytest.mark.parametrize("options", [replace(EXACT, symbolic_args=False), replace(EXACT, unroll_loops=True)])
def test_what_the_dialect_does_not_have_is_refused(options: CodegenOptions) -> None:
    with pytest.raises(SpyrecError, match="SPY0534"):
        emit("add", options)


def test_provenance_is_kept_and_its_text_is_written_in_ascii() -> None:
    text = written("debug_handle")["sdsc_0.json"].replace(b'"model.py"', rb'"mod\u00e8le\ud83d\ude00.py"')
    superdsc = parse_superdsc(text)
    assert superdsc.debug_handle is not None
    assert superdsc.debug_handle.source is not None
    assert superdsc.debug_handle.source.file == "modèle😀.py"
    assert superdsc.debug_handle.shown == "aten.add.Tensor at modèle😀.py:12"
    assert to_bytes(superdsc) == text


@pytest.mark.parametrize(
    ("key", "value"),
    [("id", 7), ("ir_chain", "add"), ("source", {"file": "x"}), ("fused_from", [{"id": "1"}]), ("further", {"a": 1})],
)
def test_a_malformed_handle_is_refused(key: str, value: object) -> None:
    data = json.loads(written("debug_handle")["sdsc_0.json"])
    data["0_add"]["debug_handle_"][key] = value
    with pytest.raises(SpyrecError, match=r"SPY062[01]"):
        parse_superdsc(json.dumps(data))


def test_dialects_are_listed_from_the_oldest_to_the_newest() -> None:
    assert list(DIALECTS) == sorted(DIALECTS)
