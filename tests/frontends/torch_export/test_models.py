"""Ten architectures, from their configuration classes through torch.export to the emulated device.

``python -m benchmarks models`` runs all of them, and their ONNX forms; ``--medium``: larger ones beside eager torch.
"""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
import torch

from benchmarks.models import command
from benchmarks.models.architectures import ARCHITECTURES
from benchmarks.models.trip import travel

_PLAIN = ["mlp", "cnn", "lstm", "unet", "lora"]
_TRANSFORMERS = ["llama", "gpt2", "bert", "t5", "granite_hybrid"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*_PLAIN, *(_TRANSFORMERS if find_spec("transformers") else [])])
def test_a_model_computes_what_torch_does(name: str) -> None:
    assert name in ARCHITECTURES
    with torch.no_grad():
        trip = travel(name, "pt2")
    assert trip.is_checked
    assert trip.error <= trip.tolerance, (trip.error, trip.tolerance)


def test_models_of_medium_size_are_timed_beside_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same way with a small model in their place."""
    monkeypatch.setattr(command, "MEDIUM", {"small": ARCHITECTURES["mlp"]})
    threads = torch.get_num_threads()
    try:
        assert command.main(["--medium", "--json", "small"]) == 0
        assert command.main(["--medium", "mlp"]) == 2
    finally:
        torch.set_num_threads(threads)
    found = json.loads(capsys.readouterr().out)
    model = found["models"][0]
    assert 0 < model["error"] <= model["tolerance"]
    assert model["over_eager"] == model["warm_run"]["wall"] / model["eager"]["wall"]
    assert model["cpu_over_eager"] == model["warm_run"]["cpu"] / model["eager"]["cpu"]
    assert model["first_run"]["wall"] > model["warm_run"]["wall"] > 0
    assert found["beside"].startswith(f"torch {torch.__version__}")
    assert found["machine"]["kernels"]
