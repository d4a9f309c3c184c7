"""Loops and LX under ``--bisect``: every iteration where it stored, every core's slice where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import AffineApply, AffineMap, For
from spyrec.cli import main
from spyrec.compare.divergence import BisectReport, Divergence, Guilt
from spyrec.compare.storage import Array
from spyrec.options import CompileOptions, RunOptions
from tests.support.graphs import graph_data, node, random_arrays, tensor
from tests.support.planting import files_of, other_op, planted
from tests.support.random_graphs import random_graph
from tests.support.tiling import in_scratchpad, looped, scratchpad_of_all

SHAPE = (8, 64, 256)
"""Four cores divide the first dim, loops tile the second."""
TILES = 8
ROWS = SHAPE[1] // TILES
FIRST = 0
SECOND = 1 << 16


def chain() -> Bundle:
    nodes = [node("y", "abs", "x"), node("z", "neg", "y"), node("s", "add", "z", "x")]
    return spyrec.compile(graph_data([tensor("x", *SHAPE)], nodes, ["s"]), CompileOptions(cores=4))


def in_lx(bundle: Bundle) -> Bundle:
    """Keep y and z in LX."""
    bundle = in_scratchpad(bundle, [("sdsc_0.json", 1), ("sdsc_1.json", 0)], FIRST)
    return in_scratchpad(bundle, [("sdsc_1.json", 1), ("sdsc_2.json", 0)], SECOND)


BUNDLES = {
    "pool, looped": lambda: looped(chain(), "x", TILES),
    "lx": lambda: in_lx(chain()),
    "lx, looped": lambda: looped(in_lx(chain()), "x", TILES),
}


def ones() -> dict[str, Array]:
    return {"x": np.ones(SHAPE, np.float16)}


def bisect(bundle: Bundle, inputs: Mapping[str, Array], numerics: str = "dl16") -> BisectReport:
    result = spyrec.run(bundle, inputs, RunOptions(bisect=True, numerics=numerics))
    assert result.bisect is not None
    assert result.is_ok == result.bisect.ok == bool(result.outputs)
    return result.bisect


def guilty(bundle: Bundle, inputs: Mapping[str, Array]) -> Divergence:
    found = bisect(bundle, inputs).divergence
    assert found is not None
    return found


@pytest.mark.parametrize("numerics", ["dl16", "f32"])
@pytest.mark.parametrize("name", BUNDLES)
def test_nothing_is_guilty_in_right_tiles_and_slices(name: str, numerics: str) -> None:
    inputs = {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float16)}
    bundle = BUNDLES[name]()
    report = bisect(bundle, inputs, numerics)
    assert report.ok, report.divergence
    assert report.compared == report.total == 3
    assert spyrec.run(bundle, inputs, RunOptions(check=True, sanitize="all")).is_ok


@pytest.mark.parametrize("name", BUNDLES)
def test_one_wrong_element_is_named_with_iteration_core_and_host_index(name: str) -> None:
    # relu for abs: wrong for negative numbers alone, and there is one, in tile 3 of core 2's slice
    inputs = ones()
    index = (5, 3 * ROWS + 2, 70)
    inputs["x"][index] = -2
    found = guilty(planted(BUNDLES[name](), "sdsc_0.json", lambda dsc: other_op(dsc, "relufwd")), inputs)
    assert (found.guilt, found.file, found.op, found.found_op, found.node) == (
        Guilt.RESULT,
        "sdsc_0.json",
        "abs",
        "relufwd",
        "y",
    )
    assert found.iteration == ((3,) if "looped" in name else ())
    assert found.element is not None
    assert (found.element.index, found.element.core) == (index, 5 // 2)
    assert (found.element.got, found.element.want) == (0.0, 2.0)
    assert found.failed_elements == 1
    assert found.element_count == np.prod(SHAPE) // (TILES if "looped" in name else 1)


@pytest.mark.parametrize("name", ["lx", "lx, looped"])
def test_an_operation_from_lx_to_lx_is_named_and_its_operand_lies_in_lx(name: str) -> None:
    found = guilty(planted(BUNDLES[name](), "sdsc_1.json", lambda dsc: other_op(dsc, "abs")), ones())
    assert (found.file, found.op, found.node) == ("sdsc_1.json", "neg", "z")
    assert [(item.name, item.memory) for item in found.inputs] == [("y", "lx")]
    assert found.iteration == ((0,) if "looped" in name else ())


def with_step(bundle: Bundle, symbol: int, step: int) -> Bundle:
    """Return a looped bundle in which the address of one symbol id takes other steps."""
    (program,) = bundle.programs
    (loop,) = (item for item in program.program.body if isinstance(item, For))
    own = AffineMap("wrong", (step,))
    body = tuple(
        replace(item, map_name="wrong")
        if isinstance(item, AffineApply) and item.result.endswith(f"_{symbol}")
        else item
        for item in loop.body
    )
    statements = tuple(replace(item, body=body) if item is loop else item for item in program.program.body)
    changed = replace(program.program, maps=(*program.program.maps, own), body=statements)
    return replace(bundle, programs=(replace(program, program=changed),))


@pytest.mark.parametrize("position", [0, 1])
def test_an_address_that_stays_where_it_was_is_found_in_the_second_iteration(position: int) -> None:
    data = graph_data([tensor("x", *SHAPE)], [node("y", "abs", "x")], ["y"])
    right = looped(spyrec.compile(data, CompileOptions(cores=1)), "x", TILES)
    start = files_of(right)["sdsc_0.json"].operands[position].start_addresses[0]
    inputs = random_arrays(data)
    assert bisect(right, inputs).ok
    found = guilty(with_step(right, -start, 0), inputs)
    assert (found.file, found.iteration) == ("sdsc_0.json", (1,))
    assert found.element is not None
    # the input read again: its tile is wrong; the output stored again: the first tile is
    assert found.element.index[1] // ROWS == (1 if position == 0 else 0)


def test_a_tile_that_no_iteration_stores_is_found_in_the_last() -> None:
    data = graph_data([tensor("x", *SHAPE)], [node("y", "abs", "x")], ["y"])
    short = looped(spyrec.compile(data, CompileOptions(cores=4)), "x", TILES, rounds=7)
    found = guilty(short, random_arrays(data))
    assert (found.iteration, found.file) == ((6,), "sdsc_0.json")
    assert found.element is not None
    assert (found.element.index[1] // ROWS, found.element.core) == (7, None)


def waiting(start: int) -> Bundle:
    """y waits in LX at 0 while z is stored at ``start``."""
    nodes = [node("y", "abs", "x"), node("z", "neg", "x"), node("s", "add", "y", "z")]
    bundle = spyrec.compile(graph_data([tensor("x", *SHAPE)], nodes, ["s"]), CompileOptions(cores=4))
    bundle = in_scratchpad(bundle, [("sdsc_0.json", 1), ("sdsc_2.json", 0)], 0)
    return in_scratchpad(bundle, [("sdsc_1.json", 1), ("sdsc_2.json", 1)], start)


def test_a_store_over_a_tensor_that_waits_in_lx_is_the_writers_fault() -> None:
    slice_bytes = 2 * int(np.prod(SHAPE)) // 4
    inputs = {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float16)}
    assert bisect(waiting(slice_bytes), inputs).ok
    found = guilty(waiting(slice_bytes - 128), inputs)
    assert (found.guilt, found.file, found.name, found.tensor) == (Guilt.OVERWRITTEN, "sdsc_1.json", "z", "y")
    assert found.element is not None
    assert found.element.core == 0


def test_a_reader_that_takes_another_part_of_lx_is_the_guilty_one() -> None:
    inputs = {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float16)}
    slice_bytes = 2 * int(np.prod(SHAPE)) // 4
    bundle = waiting(slice_bytes)
    found = guilty(in_scratchpad(bundle, [("sdsc_2.json", 0)], 128), inputs)
    assert (found.guilt, found.file, found.op) == (Guilt.RESULT, "sdsc_2.json", "add")


def bisected(bundle: Bundle, inputs: Mapping[str, Array]) -> BisectReport | None:
    """Return the report, ``None`` where an operation does not say which elements it computes into LX."""
    try:
        return spyrec.run(bundle, inputs, RunOptions(bisect=True)).bisect
    except spyrec.SpyrecError as error:
        if {item.code for item in error.diagnostics} != {"SPY0804"}:
            raise
        return None


def test_an_operation_of_broadcast_operands_alone_does_not_say_what_it_stores_in_lx() -> None:
    nodes = [node("y", "add", "x", "x"), node("e", "expand", "y", size=[64, 128]), node("z", "mul", "e", "w")]
    data = graph_data([tensor("x", 1), tensor("w", 64, 128)], nodes, ["z"])
    plain = spyrec.compile(data, CompileOptions(cores=1))
    moved, names = scratchpad_of_all(plain)
    assert names
    assert bisected(moved, random_arrays(data)) is not None
    seed_of_one = random_graph(143, steps=5)
    moved, _ = scratchpad_of_all(spyrec.compile(seed_of_one[0], CompileOptions(cores=8)))
    with pytest.raises(spyrec.SpyrecError) as error:
        bisect(moved, seed_of_one[1])
    assert [item.code for item in error.value.diagnostics] == ["SPY0804"]


def test_random_programs_with_lx_are_guilty_where_and_only_where_their_numbers_change() -> None:
    programs = wrong = 0
    for seed in range(45, 165, 2):
        graph, inputs = random_graph(seed, steps=4)
        plain = spyrec.compile(graph, CompileOptions(cores=(1, 4, 32)[seed % 3]))
        if len(plain.programs) != 1:
            continue
        moved, names = scratchpad_of_all(plain)
        if not names:
            continue
        report = bisected(moved, inputs)
        if report is None:
            continue
        before, after = spyrec.run(plain, inputs).outputs, spyrec.run(moved, inputs).outputs
        is_same = all(before[name].tobytes() == after[name].tobytes() for name in before)
        assert report.ok == is_same, (seed, names, report.divergence)
        programs += 1
        wrong += not is_same
    assert programs > 12
    assert wrong  # a window of a larger buffer is none in LX


def test_the_text_names_the_iteration(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    directory = f"{tmp_path}/bundle"
    planted(BUNDLES["lx, looped"](), "sdsc_1.json", lambda dsc: other_op(dsc, "abs")).save(directory)
    assert main(["run", directory, "--random", "1", "--bisect"]) == 1
    assert 'sdsc_1.json, neg "z" (the file says abs), is guilty in iteration (0)' in capsys.readouterr().out
