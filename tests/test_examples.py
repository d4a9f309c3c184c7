"""The examples are what they claim to be: real accuracy, the published block, the reviewed bundles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from examples.digits import noise
from examples.digits.classify import classify_float64, read_heldout
from examples.granite_block import make_graph
from scripts.golden_bundles import GOLDEN, MANIFEST, listing, read_by_people
from spyrec.cli import main
from spyrec.compare.bundle_listing import LEFT_OUT_FILE, left_out_files
from spyrec.compare.diff import diff_bundles
from spyrec.ir.evaluate import evaluate
from spyrec.ir.reader import read_graph
from tests.support.granite import decoder_block

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SHAPE = make_graph.NARROW


def test_the_digits_network_reads_digits() -> None:
    images, labels = read_heldout()
    assert images.shape == (360, 64)
    assert np.mean(classify_float64(images) == labels) > 0.95


def test_noise_makes_the_loaded_digits_network_worse(capsys: pytest.CaptureFixture[str]) -> None:
    assert noise.main() == 0
    levels = capsys.readouterr().out.splitlines()
    images, labels = read_heldout()
    assert levels[0].split() == ["noise", "0.0", "accuracy", f"{np.mean(classify_float64(images) == labels):.2%}"]
    shares = [float(line.split()[-1].rstrip("%")) for line in levels]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == len(noise.LEVELS)


def test_the_committed_granite_graph_is_the_generated_one() -> None:
    committed = (EXAMPLES / "granite_block" / "graph.json").read_text(encoding="utf-8")
    assert committed == make_graph.graph_text(make_graph.FULL)


def test_granite_weights_do_not_depend_on_each_other() -> None:
    alone = make_graph.constant_value("w_gate", (4, 8))
    make_graph.constant_value("w_up", (4, 8))
    assert np.array_equal(alone, make_graph.constant_value("w_gate", (4, 8)))
    assert not np.array_equal(alone, make_graph.constant_value("w_up", (4, 8)))


def test_the_granite_graph_is_a_granite_block(tmp_path: Path) -> None:
    path = make_graph.write(tmp_path, SHAPE)
    weights = load_file(tmp_path / make_graph.WEIGHTS_FILE)
    x = np.random.default_rng(3).standard_normal((1, SHAPE.sequence, SHAPE.hidden)).astype(np.float16)
    outputs = evaluate(read_graph(path), {"x": x})
    want = decoder_block(SHAPE, x[0].astype(np.float64), weights)
    np.testing.assert_allclose(outputs["block_out"][0], want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", GOLDEN)
def test_an_example_compiles_to_its_reviewed_bundle(name: str, tmp_path: Path) -> None:
    fresh = GOLDEN[name](tmp_path)
    golden = EXAMPLES / name / "golden"
    assert diff_bundles(golden, fresh) == []
    assert read_by_people(fresh) == listing(golden) - {LEFT_OUT_FILE}
    assert left_out_files(golden) | listing(golden) >= listing(fresh)
    # the difference forgives white space: the hashes hold every byte, of what is left out and of what is not
    assert hashes(golden) == hashes(fresh)


def hashes(bundle: Path) -> object:
    return json.loads((bundle / MANIFEST).read_bytes())["files"]


def test_golden_bundles_are_text_for_people() -> None:
    for path in sorted(EXAMPLES.glob("*/golden/**/*")):
        if path.is_file():
            assert b"\0" not in path.read_bytes(), path
            assert path.suffix in {".json", ".mlir", ".txt"}, path


@pytest.mark.parametrize("name", ["digits", "seed_add_mul"])
def test_the_golden_gate_of_a_ci_holds_the_example_as_committed(name: str, tmp_path: Path) -> None:
    graph, golden = (str(EXAMPLES / name / part) for part in ("graph.json", "golden"))
    assert main(["compile", graph, "-o", str(tmp_path / "fresh"), "--golden", golden]) == 0
    assert main(["diff", golden, str(tmp_path / "fresh")]) == 0


def test_the_foreign_operations_become_the_files_that_torch_spyre_wrote(tmp_path: Path) -> None:
    written = EXAMPLES.parent / "tests" / "fixtures" / "examples_2026_08" / "matmul_ksplit"
    example = EXAMPLES / "foreign_bundle" / "opspecs.json"
    assert main(["codegen", str(example), "-o", str(tmp_path / "out"), "--compat", "torch-spyre"]) == 0
    files = sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_file())
    assert files == ["bundle.mlir", "manifest.json", "opspecs.json", "sdsc_0.json"]
    for name in ("bundle.mlir", "sdsc_0.json"):
        assert (tmp_path / "out" / name).read_bytes() == (written / name).read_bytes()
