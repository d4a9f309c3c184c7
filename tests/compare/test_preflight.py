"""The profile ``pre-flight``: for each rule a SuperDSC that runs into it alone, and a near one that does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import spyrec
from spyrec.bundle import preflight
from spyrec.bundle.preflight import KNOWN_FAILURES, UNDECIDED, Facts, check_preflight
from spyrec.bundle.profiles import FormatProfile
from spyrec.bundle.superdsc import ConstantEntry, SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import document
from spyrec.cli import main
from spyrec.compare.validate_path import CheckOptions, validate_path
from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location
from spyrec.emulator.rules.target_limits import OperandMeasure
from spyrec.hardware.dtypes import DeviceFormat
from tests.compare.test_target_limits import at_end
from tests.sanitizers.planting import with_operand

FIXTURES = Path(__file__).parent.parent / "fixtures"
AUGUST = "examples_2026_08"


def example(name: str, number: int = 0, folder: str = "examples") -> SuperDsc:
    return parse_superdsc((FIXTURES / folder / name / f"sdsc_{number}.json").read_bytes())


def findings(dsc: SuperDsc, *, is_looped: bool = False) -> list[Diagnostic]:
    sink = DiagnosticSink()
    check_preflight(Facts(dsc, OperandMeasure(), is_looped), Location("sdsc_0.json"), sink)
    assert {item.code for item in sink.diagnostics} <= {"SPY0628"}
    return sink.diagnostics


def sized(dsc: SuperDsc, **extents: int) -> SuperDsc:
    """Set what one core iterates over along some dims, and the whole to match."""
    core = {**dsc.core_extent, **extents}
    return replace(dsc, core_extent=core, iteration={dim: core[dim] * dsc.work_slices[dim] for dim in core})


def sliced(dsc: SuperDsc, **slices: int) -> SuperDsc:
    return replace(dsc, work_slices={**dsc.work_slices, **slices})


def of_format(dsc: SuperDsc, data_format: DeviceFormat, *positions: int) -> SuperDsc:
    for position in positions:
        dsc = with_operand(dsc, position, data_format=data_format)
    return dsc


def named(dsc: SuperDsc, name: str) -> SuperDsc:
    return replace(dsc, op_func_name=name)


def masked(dsc: SuperDsc) -> SuperDsc:
    return replace(dsc, coordinate_masking={"out": ((200, 56),)})


def with_constant(number: int) -> SuperDsc:
    dsc = example("sum_stick_masked")
    scale = ConstantEntry("scaling_factor", DeviceFormat.IEEE_FP32, 0)
    return replace(dsc, constants=(scale, *dsc.constants), masking_constant_id=number)


def one_dim_cast(dims: tuple[str, ...]) -> SuperDsc:
    dsc = example("dtype_cast")
    for position in (0, 1):
        dsc = with_operand(dsc, position, layout_dim_order=dims, scales=dict.fromkeys(dims, 1))
    return replace(dsc, iteration={dim: dsc.iteration[dim] for dim in dims})


def fp8(**extents: int) -> SuperDsc:
    return sized(example("matmul_fp8_weight", folder=AUGUST), **{"mb": 8, **extents})


def topk(values: int) -> SuperDsc:
    return sized(example("topk_k8_split", folder=AUGUST), mb=values)


def gather(order: tuple[str, ...], **extents: int) -> SuperDsc:
    return sized(with_operand(example("indirect_gather_1d"), 1, layout_dim_order=order), **extents)


def single_sum(**extents: int) -> SuperDsc:
    return of_format(sized(example("sum_stick"), **extents), DeviceFormat.IEEE_FP32, 0, 1)


def reused(elements: int) -> SuperDsc:
    """A batched product whose first factor is the same for the whole batch."""
    dsc = sized(example("bmm"), x=elements)
    return with_operand(dsc, 0, scales={**dsc.operands[0].scales, "x": -1})


LX_END = 1_625_344
SINGLE, INTEGER = DeviceFormat.IEEE_FP32, DeviceFormat.IEEE_INT32


def at_lx_end(past: int) -> SuperDsc:
    return at_end(example("softmax_lx", 2), past)


def undivided_add(**extents: int) -> SuperDsc:
    return sized(sliced(example("add"), mb=1), **extents)


def masked_sum(data_format: DeviceFormat) -> SuperDsc:
    return of_format(sized(example("sum_stick_masked"), mb=1), data_format, 0)


def masked_exp(**slices: int) -> SuperDsc:
    return sliced(example("exp_masked", folder=AUGUST), **slices)


def restickify(data_format: DeviceFormat) -> SuperDsc:
    return of_format(example("restickify"), data_format, 0)


def integers(name: str) -> SuperDsc:
    return of_format(named(example("add"), name), INTEGER, 0)


def copy(data_format: DeviceFormat) -> SuperDsc:
    return of_format(example("slice_backgap"), data_format, 0)


CASES: dict[str, tuple[Callable[[], SuperDsc], Callable[[], SuperDsc]]] = {
    "reserved-lx": (lambda: at_lx_end(LX_END + 128), lambda: at_lx_end(LX_END)),
    "wide-span": (lambda: undivided_add(mb=65_535, out=64 * 33), lambda: undivided_add(mb=65_535, out=64 * 32)),
    "wide-mask": (lambda: masked_sum(SINGLE), lambda: masked_sum(DeviceFormat.SEN169_FP16)),
    "divided-mask": (lambda: masked_exp(out=2), lambda: masked_exp(mb=16)),
    "mask-constant": (lambda: with_constant(0), lambda: with_constant(1)),
    "restickify-format": (lambda: restickify(SINGLE), lambda: restickify(DeviceFormat.BFLOAT16)),
    "one-dim-cast": (lambda: one_dim_cast(("out",)), lambda: one_dim_cast(("mb", "out"))),
    "fp8-contraction": (lambda: fp8(**{"in": 192}), lambda: fp8(**{"in": 128})),
    "fp8-sizes": (lambda: fp8(mb=32), lambda: fp8(mb=31, out=1_023)),
    "integer-product": (lambda: integers("mul"), lambda: integers("add")),
    "fp8-copy": (lambda: copy(DeviceFormat.SEN143_FP8), lambda: copy(DeviceFormat.SEN169_FP16)),
    "topk-of-a-core": (lambda: topk(5), lambda: topk(4)),
    "inner-gather": (lambda: gather(("mb", "out")), lambda: gather(("out", "mb"))),
    "divided-fold": (lambda: sliced(single_sum(mb=1), out=2), lambda: single_sum(mb=1)),
    "fold-of-rows": (lambda: single_sum(mb=2), lambda: single_sum(mb=1)),
    "two-reuses": (lambda: reused(2), lambda: reused(1)),
    "many-steps": (lambda: sized(example("add"), mb=65_536, out=64), lambda: sized(example("add"), mb=65_535, out=64)),
    "prime-rows": (lambda: sized(example("add"), mb=257, out=64), lambda: sized(example("add"), mb=256, out=64)),
    "masked-norm": (lambda: masked(example("layernorm")), lambda: example("layernorm")),
}


@pytest.mark.parametrize("rule", KNOWN_FAILURES, ids=lambda rule: rule.name)
def test_a_rule_finds_what_it_is_for_and_not_what_is_near(rule: preflight.KnownFailure) -> None:
    planted, near = (make() for make in CASES[rule.name])
    found = findings(planted, is_looped=True)
    assert {item.message.split(":")[0] for item in found} == {rule.name}
    assert {item.severity for item in found} == {rule.severity}
    assert f"torch-spyre issue {rule.issues[0]}" in found[0].notes[0]
    assert findings(near, is_looped=True) == []


def test_every_rule_has_a_case_and_none_is_declared_twice() -> None:
    names = [rule.name for rule in KNOWN_FAILURES]
    assert sorted(names) == sorted(CASES)
    assert not {rule.issues[0] for rule in KNOWN_FAILURES} & {number for number, _ in UNDECIDED}


def test_primes_matter_in_loops_alone() -> None:
    assert findings(CASES["prime-rows"][0](), is_looped=False) == []


def test_rows_of_one_stick_are_gathered_right() -> None:
    assert findings(gather(("mb", "out"), out=64)) == []
    assert findings(gather(("mb", "out"), out=128))


def test_wide_columns_of_8_bit_products_are_named() -> None:
    (found,) = findings(fp8(out=1_024))
    assert found.severity.value == "warning"
    assert "1024 columns" in found.message


def test_what_torch_spyre_writes_has_the_one_known_error() -> None:
    """Its fixtures of gathers are of tables in the order that issue 3289 reports; nothing else fails."""
    names: dict[str, set[str]] = {}
    for folder in ("examples", AUGUST):
        for file in sorted((FIXTURES / folder).glob("*/sdsc_*.json")):
            verdict = validate_path(file, CheckOptions(FormatProfile.PREFLIGHT))
            for item in verdict.diagnostics:
                if item.code == "SPY0628" and item.severity.value == "error":
                    names.setdefault(item.message.split(":")[0], set()).add(file.parent.name)
    assert names == {"inner-gather": {"indirect_gather_1d", "gather_one_row", "gather_rows_split"}}


def test_the_verb_checks_files_and_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sdsc_0.json"
    file.write_text(json.dumps(document(with_constant(0))), encoding="utf-8")
    assert main(["check", str(file), "--profile", "pre-flight", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (error,) = [item for item in found["diagnostics"] if item["code"] == "SPY0628"]
    assert error["notes"][0].startswith("torch-spyre issue 4390 (also 4400): padding is filled")
    graph = Path(__file__).parent.parent.parent / "examples" / "seed_add_mul" / "graph.json"
    spyrec.compile(graph).save(tmp_path / "bundle")
    assert main(["check", str(tmp_path / "bundle"), "--profile", "pre-flight"]) == 0
    assert capsys.readouterr().out.endswith(": ok\n")


def test_loops_of_a_program_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def note(facts: Facts, *_: object) -> None:
        seen.append(facts.is_looped)

    monkeypatch.setattr("spyrec.compare.validate_path.check_preflight", note)
    for name in ("add", "nested_loop_symbolic"):
        validate_path(FIXTURES / "examples" / name, CheckOptions(FormatProfile.PREFLIGHT))
    assert seen[0] is False
    assert any(seen)
