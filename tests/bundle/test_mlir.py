"""``bundle.mlir``: printer and parser are exact inverses, the parser is free in blanks and exact in its errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.mlir_parser import MAX_LOOP_DEPTH, parse_program
from spyrec.bundle.mlir_printer import print_generic, print_program
from spyrec.bundle.program import (
    Add,
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
from spyrec.diagnostics import SpyrecError

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "examples"
FILES = sorted(EXAMPLES.glob("*/bundle.mlir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_reading_and_printing_a_real_program_gives_its_bytes(path: Path) -> None:
    content = path.read_bytes()
    assert print_program(parse_program(content, path.name)).encode() == content


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_blanks_and_comments_mean_nothing(path: Path) -> None:
    text = path.read_text()
    spread = re.sub(r"(->|[(){}\[\]=,:<>*+])", r" // note: %x = {\n \1\t\r\n", text)
    assert parse_program(spread) == parse_program(text)


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
SIGNED = st.integers(-(1 << 62), 1 << 62)
LEAVES: st.SearchStrategy[Statement] = st.one_of(
    st.builds(ArgumentExtract, NAMES, NAMES),
    st.builds(Constant, NAMES, SIGNED),
    st.builds(Add, NAMES, NAMES, NAMES),
    st.builds(AffineApply, NAMES, NAMES, st.lists(NAMES, max_size=3).map(tuple), NAMES),
    st.builds(DeviceMemoryAllocate, NAMES, st.integers(1, 1 << 40)),
    st.builds(
        SdscExecute,
        st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8),
        st.lists(NAMES, max_size=3).map(tuple),
        st.none() | st.lists(SIGNED, max_size=3).map(tuple),
    ),
)


def nested(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    return st.builds(For, NAMES, NAMES, NAMES, NAMES, st.lists(inner, max_size=3).map(tuple))


STATEMENTS = st.recursive(LEAVES, nested, max_leaves=6)
LIMITS = st.none() | st.integers(0, 1 << 40)
PROGRAMS = st.builds(
    Program,
    st.lists(st.builds(AffineMap, NAMES, st.lists(SIGNED, max_size=3).map(tuple)), max_size=2).map(tuple),
    st.lists(st.builds(InputArgument, NAMES, LIMITS, LIMITS), max_size=3).map(tuple),
    st.lists(STATEMENTS, max_size=5).map(tuple),
)


@settings(max_examples=60)
@given(PROGRAMS)
def test_every_program_is_read_back_as_it_was_printed(program: Program) -> None:
    assert parse_program(print_program(program)) == program


def in_function(body: str) -> str:
    return "module {\n\tfunc.func @sdsc_bundle() {\n" + body + "\n\t\treturn\n\t}\n}\n"


def test_the_forms_of_the_public_specification_are_read() -> None:
    text = in_function('\tsdscbundle.sdsc_execute(%a) {symbol_ids = [-1], "sdsc_filename" = "x/y.json"}')
    assert parse_program(text).body == (SdscExecute("x/y.json", ("a",), (-1,)),)
    text = in_function("%m = sdscbundle.device_mem_allocate 4096 bytes : index")
    assert parse_program(text).body == (DeviceMemoryAllocate("m", 4096),)
    text = "#m = affine_map<(i, j)[base] -> (128*j + base + i * 64)>\n" + in_function("")
    assert parse_program(text).maps == (AffineMap("m", (64, 128)),)


BAD = [
    ("", "SPY0630", 1, 1),
    ("module {", "SPY0630", 1, 9),
    ("module {\n func.func @other() {", "SPY0630", 2, 12),
    (in_function("\t%a = arith.constant 1.5 : index"), "SPY0630", 3, 23),
    (in_function("\t%a = arith.constant 99999999999999999999 : index"), "SPY0630", 3, 22),
    (in_function("\t%a = arith.constant 0x10 : index"), "SPY0630", 3, 22),
    (in_function("\t%a = arith.constant 1 : i32"), "SPY0630", 3, 26),
    (in_function("\t// arith.muli\n\t%a = arith.muli %b, %c : index"), "SPY0631", 4, 7),
    (in_function("\tscf.if %a {\n\t}"), "SPY0631", 3, 2),
    (in_function("\t%a = arith.addi %b %c : index"), "SPY0630", 3, 21),
    (in_function('\tsdscbundle.sdsc_execute () {"symbol_ids"=[]}'), "SPY0630", 3, 2),
    (in_function('\tsdscbundle.sdsc_execute () {sdsc_filename="a", sdsc_filename="b"}'), "SPY0630", 3, 49),
    (in_function('\tsdscbundle.sdsc_execute () {sdsc_filename="a", async=1}'), "SPY0631", 3, 49),
    (in_function('\tsdscbundle.sdsc_execute () {sdsc_filename="a}'), "SPY0630", 3, 44),
    (in_function("\t%g = sdscbundle.input_arg_extract granularity from %a : !sdscbundle.input_arg<index> -> index"),
     "SPY0631", 3, 36),
    ("#m = affine_map<(d0)[s0] -> (d0)>\n" + in_function(""), "SPY0630", 1, 30),
    ("#m = affine_map<(d0)[s0] -> (s0 + 2*s0)>\n" + in_function(""), "SPY0630", 1, 37),
    ("#m = affine_map<(d0)[s0] -> (s0 floordiv d0)>\n" + in_function(""), "SPY0630", 1, 33),
    (in_function("") + "module {}", "SPY0630", 7, 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "column"), BAD)
def test_what_is_no_program_is_refused_at_its_line_and_column(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(SpyrecError) as caught:
        parse_program(text, "bundle.mlir")
    (found,) = caught.value.diagnostics
    assert found.location is not None
    assert (found.code, found.location.line, found.location.column) == (code, line, column)
    assert found.hint


def test_deep_loops_are_refused_and_not_recursed_into() -> None:
    text = in_function("scf.for %i = %a to %b step %c {" * (MAX_LOOP_DEPTH + 1))
    with pytest.raises(SpyrecError, match=f"more than {MAX_LOOP_DEPTH} nested loops"):
        parse_program(text)


@settings(max_examples=200)
@given(st.text(max_size=60) | st.binary(max_size=60), st.integers(0, 4000), st.integers(0, 40))
def test_no_text_makes_the_parser_raise_anything_but_diagnostics(noise: str | bytes, at: int, cut: int) -> None:
    good = (EXAMPLES / "nested_loop_symbolic" / "bundle.mlir").read_bytes()
    piece = noise if isinstance(noise, bytes) else noise.encode("utf-8", "replace")
    begin = min(at, len(good)) if at % 2 else len(good) - min(at, len(good))
    text = good[:begin] + piece + good[begin + cut :]
    refused = False
    try:
        parse_program(text)
    except SpyrecError:
        refused = True
    assert refused or print_program(parse_program(text)) == print_program(parse_program(text.decode()))


def test_the_generic_form_names_every_operation_and_type() -> None:
    text = print_generic(parse_program((EXAMPLES / "nested_loop_symbolic" / "bundle.mlir").read_bytes()))
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0].startswith("#map_0 = affine_map<(d0, d1)[s0]")
    assert lines[1] == '"builtin.module"() ({'
    assert lines[2].endswith('-> (), sym_name = "sdsc_bundle"}> ({')
    operations = [re.search(r'"([a-z_]+\.[a-z_]+)"\(', line) for line in lines]
    counted = [match[1] for match in operations if match]
    assert counted.count("scf.for") == counted.count("scf.yield") == 2
    assert counted.count("affine.apply") == 128
    assert counted.count("sdscbundle.sdsc_execute") == 2
    assert '"affine.apply"(%i_0, %i_1, %arg_0) <{map = #map_0}> : (index, index, index) -> index' in text
