"""Bundles that torch-spyre's own writer made from the OpSpecs beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spyrec.bundle.dialects import JUNE_2026
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.opspec_json import read_opspecs

EXAMPLES = Path(__file__).parent.parent / "fixtures" / "examples"
CASES = sorted(path.name for path in EXAMPLES.iterdir())
WITH_LOOPS = {"nested_loop_symbolic", "nested_loop_unrolled"}
WITHOUT_LOOPS = [case for case in CASES if case not in WITH_LOOPS]


def emit(case: str, options: CodegenOptions) -> EmittedProgram:
    path = EXAMPLES / case / "opspecs.json"
    return emit_opspecs(read_opspecs(path.read_bytes(), str(path)), options)


def written(case: str) -> dict[str, bytes]:
    folder = EXAMPLES / case
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "opspecs.json"}


def emitted_files(emitted: EmittedProgram) -> dict[str, bytes]:
    files = {name: to_bytes(superdsc) for name, superdsc in emitted.superdscs.items()}
    return files | {"bundle.mlir": print_program(emitted.program).encode()}


@pytest.mark.parametrize("compat", [True, False])
@pytest.mark.parametrize("case", WITHOUT_LOOPS)
def test_codegen_reproduces_every_byte_of_the_cases_without_loops(case: str, compat: bool) -> None:
    assert emitted_files(emit(case, CodegenOptions(JUNE_2026, is_exact=compat))) == written(case)


def test_kept_loops_differ_from_torch_spyre_in_the_steps_alone() -> None:
    files = emitted_files(emit("nested_loop_symbolic", CodegenOptions(JUNE_2026)))
    theirs = written("nested_loop_symbolic")
    wrong = b"(s0 + 33554432*d0 + 2147483648*d1)"
    assert wrong in theirs["bundle.mlir"]
    theirs["bundle.mlir"] = theirs["bundle.mlir"].replace(wrong, b"(s0 + 65536*d0 + 2097152*d1)")
    assert files == theirs


def test_unrolled_tiles_advance_through_the_device_layout_and_keep_its_extent() -> None:
    emitted = emit("nested_loop_unrolled", CodegenOptions(JUNE_2026))
    theirs = written("nested_loop_unrolled")
    assert print_program(emitted.program).encode() == theirs["bundle.mlir"]
    for number, superdsc in enumerate(emitted.superdscs.values()):
        row_tile, column_tile = divmod(number // 2, 4)
        expected = json.loads(theirs[f"sdsc_{number}.json"])
        (design,) = expected[f"{number}_{superdsc.op_func_name}"]["dscs_"]
        for node in design[superdsc.op_func_name]["scheduleTree_"]:
            if node["component_"] == "lx":
                continue
            start = 0x400000000 * (node["ldsIdx_"] if number % 2 == 0 else node["ldsIdx_"] + 1)
            tile = start + 65536 * row_tile + 2097152 * column_tile
            # 16 rows a core, 128 bytes each; the buffer has 1024 rows and 4096 columns of which a tile is 512 by 1024.
            node["startAddressCoreCorelet_"]["data_"] = {
                f"[{core}, 0, 0]": str(tile + 2048 * core) for core in range(32)
            }
            gaps = {"mb": {"-1": "512"}, "out": {"-1": "3072"}}
            entries = list(node.items())
            entries = [entry for entry in entries if entry[0] != "backGapCore_"]
            entries.insert([key for key, _ in entries].index("startAddressCoreCorelet_") + 1, ("backGapCore_", gaps))
            node.clear()
            node.update(entries)
        assert to_bytes(superdsc) == json.dumps(expected, indent=2).encode()


@pytest.mark.parametrize("case", CASES)
def test_symbols_resolve_to_the_baked_addresses(case: str) -> None:
    unrolled = CodegenOptions(JUNE_2026, unroll_loops=True, symbolic_args=False)
    baked = emit(case, unrolled)
    symbolic = emit(case, CodegenOptions(JUNE_2026, unroll_loops=True, symbolic_args=True))
    values = resolve(print_program(symbolic.program), has_pool="pool" in case)
    for name, superdsc in symbolic.superdscs.items():
        for operand, fixed in zip(superdsc.operands, baked.superdscs[name].operands, strict=True):
            starts = operand.start_addresses
            assert fixed.start_addresses == (tuple(values[name][i] for i in starts) if operand.is_symbolic else starts)


def resolve(text: str, *, has_pool: bool) -> dict[str, dict[int, int]]:
    """Return the address of each symbol id of each SuperDSC, from the printed module and the segment table alone."""
    from spyrec.bundle.program import Add, ArgumentExtract, Constant, SdscExecute

    program = parse_program(text)
    values: dict[str, int] = {}
    found: dict[str, dict[int, int]] = {}
    for statement in program.body:
        match statement:
            case ArgumentExtract(result, parameter):
                number = -1 if parameter.startswith("pool") else int(parameter.split("_")[1])
                values[result] = 0x400000000 * (number + has_pool)
            case Constant(result, value):
                values[result] = value
            case Add(result, left, right):
                values[result] = values[left] + values[right]
            case SdscExecute(file_name, operands, symbol_ids):
                assert symbol_ids is not None
                found[file_name] = {symbol: values[name] for symbol, name in zip(symbol_ids, operands, strict=True)}
            case _:
                raise AssertionError(statement)
    return found
