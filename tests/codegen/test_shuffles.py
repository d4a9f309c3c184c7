"""Copies in LX between two owners: what is written of each of them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, OpSpec, OwnedSlices
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import DiagnosticSink, SpyrecError

CASE = Path(__file__).parent.parent / "fixtures" / "examples_2026_08" / "lx_shuffle_rows_to_cols" / "opspecs.json"
OWN = CodegenOptions(dialect=AUGUST_2026)
EXACT = replace(OWN, is_exact=True)
Change = Callable[[OpSpec], OpSpec]


def shuffled(change: Change, options: CodegenOptions = OWN) -> SuperDsc:
    """Return the SuperDSC of a copy of 256 rows of 512 columns, eight rows' owners to eight columns' owners."""
    file = read_opspecs(CASE.read_bytes())
    (spec,) = file.specs
    assert isinstance(spec, OpSpec)
    (superdsc,) = emit_opspecs(replace(file, specs=(change(spec),)), options).superdscs.values()
    return superdsc


def owned(spec: OpSpec, position: int, owners: OwnedSlices | None) -> OpSpec:
    args = list(spec.args)
    args[position] = replace(args[position], work_division=owners)
    return replace(spec, args=tuple(args))


def divide(position: int, slices: dict[str, int], owners: dict[str, str]) -> Change:
    own = OwnedSlices(slices, {name: parse_expression(text) for name, text in owners.items()})
    return lambda spec: owned(spec, position, own)


def test_each_operand_has_its_own_division() -> None:
    halves = divide(0, {"c0": 2, "c1": 4}, {"c0": "floor(core_id/4)", "c1": "Mod(core_id, 4)"})
    superdsc = shuffled(halves)
    source, target = (operand.distribution for operand in superdsc.operands)
    assert source is not None
    assert target is not None
    assert [source.core_elements(dim) for dim in ("mb", "out")] == [128, 128]
    assert [target.core_elements(dim) for dim in ("mb", "out")] == [256, 64]
    assert [tuple(own.values()) for own in source.core_slices] == [(core // 4, core % 4) for core in range(8)]
    sink = DiagnosticSink()
    text = to_bytes(superdsc)
    assert parse_superdsc(text, None, sink) == superdsc
    assert to_bytes(parse_superdsc(json.dumps(json.loads(text), indent=1))) == text
    assert sink.diagnostics == []


@pytest.mark.parametrize("dropped", [0, 1])
def test_without_two_divisions_it_stays_a_copy(dropped: int) -> None:
    assert shuffled(lambda spec: owned(spec, dropped, None)).op_func_name == "identity"


def test_with_equal_divisions_it_stays_a_copy() -> None:
    superdsc = shuffled(divide(0, {"c1": 8}, {"c1": "Mod(core_id, 8)"}))
    assert superdsc.op_func_name == "identity"
    assert all(operand.distribution is None for operand in superdsc.operands)


def named(op: str) -> Change:
    return lambda spec: replace(spec, op=op)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (named("neg"), "SPY0542"),
        (named("shuffle"), "SPY0542"),
        (divide(0, {"c9": 8}, {"c9": "Mod(core_id, 8)"}), "SPY0542"),
        (divide(0, {"c0": 4}, {"c0": "Mod(core_id, 4)"}), "SPY0543"),
        (divide(0, {"c0": 16}, {"c0": "Mod(core_id, 16)"}), "SPY0543"),
        (divide(0, {"c0": 8}, {"c0": "core_id + 1"}), "SPY0544"),
        (divide(1, {"c1": 8}, {"c0": "Mod(core_id, 8)"}), "SPY0544"),
        (divide(0, {"c0": 8}, {"c0": "Mod(c1, 8)"}), "SPY0544"),
        (divide(1, {"c1": 8}, {"c1": "Mod(core_id, 4)"}), "SPY0544"),
    ],
)
def test_what_is_no_shuffle_is_refused(change: Change, code: str) -> None:
    with pytest.raises(SpyrecError, match=code):
        shuffled(change)


def test_owners_of_what_does_not_lie_in_lx_are_refused() -> None:
    def from_memory(spec: OpSpec) -> OpSpec:
        source = replace(spec.args[0], arg_index=0, allocation=ArgumentAllocation(AllocationKind.HBM, 0))
        return replace(spec, args=(source, spec.args[1]))

    with pytest.raises(SpyrecError, match="SPY0542"):
        shuffled(from_memory)


def test_upstream_lets_slices_without_an_owner_pass() -> None:
    superdsc = shuffled(divide(1, {"c1": 8}, {"c1": "Mod(core_id, 4)"}), EXACT)
    target = superdsc.operands[1].distribution
    assert target is not None
    assert [own["out"] for own in target.core_slices] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_slices_that_do_not_divide_are_refused() -> None:
    def shorter(spec: OpSpec) -> OpSpec:
        rows, columns = spec.iteration_space
        args = tuple(replace(argument, device_size=(8, 252, 64)) for argument in spec.args)
        return replace(spec, iteration_space=(replace(rows, size=252), columns), args=args)

    with pytest.raises(SpyrecError, match="SPY0543"):
        shuffled(shorter)


def test_an_older_dialect_has_no_shuffles() -> None:
    with pytest.raises(SpyrecError, match="SPY0542"):
        shuffled(lambda spec: spec, CodegenOptions(dialect=JUNE_2026))


def test_an_operation_of_that_name_is_no_opspec() -> None:
    def plain(spec: OpSpec) -> OpSpec:
        return replace(owned(owned(spec, 0, None), 1, None), op="shuffle")

    with pytest.raises(SpyrecError, match="SPY0530"):
        shuffled(plain)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"core_fold"', '"row_fold"', "SPY0621"),
        ('"beta_": 0', '"beta_": 1', "SPY0621"),
        ('"Affine"', '"WkSplit"', "SPY0621"),
        ('"alpha_": 32', '"alpha_": -32', "SPY0620"),
        ('"factor_": 32', '"factor_": 0', "SPY0620"),
        ('"coreIdToWkSlice_": {\n                  "0"', '"coreIdToWkSlice_": {\n                  "9"', "SPY0622"),
    ],
)
def test_folds_that_are_not_understood_are_refused(old: str, new: str, code: str) -> None:
    text = to_bytes(shuffled(lambda spec: spec)).decode()
    node = text.index("scheduleTree_")
    assert old in text[node:]
    with pytest.raises(SpyrecError, match=code):
        parse_superdsc(text[:node] + text[node:].replace(old, new))
