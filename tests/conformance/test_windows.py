"""Pools and convolutions as they are emitted, executed by both engines, against window loops in float64."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.superdsc import UnneededPadding
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.opspec import OpSpec, OpSpecFile
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.emulator.operations.window import multiply_add
from spyrec.hardware import dlfloat
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.support.both_engines import Launched, wide_numbers
from tests.support.window_specs import (
    HALF,
    Doubles,
    Problem,
    from_device_order,
    in_device_order,
    rounded_up,
    spec_of,
    wanted,
    weights_in_device_order,
)

OWN = CodegenOptions(dialect=AUGUST_2026)
EXACT = CodegenOptions(dialect=AUGUST_2026, is_exact=True)

AUGUST = Path(__file__).parent.parent / "fixtures" / "examples_2026_08"

POOL, CONVOLUTION, DEPTHWISE = "avgpoolfwd", "conv2d", "depthwiseconv2dnative"

PROBLEMS = {
    "pool": Problem(POOL, 2, 64, (3, 4), (2, 2), (2, 2)),
    "pool overlapping": rounded_up(Problem(POOL, 1, 64, (4, 3), (3, 3), (2, 2))),
    "pool overlapping, longer input": rounded_up(Problem(POOL, 1, 64, (4, 3), (3, 2), (2, 1)), (1, 2)),
    "pool by steps of one": Problem(POOL, 2, 64, (4, 3), (3, 2)),
    "pool that leaves elements out": rounded_up(Problem(POOL, 1, 128, (2, 3), (2, 2), (3, 4))),
    "pool of one channel": Problem(POOL, 2, 1, (2, 3), (2, 2), (2, 2)),
    "pool of ragged channels": Problem(POOL, 1, 70, (2, 2), (2, 2), (2, 2)),
    "pool padded": rounded_up(Problem(POOL, 1, 64, (4, 4), (3, 3), (2, 1), padding=(1, 1))),
    "pool, rows divided": Problem(POOL, 2, 64, (4, 2), (2, 3), (2, 3), splits={"h": 4}),
    "pool overlapping, rows divided": rounded_up(Problem(POOL, 1, 64, (4, 2), (3, 2), (2, 1), splits={"h": 2})),
    "pool overlapping, columns divided": rounded_up(Problem(POOL, 1, 64, (2, 6), (3, 3), (1, 2), splits={"w": 3})),
    "pool, channels and images divided": Problem(POOL, 2, 128, (2, 2), (2, 2), (2, 2), splits={"c": 2, "n": 2}),
    "pool of one row": rounded_up(Problem(POOL, 2, 64, (1, 3), (3, 2), (1, 2))),
    "pool of one column": rounded_up(Problem(POOL, 1, 128, (4, 1), (2, 3), (2, 1), splits={"h": 4})),
    "pool of one row, rows left out": Problem(POOL, 1, 64, (1, 2), (2, 2), (2, 2), rest=(3, 0)),
    "pool of one row, padded": Problem(POOL, 2, 70, (1, 2), (3, 2), (1, 2), (1, 0), splits={"w": 2}),
    "pool of everything": Problem(POOL, 2, 128, (1, 1), (4, 5), splits={"c": 2, "n": 2}),
    "pool of everything of one channel": Problem(POOL, 2, 1, (1, 1), (3, 3)),
    "convolution": Problem(CONVOLUTION, 1, 64, (4, 3), (3, 3)),
    "convolution, images": Problem(CONVOLUTION, 2, 64, (2, 3), (2, 3)),
    "convolution of strides": rounded_up(Problem(CONVOLUTION, 1, 64, (3, 3), (3, 2), (2, 3))),
    "convolution dilated": Problem(CONVOLUTION, 1, 64, (3, 3), (2, 3), dilation=(2, 3)),
    "convolution padded": Problem(CONVOLUTION, 1, 64, (4, 4), (3, 3), padding=(1, 1)),
    "convolution, more channels": Problem(CONVOLUTION, 1, 128, (2, 2), (2, 2), in_channels=128),
    "convolution, rows divided": Problem(CONVOLUTION, 1, 64, (6, 3), (3, 3), splits={"h": 6}),
    "convolution of strides, rows divided": rounded_up(
        Problem(CONVOLUTION, 1, 64, (4, 3), (3, 3), (2, 2), splits={"h": 2})
    ),
    "convolution, channels divided": Problem(
        CONVOLUTION, 1, 128, (2, 2), (2, 2), in_channels=128, splits={"d": 2, "c": 2}
    ),
    "depthwise": Problem(DEPTHWISE, 2, 64, (4, 4), (3, 3)),
    "depthwise of one tap": Problem(DEPTHWISE, 2, 64, (3, 4), (1, 1)),
    "depthwise of one row of taps": Problem(DEPTHWISE, 1, 64, (3, 4), (1, 3)),
    "depthwise of strides": Problem(DEPTHWISE, 1, 64, (3, 2), (2, 3), (2, 3), rest=(1, 2)),
    "depthwise dilated": Problem(DEPTHWISE, 1, 64, (3, 2), (2, 3), dilation=(3, 2)),
    "depthwise padded": Problem(DEPTHWISE, 1, 64, (4, 5), (3, 3), padding=(1, 1)),
    "depthwise of one channel": Problem(DEPTHWISE, 1, 1, (3, 3), (3, 3)),
    "depthwise, rows divided": Problem(DEPTHWISE, 2, 64, (4, 3), (3, 3), splits={"h": 4}),
    "depthwise of strides, rows divided": Problem(DEPTHWISE, 1, 64, (4, 3), (3, 3), (2, 2), splits={"h": 2}),
    "pool padded, rows divided": rounded_up(Problem(POOL, 1, 64, (4, 4), (3, 3), (2, 1), (1, 1), splits={"h": 4})),
    "pool padded, columns divided": rounded_up(Problem(POOL, 2, 64, (2, 6), (3, 3), (1, 2), (1, 1), splits={"w": 3})),
    "pool, more padding than windows need": Problem(POOL, 1, 64, (6, 5), (2, 2), (1, 1), (1, 1), splits={"h": 6}),
    "convolution padded, rows divided": Problem(
        CONVOLUTION, 1, 64, (4, 4), (3, 3), padding=(1, 1), in_channels=128, splits={"h": 2, "d": 2}
    ),
    "convolution padded, all divided": rounded_up(
        Problem(CONVOLUTION, 1, 64, (4, 4), (3, 3), (2, 1), (2, 2), dilation=(2, 2), splits={"h": 2, "w": 4})
    ),
    "convolution, padding in memory": Problem(
        CONVOLUTION, 1, 64, (4, 4), (3, 3), padding=(1, 1), splits={"h": 2}, pad_type="padded_wzeropad"
    ),
    "depthwise padded, rows divided": Problem(DEPTHWISE, 2, 64, (4, 5), (3, 3), padding=(1, 1), splits={"h": 4}),
    "depthwise padded and dilated, columns divided": Problem(
        DEPTHWISE, 1, 64, (3, 4), (3, 2), (2, 1), (2, 1), (2, 3), splits={"w": 2}
    ),
    "depthwise, padding in memory": Problem(
        DEPTHWISE, 1, 64, (4, 4), (3, 3), padding=(1, 1), splits={"w": 2}, pad_type="padded_wzeropad"
    ),
    "depthwise of no padding": Problem(DEPTHWISE, 1, 64, (4, 4), (3, 3), splits={"w": 2}, pad_type="nopad"),
    "depthwise, channels divided": Problem(DEPTHWISE, 1, 128, (3, 3), (1, 1), splits={"c": 2}),
}


def emitted(spec: OpSpec, options: CodegenOptions = OWN) -> EmittedProgram:
    return emit_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=(spec,)), options)


def bytes_of(values: Doubles) -> npt.NDArray[np.uint8]:
    return dlfloat.encode(values).view(np.uint8)


def launched(problem: Problem, options: CodegenOptions = OWN) -> tuple[Launched, Doubles]:
    """Return the program with its operands in place, and what it should store."""
    generator = np.random.default_rng(5)
    spec = spec_of(problem)
    source = generator.integers(-16, 17, problem.input_shape) / 8.0
    weights = None if problem.op == POOL else generator.integers(-8, 9, problem.weights_shape) / 8.0
    program = emitted(spec, options)
    entries = tuple(
        TableEntry(f"t{i}", i, arg.device_size, arg.device_dtype, i * SEGMENT_BYTES, 2 * math.prod(arg.device_size))
        for i, arg in enumerate(spec.args)
    )
    front = [(held - own) // 2 for held, own in zip(problem.held, problem.extent, strict=True)]
    around = [(0, 0), *((size, size) for size in front), (0, 0)]
    contents = {0: bytes_of(in_device_order(np.pad(source, around), spec.args[0]))}
    if weights is not None:
        contents[1] = bytes_of(weights_in_device_order(problem, weights))
    made = Launched(program.program, program.superdscs, ArgumentTable(entries), contents)
    return made, wanted(problem, source, weights)


def result_of(problem: Problem, made: Launched, engine: str) -> Doubles:
    memory, _ = made.memory(engine)
    last = len(made.table.entries) - 1
    patterns = memory[f"argument {last}"].view(np.uint16)
    return from_device_order(problem, dlfloat.decode(patterns).astype(np.float64))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_window_computes_what_loops_over_it_compute(name: str) -> None:
    problem = PROBLEMS[name]
    made, result = launched(problem)
    scale = np.abs(result).max()
    roundings = 2.01 if problem.op == POOL else 1.01  # the reciprocal of a pool's area is rounded too
    for engine in ("reference", "fast"):
        found = result_of(problem, made, engine)
        np.testing.assert_allclose(
            found, result, rtol=roundings * dlfloat.UNIT_ROUNDOFF, atol=1e-6 * scale, err_msg=engine
        )


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_emitted_is_read_back(name: str) -> None:
    for superdsc in emitted(spec_of(PROBLEMS[name])).superdscs.values():
        sink = DiagnosticSink()
        text = to_bytes(superdsc)
        assert to_bytes(replace(parse_superdsc(text + b" ", None, sink))) == text
        assert sink.diagnostics == []


@pytest.mark.parametrize(
    ("name", "numerics"),
    [(name, "dl16") for name in PROBLEMS]
    + [(name, wide) for name in ("pool padded", "convolution padded", "depthwise") for wide in ("ieee", "f32")],
)
def test_both_engines_store_the_same_bytes_and_count_alike(name: str, numerics: str) -> None:
    made, _ = launched(PROBLEMS[name])
    if numerics == "f32":  # memory is twice as wide there
        made = replace(made, contents={index: widened(found) for index, found in made.contents.items()})
    made.assert_equal(numerics)


def widened(patterns: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return dlfloat.decode(patterns.view(np.uint16)).astype(np.float32).view(np.uint8)


@pytest.mark.parametrize("op", [POOL, CONVOLUTION, DEPTHWISE])
@pytest.mark.parametrize("seed", range(3))
def test_both_engines_agree_on_every_pattern(op: str, seed: int) -> None:
    problem = Problem(op, 1, 64, (2, 2), (2, 2), splits={"h": 2})
    made, _ = launched(problem)
    generator = np.random.default_rng(seed)
    wild = {index: wide_numbers(generator, HALF, len(found) // 2) for index, found in made.contents.items()}
    replace(made, contents=wild).assert_equal()


def sticks_of_input(problem: Problem) -> list[set[tuple[int, ...]]]:
    """Return the sticks of the input that each core reads, by channel stick, row, column and image."""
    per_core: list[set[tuple[int, ...]]] = []
    symbols = {"h": problem.outputs[0], "w": problem.outputs[1], "n": problem.images, "c": problem.channels,
               "d": problem.in_channels}  # fmt: skip
    channels = "d" if problem.op == CONVOLUTION else "c"
    for place in itertools.product(*(range(cut) for cut in problem.splits.values())):
        own = dict(zip(problem.splits, place, strict=True))
        ranges = {
            name: range(own.get(name, 0) * (size // problem.splits.get(name, 1)),
                        (own.get(name, 0) + 1) * (size // problem.splits.get(name, 1)))
            for name, size in symbols.items()
        }  # fmt: skip
        found: set[tuple[int, ...]] = set()
        for h, w, p, q in itertools.product(ranges["h"], ranges["w"], range(problem.taps[0]), range(problem.taps[1])):
            y = h * problem.strides[0] + p * problem.dilation[0] - problem.padding[0]
            x = w * problem.strides[1] + q * problem.dilation[1] - problem.padding[1]
            front = [(held - own) // 2 for held, own in zip(problem.held, problem.extent, strict=True)]
            y, x = y + front[0], x + front[1]
            if 0 <= y < problem.held[0] and 0 <= x < problem.held[1]:
                found |= {(c // 64, y, x, n) for c in ranges[channels] for n in ranges["n"]}
        per_core.append(found)
    return per_core


def sticks_of_weights(problem: Problem) -> list[set[tuple[int, ...]]]:
    """Return the sticks of the weights that each core reads."""
    taps = list(itertools.product(range(problem.taps[0]), range(problem.taps[1])))
    per_core: list[set[tuple[int, ...]]] = []
    for place in itertools.product(*(range(cut) for cut in problem.splits.values())):
        own = dict(zip(problem.splits, place, strict=True))
        size, width = problem.channels // problem.splits.get("c", 1), problem.in_channels // problem.splits.get("d", 1)
        outs = range(own.get("c", 0) * size, (own.get("c", 0) + 1) * size)
        ins = range(own.get("d", 0) * width, (own.get("d", 0) + 1) * width) if problem.op == CONVOLUTION else range(1)
        per_core.append({(c // 64, tap, d) for c in outs for tap in range(len(taps)) for d in ins})
    return per_core


@pytest.mark.parametrize("name", PROBLEMS)
def test_traffic_is_the_sticks_that_windows_touch(name: str) -> None:
    problem = PROBLEMS[name]
    made, _ = launched(problem)
    _, stats = made.memory("fast")
    (found,) = stats.operations
    parts = [sticks_of_input(problem)] + ([] if problem.op == POOL else [sticks_of_weights(problem)])
    distinct = sum(len(set[tuple[int, ...]]().union(*cores)) for cores in parts)
    assert found.hbm_read_bytes == 128 * distinct
    assert found.hbm_core_read_bytes == 128 * sum(len(sticks) for cores in parts for sticks in cores)
    assert found.hbm_write_bytes == 128 * -(-problem.channels // 64) * problem.images * math.prod(problem.outputs)


@pytest.mark.parametrize("case", ["avgpool_k2s2", "avgpool_split_rows", "conv2d_k3", "conv2d_k3_split_rows",
                                  "depthwise_k1", "depthwise_k3"])  # fmt: skip
def test_what_upstream_wrote_computes_the_same(case: str) -> None:
    problem = WRITTEN[case]
    text = (AUGUST / case / "sdsc_0.json").read_bytes()
    made, result = launched(problem)
    (name,) = made.superdscs
    program = parse_program((AUGUST / case / "bundle.mlir").read_text())
    foreign = replace(made, program=program, superdscs={name: parse_superdsc(text)})
    foreign.assert_equal()
    found = result_of(problem, foreign, "fast")
    np.testing.assert_allclose(found, result, rtol=1.01 * dlfloat.UNIT_ROUNDOFF, atol=1e-5)


WRITTEN = {
    "avgpool_k2s2": Problem(POOL, 1, 64, (4, 4), (2, 2), (2, 2)),
    "avgpool_split_rows": Problem(POOL, 2, 64, (2, 2), (4, 4), (4, 4)),
    "conv2d_k3": Problem(CONVOLUTION, 1, 64, (6, 6), (3, 3)),
    "conv2d_k3_split_rows": Problem(CONVOLUTION, 1, 64, (6, 6), (3, 3)),
    "depthwise_k1": Problem(DEPTHWISE, 2, 64, (8, 8), (1, 1)),
    "depthwise_k3": Problem(DEPTHWISE, 2, 64, (8, 8), (3, 3)),
}


def test_an_input_longer_than_its_windows_is_told_by_the_argument() -> None:
    """Upstream's convolutions say how far windows reach, not how long the rows are that they slide along."""
    problem = rounded_up(Problem(CONVOLUTION, 1, 64, (3, 3), (3, 3), (2, 2)))
    assert problem.extent == (8, 8)
    made, result = launched(problem, EXACT)
    (superdsc,) = made.superdscs.values()
    assert superdsc.padding_sizes["j"].total_size == 7
    made.assert_equal()
    np.testing.assert_allclose(result_of(problem, made, "fast"), result, rtol=1.01 * dlfloat.UNIT_ROUNDOFF, atol=1e-5)


REFUSED = {
    "divided strides of a depthwise one": (PROBLEMS["depthwise of strides, rows divided"], "SPY0714"),
    "padding of which nobody says whether memory holds it": (PROBLEMS["depthwise padded"], "SPY0724"),
    "a row dim that lost its last row": (Problem(POOL, 1, 64, (4, 4), (3, 3), (2, 2)), "SPY0716"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_upstream_writes_wrongly_is_refused_by_name(name: str) -> None:
    problem, code = REFUSED[name]
    made, _ = launched(replace(problem, rest=problem.rest), EXACT) if "lost" not in name else lossy(problem)
    for engine in ("reference", "fast"):
        with pytest.raises(SpyrecError) as error:
            made.memory(engine)
        assert code in {item.code for item in error.value.diagnostics}


def lossy(problem: Problem) -> tuple[Launched, None]:
    """Return a program whose device dims ``[rows / stride, stride]`` leave out rows that fill no step."""
    spec = spec_of(problem)
    program = emitted(spec, EXACT)
    entries = tuple(
        TableEntry(f"t{i}", i, arg.device_size, arg.device_dtype, i * SEGMENT_BYTES, 2 * math.prod(arg.device_size))
        for i, arg in enumerate(spec.args)
    )
    return Launched(program.program, program.superdscs, ArgumentTable(entries), {}), None


def changed(spec: OpSpec, **parameters: object) -> OpSpec:
    """Return the spec with other numbers of its window; ``None`` takes one out."""
    is_pool = spec.op == POOL
    before = spec.op_info.constants if is_pool else spec.op_info.conv_params
    after = {name: value for name, value in {**before, **parameters}.items() if value is not None}
    key = "constants" if is_pool else "conv_params"
    return replace(spec, op_info=replace(spec.op_info, **{key: after}))


BASE = {op: spec_of(Problem(op, 2, 64, (2, 2), (2, 2), (2, 2))) for op in (POOL, CONVOLUTION)} | {
    DEPTHWISE: spec_of(Problem(DEPTHWISE, 2, 64, (4, 4), (3, 3)))
}
LOSSY = Problem(POOL, 1, 64, (4, 4), (3, 3), (2, 2))

WRONG: dict[str, tuple[OpSpec, str]] = {
    "ranges missing": (replace(BASE[POOL], node_output_ranges=None), "SPY0538"),
    "ranges of three": (replace(BASE[POOL], node_output_ranges=(2, 64, 2)), "SPY0538"),
    "pool with a dim too many": (replace(BASE[POOL], node_output_ranges=(1, 64, 2, 2)), "SPY0538"),
    "depthwise with a dim too few": (
        replace(BASE[DEPTHWISE], iteration_space=BASE[DEPTHWISE].iteration_space[:-1]),
        "SPY0538",
    ),
    "no kernel": (changed(BASE[POOL], kernel_h=None), "SPY0539"),
    "no stride of a depthwise one": (changed(BASE[DEPTHWISE], stride_i=None), "SPY0539"),
    "half a step": (changed(BASE[POOL], stride_h=1.5), "SPY0539"),
    "stride of nothing": (changed(BASE[CONVOLUTION], stride_w=0), "SPY0539"),
    "lowered padding": (changed(BASE[DEPTHWISE], pad_type="lowered_padded"), "SPY0557"),
    "unknown padding": (changed(BASE[DEPTHWISE], pad_type="mirrored"), "SPY0539"),
    "rows that fill no step": (spec_of(LOSSY), "SPY0540"),
    "stride that is not the layout's": (changed(BASE[POOL], stride_h=1), "SPY0540"),
    "total that is not the input's": (changed(BASE[DEPTHWISE], total_size_j=7), "SPY0540"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_window_that_makes_no_sense_is_refused(name: str) -> None:
    spec, code = WRONG[name]
    with pytest.raises(SpyrecError, match=code):
        emitted(spec)


def test_an_older_dialect_has_no_fields_for_windows() -> None:
    with pytest.raises(SpyrecError, match="SPY0541"):
        emitted(BASE[POOL], CodegenOptions(dialect=JUNE_2026))


def edited(key: str, value: object, *path: str | int) -> dict[str, object]:
    """Return the pool of two-element windows with one member of its design space changed; ``None`` takes it out."""
    data = json.loads((AUGUST / "avgpool_k2s2" / "sdsc_0.json").read_bytes())
    place = data["0_avgpoolfwd"]["dscs_"][0]["avgpoolfwd"]
    for step in path:
        place = place[step]
    if value is None:
        del place[key]
    else:
        place[key] = value
    return data


WINDOW_PATH = ("N_", "paddingSizes_", "i")
UNREADABLE: dict[str, tuple[dict[str, object], str]] = {
    "an unknown key": (edited("mirrored_", 1, *WINDOW_PATH), "SPY0621"),
    "no stride": (edited("stride_", None, *WINDOW_PATH), "SPY0620"),
    "a stride of nothing": (edited("stride_", 0, *WINDOW_PATH), "SPY0620"),
    "a window dim that is not there": (edited("windowDim_", "kk", *WINDOW_PATH), "SPY0622"),
    "an unneeded part alone": (edited("unneededPad_", 1, *WINDOW_PATH), "SPY0622"),
    "stages that differ": (edited("stride_", 3, "dataStageParam_", "0", "ss_", "paddingSizes_", "i"), "SPY0622"),
    "an unknown kind of padding": (edited("i", "mirrored", "scheduleTree_", 0, "padding_"), "SPY0621"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_malformed_window_is_refused(name: str) -> None:
    data, code = UNREADABLE[name]
    with pytest.raises(SpyrecError) as error:
        parse_superdsc(json.dumps(data))
    assert {item.code for item in error.value.diagnostics} == {code}


UNRUNNABLE: dict[str, tuple[dict[str, object], str]] = {
    "no sizes of a window": (edited("paddingSizes_", None, "N_"), "SPY0724"),
    "windows beyond the axis": (edited("totalSize_", 7, *WINDOW_PATH), "SPY0721"),
    "padding of a kind that memory may hold": (edited("padFront_", 1, *WINDOW_PATH), "SPY0724"),
    "padding that is not said": (edited("padBack_", -1, *WINDOW_PATH), "SPY0724"),
    "a kind that is not executed": (edited("i", "lowered_padded", "scheduleTree_", 0, "padding_"), "SPY0724"),
    "windows that step too far": (edited("stride_", 3, *WINDOW_PATH), "SPY0721"),
}


@pytest.mark.parametrize("name", UNRUNNABLE)
def test_a_window_that_a_file_leaves_open_is_not_executed(name: str) -> None:
    data, code = UNRUNNABLE[name]
    made, _ = launched(WRITTEN["avgpool_k2s2"])
    superdsc = parse_superdsc(json.dumps(data))
    for engine in ("reference", "fast"):
        with pytest.raises(SpyrecError) as error:
            replace(made, superdscs=dict.fromkeys(made.superdscs, superdsc)).memory(engine)
        assert {item.code for item in error.value.diagnostics} == {code}


@pytest.mark.parametrize("kind", [None, "nopad", "padded_nozeropad", "padded_wzeropad", "padded_fullspan"])
def test_without_padding_every_kind_but_the_lowered_one_means_the_same(kind: str | None) -> None:
    made, result = launched(WRITTEN["avgpool_k2s2"])
    data = edited("padding_", None if kind is None else dict.fromkeys("ij", kind), "scheduleTree_", 0)
    foreign = replace(made, superdscs=dict.fromkeys(made.superdscs, parse_superdsc(json.dumps(data))))
    foreign.assert_equal()
    found = result_of(WRITTEN["avgpool_k2s2"], foreign, "fast")
    np.testing.assert_allclose(found, result, rtol=2.01 * dlfloat.UNIT_ROUNDOFF, atol=1e-5)


@pytest.mark.parametrize("op", [CONVOLUTION, DEPTHWISE])
def test_padding_in_memory_is_read_as_it_stands_there(op: str) -> None:
    """What windows reach before the first element counts with what memory holds: ones instead of zeros are seen."""
    problem = Problem(op, 1, 64, (3, 3), (3, 3), padding=(1, 1), splits={"h": 3}, pad_type="padded_wzeropad")
    inner = replace(problem, padding=(0, 0), pad_type=None, splits={})
    made, _ = launched(problem)
    other, result = launched(inner)
    filled = replace(made, contents={**other.contents})
    filled.assert_equal()
    found = result_of(problem, filled, "fast")
    np.testing.assert_allclose(found, result, rtol=1.01 * dlfloat.UNIT_ROUNDOFF, atol=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sum_of_products_rounds_once(sign: float) -> None:
    """2**24 + 2 + (1 - 2**-46) lies below the middle of two neighbours; in float64 it would lie in the middle."""
    x, y = np.array([sign * (1 + 2.0**-23)]), np.array([1 - 2.0**-23])
    total = np.array([sign * (2.0**24 + 2)], np.float32)
    assert multiply_add(x, y, total)[0] == sign * (2.0**24 + 2)
    assert (x * y + total).astype(np.float32)[0] == sign * (2.0**24 + 4)


def symbols(spec: OpSpec) -> dict[str, str]:
    """Return the label of each symbol, as the file has them."""
    (superdsc,) = emitted(spec, EXACT).superdscs.values()
    return dict(zip((dim.symbol for dim in spec.iteration_space), superdsc.iteration, strict=False))


def test_dims_are_called_by_their_part() -> None:
    assert symbols(spec_of(Problem(POOL, 2, 64, (2, 3), (2, 2)))) == {
        "n": "mb", "h": "i", "w": "j", "c": "out", "p": "ki", "q": "kj"
    }  # fmt: skip
    assert symbols(spec_of(Problem(CONVOLUTION, 2, 64, (2, 3), (2, 2)))) == {
        "n": "mb", "h": "i", "w": "j", "c": "out", "d": "in", "p": "ki", "q": "kj"
    }  # fmt: skip
    assert symbols(spec_of(Problem(DEPTHWISE, 1, 64, (2, 3), (2, 2)))) == {
        "c": "out", "h": "i", "w": "j", "p": "ki", "q": "kj"
    }  # fmt: skip


def test_a_convolution_is_told_by_structure_and_not_by_place() -> None:
    spec = spec_of(Problem(CONVOLUTION, 1, 64, (2, 3), (2, 3)))
    turned = replace(spec, iteration_space=tuple(reversed(spec.iteration_space)))
    assert symbols(turned) == {"q": "kj", "p": "ki", "d": "in", "c": "out", "w": "j", "h": "i"}


def test_an_output_of_one_element_iterates_its_axes_behind_the_window() -> None:
    spec = spec_of(Problem(DEPTHWISE, 2, 64, (1, 1), (3, 3)))
    order = {dim.symbol: dim for dim in spec.iteration_space}
    behind = replace(spec, iteration_space=tuple(order[name] for name in "ncpqhw"))
    assert symbols(behind) == {"n": "mb", "c": "out", "p": "ki", "q": "kj", "h": "i", "w": "j"}


@pytest.mark.parametrize(("op", "iterated", "divided"), [
    (POOL, ["mb", "i", "j", "ki", "kj", "out"], ["mb", "i", "j", "ki", "kj", "out"]),
    (DEPTHWISE, ["out", "mb", "i", "j", "ki", "kj"], ["mb", "i", "j", "ki", "kj", "out"]),
])  # fmt: skip
def test_one_channel_is_iterated_as_a_stick(op: str, iterated: list[str], divided: list[str]) -> None:
    (superdsc,) = emitted(spec_of(Problem(op, 2, 1, (2, 2), (2, 2))), EXACT).superdscs.values()
    assert list(superdsc.iteration) == iterated
    assert list(superdsc.work_slices) == divided
    assert superdsc.iteration["out"] == 64
    assert all(operand.layout_dim_order.count("out") == 1 for operand in superdsc.operands)


def test_padding_that_no_window_needs_is_taken_off_behind_first() -> None:
    """5 elements with 2 of padding on both sides, 2 taps at every third: 3 outputs need 8 of 9."""
    spec = spec_of(Problem(DEPTHWISE, 1, 64, (3, 3), (2, 2), (3, 3), padding=(2, 2), rest=(1, 1)))
    (superdsc,) = emitted(spec, EXACT).superdscs.values()
    sizes = superdsc.padding_sizes["i"]
    assert (sizes.pad_front, sizes.pad_back, sizes.total_size) == (2, 1, 9)
    assert sizes.unneeded == UnneededPadding(total=1, front=0, back=1)
