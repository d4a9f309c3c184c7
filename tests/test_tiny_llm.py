"""The small decoder: its gradients, its graphs, and its text, letter by letter that of NumPy in float64."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file

import spyrec
from examples.tiny_llm import graphs, run, train

PROMPT = run.tokens_of(run.DEFAULT_PROMPT)


@pytest.fixture(scope="module")
def written() -> run.Generated:
    return run.generate(PROMPT, 200)


def window() -> train.Tokens:
    return run.tokens_of(train.CORPUS[100 : 101 + train.CONTEXT])[None]


def test_gradients_are_slopes() -> None:
    generator = np.random.default_rng(1)
    parameters: train.Parameters = {
        name: value.astype(np.float64) for name, value in train.first_parameters(generator).items()
    }
    gradients = train.loss_and_gradients(parameters, window())[1]
    assert gradients.keys() == parameters.keys()
    for name, value in parameters.items():
        way = generator.standard_normal(value.shape)
        ahead, behind = ({**parameters, name: value + step * way} for step in (1e-5, -1e-5))
        rise = train.loss_and_gradients(ahead, window())[0] - train.loss_and_gradients(behind, window())[0]
        np.testing.assert_allclose((gradients[name] * way).sum(), rise / 2e-5, rtol=1e-5, atol=1e-7, err_msg=name)


def test_what_is_trained_is_what_the_reference_computes() -> None:
    stored = load_file(run.HERE / "weights.safetensors")
    weights: train.Parameters = {name: value.astype(np.float64) for name, value in stored.items()}
    reference = run.Reference({name: value.astype(np.float64) for name, value in stored.items()})
    logits = np.array([reference.step(int(token)) for token in window()[0, :-1]])
    right = logits[np.arange(train.CONTEXT), window()[0, 1:]]
    loss = float((np.log(np.exp(logits).sum(axis=1)) - right).mean())
    np.testing.assert_allclose(loss, train.loss_and_gradients(weights, window())[0], rtol=1e-9)
    assert loss < 0.5  # of log(40) = 3.7 before training


def test_the_committed_graphs_are_the_generated_ones() -> None:
    for name, graph in (("prefill", graphs.prefill_graph()), ("decode", graphs.decode_graph())):
        assert (run.HERE / f"{name}.json").read_text(encoding="utf-8") == graphs.graph_text(graph)
    masks = load_file(run.HERE / "mask.safetensors")["masks"]
    assert [np.count_nonzero(row == 0) for row in masks] == list(range(1, train.CONTEXT + 1))
    assert sum((run.HERE / file).stat().st_size for file in ("mask.safetensors", "weights.safetensors")) < 2_000_000


def test_200_letters_are_those_of_float64(written: run.Generated) -> None:
    exact = run.reference_logits(PROMPT, written.tokens)
    assert written.text == "".join(run.LETTERS[token] for token in exact.argmax(axis=1))
    assert len(written.text) == 200
    assert run.first_difference(written, exact) is None
    changed = exact.copy()
    changed[7, (written.tokens[7] + 1) % len(run.LETTERS)] += 100
    assert run.first_difference(written, changed) == 7


def test_a_letter_moves_its_row_and_not_the_cache(written: run.Generated) -> None:
    assert written.dma_bytes == 3 * 128  # the letter, its position, the logits
    with decoder(spyrec.RunOptions(outputs=("logits",))) as (bundle, model, caches):
        model.run({"token": np.array([1]), "position": np.array([32]), **caches})
        stats = model.run({"token": np.array([1]), "position": np.array([33])}).stats
    writers = [step for step in bundle.manifest.plan if "position" in step.arguments and "cache" in step.arguments[-1]]
    assert len(writers) == 2 * run.LAYERS
    for step in writers:
        (operation,) = [item for item in stats.ops if item.file.startswith(f"{step.program}/")]
        assert operation.hbm_write_bytes == 2 * 128  # a stick of each head
        assert operation.hbm_read_bytes == 3 * 128  # and the position


def test_prefill_and_letters_lie_within_their_bounds() -> None:
    checked = spyrec.RunOptions(check=True)
    prefill = spyrec.run(spyrec.compile(run.HERE / "prefill.json"), {"tokens": PROMPT}, checked)
    assert prefill.is_ok
    assert prefill.check is not None
    assert all(report.bounded_elements == report.element_count for report in prefill.check.values())
    caches = {name: value for name, value in prefill.outputs.items() if name != "logits"}
    with spyrec.load(spyrec.compile(run.HERE / "decode.json"), checked) as model:
        for position in range(32, 36):
            given = caches if position == 32 else {}
            result = model.run({"token": np.array([position % 7]), "position": np.array([position]), **given})
            assert result.is_ok
            assert result.check is not None
            assert all(report.bounded_elements == report.element_count for report in result.check.values())
            assert set(result.check) == {"logits", "keys0", "values0", "keys1", "values1"}
            assert result.outputs["keys1"][0, :, position].any()
            assert not result.outputs["keys1"][0, :, position + 1 :].any()


@contextmanager
def decoder(
    options: spyrec.RunOptions,
) -> Generator[tuple[spyrec.Bundle, spyrec.Model, dict[str, npt.NDArray[np.float16]]]]:
    """Yield the decoder, loaded, and caches of zeros."""
    bundle = spyrec.compile(run.HERE / "decode.json")
    shape = (1, run.HEADS, run.CONTEXT, 64)
    names = bundle.manifest.updates.values()
    with spyrec.load(bundle, options) as model:
        yield bundle, model, {name: np.zeros(shape, np.float16) for name in names}


def test_the_check_of_the_prefill_bounds_every_result_as_its_page_says() -> None:
    found = spyrec.run(
        spyrec.compile(run.HERE / "prefill.json"), {"tokens": PROMPT}, spyrec.RunOptions(check=True)
    ).check
    assert found is not None
    assert all(report.ok and report.bounded_elements == report.element_count for report in found.values())
    assert "The same check of `prefill.json` knows a bound of every result" in (run.HERE / "README.md").read_text(
        "utf-8"
    )
