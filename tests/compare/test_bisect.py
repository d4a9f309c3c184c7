"""A fault planted in one SuperDSC is found there, and nothing is found in bundles that are right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spyrec
from examples.granite_block import make_graph
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.cli import main
from spyrec.compare.divergence import BisectReport, Divergence, Guilt
from spyrec.compare.storage import Array
from spyrec.options import CompileOptions, RunOptions
from tests.support.graphs import graph_data, node, random_arrays, tensor
from tests.support.planting import (
    OTHER_OPS,
    Change,
    files_of,
    moved_start,
    other_constant,
    other_mask,
    other_op,
    planted,
    swapped_operands,
    taller,
)
from tests.support.random_graphs import random_graph

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def bisect(bundle: Bundle, inputs: Mapping[str, Array], numerics: str = "dl16") -> BisectReport:
    result = spyrec.run(bundle, inputs, RunOptions(bisect=True, numerics=numerics))
    assert result.bisect is not None
    assert result.is_ok == result.bisect.ok
    return result.bisect


def guilty(bundle: Bundle, inputs: Mapping[str, Array], numerics: str = "dl16") -> Divergence:
    found = bisect(bundle, inputs, numerics).divergence
    assert found is not None
    return found


@cache
def digits() -> tuple[Bundle, dict[str, Array]]:
    with np.load(EXAMPLES / "digits" / "heldout.npz") as archive:
        return spyrec.compile(EXAMPLES / "digits" / "graph.json"), {name: archive[name] for name in archive.files}


@cache
def granite() -> tuple[Bundle, dict[str, Array]]:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        graph = make_graph.write(Path(directory), make_graph.NARROW)
        spyrec.compile(graph).save(Path(directory) / "bundle")
        bundle = Bundle.load(Path(directory) / "bundle")
        constants = {name: np.array(bundle.constants[name]) for name in bundle.constants}
    shape = (1, make_graph.NARROW.sequence, make_graph.NARROW.hidden)
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float16)
    content = Bundle(bundle.manifest, bundle.programs, constants, bundle.dci, bundle.graph_json)
    return content, {"x": x}


def file_of(bundle: Bundle, op: str, number: int = 0) -> str:
    return [file for file, superdsc in files_of(bundle).items() if superdsc.op_func_name == op][number]


# --- silent on what is right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("numerics", ["dl16", "ieee", "f32"])
def test_nothing_is_guilty_in_the_examples(numerics: str) -> None:
    for bundle, inputs in (digits(), granite()):
        report = bisect(bundle, inputs, numerics)
        assert report.ok, report.divergence
        assert report.compared == report.total == len(files_of(bundle))
        assert report.worst_ratio <= 1.0


def test_nothing_is_guilty_in_random_graphs_and_the_worst_error_is_near_its_bound() -> None:
    worst = 0.0
    for seed in range(24):
        graph, inputs = random_graph(seed)
        report = bisect(spyrec.compile(graph, CompileOptions(cores=(1, 4, 32)[seed % 3])), inputs)
        assert report.ok, (seed, report.divergence)
        worst = max(worst, report.worst_ratio)
    assert 0.5 < worst <= 1.01


def test_state_that_changes_places_after_a_run_is_no_guilt_of_a_copy() -> None:
    data = graph_data(
        [tensor("x", 64, 128), tensor("s", 64, 128)],
        [node("n", "add", "x", "s"), node("o", "mul", "n", "x")],
        ["o", "n"],
        updates={"n": "s"},
    )
    result = spyrec.run(spyrec.compile(data), random_arrays(data), RunOptions(check=True, bisect=True))
    assert result.bisect is not None
    assert result.bisect.ok, result.bisect
    assert result.is_ok


def test_an_error_from_upstream_is_no_guilt_of_those_behind_it() -> None:
    # z is far from its reference at the graph's inputs, because y was rounded: it is right for what it read.
    nodes = [node("y", "add", "x", 1000.0), node("z", "sub", "y", 1000.0), node("w", "mul", "z", "z")]
    data = graph_data([tensor("x", 8, 64)], nodes, ["w"])
    inputs = {"x": np.linspace(-0.3, 0.3, 512).reshape(8, 64).astype(np.float16)}
    assert bisect(spyrec.compile(data), inputs).ok


# --- planted faults -------------------------------------------------------------------------------------------------


def changes_of(superdsc: SuperDsc) -> list[tuple[str, Change]]:
    """Every fault that suits a SuperDSC of the examples and changes its result."""
    op = superdsc.op_func_name
    found: list[tuple[str, Change]] = []
    if op in OTHER_OPS:
        found.append(("wrong op name", lambda dsc: other_op(dsc, OTHER_OPS[op])))
    if op in {"sub", "realdiv"}:
        found.append(("swapped operands", swapped_operands))
    if op in {"mean", "meannonstick"}:
        found.append(("altered constant", lambda dsc: other_constant(dsc, "scaling_factor", 12000)))
    if op == "sum" and superdsc.coordinate_masking:
        ((dim, ((start, count),)),) = superdsc.coordinate_masking.items()
        found.append(("mask too long", lambda dsc: other_mask(dsc, {dim: ((start - 1, count + 1),)})))
    return found


@pytest.mark.parametrize("name", ["digits", "granite"])
def test_the_planted_superdsc_of_an_example_is_the_guilty_one(name: str) -> None:
    bundle, inputs = {"digits": digits, "granite": granite}[name]()
    kinds: set[str] = set()
    for number, (file, superdsc) in enumerate(files_of(bundle).items()):
        for kind, change in changes_of(superdsc):
            if kind in kinds and number % 9:
                continue  # every kind, and some further places
            kinds.add(kind)
            report = bisect(planted(bundle, file, change), inputs)
            found = report.divergence
            assert found is not None, (file, kind)
            assert (found.file, found.guilt, found.op) == (
                file,
                Guilt.RESULT,
                superdsc.op_func_name.removesuffix("nonstick"),
            )
            assert report.compared == number + 1
    assert kinds >= {"wrong op name", "swapped operands", "mask too long"}
    assert ("altered constant" in kinds) == (name == "granite")


def test_a_finding_names_place_and_inputs() -> None:
    bundle, inputs = digits()
    file = file_of(bundle, "relufwd", 1)
    found = guilty(planted(bundle, file, lambda dsc: other_op(dsc, "neg")), inputs)
    assert (found.name, found.node, found.found_op) == ("active2", "active2", "neg")
    assert found.location.pointer == "/nodes/3"
    assert (found.location.resolved().line or 0) > 1
    assert [(item.name, item.shape) for item in found.inputs] == [("hidden2", (360, 64))]


@pytest.mark.parametrize("symbolic_args", [True, False])
def test_a_finding_names_the_element_on_host_and_device_and_the_core_that_stored_it(symbolic_args: bool) -> None:
    data = graph_data([tensor("x", 64, 130)], [node("y", "abs", "x"), node("z", "mul", "y", 2)], ["z"])
    bundle = spyrec.compile(data, CompileOptions(cores=4, symbolic_args=symbolic_args))
    file = file_of(bundle, "abs")
    assert files_of(bundle)[file].work_slices["mb"] == 4
    x = np.zeros((64, 130), np.float16)
    x[37, 70] = 1.5
    element = guilty(planted(bundle, file, lambda dsc: other_op(dsc, "neg")), {"x": x}).element
    assert element is not None
    assert (element.index, element.device_coordinate, element.core) == ((37, 70), (1, 37, 6), 37 // 16)
    assert (element.got, element.want, element.error, element.bound) == (-1.5, 1.5, 3.0, 0.0)


def test_random_graphs_show_the_planted_fault() -> None:
    planted_faults = 0
    for seed in range(40):
        graph, inputs = random_graph(seed)
        bundle = spyrec.compile(graph)
        suitable = [file for file, dsc in files_of(bundle).items() if dsc.op_func_name in OTHER_OPS]
        if not suitable:
            continue
        file = suitable[seed % len(suitable)]
        broken = planted(bundle, file, lambda dsc: other_op(dsc, OTHER_OPS[dsc.op_func_name]))
        report = bisect(broken, inputs)
        if report.divergence is None:
            # equal by chance: then the outputs must be equal too
            assert outputs_of(broken, inputs) == outputs_of(bundle, inputs), (seed, file)
            continue
        planted_faults += 1
        assert report.divergence.file == file, (seed, file, report.divergence)
    assert planted_faults > 15


def outputs_of(bundle: Bundle, inputs: Mapping[str, Array]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in spyrec.run(bundle, inputs).outputs.items()}


def joined() -> tuple[Bundle, dict[str, Array]]:
    nodes = [node("both", "cat", "x", "y", dim=0), node("z", "exp", "both")]
    data = graph_data([tensor("x", 5, 64), tensor("y", 3, 64)], nodes, ["both", "z"])
    return spyrec.compile(data, CompileOptions(cores=1, symbolic_args=False)), random_arrays(data)


def test_a_start_one_row_early_is_found_though_every_byte_is_inside() -> None:
    bundle, inputs = joined()
    piece = file_of(bundle, "identity", 1)
    output = files_of(bundle)[piece].compute.outputs[0]
    found = guilty(planted(bundle, piece, lambda dsc: moved_start(dsc, output, 0, -128)), inputs)
    # rows 4 to 6 were stored: row 4 is not this piece's, row 7 was never written
    assert (found.file, found.guilt, found.op) == (piece, Guilt.RESULT, "identity")
    assert found.element is not None
    assert found.element.index[0] in {4, 5, 6, 7}
    assert found.node == "both"


def crowded_pool(*, symbolic_args: bool = True) -> tuple[Bundle, dict[str, Array], str]:
    """Return a one-core bundle whose tanh reads ``a`` at the start of the pool and writes between ``c`` and ``d``."""
    nodes = [
        node("a", "exp", "x"),
        node("b", "neg", "a"),
        node("c", "mul", "b", "a"),
        node("d", "add", "b", "a"),
        node("e", "tanh", "a"),  # takes the place of b
        node("f", "mul", "e", "d"),
        node("g", "mul", "c", "f"),
        node("h", "add", "g", "a"),
    ]
    data = graph_data([tensor("x", 32, 64)], nodes, ["h"])
    bundle = spyrec.compile(data, CompileOptions(cores=1, symbolic_args=symbolic_args, lx_planner="none"))
    return bundle, random_arrays(data), file_of(bundle, "tanh")


def test_an_input_read_at_a_wrong_start_is_found_in_the_reader() -> None:
    bundle, inputs, reader = crowded_pool(symbolic_args=False)
    found = guilty(planted(bundle, reader, lambda dsc: moved_start(dsc, 0, 0, 256)), inputs)
    assert (found.file, found.op, found.tensor, found.guilt) == (reader, "tanh", "e", Guilt.RESULT)


def test_a_store_over_a_neighbour_in_the_pool_is_the_writers_fault() -> None:
    bundle, inputs, writer = crowded_pool()
    found = guilty(planted(bundle, writer, lambda dsc: taller(dsc, "mb", 2)), inputs)
    assert (found.file, found.name, found.guilt, found.tensor) == (writer, "e", Guilt.OVERWRITTEN, "d")
    assert found.element is not None
    assert found.element.core == 0


def test_one_core_of_many_that_starts_elsewhere_is_refused_at_load_by_name() -> None:
    data = graph_data([tensor("x", 64, 64)], [node("y", "exp", "x"), node("z", "neg", "y")], ["z"])
    bundle = spyrec.compile(data, CompileOptions(cores=4, symbolic_args=False, lx_planner="none"))
    broken = planted(bundle, file_of(bundle, "neg"), lambda dsc: moved_start(dsc, 0, 2, 128))
    with pytest.raises(spyrec.SpyrecError) as error:
        bisect(broken, random_arrays(data))
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.location and diagnostic.location.file) == ("SPY0714", file_of(bundle, "neg"))
    assert "core 2" in diagnostic.message


# --- constants ------------------------------------------------------------------------------------------------------


def test_a_padded_copy_that_is_not_the_graphs_constant_is_found_before_any_operation() -> None:
    data = graph_data(
        [tensor("x", 8, 70)],
        [node("y", "matmul", "x", "w")],
        ["y"],
        constants=[{"name": "w", "shape": [70, 64], "dtype": "float16", "value": 0.5}],
    )
    bundle = spyrec.compile(data)
    (name,) = [item.name for item in bundle.manifest.arguments if item.name.startswith("w")]
    altered = dict(bundle.constants) | {name: np.asarray(bundle.constants[name].astype(np.float32) + 0.25, np.float16)}
    broken = Bundle(bundle.manifest, bundle.programs, altered, bundle.dci, bundle.graph_json)
    found = guilty(broken, random_arrays(data))
    assert (found.guilt, found.tensor, found.file) == (Guilt.COPY_IN, name, "constants.safetensors")
    assert found.element is not None
    assert (found.element.want, found.element.got) in {(0.5, 0.75), (0.0, 0.25)}


def saved_digits(directory: Path) -> Path:
    digits()[0].save(directory / "bundle")
    return directory / "bundle"


def run_json(bundle: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    inputs = ["--inputs", str(EXAMPLES / "digits" / "heldout.npz")]
    code = main(["run", str(bundle), *inputs, "--bisect", "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def test_an_altered_weight_file_is_named_with_its_first_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = saved_digits(tmp_path)
    assert run_json(bundle, capsys)[1]["bisect"]["ok"]
    path = bundle / "constants.safetensors"
    content = bytearray(path.read_bytes())
    content[-200] ^= 0x10
    path.write_bytes(bytes(content))
    code, report = run_json(bundle, capsys, "--no-verify")
    assert code == 1
    assert (report["bisect"]["guilty"]["guilt"], report["bisect"]["guilty"]["op"]) == ("altered", "batchmatmul")
    assert report["bisect"]["compared"] == report["bisect"]["operations"]


# --- the command line -----------------------------------------------------------------------------------------------


def test_the_command_reports_the_guilty_operation_and_writes_no_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = saved_digits(tmp_path)
    code, report = run_json(bundle, capsys)
    assert code == 0
    assert report["bisect"]["guilty"] is None
    assert list(report["outputs"]) == ["probabilities"]
    file = file_of(digits()[0], "realdiv")
    (bundle / file).write_bytes(to_bytes(swapped_operands(files_of(digits()[0])[file])))
    out = tmp_path / "y.npz"
    code, report = run_json(bundle, capsys, "--no-verify", "--outputs", str(out))
    assert (code, report["outputs"], out.exists()) == (1, {}, False)
    found = report["bisect"]["guilty"]
    assert (found["file"], found["op"], found["node"]) == (file, "realdiv", "probabilities")
    assert found["location"]["pointer"] == "/nodes/5"
    assert set(found["worst"]) >= {"index", "device_coordinate", "core", "got", "want", "error", "bound"}
    assert main(["run", str(bundle), "--random", "1", "--bisect", "--no-verify"]) == 1
    text = capsys.readouterr().out
    assert f"{file}, realdiv" in text
    assert 'node "probabilities" at graph.json:' in text


def test_a_bundle_that_its_graph_does_not_compile_to_is_refused() -> None:
    bundle, inputs = digits()
    program = bundle.programs[0]
    shorter = program.__class__(
        program.directory,
        program.program.__class__(program.program.maps, program.program.parameters, program.program.body[:-1]),
        program.superdscs,
    )
    broken = Bundle(bundle.manifest, (shorter, *bundle.programs[1:]), bundle.constants, bundle.dci, bundle.graph_json)
    with pytest.raises(spyrec.SpyrecError) as error:
        bisect(broken, inputs)
    assert [item.code for item in error.value.diagnostics] == ["SPY0803"]


def test_bisect_takes_a_whole_bundle_with_its_graph() -> None:
    bundle, inputs = digits()
    for options, code in (
        (RunOptions(bisect=True, only="kernels/0/sdsc_0.json"), "SPY0771"),
        (RunOptions(bisect=True), "SPY0769"),
    ):
        graph = bundle.graph_json if code == "SPY0771" else None
        broken = Bundle(bundle.manifest, bundle.programs, bundle.constants, bundle.dci, graph)
        with pytest.raises(spyrec.SpyrecError) as error:
            spyrec.run(broken, inputs, options)
        assert [item.code for item in error.value.diagnostics] == [code]
