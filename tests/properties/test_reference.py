"""The fast path leaves what ``spyrec/emulator/reference`` defines, in every byte of device memory."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.program import ArgumentExtract, DeviceMemoryAllocate, InputArgument, Program, SdscExecute
from spyrec.cli import main
from spyrec.device_ops import DEVICE_OPERATIONS, SHUFFLE, names_of
from spyrec.device_ops.record import Family
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.engine import Setting
from spyrec.emulator.kernels.direct import COMBINATIONS
from spyrec.emulator.kernels.pointwise import OPERATIONS
from spyrec.emulator.operations import reduction_tables
from spyrec.emulator.operations.reduction_tables import cohorts_of
from spyrec.emulator.reference import operands
from spyrec.emulator.reference.folds import fused_multiply_add
from spyrec.emulator.reference.memory import decode, encode
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.bundle_run import run_plan
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from tests.emulator.builders import DL16, FP32, Operation, Tensor, program_of, superdsc_of, table_of
from tests.emulator.example_cases import Kernel, right_kernels
from tests.emulator.test_loops import random_program
from tests.emulator.test_operations import BUILDERS, FP8, INDEX, TableGather, gather_operation, pointwise, reduction
from tests.emulator.test_restriding import random_strides
from tests.support.both_engines import Launched, assert_equal_runs, differing, wide_numbers
from tests.support.examples import examples
from tests.support.graphs import graph_data, node, tensor
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.runs import program_tables

PAGES = Path(operands.__file__).parent
_SEEDS = st.integers(0, 1 << 30)
EXAMPLES = {kernel.name: kernel for kernel in right_kernels()}
LARGE = {"matmul", "matmul_ksplit"}
"""Examples of 134 million multiply-adds, 10 seconds each; ``bmm`` and random products have all that they have."""


def launched(operation: Operation, generator: np.random.Generator) -> Launched:
    table = table_of(operation)
    contents = {
        entry.arg_index: wide_numbers(generator, entry.device_dtype, math.prod(entry.device_size))
        for entry in table.entries
    }
    return Launched(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table, contents)


# shuffles and operations that slide a window have generators of their own: test_random_shuffles, test_random_windows
@pytest.mark.parametrize("op", sorted(DEVICE_OPERATIONS.keys() - {SHUFFLE} - names_of(Family.WINDOW)))
def test_an_operation_on_random_layouts_splits_and_windows(op: str) -> None:
    family = DEVICE_OPERATIONS[op].family
    for seed in range(3):
        generator = np.random.default_rng(seed)
        launched(BUILDERS[family](op, generator), generator).assert_equal()
        if family in {Family.POINTWISE, Family.UNARY, Family.IDENTITY}:
            launched(pointwise(op, generator, FP32), generator).assert_equal()
        elif family in {Family.REDUCTION, Family.NORM_STATISTICS}:
            launched(reduction(op, generator, FP32), generator).assert_equal()


@pytest.mark.parametrize("numerics", ["ieee", "f32"])
@pytest.mark.parametrize("op", ["add", "exp", "sum", "matmul", "dl16tofp32", "qfp8ch", "layernormscale", "topkindex"])
def test_other_numerics(op: str, numerics: str) -> None:
    generator = np.random.default_rng(5)
    case = launched(BUILDERS[DEVICE_OPERATIONS[op].family](op, generator), generator)
    numbers = {index: generator.standard_normal(len(found) // 2) for index, found in case.contents.items()}
    narrow = np.float16 if numerics == "ieee" else np.float32
    for found in numbers.values():
        found[::97] = np.copysign(np.nan, found[::97])
        found[5::97] = np.copysign(np.inf, found[5::97])
    contents = {index: found.astype(narrow).view(np.uint8) for index, found in numbers.items()}
    if op == "dl16tofp32" and numerics == "ieee":
        contents = {0: contents[0]}
    replace(case, contents=contents).assert_equal(numerics)


@pytest.mark.parametrize("slices", [(1, 1), (4, 2)])
@pytest.mark.parametrize("rows_inner", [True, False])
def test_gathers(slices: tuple[int, int], rows_inner: bool) -> None:
    generator = np.random.default_rng(2)
    case = launched(gather_operation(slices, rows_inner), generator)
    index = generator.integers(0, 64, 64).astype(np.uint32).view(np.uint8)
    replace(case, contents={**case.contents, 0: index}).assert_equal()
    of_table = TableGather(("x", "mb"), rows_inner, 1, (2, 2, 2), 128)
    contents = {
        0: generator.integers(0, TableGather.ROWS, 4 * 64).astype(np.uint32).view(np.uint8),
        1: wide_numbers(generator, DL16, 128 * TableGather.ROWS),
    }
    Launched(program_of(), {"sdsc_0.json": of_table.superdsc()}, of_table.table(), contents).assert_equal()


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - LARGE))
def test_a_worked_example(name: str) -> None:
    kernel = EXAMPLES[name]
    of_example(kernel, np.random.default_rng(7)).assert_equal()


def of_example(kernel: Kernel, generator: np.random.Generator) -> Launched:
    contents: dict[int, npt.NDArray[np.uint8]] = {}
    for entry in kernel.table.entries:
        count = math.prod(entry.device_size)
        if entry.device_dtype in {INDEX, DeviceFormat.IEEE_INT32}:
            contents[entry.arg_index] = generator.integers(0, 100, count).astype(np.uint32).view(np.uint8)
        else:
            contents[entry.arg_index] = wide_numbers(generator, entry.device_dtype, count)
    return Launched(kernel.program, kernel.superdscs, kernel.table, contents)


def test_handmade_loops_with_bounds_steps_and_value_parameters() -> None:
    generator = np.random.default_rng(9)
    compared = 0
    while compared < 30:
        made = random_program(generator)
        values = {}
        if compared % 2 and made.bounds[0][0] == 0:
            made = replace(made, value_loop=0)
            values = {"S_value": int(generator.integers(0, made.bounds[0][1] + 1))}
        files = {f"sdsc_{k}.json": made.superdsc(member) for k, member in enumerate(made.members)}
        table = made.table()
        contents = {e.arg_index: wide_numbers(generator, DL16, e.size_bytes // 2) for e in table.entries}
        case = Launched(made.program(), files, table, contents, values)
        if not case.is_refused():
            case.assert_equal()
            compared += 1


def test_memory_that_a_program_allocates_itself() -> None:
    made = superdsc_of(plain("neg", 1))
    operands = tuple(replace(o, is_symbolic=True, start_addresses=(-1 - t,)) for t, o in enumerate(made.operands))
    superdsc, table = replace(made, operands=operands), table_of(plain("neg", 1))
    own = [DeviceMemoryAllocate(f"own{number}", 2048) for number in range(2)]
    names = ("arg_0", "own0", "own1", "arg_1")
    extracts = [ArgumentExtract(f"arg_{number}", f"arg_{number}_base_addr") for number in range(2)]
    calls = [SdscExecute("sdsc_0.json", pair, (-1, -2)) for pair in pairwise(names)]
    parameters = tuple(InputArgument(item.argument) for item in extracts)
    program = Program((), parameters, (*extracts, *own, *calls))
    contents = {0: wide_numbers(np.random.default_rng(0), DL16, 4 * 128)}
    Launched(program, {"sdsc_0.json": superdsc}, table, contents).assert_equal()


@examples(10)
@given(_SEEDS, st.sampled_from([1, 3, 32]), st.sampled_from(["dl16", "dl16", "ieee", "f32"]), st.booleans())
def test_compiled_random_graphs(seed: int, cores: int, numerics: str, symbolic_args: bool) -> None:
    data, arrays = random_graph(seed)
    options = CompileOptions(cores=cores, symbolic_args=symbolic_args)
    assert_equal_runs(spyrec.compile(data, options), arrays, numerics)


@examples(8)
@given(_SEEDS, st.sampled_from(["keep", "unroll"]))
def test_compiled_loops(seed: int, loops: str) -> None:
    data, arrays = looped_graph(seed, 4)
    bundle = spyrec.compile(data, CompileOptions(loops=loops))
    if sum(len(item.superdscs) for item in bundle.programs) < 60:
        assert_equal_runs(bundle, arrays)


@examples(12)
@given(_SEEDS)
def test_arguments_walked_at_other_stick_strides(seed: int) -> None:
    random, generator = Random(seed), np.random.default_rng(seed)
    data, _ = looped_graph(seed, 3)
    bundle = spyrec.compile(data, CompileOptions(cores=4))
    step, program = bundle.manifest.plan[0], bundle.programs[0]
    table = program_tables(bundle)[step.program]
    entries = tuple(replace(e, stick_strides=random_strides(random, e.device_size)) for e in table.entries)
    contents = {e.arg_index: wide_numbers(generator, DL16, e.reach_bytes // 2) for e in entries}
    case = Launched(program.program, program.superdscs, replace(table, entries=entries), contents)
    if sum(e.reach_bytes for e in entries) < 1 << 24 and not case.is_refused():
        case.assert_equal()


def plain(op: str, inputs: int, rows: int = 4, slices: int = 1) -> Operation:
    names = ("mb", "out")
    return Operation(op, {"mb": (rows, slices), "out": (128, 1)}, (Tensor(names, "out"),) * (inputs + 1))


PLANTED = {
    "sub": plain("sub", 2),
    "where3": plain("where3", 3),
    "sumnonstick": Operation(
        "sumnonstick",
        {"mb": (4, 2), "out": (64, 1)},
        (Tensor(("mb", "out"), "out"), Tensor(("mb", "out"), "out", {"mb": -1})),
    ),
}


def first_of_each(setting: Setting) -> list[list[int]]:
    return [cohort[:1] for cohort in cohorts_of(setting)]


@pytest.mark.parametrize("op", PLANTED)
def test_a_bug_planted_in_the_fast_path_is_seen(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    case = launched(PLANTED[op], generator)
    case.assert_equal()
    monkeypatch.setitem(COMBINATIONS, "sub", COMBINATIONS["add"])
    monkeypatch.setitem(OPERATIONS, "where3", OPERATIONS["add"])
    monkeypatch.setattr(reduction_tables, "cohorts_of", first_of_each)
    with pytest.raises(AssertionError):
        case.assert_equal()


def test_a_fused_multiply_add_rounds_once() -> None:
    generator = np.random.default_rng(0)
    count = 20_000
    significands = generator.integers(1 << 23, 1 << 24, (3, count))
    scales = generator.integers(-12, 13, (3, count)) - 23
    x, y, z = np.ldexp(significands * generator.choice([-1.0, 1.0], (3, count)), scales).astype(np.float32)
    z[::4] = -(x * y)[::4]  # all but everything cancels
    z[1::4] *= np.float32(2.0**-80)  # far below the last place of the product: it decides what a tie becomes
    x[1::4] = np.float32(1 + 2.0**-12)
    y[1::4] = np.float32(1 + 2.0**-12) * np.exp2(generator.integers(0, 9, len(y[1::4]))).astype(np.float32)
    x[2::8], z[2::8] = x[2::8] * np.float32(2.0**-100), z[2::8] * np.float32(2.0**-126)
    y[2::8] *= np.float32(2.0**-26)  # subnormal results
    found = fused_multiply_add(x, y, z)
    for a, b, c, result in zip(x.tolist(), y.tolist(), z.tolist(), found, strict=True):
        assert nearest_float32(Fraction(a) * Fraction(b) + Fraction(c)) == result, (a, b, c)
    assert (found != (x.astype(np.float64) * y + z).astype(np.float32)).any(), "no case needs the second look"


def nearest_float32(exact: Fraction) -> float:
    """Round a number inside of float32's range: ties to even, subnormals with it."""
    if exact == 0:
        return 0.0
    exponent = max(math.frexp(float(abs(exact)))[1] - 24, -149)
    while abs(exact) / Fraction(2) ** exponent >= 1 << 24:
        exponent += 1
    return math.ldexp(round(exact / Fraction(2) ** exponent), exponent)


def test_infinities_and_nan_go_through_a_fused_multiply_add() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38], np.float32)
    x, y, z = (item.reshape(-1) for item in np.meshgrid(values, values, values))
    with np.errstate(all="ignore"):
        wanted = (x.astype(np.float64) * y + z).astype(np.float32)
        found = fused_multiply_add(x, y, z)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[found == 0]))


def test_fp8_rounds_to_the_nearest_pattern_ties_to_even_and_saturates() -> None:
    patterns = np.arange(256, dtype=np.uint8)
    values = decode(FP8, patterns)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(encode(FP8, values)[numbers], patterns[numbers])
    magnitudes = values[:127].astype(np.float64)
    middles = (magnitudes[1:] + magnitudes[:-1]) / 2
    np.testing.assert_array_equal(encode(FP8, middles), [low + low % 2 for low in range(126)])
    np.testing.assert_array_equal(encode(FP8, np.nextafter(middles, 1e9)), np.arange(1, 127))
    np.testing.assert_array_equal(encode(FP8, np.nextafter(middles, 0)), np.arange(126))
    assert encode(FP8, np.array([448.0, 1e9, np.inf, -np.inf, np.nan, -np.nan])).tolist() == [
        0x7E, 0x7E, 0x7E, 0xFE, 0x7F, 0x7F,
    ]  # fmt: skip


@pytest.mark.parametrize("op", ["maxnonstick", "minnonstick"])
@pytest.mark.parametrize("slices", [1, 2, 4])
def test_of_zeros_of_both_signs_the_first_is_kept(op: str, slices: int) -> None:
    tensors = (Tensor(("mb", "out"), "out", {}, FP32), Tensor(("mb", "out"), "out", {"mb": -1}, FP32))
    operation = Operation(op, {"mb": (4, slices), "out": (32, 1)}, tensors)
    zeros = np.where(np.arange(16)[None, :] >> np.arange(4)[:, None] & 1, -0.0, 0.0).astype(np.float32)
    rows = np.concatenate([zeros, zeros], axis=1)  # every choice of signs
    table = table_of(operation)
    case = Launched(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table, {0: rows.view(np.uint8).reshape(-1)})
    case.assert_equal()
    held, _ = case.memory("reference")
    np.testing.assert_array_equal(np.signbit(held["argument 1"].view(np.float32)), np.signbit(rows[0]))


def statistics(first: float) -> Launched:
    """exx2 of one row of ones and another number, which says that its mean is zero."""
    tensors = (Tensor(("mb", "out"), "out", {}, FP32), Tensor(("mb", "out"), "out", {"out": -2}, FP32))
    operation = Operation("exx2", {"mb": (1, 1), "out": (64, 1)}, tensors, {"exx2scale": 11264, "useZeroMean": 15872})
    row = np.ones(64, np.float32)
    row[0] = first
    table = table_of(operation)
    return Launched(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table, {0: row.view(np.uint8)})


def test_statistics_of_a_zero_mean() -> None:
    statistics(2.0).assert_equal()


@pytest.mark.parametrize("first", [np.inf, -1000.0])
def test_statistics_of_a_zero_mean_hold_zero_whatever_the_sum_is(first: float) -> None:
    statistics(first).assert_equal()


def test_it_needs_no_compiled_code_and_nothing_of_the_fast_path() -> None:
    code = "import sys, spyrec.emulator.reference.program; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not {"numba", "llvmlite"} & loaded
    own = {name for name in loaded if name.startswith("spyrec.emulator.")}
    assert {name for name in own if not name.startswith("spyrec.emulator.reference.")} == {"spyrec.emulator.reference"}
    pages = {path.stem for path in PAGES.glob("*.py")} - {"__init__"}
    assert {name.rpartition(".")[2] for name in own} == {"reference", *pages}  # whoever begins there reads them all


def test_a_page_of_it_is_a_few_hundred_lines() -> None:
    for path in PAGES.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 250, path.name


def product(rows: int = 64) -> spyrec.Bundle:
    inputs = [tensor("a", rows, 64), tensor("b", 64, 128)]
    return spyrec.compile(graph_data(inputs, [node("c", "matmul", "a", "b"), node("y", "exp", "c")], ["y"]))


def halves(seed: int, *shape: int) -> npt.NDArray[np.float16]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def test_the_engine_is_an_option_of_a_run_and_of_a_device(tmp_path: Path) -> None:
    bundle, arrays = product(), {"a": halves(0, 64, 64) / 8, "b": halves(1, 64, 128)}
    fast = spyrec.run(bundle, arrays)
    defined = spyrec.run(bundle, arrays, RunOptions(engine="reference", check=True))
    assert defined.is_ok
    assert differing(bytes_of(fast.outputs), bytes_of(defined.outputs)) == {}
    assert defined.stats == fast.stats
    with spyrec.open_device(engine="reference") as device:
        execution = ExecutionPlan(bundle)
        outputs = run_plan(device.default_stream, execution, arrays)
        assert differing(bytes_of(fast.outputs), bytes_of(outputs)) == {}
        execution.unload(device)
    bundle.save(tmp_path / "bundle")
    for engine in ("fast", "reference"):
        options = ["--random", "3", "--engine", engine, "--outputs", str(tmp_path / f"{engine}.npz")]
        assert main(["run", str(tmp_path / "bundle"), *options]) == 0
    written = [np.load(tmp_path / f"{engine}.npz")["y"] for engine in ("fast", "reference")]
    assert written[0].tobytes() == written[1].tobytes()


def bytes_of(outputs: dict[str, npt.NDArray[np.generic]]) -> dict[str, npt.NDArray[np.uint8]]:
    return {name: np.frombuffer(values.tobytes(), np.uint8) for name, values in outputs.items()}


def test_larger_inputs_are_launched_in_tiles_by_either_engine() -> None:
    bundle, arrays = product(), {"a": halves(0, 150, 64) / 8, "b": halves(1, 64, 128)}
    fast = spyrec.run(bundle, arrays)
    defined = spyrec.run(bundle, arrays, RunOptions(engine="reference"))
    assert len(fast.tiles) == 1
    assert differing(bytes_of(fast.outputs), bytes_of(defined.outputs)) == {}
    assert defined.stats == fast.stats


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (RunOptions(engine="slow"), "SPY0771"),
        (RunOptions(engine="reference", sanitize="init"), "SPY0780"),
        (RunOptions(engine="reference", sanitize="sync"), "SPY0780"),
        (RunOptions(engine="reference", bisect=True), "SPY0780"),
        (RunOptions(engine="reference", max_executions=1), "SPY0767"),
    ],
)
def test_what_the_reference_engine_cannot_do_is_refused(options: RunOptions, code: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.run(product(), {"a": halves(0, 64, 64), "b": halves(1, 64, 128)}, options)
    assert [item.code for item in caught.value.diagnostics] == [code]


def test_a_row_outside_of_a_table_is_refused_by_either_engine() -> None:
    case = launched(gather_operation((1, 1), True), np.random.default_rng(0))
    index = np.full(64, 64, np.uint32).view(np.uint8)
    messages: list[str] = []
    for engine in ("fast", "reference"):
        with pytest.raises(SpyrecError) as caught:
            replace(case, contents={**case.contents, 0: index}).memory(engine)
        (found,) = caught.value.diagnostics
        messages.append(f"{found.code} {found.message}")
    assert messages[0] == messages[1]
    assert messages[0].startswith("SPY0706")
