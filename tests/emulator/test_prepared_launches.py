"""What a launch prepares serves the next run of a bundle: its tensors and pools come to lie where the last ones lay."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import spyrec
from spyrec.emulator import device
from spyrec.emulator.launch import Launch
from spyrec.front import OpenedBundle, opened


def test_a_bundle_that_runs_again_is_prepared_once_and_computes_with_its_new_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder, sizes = spyrec.GraphBuilder("chain"), (256, 128, 192, 64)
    weights = [builder.input(f"w{number}", shape, "float16") for number, shape in enumerate(pairwise(sizes))]
    value = builder.input("x", (128, 256), "float16")
    for number, weight in enumerate(weights):
        value = builder.matmul(value, weight, name=f"p{number}")
    builder.output(value)
    prepared: list[Launch] = []

    def counted(*arguments: object) -> Launch:
        prepared.append(Launch(*arguments))  # type: ignore[arg-type]
        return prepared[-1]

    monkeypatch.setattr(device, "Launch", counted)
    generator = np.random.Generator(np.random.PCG64(1))
    with opened(spyrec.compile(builder), spyrec.RunOptions()) as bundle:
        assert isinstance(bundle, OpenedBundle)
        after_first = 0
        for turn in range(6):
            inputs = {item.name: generator.integers(-1, 2, item.shape).astype(np.float16) for item in bundle.inputs}
            expected = inputs["x"].astype(np.float64)
            for number in range(len(weights)):
                expected = expected @ inputs[f"w{number}"].astype(np.float64)
            (found,) = bundle.run(inputs).outputs.values()
            np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2**-7, atol=2.0)
            after_first = after_first or len(prepared)
            assert len(prepared) == after_first, f"run {turn} prepared its launches anew"
