"""Kernels for every processor: the same bits by every variant that is there, forced or not, with and without FMA."""

# llvmlite ships no type information: what it returns is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from llvmlite import binding, ir

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.kernels import dl16
from spyrec.emulator.kernels.product_tile import TileWriter
from spyrec.files import host_processor as processors
from spyrec.files.host_processor import (
    AVX2,
    AVX512,
    PORTABLE,
    PORTABLE_WIDE,
    VARIABLE,
    KernelVariant,
    chosen_variant,
    features_left,
    host_processor,
    last_cache_bytes,
    variants_of,
)
from tests.emulator.test_kernel_cache import functions_compiled
from tests.support.processor_bits import SHAPES, product_case, unstored

ROOT = Path(__file__).resolve().parent.parent.parent
Singles = npt.NDArray[np.float32]


def fused(a: Singles, b: Singles, c: Singles) -> Singles:
    """``a b + c`` rounded once: in float64 rounded to odd, which leaves the second rounding nothing to spoil."""
    exact, wide = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = exact + wide
    back = total - exact
    lost = (exact - (total - back)) + (wide - back)
    pattern = total.view(np.int64)
    is_spoiled = (lost != 0) & (pattern & 1 == 0)
    away = (lost > 0) == (total > 0)
    return np.where(is_spoiled, pattern + np.where(away, 1, -1), pattern).view(np.float64).astype(np.float32)


def chain(left: Singles, right: Singles) -> Singles:
    """The product of batches, one fused step per k, ascending."""
    total = np.zeros((left.shape[0], left.shape[1], right.shape[2]), np.float32)
    for k in range(left.shape[2]):
        total = fused(left[:, :, k, None], right[:, k, None, :], total)
    return total


@pytest.mark.parametrize("batch", [0, 3])
@pytest.mark.parametrize("shape", list(SHAPES)[:-1])
def test_an_element_of_a_product_is_one_chain_of_fused_steps_per_slice_of_k(shape: str, batch: int) -> None:
    case, left, right = product_case(shape, np.random.default_rng(5), batch)
    depth, slices = SHAPES[shape][2]
    parts = [chain(*pair) for pair in zip(np.split(left, slices, axis=2), np.split(right, slices, axis=1))]
    expected = parts[0]
    for part in parts[1:]:
        expected = expected + part
    memory, _ = case.memory("fast", "f32")
    got = unstored(memory["argument 2"], (left.shape[0], left.shape[1], right.shape[2]))
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))
    assert depth % slices == 0


@dataclass(frozen=True, slots=True)
class Computed:
    """What ``processor_bits`` printed in a process of its own."""

    variant: str
    registers: tuple[str, ...]
    cases: Mapping[str, str]


@cache
def computed(what: str, **environment: str) -> Computed:
    command = [sys.executable, "-m", "tests.support.processor_bits", what]
    settings = {name: value for name, value in os.environ.items() if name != VARIABLE}
    given = {**settings, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(command, cwd=ROOT, env=given, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return Computed(found["variant"], tuple(found["registers"]), found["cases"])


OTHERS = host_processor().executable[1:]
WIDTHS = {"avx512": "zmm", "avx2": "ymm", "portable": "xmm"}
"""The widest registers of x86 that a product uses."""


@pytest.mark.parametrize("name", OTHERS)
def test_every_variant_leaves_the_same_bits(name: str) -> None:
    own, other = computed("all"), computed("all", SPYREC_PROCESSOR=name)
    assert (own.variant, other.variant) == (host_processor().executable[0], name)
    assert own.cases == other.cases
    assert len(own.cases) > len(SHAPES)
    for found in (own, other):
        assert found.registers[-1] == WIDTHS[found.variant]


def test_a_processor_without_fused_steps_computes_them_exactly() -> None:
    bare = computed("products", NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="")
    assert bare.variant == PORTABLE.name
    assert bare.cases.items() <= computed("all").cases.items()


def test_variants_do_not_share_compiled_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[set[str]] = []
    for name in (host_processor().executable[0], PORTABLE.name, host_processor().executable[0]):
        monkeypatch.setenv(VARIABLE, name)
        compiled.append(functions_compiled(ROOT, tmp_path))
    assert compiled == [compiled[0], compiled[0], set()]
    assert compiled[0]


def test_the_fastest_variant_of_a_processor_is_the_first() -> None:
    of_avx2 = {"sse2", "avx", "avx2", "fma"}
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
    assert variants_of("x86_64", frozenset(of_avx2 | wide)) == [AVX512, AVX2, PORTABLE]
    assert variants_of("x86_64", frozenset(of_avx2 | {"avx512f"})) == [AVX2, PORTABLE]  # no words of 16 bits
    assert variants_of("x86_64", frozenset(of_avx2 - {"fma"})) == [PORTABLE]
    assert variants_of("x86_64", frozenset()) == [PORTABLE]
    assert variants_of("aarch64", frozenset({"neon"})) == [PORTABLE_WIDE]


def test_a_narrower_variant_is_left_no_wider_instructions() -> None:
    names = ["sse2", "avx", "fma", "avx2", "avx512f", "avx512bw", "avx10.1", "vaes", "amx-tile", "bmi2"]
    has = dict.fromkeys(names, True) | {"sse4a": False}
    assert {name for name, is_there in features_left(AVX2, has).items() if is_there} == {*names[:4], "vaes", "bmi2"}
    assert {name for name, is_there in features_left(PORTABLE, has).items() if is_there} == {"sse2", "avx", "fma"}
    assert features_left(AVX2, has).keys() == has.keys()  # those not named LLVM would take from the processor's name


@pytest.mark.parametrize(
    ("asked", "problem"),
    [("sse9", '"sse9" is no variant of kernels'), ("avx512", "this processor cannot execute avx512")],
)
def test_a_variant_that_is_not_there_is_refused_with_those_that_are(asked: str, problem: str) -> None:
    with pytest.raises(SpyrecError, match="SPY0753") as caught:
        chosen_variant(asked, [AVX2, PORTABLE])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == f"SPYREC_PROCESSOR: {problem}"
    assert diagnostic.hint is not None
    assert "avx2 or portable" in diagnostic.hint


def test_a_run_for_no_processor_ends_with_a_message(tmp_path: Path) -> None:
    builder = spyrec.GraphBuilder("add")
    x = builder.input("x", (64, 64), "float16")
    builder.output(x + x)
    spyrec.compile(builder).save(tmp_path / "bundle")
    command = [sys.executable, "-m", "spyrec", "run", "bundle", "--random", "1"]
    environment = {**os.environ, VARIABLE: "avx3", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith('error[SPY0753]: SPYREC_PROCESSOR: "avx3" is no variant of kernels')
    assert not done.stdout


@pytest.mark.parametrize("is_first", [False, True])
def test_numba_that_compiles_for_a_wider_processor_already_is_not_taken(is_first: bool, tmp_path: Path) -> None:
    ours = "import tests.support.processor_bits as bits; made = bits.product_case"
    theirs = "from numba import njit; njit(lambda x: x + 1)(1)"
    run = "import numpy as np; made('one row', np.random.default_rng(1))[0].memory('fast', 'f32')"
    script = "; ".join([theirs, ours, run] if is_first else [ours, theirs, run])
    environment = {**os.environ, VARIABLE: PORTABLE.name, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if is_first and len(host_processor().executable) > 1:
        assert "SPY0753" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def emitted(variant: KernelVariant, triple: str, features: str) -> tuple[bytes, str]:
    """Compile the tile, and DLFloat16 decoded and rounded, for a processor: the object, and the tile as text."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine: Any = binding.Target.from_triple(triple).create_target_machine(features=features, opt=3)
    word = ir.IntType(64)
    objects: list[tuple[bytes, str]] = []
    for is_tile in (False, True):
        module = ir.Module()
        module.triple = triple
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 4), "kernel")
        builder = ir.IRBuilder(function.append_basic_block())
        if is_tile:
            TileWriter(builder, variant).write(*function.args)
        else:
            source, target = (
                item.type and builder.inttoptr(item, dl16.SHORTS.as_pointer()) for item in function.args[:2]
            )
            split = dl16.decode_vectors(builder, builder.load(source, align=2))
            builder.store(dl16.encode_vectors(builder, split), target, align=2)
        builder.ret_void()
        compiled = binding.parse_assembly(str(module))
        objects.append((machine.emit_object(compiled), machine.emit_assembly(compiled)))
    return objects[0][0] + objects[1][0], objects[1][1]


ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


@pytest.mark.parametrize(
    ("variant", "triple", "features", "step"),
    [
        (AVX512, "x86_64-unknown-linux-gnu", "+avx512f,+avx512bw,+avx512dq,+avx512vl", r"vfmadd\d+ps.*%zmm"),
        (AVX2, "x86_64-unknown-linux-gnu", "+avx2,+fma", r"vfmadd\d+ps.*%ymm"),
        (PORTABLE, "x86_64-unknown-linux-gnu", "+fma", r"vfmadd\d+ps.*%xmm"),
        (PORTABLE_WIDE, "aarch64-unknown-linux-gnu", "+neon", r"fmla\s.*\.4s"),
    ],
)
def test_a_tile_is_kept_in_registers(
    variant: KernelVariant, triple: str, features: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dl16, "_VARIANT", variant)
    binary, tile = emitted(variant, triple, features)
    assert binary[:4] == b"\x7fELF"
    assert int.from_bytes(binary[18:20], "little") == ELF_MACHINES[triple.partition("-")[0]]
    steps = variant.tile_rows * variant.tile_columns // variant.lanes
    found = len(re.findall(step, tile))
    assert found >= steps
    assert found % steps == 0
    assert not re.search(r"\(%rsp\)|\[sp|\bfmaf\b", tile)  # no sum goes to memory, no step to the C library


@pytest.mark.parametrize(
    ("told", "size_bytes"),
    [
        ({"index0": "32K\n", "index3": "32768K\n", "index2": "1024K\n"}, 32 << 20),
        ({"index0": "6M"}, 6 << 20),
        ({"index0": "large"}, 16 << 20),
        ({}, 16 << 20),
    ],
)
def test_the_last_cache_is_as_large_as_the_system_says(
    told: dict[str, str], size_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in told.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(text)
    monkeypatch.setattr(processors, "_CACHES", tmp_path)
    last_cache_bytes.cache_clear()
    assert last_cache_bytes() == size_bytes
    last_cache_bytes.cache_clear()
