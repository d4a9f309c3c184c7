"""Sanitizers inside loops: a bug that shows in one iteration is named with it, and right loops are silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import Constant, For, Program
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import LoopSpec, OpSpec, TensorArgument
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import Sanitizer
from tests.codegen.builders import SEGMENT, Along, argument, file_of, space
from tests.sanitizers.planting import HandMade, findings
from tests.support.graphs import graph_data, node, tensor
from tests.support.tiling import in_scratchpad, looped

SHAPE = (8, 64, 256)
TILES = 8
INPUTS = {"x": np.ones(SHAPE, np.float16)}


def chain() -> Bundle:
    data = graph_data([tensor("x", *SHAPE)], [node("y", "abs", "x"), node("z", "neg", "y")], ["z"])
    return spyrec.compile(data, spyrec.CompileOptions(cores=4, lx_planner="none"))


def test_right_loops_are_silent_one_after_the_other_and_together() -> None:
    apart = looped(looped(chain(), "x", TILES, ["sdsc_0.json"]), "x", TILES, ["sdsc_1.json"])
    through_lx = in_scratchpad(chain(), [("sdsc_0.json", 1), ("sdsc_1.json", 0)], 0)
    for bundle in (apart, looped(chain(), "x", TILES), looped(through_lx, "x", TILES)):
        assert findings(bundle, INPUTS) == ()


def test_what_is_undefined_in_the_sixth_iteration_only_is_named_with_it() -> None:
    # the first loop stores five of eight tiles, the second reads them all
    short = looped(chain(), "x", TILES, ["sdsc_0.json"], rounds=5)
    (finding,) = findings(looped(short, "x", TILES, ["sdsc_1.json"]), INPUTS)
    assert (finding.sanitizer, finding.file, finding.op, finding.iteration) == (
        Sanitizer.INIT,
        "sdsc_1.json",
        "neg",
        (5,),
    )
    assert (finding.tensor, finding.core) == ("pool", 0)
    assert finding.to_json()["iteration"] == [5]
    assert "iteration (5)" in finding.to_diagnostic().render()


def test_lx_that_is_read_before_it_is_written_is_named_with_the_first_iteration() -> None:
    bundle = in_scratchpad(chain(), [("sdsc_0.json", 1), ("sdsc_1.json", 0)], 0)
    late = looped(looped(bundle, "x", TILES, ["sdsc_1.json"]), "x", TILES, ["sdsc_0.json"])
    (program,) = late.programs
    body = program.program.body
    loops = [item for item in body if isinstance(item, For)]
    swapped = tuple(item for item in body if item not in loops) + tuple(reversed(loops))
    wrong = replace(late, programs=(replace(program, program=replace(program.program, body=swapped)),))
    found = [item for item in findings(wrong, INPUTS, "lx") if "nothing wrote" in item.message]
    assert [(item.file, item.core, item.iteration) for item in found] == [("sdsc_1.json", 0, (0,))]


def test_an_access_outside_in_the_last_iteration_is_named_with_it() -> None:
    right = looped(chain(), "x", TILES)
    (program,) = right.programs
    wrong = replace(right, programs=(replace(program, program=with_constant(program.program, TILES, TILES + 1)),))
    found = findings(wrong, INPUTS, "bounds")
    assert (found[0].sanitizer, found[0].file, found[0].iteration) == (Sanitizer.BOUNDS, "sdsc_0.json", (8,))
    assert (found[0].tensor, found[0].core) == ("x", 3)


def test_a_window_that_leaves_its_rows_in_the_last_iteration_is_named_with_it() -> None:
    # 3 tiles of 6 rows in a buffer of 20; of a fourth the last 4 rows lie in the next column of sticks
    tiles, whole = {"a": 6, "b": 64}, {"a": 18, "b": 64}
    axes = [Along("b", tail=1), Along("a", tail=2)]
    args = tuple(argument(axes, "b", whole, index=index, is_input=index == 0) for index in range(2))
    spec = OpSpec("abs", False, space(tiles), args, tiled_symbols=("a",))
    emitted = emit_opspecs(
        file_of(LoopSpec(3, ("a",), (spec,))), CodegenOptions(symbolic_args=True, unroll_loops=False)
    )
    for rounds in (3, 4):
        program = with_constant(emitted.program, 3, rounds)
        made = HandMade([], table_of(args))
        made.loaded = made.device.load(program, emitted.superdscs, made.table)
        found = [item for item in made.run([0]) if item.sanitizer is Sanitizer.GAP]
        past = made.addresses[1] + 20 * 128
        places = [(item.iteration, item.core, item.tensor, item.address) for item in found]
        assert places == ([] if rounds == 3 else [((3,), 0, "t1", past)])


def table_of(args: Sequence[TensorArgument]) -> ArgumentTable:
    entries = (
        TableEntry(f"t{i}", i, arg.device_size, arg.device_dtype, i * SEGMENT, 2 * int(np.prod(arg.device_size)))
        for i, arg in enumerate(args)
    )
    return ArgumentTable(tuple(entries))


def with_constant(program: Program, value: int, other: int) -> Program:
    """Return a program in which one constant has another value."""
    body = tuple(replace(i, value=other) if isinstance(i, Constant) and i.value == value else i for i in program.body)
    return replace(program, body=body)


@st.composite
def tiled_operations(draw: st.DrawFn) -> tuple[LoopSpec, list[TensorArgument]]:
    """A pointwise operation in two loops, on windows of larger buffers, on 1 to 6 cores."""
    tiles = {"a": draw(st.sampled_from([2, 6])), "b": draw(st.sampled_from([64, 128]))}
    counts = {"a": draw(st.integers(1, 3)), "b": draw(st.integers(1, 3))}
    whole = {symbol: counts[symbol] * tiles[symbol] for symbol in counts}
    args: list[TensorArgument] = []
    for index, kept in enumerate([draw(st.sampled_from(["ab", "a", "b"])), "ab", "ab"]):
        axes = [Along(None)] * (3 - len(kept))
        axes += [Along(s, draw(st.integers(0, 1)), draw(st.integers(0, 1))) for s in draw(st.permutations(kept))]
        args.append(argument(axes, "b" if "b" in kept else None, whole, index=index, is_input=index < 2))
    splits = {"a": draw(st.sampled_from([1, 2])), "b": draw(st.sampled_from([1, tiles["b"] // 64]))}
    order = draw(st.permutations(["a", "b"]))
    spec = OpSpec("add", False, space(tiles, splits), tuple(args), tiled_symbols=tuple(order))
    inner = LoopSpec(counts[order[1]], (order[1],), (spec,))
    return LoopSpec(counts[order[0]], (order[0],), (inner,)), args


@settings(max_examples=60)
@given(tiled_operations(), st.booleans())
def test_random_looped_operations_are_silent(drawn: tuple[LoopSpec, list[TensorArgument]], unroll: bool) -> None:
    nest, args = drawn
    emitted = emit_opspecs(file_of(nest), CodegenOptions(symbolic_args=True, unroll_loops=unroll))
    made = HandMade([], table_of(args))
    made.loaded = made.device.load(emitted.program, emitted.superdscs, made.table)
    assert made.run([0, 1]) == ()
