"""Tiled loops: kept or unrolled, every execution finds its tile where the device layout puts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.dialects import AUGUST_2026, DIALECTS, Dialect
from spyrec.bundle.program import Add, AffineApply, ArgumentExtract, Constant, For, Program, SdscExecute, Statement
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import LoopSpec, OpSpec, TensorArgument
from spyrec.diagnostics import SpyrecError
from tests.codegen.builders import SEGMENT, Along, argument, direct_address, file_of, space

TILES = {"a": 6, "b": 128}


def executions(program: Program) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield (file, address of each symbol id) of every execution: a small interpreter of the module."""
    maps = {item.name: item.coefficients for item in program.maps}
    values = {item.name: SEGMENT * int(item.name.split("_")[1]) for item in program.parameters}

    def run(body: tuple[Statement, ...]) -> Iterator[tuple[str, dict[int, int]]]:
        for statement in body:
            match statement:
                case ArgumentExtract(result, name):
                    values[result] = values[name]
                case Constant(result, value):
                    values[result] = value
                case Add(result, left, right):
                    values[result] = values[left] + values[right]
                case AffineApply(result, name, dims, symbol):
                    moved = sum(k * values[dim] for k, dim in zip(maps[name], dims, strict=True))
                    values[result] = values[symbol] + moved
                case For(induction, lower, upper, step, inner):
                    for value in range(values[lower], values[upper], values[step]):
                        values[induction] = value
                        yield from run(inner)
                case SdscExecute(file_name, operands, symbol_ids):
                    ids = symbol_ids or ()
                    yield file_name, dict(zip(ids, (values[name] for name in operands), strict=True))
                case _:
                    raise AssertionError(statement)

    yield from run(program.body)


def starts_per_execution(emitted: EmittedProgram) -> list[tuple[tuple[int, ...], ...]]:
    found: list[tuple[tuple[int, ...], ...]] = []
    for file_name, bound in executions(emitted.program):
        operands = emitted.superdscs[file_name].operands
        found.append(
            tuple(
                tuple(bound[start] if operand.is_symbolic else start for start in operand.start_addresses)
                for operand in operands
            )
        )
    return found


def expected_starts(spec: OpSpec, counts: Mapping[str, int], order: str) -> list[tuple[tuple[int, ...], ...]]:
    """Where each core of each execution must start, from coordinates of the whole tensors."""
    cores = emit_opspecs(file_of(replace(spec, tiled_symbols=())), CodegenOptions())
    (dsc,) = cores.superdscs.values()
    labels = dict(zip((dim.symbol for dim in spec.iteration_space), dsc.iteration, strict=True))
    found: list[tuple[tuple[int, ...], ...]] = []
    for tile in product(*(range(counts[symbol]) for symbol in order)):
        begin = {symbol: index * TILES[symbol] for symbol, index in zip(order, tile, strict=True)}
        per_core = [
            {s: begin[s] + slices[labels[s]] * dsc.core_extent[labels[s]] for s in labels}
            for slices in dsc.core_work_slices
        ]
        found.append(tuple(tuple(direct_address(arg, point) for point in per_core) for arg in spec.args))
    return found


@st.composite
def tiled_adds(draw: st.DrawFn) -> tuple[OpSpec, dict[str, int]]:
    counts = {"a": draw(st.integers(1, 3)), "b": draw(st.integers(1, 3))}
    whole = {symbol: counts[symbol] * TILES[symbol] for symbol in counts}
    args: list[TensorArgument] = []
    for index, kept in enumerate([draw(st.sampled_from(["ab", "a", "b"])), "ab", "ab"]):
        axes = [Along(None)] * (3 - len(kept))
        axes += [Along(s, draw(st.integers(0, 1)), draw(st.integers(0, 1))) for s in draw(st.permutations(kept))]
        stick = "b" if "b" in kept else None
        args.append(argument(axes, stick, whole, index=index, is_input=index < 2))
    splits = {"a": draw(st.sampled_from([1, 2, 3])), "b": draw(st.sampled_from([1, 2]))}
    return OpSpec("add", False, space(TILES, splits), tuple(args), tiled_symbols=("a", "b")), counts


@settings(max_examples=30)
@given(tiled_adds(), st.sampled_from(["ab", "ba"]), st.booleans())
def test_every_execution_starts_at_its_tile(
    drawn: tuple[OpSpec, dict[str, int]], order: str, loops_name_symbols: bool
) -> None:
    spec, counts = drawn
    spec = replace(spec, tiled_symbols=tuple(order))
    names = [(symbol,) if loops_name_symbols else () for symbol in order]
    nest = LoopSpec(counts[order[0]], names[0], (LoopSpec(counts[order[1]], names[1], (spec,)),))
    expected = expected_starts(spec, counts, order)
    kept = emit_opspecs(file_of(nest), CodegenOptions(symbolic_args=True, unroll_loops=False))
    assert starts_per_execution(kept) == expected
    for symbolic in (True, False):
        unrolled = emit_opspecs(file_of(nest), CodegenOptions(symbolic_args=symbolic, unroll_loops=True))
        assert starts_per_execution(unrolled) == expected
        assert len(unrolled.superdscs) == counts["a"] * counts["b"]


def one_tiled_add(rows: int = 12, width: int = 256) -> OpSpec:
    whole = {"a": rows, "b": width}
    args = tuple(argument([Along("b"), Along("a")], "b", whole, index=i, is_input=i < 2) for i in range(3))
    return OpSpec("add", False, space(TILES), args, tiled_symbols=("a",))


def test_an_operand_that_only_the_outer_loop_tiles_follows_the_outer_variable() -> None:
    nest = LoopSpec(2, ("a",), (LoopSpec(3, ("b",), (one_tiled_add(width=128),)),))
    emitted = emit_opspecs(file_of(nest), CodegenOptions(symbolic_args=True, unroll_loops=False))
    starts = starts_per_execution(emitted)
    assert starts[0] == starts[1] == starts[2] != starts[3]
    assert emitted.program.maps[0].coefficients == (6 * 128,)


def test_one_symbol_tiled_by_two_loops_moves_by_all_inner_tiles_in_the_outer() -> None:
    spec = replace(one_tiled_add(rows=24), tiled_symbols=("a", "a"))
    nest = LoopSpec(2, ("a",), (LoopSpec(2, ("a",), (spec,)),))
    emitted = emit_opspecs(file_of(nest), CodegenOptions(symbolic_args=True, unroll_loops=False))
    first = [starts[0][0] for starts in starts_per_execution(emitted)]
    assert first == [0, 6 * 128, 12 * 128, 18 * 128]


@pytest.mark.parametrize(
    ("device_axes", "row_step", "column_step"),
    [([Along("b"), Along("a")], 65536, 2097152), ([Along("a"), Along("b")], 4194304, 2048)],
)
def test_steps_of_the_seed_example_follow_the_layout(device_axes: list[Along], row_step: int, column_step: int) -> None:
    whole, tile = {"a": 1024, "b": 4096}, {"a": 512, "b": 1024}
    args = tuple(argument(device_axes, "b", whole, index=i, is_input=i < 2) for i in range(3))
    spec = OpSpec("add", False, space(tile, {"a": 32}), args, tiled_symbols=("a", "b"))
    nest = LoopSpec(2, ("a",), (LoopSpec(4, ("b",), (spec,)),))
    emitted = emit_opspecs(file_of(nest), CodegenOptions(symbolic_args=True, unroll_loops=False))
    assert [item.coefficients for item in emitted.program.maps] == [(row_step, column_step)]


def refusal(spec: LoopSpec, *, unroll_loops: bool, symbolic_args: bool = False) -> list[str]:
    with pytest.raises(SpyrecError) as caught:
        emit_opspecs(file_of(spec), CodegenOptions(symbolic_args=symbolic_args, unroll_loops=unroll_loops))
    return [item.code for item in caught.value.diagnostics]


def test_kept_loops_with_baked_addresses_are_refused_when_a_tiled_operand_lies_in_device_memory() -> None:
    loop = LoopSpec(2, ("a",), (one_tiled_add(),))
    assert refusal(loop, unroll_loops=False, symbolic_args=False) == ["SPY0524"]


def test_kept_loops_with_baked_addresses_are_fine_when_nothing_moves() -> None:
    spec = one_tiled_add()
    fixed = replace(spec, args=tuple(replace(arg, per_tile_fixed=True) for arg in spec.args))
    loop = file_of(LoopSpec(2, ("a",), (fixed,)))
    assert emit_opspecs(loop, CodegenOptions(unroll_loops=False, symbolic_args=False)).superdscs


def test_an_lx_operand_that_moves_along_a_kept_loop_is_refused_and_unrolls() -> None:
    spec = one_tiled_add()
    lx = argument([Along("b"), Along("a")], "b", {"a": 12, "b": 256}, index=0, lx=0)
    loop = LoopSpec(2, ("a",), (replace(spec, args=(lx, *spec.args[1:])),))
    assert refusal(loop, unroll_loops=False, symbolic_args=True) == ["SPY0525"]
    unrolled = emit_opspecs(file_of(loop), CodegenOptions(unroll_loops=True))
    assert [dsc.operands[0].start_addresses for dsc in unrolled.superdscs.values()] == [(0,), (6 * 128,)]


def test_tiles_beyond_the_buffer_are_refused_once_however_often_the_loop_runs() -> None:
    loop = LoopSpec(5, ("a",), (one_tiled_add(),))
    assert refusal(loop, unroll_loops=True) == ["SPY0523"]
    assert refusal(loop, unroll_loops=False, symbolic_args=True) == ["SPY0523"]


def test_a_stick_tile_that_is_no_whole_stick_is_refused() -> None:
    spec = one_tiled_add()
    ragged = replace(spec, iteration_space=space({"a": 6, "b": 100}), tiled_symbols=("b",))
    assert refusal(LoopSpec(2, ("b",), (ragged,)), unroll_loops=True) == ["SPY0523"]


def test_loops_that_leave_open_which_of_them_tiles_are_refused() -> None:
    spec = replace(one_tiled_add(), tiled_symbols=("a",))
    loop = LoopSpec(1, (), (LoopSpec(1, (), (spec,)),))
    assert refusal(loop, unroll_loops=False, symbolic_args=True) == ["SPY0523"]


def test_unrolling_without_end_is_refused_before_anything_is_built() -> None:
    loop = LoopSpec(10**12, (), (LoopSpec(10**12, (), (one_tiled_add(),)),))
    assert refusal(loop, unroll_loops=True) == ["SPY0527"]


def test_a_loop_that_runs_never_unrolls_to_nothing() -> None:
    emitted = emit_opspecs(file_of(LoopSpec(0, ("a",), (one_tiled_add(),))), CodegenOptions(unroll_loops=True))
    assert not emitted.superdscs
    assert not emitted.program.body


def advancing(spec: OpSpec, order: str) -> OpSpec:
    """Return the operation with the movement of its operands said by themselves, a symbol per loop."""
    still = dict.fromkeys(TILES, 0)
    args: list[TensorArgument] = []
    for arg in spec.args:
        lanes = arg.device_dtype.elements_per_stick or 0
        steps = [direct_address(arg, still | {symbol: TILES[symbol]}) - direct_address(arg, still) for symbol in order]
        terms = [f"{step // 128 * lanes}*t{level}" for level, step in enumerate(steps) if step]
        args.append(replace(arg, tile_advance=parse_expression(" + ".join(terms)) if terms else None))
    levels = tuple((f"t{level}",) for level in range(len(order)))
    return replace(spec, args=tuple(args), tiled_symbols=(), tiled_levels=levels)


def nest_of(spec: OpSpec, counts: Mapping[str, int], order: str) -> LoopSpec:
    body: OpSpec | LoopSpec = spec
    for symbol in reversed(order):
        body = LoopSpec(counts[symbol], (), (body,))
    assert isinstance(body, LoopSpec)
    return body


@settings(max_examples=40)
@given(tiled_adds(), st.sampled_from(["ab", "ba"]), st.sampled_from(list(DIALECTS.values())), st.booleans())
def test_operands_that_say_how_they_advance_are_at_their_tiles(
    drawn: tuple[OpSpec, dict[str, int]], order: str, dialect: Dialect, unroll: bool
) -> None:
    spec, counts = drawn
    nest = nest_of(advancing(spec, order), counts, order)
    options = CodegenOptions(dialect, symbolic_args=True, unroll_loops=unroll)
    assert starts_per_execution(emit_opspecs(file_of(nest), options)) == expected_starts(spec, counts, order)


def square(*, moves: tuple[str | None, str | None]) -> OpSpec:
    """Return ``x * x`` that reads its one argument as two operands of different movement."""
    axes = [Along("b"), Along("a")]
    whole = {"a": 12, "b": 128}
    x = argument(axes, "b", whole, index=0)
    y = argument(axes, "b", whole, index=1, is_input=False)
    args = tuple(replace(x, tile_advance=None if move is None else parse_expression(move)) for move in moves)
    output = replace(y, tile_advance=parse_expression("384*t0"))
    return OpSpec("mul", False, space(TILES, {}), (*args, output), tiled_levels=(("t0",),))


@pytest.mark.parametrize(("is_exact", "second"), [(False, [0, 0]), (True, [0, 768])])
def test_two_movements_from_one_start_have_symbols_of_their_own(is_exact: bool, second: list[int]) -> None:
    nest = LoopSpec(2, (), (square(moves=("384*t0", None)),))
    options = CodegenOptions(AUGUST_2026, is_exact=is_exact, symbolic_args=not is_exact or None)
    starts = starts_per_execution(emit_opspecs(file_of(nest, unroll=False), options))
    assert [first[0][0] for first in starts] == [0, 768]
    assert [item[1][0] for item in starts] == second  # upstream lets the second follow the first (Q19)


@pytest.mark.parametrize(
    ("advance", "fact"),
    [
        ("100*t0", "whole number of sticks"),
        ("448*t0", "ends at byte"),
        ("-384*t0", "ends at byte"),
        ("384*t7", "other symbols"),
    ],
)
def test_an_advance_that_leads_nowhere_is_refused(advance: str, fact: str) -> None:
    nest = LoopSpec(2, (), (square(moves=(advance, None)),))
    with pytest.raises(SpyrecError, match="SPY0523") as caught:
        emit_opspecs(file_of(nest, unroll=False), CodegenOptions(AUGUST_2026, symbolic_args=True))
    assert fact in str(caught.value)


def test_levels_stand_for_the_loops_around_an_operation() -> None:
    spec = replace(square(moves=(None, None)), tiled_levels=(("t0",), ("t1",)))
    with pytest.raises(SpyrecError, match="tiled_levels names 2 loops, 1 are around"):
        emit_opspecs(file_of(LoopSpec(2, (), (spec,)), unroll=False), CodegenOptions(symbolic_args=True))
