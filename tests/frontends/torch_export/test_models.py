"""Ten architectures, from their configuration classes through torch.export to the emulated device.

``python -m benchmarks models`` runs all of them, and their ONNX forms.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

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
