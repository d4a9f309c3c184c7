"""Rules between the files of a program: values, loops, symbols, parameters.  Each planted fault is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.manifest import PlanStep
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.program_scope import check_scope
from spyrec.bundle.validate import check_program
from spyrec.diagnostics import DiagnosticSink, Location
from tests.foreign import EXAMPLES, argument_table, write_table


@pytest.fixture(params=["nested_loop_symbolic", "pool_symbolic", "softmax_lx_symbolic"])
def symbolic(request: pytest.FixtureRequest, tmp_path: Path) -> Bundle:
    return load_foreign(EXAMPLES / request.param, write_table(tmp_path, argument_table(request.param)))


def codes(bundle: Bundle, edit: Callable[[str], str], step: PlanStep | None = None) -> set[str]:
    (program,) = bundle.programs
    (own,) = bundle.manifest.plan
    text = (EXAMPLES / bundle.manifest.name / "bundle.mlir").read_text()
    edited = edit(text)
    assert edited != text or step is not None
    sink = DiagnosticSink()
    manifest = dataclasses.replace(bundle.manifest, plan=(step or own,))
    check_program(dataclasses.replace(program, program=parse_program(edited)), manifest, "bundle.mlir", sink)
    assert all(item.hint for item in sink.diagnostics)
    return {item.code for item in sink.errors}


def test_a_missing_symbol_id_operand_or_binding_breaks_rule_v9(symbolic: Bundle) -> None:
    assert codes(symbolic, lambda text: text.replace("=[-1, ", "=[", 1)) == {"SPY0633"}
    assert codes(symbolic, lambda text: text.replace("=[-1, ", "=[-2, ", 1)) == {"SPY0633"}
    assert codes(symbolic, lambda text: text.replace("=[-1, ", "=[-9999, ", 1)) == {"SPY0633"}
    assert codes(symbolic, lambda text: text.replace("=[-1, ", "=[1, ", 1)) == {"SPY0633"}


def test_a_parameter_that_nothing_provides_is_refused(symbolic: Bundle) -> None:
    (step,) = symbolic.manifest.plan
    short = dataclasses.replace(step, arguments=step.arguments[:-1])
    assert codes(symbolic, lambda text: text, short) == {"SPY0634"}
    if step.pool_bytes:
        assert codes(symbolic, lambda text: text, dataclasses.replace(step, pool_bytes=0)) == {"SPY0634"}
    assert codes(symbolic, lambda text: text.replace("%arg_1_base_addr", "%other")) == {"SPY0634"}


def scope_codes(body: str, maps: str = "") -> list[str]:
    sink = DiagnosticSink()
    text = (
        maps
        + "module { func.func @sdsc_bundle(%p: !sdscbundle.input_arg<index>, %S_value: !sdscbundle.input_arg<index>) {"
        + body
        + " return } }"
    )
    check_scope(parse_program(text), Location("bundle.mlir"), sink)
    return [item.code for item in sink.diagnostics]


ONE = "%one = arith.constant 1 : index "
EXTRACT = "%a = sdscbundle.input_arg_extract value from %p : !sdscbundle.input_arg<index> -> index "
VALUE = "%v = sdscbundle.input_arg_extract value from %S_value : !sdscbundle.input_arg<index> -> index "
LOOP = "scf.for %i = %one to %one step %one { "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ONE + EXTRACT + "%s = arith.addi %a, %one : index", []),
        (EXTRACT + "%s = arith.addi %a, %one : index " + ONE, ["SPY0632"]),
        (ONE + ONE, ["SPY0632"]),
        ("%s = arith.addi %p, %p : index", ["SPY0632", "SPY0632"]),
        (ONE + EXTRACT.replace("from %p", "from %one"), ["SPY0632"]),
        (ONE + LOOP + "%s = arith.addi %i, %one : index }", []),
        (ONE + LOOP + "} %s = arith.addi %i, %one : index", ["SPY0632"]),
        (ONE + LOOP + "%s = arith.addi %i, %one : index } " + LOOP + "%s = arith.addi %i, %one : index }", []),
        (ONE + LOOP + LOOP + "} }", ["SPY0632"]),
        (ONE + EXTRACT + "scf.for %i = %one to %a step %one { }", ["SPY0635"]),
        (ONE + VALUE + "scf.for %i = %one to %v step %one { }", []),
        (ONE + VALUE + "scf.for %i = %v to %one step %one { }", ["SPY0632", "SPY0635"]),
        (ONE + VALUE + "scf.for %i = %one to %one step %v { }", ["SPY0632", "SPY0635"]),
        (ONE + VALUE + "%s = arith.addi %v, %one : index", ["SPY0632"]),
        (ONE + "%z = arith.constant 0 : index scf.for %i = %z to %one step %z { }", ["SPY0635"]),
        (ONE + "%s = affine.apply #m(%one)[%one]", ["SPY0632"]),
        ("%m = sdscbundle.device_mem_allocate 0 bytes : index", ["SPY0632"]),
        ('sdscbundle.sdsc_execute (%x) {sdsc_filename="a", symbol_ids=[-1]}', ["SPY0632"]),
    ],
)
def test_values_are_defined_once_before_use_and_loops_are_constant(body: str, expected: list[str]) -> None:
    assert scope_codes(body) == expected


def test_a_map_takes_as_many_dims_as_it_has_and_is_defined_once() -> None:
    maps = "#m = affine_map<(d0)[s0] -> (s0 + 128*d0)> "
    assert scope_codes(ONE + "%s = affine.apply #m(%one)[%one]", maps) == []
    assert scope_codes(ONE + "%s = affine.apply #m(%one, %one)[%one]", maps) == ["SPY0632"]
    assert scope_codes(ONE + "%s = affine.apply #m(%one)[%one]", maps + maps) == ["SPY0632"]
