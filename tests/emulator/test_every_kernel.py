"""What is compiled beforehand is all that operations ask for: every family of them, seen in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.device_ops.record import Family
from spyrec.emulator.every_kernel import every_kernel
from spyrec.files.kernel_cache import kernel_name

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "tests" / "fixtures"

CASES = (
    "avgpool_k2s2", "conv2d_k3", "depthwise_k1", "dtype_cast", "gather_rows_split", "layernorm", "lx_shuffle_chain",
    "matmul", "matmul_fp8_weight", "max_nonstick", "qfp8wt", "restickify", "slice_backgap", "softmax_lx",
    "sum_stick_masked", "topk_k1",
)  # fmt: skip

PROGRAM = """
import contextlib, io, json, re, sys, tempfile
from pathlib import Path
import spyrec
from spyrec.cli import main
from spyrec.files import linked_kernel
from spyrec.files.kernel_cache import kernel_name

asked, operations, real = set(), set(), linked_kernel.kernel_code

def recorded(function, operands):
    asked.add((kernel_name(function, operands), function.__qualname__))
    return real(function, operands)

linked_kernel.kernel_code = recorded
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
    for number, source in enumerate(sys.argv[1:]):
        bundle = str(Path(folder) / str(number))
        assert main(["codegen", source, "-o", bundle]) == 0, source
        assert main(["run", bundle, "--random", "1"]) == 0, source
        for file in Path(bundle).rglob("sdsc_*.json"):
            operations.update(re.findall(r'"opFuncName": *"([^"]+)"', file.read_text()))
    graph = spyrec.GraphBuilder("numbers")
    x = graph.input("x", (64, 128), "float16")
    graph.output(graph.softmax(graph.gelu(graph.layer_norm(x + graph.exp(x), normalized_shape=128)), dim=-1))
    graph.output(graph.sum(graph.to(x, dtype="float32"), dim=0))
    bundle = str(Path(folder) / "numbers")
    spyrec.compile(graph).save(bundle)
    assert main(["run", bundle, "--random", "1", "--check"]) == 0
print(json.dumps([sorted(asked), sorted(operations)]))
"""


def source_of(case: str) -> Path:
    """Return a case's OpSpecs, which those of June share with those of August."""
    own = EXAMPLES / "examples_2026_08" / case / "opspecs.json"
    return own if own.exists() else EXAMPLES / "examples" / case / "opspecs.json"


def test_operations_of_every_family_ask_for_no_kernel_that_is_not_compiled_beforehand() -> None:
    command = [sys.executable, "-c", PROGRAM, *(str(source_of(case)) for case in CASES)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    asked, operations = json.loads(done.stdout)
    assert {DEVICE_OPERATIONS[name].family for name in operations} == set(Family)
    known = {kernel_name(kernel.py_func, kernel.kinds) for kernel in every_kernel()}
    assert len(asked) > 40
    assert [name for digest, name in asked if digest not in known] == []
