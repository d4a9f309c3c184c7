"""A bundle generated from OpSpecs runs as a compiled one does, and is checked against its OpSpecs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec import Bundle
from spyrec.cli import main
from spyrec.codegen.opspec_capture import read_capture
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.options import RunOptions
from tests.support.planting import other_op, planted

FIXTURES = Path(__file__).parent.parent / "fixtures"
CHECKED = [
    "add_unaligned_stick", "args_out_of_order", "clip_constants", "debug_handle", "gather_rows_split", "layernorm",
    "loop_outer_only_operand", "loop_rows", "matmul_kpad", "max_nonstick", "mul_in_place",
    "pool_symbolic", "restickify", "slice_backgap", "softmax_lx", "sum_stick_masked", "two_windows_of_one_arg",
    "where3", "matmul_fp8_weight", "conv2d_k3", "avgpool_k2s2",
]  # fmt: skip


def opspecs_of(case: str) -> Path:
    own = FIXTURES / "examples_2026_08" / case / "opspecs.json"
    return own if own.exists() else FIXTURES / "examples" / case / "opspecs.json"


def generated(case: str, directory: Path, source: Path | None = None) -> Path:
    arguments = ["codegen", str(source or opspecs_of(case)), "-o", str(directory / "b")]
    assert main([*arguments, "--compat", "torch-spyre@2026-08", "--force"]) == 0
    return directory / "b"


@pytest.mark.parametrize("case", CHECKED)
def test_a_generated_bundle_runs_on_random_inputs_and_passes_its_check(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = generated(case, tmp_path)
    capsys.readouterr()
    assert main(["run", str(bundle), "--random", "1", "--check", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["check"]
    assert checks
    assert all(item["ok"] and item["bounded_elements"] == item["element_count"] > 0 for item in checks.values())
    assert main(["check", str(bundle)]) == 0


def test_what_is_not_evaluated_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loops of June's OpSpecs say which dims they tile, and not how far each operand moves."""
    source = FIXTURES / "examples" / "nested_loop_symbolic" / "opspecs.json"
    bundle = tmp_path / "b"
    assert main(["codegen", str(source), "-o", str(bundle), "--compat", "torch-spyre@2026-06"]) == 0
    assert main(["run", str(bundle), "--random", "1"]) == 0
    capsys.readouterr()
    assert main(["run", str(bundle), "--random", "1", "--check"]) == 1
    assert "SPY0548" in capsys.readouterr().err


def test_the_bundle_holds_its_opspecs_and_an_argument_table(tmp_path: Path) -> None:
    bundle = Bundle.load(generated("mul_in_place", tmp_path))
    assert bundle.opspecs_json is not None
    assert read_opspecs(bundle.opspecs_json).specs == read_opspecs(opspecs_of("mul_in_place").read_bytes()).specs
    (argument, *_) = bundle.manifest.arguments
    assert (argument.role.value, argument.shape, argument.dci) == ("inout", None, None)
    bundle.save(tmp_path / "again")
    files = [sorted(path.name for path in (tmp_path / name).rglob("*")) for name in ("b", "again")]
    assert files[0] == files[1]


@pytest.mark.parametrize(("case", "op", "wrong"), [("args_out_of_order", "neg", "exp"), ("softmax_lx", "sub", "add")])
def test_a_wrong_operation_fails_the_check(case: str, op: str, wrong: str, tmp_path: Path) -> None:
    bundle = Bundle.load(generated(case, tmp_path))
    (program,) = bundle.programs
    file = next(name for name, item in program.superdscs.items() if item.op_func_name == op)
    broken = planted(bundle, file, lambda superdsc: other_op(superdsc, wrong))
    generator = np.random.default_rng(2)
    sizes = {item.name: item.device_size for item in bundle.manifest.arguments}
    inputs = {name: generator.standard_normal(sizes[name]).astype(np.float32) for name in bundle.manifest.inputs}
    assert spyrec.run(bundle, inputs, RunOptions(check=True)).is_ok
    assert not spyrec.run(broken, inputs, RunOptions(check=True)).is_ok


def test_without_opspecs_and_graph_there_is_no_check(tmp_path: Path) -> None:
    from dataclasses import replace

    bundle = replace(Bundle.load(generated("mul_in_place", tmp_path)), opspecs_json=None)
    with pytest.raises(spyrec.SpyrecError, match="SPY0769"):
        spyrec.run(bundle, {}, RunOptions(check=True))


CAPTURE = """
import torch
from torch_spyre._inductor.op_spec import OpSpec

sdsc_fused_add_0 = async_compile.sdsc('sdsc_fused_add_0',
    [
        OpSpec(
            op='add',
            is_reduction=False,
            iteration_space={sympify('c0'): (sympify('128'), 4), sympify('c1'): (sympify('256'), 1)},
            op_info={},
            core_id_to_work_slice={sympify('c0'): sympify('Mod(core_id, 4)'), sympify('c1'): sympify('0')},
            symbolic_dim_bounds={},
            debug_handle=DebugHandle(id=5, source=SourceLoc(file='model.py', start_line=12, start_col=0, end_line=None,
                end_col=None), aten_op='aten.add.Tensor', ir_chain=('add', 'buf0'), fused_from=(),
                transform_history=()),
            args=[
                TensorArg(
                    is_input=True, arg_index=0, device_dtype=DataFormats.SEN169_FP16, device_size=[4, 128, 64],
                    device_coordinates=[sympify('floor(c1/64)'), sympify('c0'), sympify('Mod(c1, 64)')],
                    allocation={'hbm': 0},
                ),
                TensorArg(
                    is_input=True, arg_index=1, device_dtype=DataFormats.SEN169_FP16, device_size=[4, 128, 64],
                    device_coordinates=[sympify('floor(c1/64)'), sympify('c0'), sympify('Mod(c1, 64)')],
                    allocation={'hbm': 1},
                ),
                TensorArg(
                    is_input=False, arg_index=2, device_dtype=DataFormats.SEN169_FP16, device_size=[4, 128, 64],
                    device_coordinates=[sympify('floor(c1/64)'), sympify('c0'), sympify('Mod(c1, 64)')],
                    allocation={},
                ),
            ]
        ),
    ]
)

def call(args):
    raise RuntimeError("nobody runs this")
"""


def test_a_capture_in_python_source_runs_and_passes_its_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "capture.py"
    source.write_text(CAPTURE)
    bundle = generated("", tmp_path, source)
    assert main(["run", str(bundle), "--random", "1", "--check"]) == 0
    assert "check arg_2: ok" in capsys.readouterr().out
    (superdsc,) = Bundle.load(bundle).programs[0].superdscs.values()
    assert superdsc.provenance == "aten.add.Tensor at model.py:12"
    assert len(superdsc.core_ids) == 4


def test_loops_of_a_capture_are_read() -> None:
    spec = CAPTURE[CAPTURE.index("OpSpec(\n") : CAPTURE.index("    ]\n)\n")].rstrip().rstrip(",")
    tiled = spec.replace("op_info={},", "op_info={}, tiled_symbols=[[], [sympify('t1')]],")
    tiled = tiled.replace("allocation={},", "allocation={}, tile_advance=sympify('64*t1'),")
    nested = f"LoopSpec(count=sympify('2'), body=[LoopSpec(count=3, body=[{tiled}])])"
    file = read_capture(f"specs = [{nested}]".encode(), "capture.py")
    (outer,) = file.specs
    text = repr(outer)
    assert "count=2" in text
    assert "count=3" in text
    assert "tiled_levels=((), ('t1',))" in text


@pytest.mark.parametrize(
    ("found", "instead", "code"),
    [
        ("op='add'", "op=__import__('os').getcwd()", "SPY0550"),
        ("op='add'", "op='a' + 'dd'", "SPY0550"),
        ("sympify('128')", "eval('128')", "SPY0550"),
        ("[4, 128, 64]", "[x for x in (4, 128, 64)]", "SPY0550"),
        ("op_info={}", "op_info={}, unheard_of=1", "SPY0550"),
        ("op_info={}", "**options", "SPY0550"),
        ("op_info={}", "op_info={None: 1}", "SPY0550"),
        ("OpSpec(\n", "OpSpecs(\n", "SPY0549"),
        ("def call", "def call call", "SPY0549"),
        ("floor(c1/64)", "floor(c1/", "SPY0501"),
        ("is_reduction=False", "is_reduction=3", "SPY0503"),
    ],
)
def test_what_is_no_literal_is_refused_and_nothing_is_executed(found: str, instead: str, code: str) -> None:
    assert found in CAPTURE
    with pytest.raises(spyrec.SpyrecError) as error:
        read_capture(CAPTURE.replace(found, instead, 1).encode(), "capture.py")
    assert code in {item.code for item in error.value.diagnostics}


def test_two_programs_in_one_source_are_refused() -> None:
    with pytest.raises(spyrec.SpyrecError, match="2 programs"):
        read_capture((CAPTURE + CAPTURE).encode(), "capture.py")


def test_a_source_is_measured_before_it_is_parsed() -> None:
    with pytest.raises(spyrec.SpyrecError, match="more than 1048576 words"):
        read_capture(b"[" + b"1," * (1 << 20) + b"]", "capture.py")
