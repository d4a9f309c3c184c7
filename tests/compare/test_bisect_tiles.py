"""Loops and LX under ``--bisect``: every tile by itself, every core's slice where it lies, every fault where it is."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import AffineApply, AffineMap, Constant, For, Statement
from spyrec.bundle.superdsc import Component
from spyrec.cli import main
from spyrec.compare import device_memory
from spyrec.compare.divergence import BisectReport, Divergence, Guilt
from spyrec.compare.locate import locate_output
from spyrec.compare.storage import Array
from spyrec.options import CompileOptions, RunOptions
from tests.support.examples import seeds
from tests.support.graphs import JsonObject, graph_data, node, tensor
from tests.support.planting import files_of, moved_start, other_constant, other_op, planted
from tests.support.random_loops import looped_graph
from tests.support.symbolic import compiled_or_refused, cut_inputs, with_symbolic_dim

SHAPE = (8, 64, 256)
"""Four cores divide the first dim, a loop tiles the second."""
TILES = 8
ROWS = SHAPE[1] // TILES


def chain(loops: str = "keep", **level: int) -> Bundle:
    """``s = w - |x| - |x|`` in a loop; y and z, which are per tile, lie in LX."""
    nodes = [node("y", "abs", "x"), node("z", "neg", "y"), node("t", "sub", "z", "y"), node("s", "add", "t", "w")]
    data = graph_data([{**tensor(name, *SHAPE), "shape": ["A", "B", "C"]} for name in "xw"], nodes, ["s"])
    return spyrec.compile(in_loop(data, "B", "yzts", **(level or {"tiles": TILES})), CompileOptions(4, loops=loops))


def in_loop(data: JsonObject, dim: str, names: str, **level: int) -> JsonObject:
    """Return a graph whose dims have names, and a loop around some of its nodes."""
    dims = dict(zip("ABC", SHAPE))
    return {**data, "dims": dims, "loops": [{"dim": dim, **level, "body": list(names)}]}


def reduction(op: str, loops: str = "keep") -> Bundle:
    """A reduction over a tiled dim, in float16, on one core."""
    data = graph_data([{**tensor("x", *SHAPE), "shape": ["A", "B", "C"]}], [node("y", op, "x", dim=[1])], ["y"])
    return spyrec.compile(in_loop(data, "B", "y", tiles=4), CompileOptions(1, loops=loops))


def inputs(names: str = "xw") -> dict[str, Array]:
    draws = np.random.default_rng(1)
    return {name: draws.standard_normal(SHAPE).astype(np.float16) for name in names}


def bisect(bundle: Bundle, arrays: Mapping[str, Array], numerics: str = "dl16") -> BisectReport:
    result = spyrec.run(bundle, arrays, RunOptions(bisect=True, numerics=numerics))
    assert result.bisect is not None
    assert result.is_ok == result.bisect.ok
    return result.bisect


def guilty(bundle: Bundle, arrays: Mapping[str, Array]) -> Divergence:
    found = bisect(bundle, arrays).divergence
    assert found is not None
    return found


def file_of(bundle: Bundle, op: str, number: int = 0) -> str:
    return [file for file, dsc in files_of(bundle).items() if dsc.op_func_name == op][number]


# --- silent on what is right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_nothing_is_guilty_in_random_looped_graphs(part: int) -> None:
    compared = tiles = 0
    for seed in seeds(40)[part::4]:
        data, arrays = looped_graph(seed, steps=3)
        options = CompileOptions((1, 4, 32)[seed % 3], loops="unroll" if seed % 5 == 0 else "keep")
        bundle = spyrec.compile(data, options)
        report = bisect(bundle, arrays, ("dl16", "f32", "ieee")[seed % 7 % 3])
        assert report.ok, (seed, report.divergence)
        assert report.compared == report.total == len(files_of(bundle))
        assert report.worst_ratio <= 1.01
        compared += report.compared
        tiles += sum(isinstance(item, For) for program in bundle.programs for item in program.program.body)
    assert tiles > 1
    assert compared > 40


def test_the_cost_of_a_tile_is_that_of_its_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = device_memory.element_values

    def counted(*args: object) -> object:
        read.append(args[2].size)  # type: ignore[attr-defined]
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(device_memory, "element_values", counted)
    totals: set[int] = set()
    for tiles in (2, 32):
        read.clear()
        assert bisect(chain(tiles=tiles), inputs()).ok
        totals.add(sum(read))
    assert len(totals) == 1


# --- faults ---------------------------------------------------------------------------------------------------------


def test_the_tiles_of_the_chain_lie_in_lx() -> None:
    files = files_of(chain())
    assert len(files) == 4
    assert files["sdsc_1.json"].operands[0].component is Component.LX
    assert len(files["sdsc_1.json"].core_ids) == 4


@pytest.mark.parametrize("loops", ["keep", "unroll"])
def test_one_wrong_element_is_named_with_file_iteration_core_and_place_in_the_tile(loops: str) -> None:
    # relu for abs: wrong for negative numbers alone, and there is one, in tile 3 of core 2's slice
    arrays = dict.fromkeys("w", np.ones(SHAPE, np.float16)) | {"x": np.ones(SHAPE, np.float16)}
    arrays["x"][5, 3 * ROWS + 2, 70] = -2
    bundle = chain(loops)
    file = file_of(bundle, "abs", 3 if loops == "unroll" else 0)
    found = guilty(planted(bundle, file, lambda dsc: other_op(dsc, "relufwd")), arrays)
    assert (found.guilt, found.file, found.op, found.found_op) == (Guilt.RESULT, file, "abs", "relufwd")
    assert (found.node, found.iteration) == ("y", (3,))
    assert found.element is not None
    assert (found.element.index, found.element.core) == ((5, 2, 70), 5 // 2)
    assert (found.element.got, found.element.want) == (0.0, 2.0)
    assert (found.failed_elements, found.element_count) == (1, np.prod(SHAPE) // TILES)


def test_the_rest_that_no_tile_holds_is_named_by_its_own_file() -> None:
    bundle = chain(tile_size=24)
    file = file_of(bundle, "neg", 1)
    found = guilty(planted(bundle, file, lambda dsc: other_op(dsc, "abs")), inputs())
    assert (found.file, found.op, found.node, found.iteration) == (file, "neg", "z", ())
    assert [(item.name, item.memory) for item in found.inputs] == [("y.1", "lx")]


def changed_body(bundle: Bundle, change: Callable[[Statement], Statement]) -> Bundle:
    """Return a bundle of one program with every statement changed, those in loops too."""
    (program,) = bundle.programs

    def changed(item: Statement) -> Statement:
        return change(replace(item, body=tuple(map(changed, item.body))) if isinstance(item, For) else item)

    body = tuple(map(changed, program.program.body))
    return replace(bundle, programs=(replace(program, program=replace(program.program, body=body)),))


def with_step(bundle: Bundle, number: int, step: int) -> Bundle:
    """Return a bundle in which one ``affine.apply`` takes other steps."""
    (program,) = bundle.programs
    maps = (*program.program.maps, AffineMap("wrong", (step,)))
    bundle = replace(bundle, programs=(replace(program, program=replace(program.program, maps=maps)),))
    name = f"addr_{number}"
    return changed_body(
        bundle,
        lambda item: replace(item, map_name="wrong") if isinstance(item, AffineApply) and item.result == name else item,
    )


@pytest.mark.parametrize("step", [0, 4096])
@pytest.mark.parametrize("position", [0, 1])
def test_a_wrong_coefficient_is_found_in_the_second_iteration(position: int, step: int) -> None:
    data = graph_data([{**tensor("x", *SHAPE), "shape": ["A", "B", "C"]}], [node("y", "abs", "x")], ["y"])
    bundle = spyrec.compile(in_loop(data, "B", "y", tiles=TILES), CompileOptions(1))
    assert bisect(bundle, inputs("x")).ok
    found = guilty(with_step(bundle, position, step), inputs("x"))
    assert (found.guilt, found.file, found.iteration) == (Guilt.RESULT, "sdsc_0.json", (1,))
    assert found.element is not None
    assert found.element.index[1] // ROWS == 1
    assert found.element.core in ({0} if position == 0 else {0, None})


def bound(bundle: Bundle, rounds: int) -> Bundle:
    """Return a bundle whose loop goes round another number of times."""
    return changed_body(
        bundle,
        lambda item: (
            replace(item, value=rounds) if isinstance(item, Constant) and item.result == "loop_bound_0" else item
        ),
    )


@pytest.mark.parametrize(("rounds", "iteration"), [(TILES - 1, (TILES - 2,)), (0, ())])
def test_tiles_that_no_iteration_computes_are_the_guilt_of_their_file(rounds: int, iteration: tuple[int, ...]) -> None:
    found = guilty(bound(chain(), rounds), inputs())
    assert (found.guilt, found.file, found.op, found.iteration) == (Guilt.ROUNDS, "sdsc_0.json", "abs", iteration)


Y, Z, T = (number * 2 * int(np.prod(SHAPE)) // TILES // 4 for number in range(3))
"""Where the tiles of y, z and t lie in LX."""
FREE = 1 << 20
"""Where nothing lies."""


def moved_in_lx(bundle: Bundle, distance: int, *operands: tuple[str, int]) -> Bundle:
    """Let operands (file, position) lie elsewhere in LX, for all cores."""
    for file, position in operands:
        for core in range(4):
            bundle = planted(bundle, file, partial(moved_start, position=position, core=core, distance_bytes=distance))
    return bundle


def test_a_reader_that_takes_another_tile_from_lx_is_the_guilty_one() -> None:
    found = guilty(moved_in_lx(chain(), Z - Y, ("sdsc_2.json", 1)), inputs())
    assert (found.guilt, found.file, found.op, found.iteration) == (Guilt.RESULT, "sdsc_2.json", "sub", (0,))
    assert [(item.name, item.memory) for item in found.inputs] == [("z", "lx"), ("y", "lx")]


def test_a_writer_that_does_not_store_to_its_place_in_lx_is_the_guilty_one() -> None:
    everywhere = [("sdsc_0.json", 1), ("sdsc_1.json", 0), ("sdsc_2.json", 1)]
    found = guilty(moved_in_lx(chain(), FREE, *everywhere), inputs())
    assert (found.guilt, found.file, found.tensor, found.iteration) == (Guilt.RESULT, "sdsc_0.json", "y", (0,))
    assert found.element is not None
    assert found.element.core is None


def test_a_store_over_a_tile_that_waits_in_lx_is_the_writers_fault() -> None:
    found = guilty(moved_in_lx(chain(), Y - Z, ("sdsc_1.json", 1), ("sdsc_2.json", 0)), inputs())
    assert (found.guilt, found.file, found.name, found.tensor) == (Guilt.OVERWRITTEN, "sdsc_1.json", "z", "y")
    assert found.element is not None
    assert (found.element.core, found.iteration) == (0, (0,))


@pytest.mark.parametrize("loops", ["keep", "unroll"])
def test_a_wrong_constant_of_one_tile_is_found(loops: str) -> None:
    bundle = reduction("mean", loops)
    assert bisect(bundle, inputs("x")).ok
    number = 2 if loops == "unroll" else 0
    file = next(file_of(bundle, op, number) for op in ("meannonstick", "mean") if op in ops_of(bundle))
    found = guilty(planted(bundle, file, lambda dsc: other_constant(dsc, "scaling_factor", 0x3D000000)), inputs("x"))
    assert (found.file, found.op, found.iteration) == (file, "mean", (number,))
    assert (".partial" in found.name, found.node) == (True, "y")


def ops_of(bundle: Bundle) -> set[str]:
    return {dsc.op_func_name for dsc in files_of(bundle).values()}


PARTS = [("amax", "identity", "neg", ()), ("sum", "add", "mul", (0,)), ("sum", "add", "maximum", (1,)),
         ("amax", "maximum", "minimum", (0,)), ("amin", "minimum", "add", (0,))]  # fmt: skip


@pytest.mark.parametrize(("op", "part", "wrong", "iteration"), PARTS)
def test_a_wrong_part_of_a_tiled_reduction_is_found(op: str, part: str, wrong: str, iteration: tuple[int]) -> None:
    bundle = reduction(op)
    assert bisect(bundle, inputs("x")).ok
    file = file_of(bundle, part)
    found = guilty(planted(bundle, file, lambda dsc: other_op(dsc, wrong)), {"x": np.abs(inputs("x")["x"])})
    assert (found.guilt, found.file, found.op, found.found_op) == (Guilt.RESULT, file, part, wrong)
    assert (found.node, found.iteration) == ("y", iteration)


def test_the_text_names_iteration_and_missing_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted(chain(), "sdsc_1.json", lambda dsc: other_op(dsc, "abs")).save(tmp_path / "wrong")
    assert main(["run", str(tmp_path / "wrong"), "--random", "1", "--bisect"]) == 1
    assert 'sdsc_1.json, neg "z" (the file says abs), is guilty in iteration (0)' in capsys.readouterr().out
    bound(chain(), 3).save(tmp_path / "short")
    assert main(["run", str(tmp_path / "short"), "--random", "1", "--bisect"]) == 1
    text = capsys.readouterr().out
    assert 'sdsc_0.json, abs "y", is guilty in iteration (2): its loops do not go round' in text


@pytest.mark.parametrize("loops", ["keep", "unroll"])
def test_check_names_the_core_that_wrote_an_element_in_a_loop(loops: str) -> None:
    bundle = chain(loops)
    for index in [(0, 0, 0), (5, 3 * ROWS + 2, 70), (7, 63, 255)]:
        place = locate_output(bundle, "s", index)
        assert place is not None
        assert place.core == index[0] // 2


# --- symbolic dims --------------------------------------------------------------------------------------------------


def symbolic_rows() -> Bundle:
    rows: JsonObject = {"name": "x", "shape": ["S", 256], "dtype": "float16"}
    nodes = [node("y", "abs", "x"), node("z", "neg", "y")]
    dims: JsonObject = {"S": {"min": 1, "max": 1000}}
    loops = [{"dim": "S", "tile_size": 128, "body": ["y", "z"]}]
    return spyrec.compile(graph_data([rows], nodes, ["z"], dims=dims, loops=loops))


def rows_of(count: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(2).standard_normal((count, 256)).astype(np.float16)}


def test_nothing_is_guilty_at_any_extent_of_random_graphs_with_a_symbolic_dim() -> None:
    runs = 0
    for seed in seeds(30):
        rng = random.Random(seed)
        data, arrays = looped_graph(seed, steps=4)
        data, name = with_symbolic_dim(data, rng)
        bundle = compiled_or_refused(data)
        if bundle is None:
            continue
        dim = bundle.manifest.symbolic_dims[name]
        for extent in {dim.multiple_of, rng.randrange(0, dim.largest, dim.multiple_of) + dim.multiple_of}:
            report = bisect(bundle, cut_inputs(data, arrays, name, extent), ("dl16", "f32", "ieee")[seed % 3])
            assert report.ok, (seed, extent, report.divergence)
            assert report.compared == report.total
            runs += 1
    assert runs > 15


@pytest.mark.parametrize("extent", [5, 300, 1000])
def test_a_wrong_operation_is_found_at_the_extents_of_a_run(extent: int) -> None:
    bundle = symbolic_rows()
    assert bisect(bundle, rows_of(extent)).ok
    found = guilty(planted(bundle, "sdsc_1.json", lambda dsc: other_op(dsc, "abs")), rows_of(extent))
    assert (found.guilt, found.node, found.iteration) == (Guilt.RESULT, "z", (0,))


@pytest.mark.parametrize(("tile_size", "most", "iteration"), [(256, 896, (1,)), (64, 448, (3,))])
def test_too_few_and_too_many_rounds_of_a_run_are_found(tile_size: int, most: int, iteration: tuple[int, ...]) -> None:
    bundle = symbolic_rows()
    (step,) = bundle.manifest.plan
    counts = {name: replace(count, tile_size=tile_size, max_elements=most) for name, count in step.trip_counts.items()}
    manifest = replace(bundle.manifest, plan=(replace(step, trip_counts=counts),))
    found = guilty(replace(bundle, manifest=manifest), rows_of(300))
    assert (found.guilt, found.iteration) == (Guilt.ROUNDS, iteration)


def test_an_output_that_the_host_takes_from_elsewhere_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [node("y", "abs", "x"), node("z", "neg", "x")]
    bundle = spyrec.compile(graph_data([tensor("x", 6, 100)], nodes, ["y", "z"]))
    swapped = tuple((name, dict(bundle.manifest.outputs)[other]) for name, other in (("y", "z"), ("z", "y")))
    wrong = replace(bundle, manifest=replace(bundle.manifest, outputs=swapped))
    found = guilty(wrong, {"x": np.ones((6, 100), np.float16)})
    assert (found.guilt, found.tensor, found.file) == (Guilt.COPY_OUT, "y", None)
    assert found.element is not None
    assert (found.element.want, found.element.got) == (1.0, -1.0)
    wrong.save(tmp_path / "wrong")
    assert main(["run", str(tmp_path / "wrong"), "--random", "1", "--bisect"]) == 1
    assert 'the copy of "y" to the host is guilty' in capsys.readouterr().out
