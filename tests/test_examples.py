"""The examples are what they claim to be: real accuracy, the published block, the reviewed bundles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file

from examples.digits.classify import classify_float64, read_heldout
from examples.granite_block import make_graph
from scripts.golden_bundles import GOLDEN
from spyrec.cli import main
from spyrec.compare.diff import diff_bundles
from spyrec.ir.evaluate import evaluate
from spyrec.ir.reader import read_graph

Floats = npt.NDArray[np.float64]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SHAPE = make_graph.NARROW


def test_the_digits_network_reads_digits() -> None:
    images, labels = read_heldout()
    assert images.shape == (360, 64)
    assert np.mean(classify_float64(images) == labels) > 0.95


def test_the_committed_granite_graph_is_the_generated_one() -> None:
    committed = (EXAMPLES / "granite_block" / "graph.json").read_text(encoding="utf-8")
    assert committed == make_graph.graph_text(make_graph.FULL)


def test_granite_weights_do_not_depend_on_each_other() -> None:
    alone = make_graph.constant_value("w_gate", (4, 8))
    make_graph.constant_value("w_up", (4, 8))
    assert np.array_equal(alone, make_graph.constant_value("w_gate", (4, 8)))
    assert not np.array_equal(alone, make_graph.constant_value("w_up", (4, 8)))


def rms_norm(x: Floats, weight: Floats) -> Floats:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def rotate(heads: Floats) -> Floats:
    """Rotary positions as complex rotations of the pairs (n, n + D/2), with the angles of the float16 tables."""
    half = heads.shape[-1] // 2
    size = (SHAPE.sequence, SHAPE.head_dim)
    cosine, sine = (make_graph.rope_table(name, size)[:, :half].astype(np.float64) for name in ("rope_cos", "rope_sin"))
    turned = (heads[..., :half] + 1j * heads[..., half:]) * (cosine + 1j * sine)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def block(x: Floats, w: dict[str, Floats]) -> Floats:
    """The decoder block on ``[sequence, hidden]``, head by head, with nothing of spyrec."""
    normal = rms_norm(x, w["attention_norm"])
    size = SHAPE.head_dim
    ratio = SHAPE.heads // SHAPE.key_value_heads
    attended: list[Floats] = []
    for head in range(SHAPE.heads):
        own, shared = slice(head * size, (head + 1) * size), slice(head // ratio * size, (head // ratio + 1) * size)
        query, key = rotate(normal @ w["w_query"][own].T), rotate(normal @ w["w_key"][shared].T)
        scores = query @ key.T * 0.0078125
        scores[np.triu_indices(SHAPE.sequence, 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attended.append(weights / weights.sum(axis=-1, keepdims=True) @ (normal @ w["w_value"][shared].T))
    middle = x + 0.22 * (np.concatenate(attended, axis=-1) @ w["w_attention_out"].T)
    normal = rms_norm(middle, w["mlp_norm"])
    gate = normal @ w["w_gate"].T
    return middle + 0.22 * ((gate / (1 + np.exp(-gate)) * (normal @ w["w_up"].T)) @ w["w_down"].T)


def test_the_granite_graph_is_a_granite_block(tmp_path: Path) -> None:
    path = make_graph.write(tmp_path, SHAPE)
    weights = {name: value.astype(np.float64) for name, value in load_file(tmp_path / make_graph.WEIGHTS_FILE).items()}
    x = np.random.default_rng(3).standard_normal((1, SHAPE.sequence, SHAPE.hidden)).astype(np.float16)
    outputs = evaluate(read_graph(path), {"x": x})
    np.testing.assert_allclose(outputs["block_out"][0], block(x[0].astype(np.float64), weights), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", GOLDEN)
def test_an_example_compiles_to_its_reviewed_bundle(name: str, tmp_path: Path) -> None:
    fresh = GOLDEN[name](tmp_path)
    assert diff_bundles(EXAMPLES / name / "golden", fresh) == []


@pytest.mark.parametrize("name", ["digits", "seed_add_mul"])
def test_the_golden_gate_of_a_ci_holds_the_example_as_committed(name: str, tmp_path: Path) -> None:
    graph, golden = (str(EXAMPLES / name / part) for part in ("graph.json", "golden"))
    assert main(["compile", graph, "-o", str(tmp_path / "fresh"), "--golden", golden]) == 0
    assert main(["diff", golden, str(tmp_path / "fresh")]) == 0


def test_the_foreign_operations_become_the_files_that_torch_spyre_wrote(tmp_path: Path) -> None:
    written = EXAMPLES.parent / "tests" / "fixtures" / "examples" / "matmul_ksplit"
    example = EXAMPLES / "foreign_bundle" / "opspecs.json"
    assert main(["codegen", str(example), "-o", str(tmp_path / "out"), "--compat", "torch-spyre"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["bundle.mlir", "sdsc_0.json"]
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (written / path.name).read_bytes()
