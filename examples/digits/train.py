"""Train the digits classifier and write weights.safetensors, heldout.npz, labels.npy and graph.json beside this file.

Run once; what it writes is committed.  Needs scikit-learn, for the training and for the 1797 images that it ships::

    .venv/bin/pip install '.[train]'
    .venv/bin/python examples/digits/train.py
"""

# scikit-learn has no type stubs, and `make check` runs without it
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).resolve().parent
HELD_OUT = 360
HIDDEN = (128, 64)
PIXEL_LEVELS = 16.0
SEED = 0


def linear_node(name: str, operand: str, layer: int) -> dict[str, object]:
    """Return the graph node of one affine layer; its weight is ``[features out, features in]`` as in PyTorch."""
    return {"name": name, "op": "linear", "inputs": [operand, f"w{layer}", f"b{layer}"]}


def graph(shapes: list[tuple[int, int]]) -> dict[str, object]:
    """Return the model as ``spyrec.graph/1``: images -> linear, relu, linear, relu, linear, softmax."""
    constants: list[dict[str, object]] = []
    for layer, (features_out, features_in) in enumerate(shapes, 1):
        for name, shape in ((f"w{layer}", [features_out, features_in]), (f"b{layer}", [features_out])):
            data = {"file": "weights.safetensors", "tensor": name}
            constants.append({"name": name, "shape": shape, "dtype": "float16", "data": data})
    return {
        "format": "spyrec.graph/1",
        "name": "digits",
        "dims": {"N": HELD_OUT},
        "inputs": [{"name": "images", "shape": ["N", shapes[0][1]], "dtype": "float16"}],
        "constants": constants,
        "nodes": [
            linear_node("hidden1", "images", 1),
            {"name": "active1", "op": "relu", "inputs": ["hidden1"]},
            linear_node("hidden2", "active1", 2),
            {"name": "active2", "op": "relu", "inputs": ["hidden2"]},
            linear_node("logits", "active2", 3),
            {"name": "probabilities", "op": "softmax", "inputs": ["logits"], "attrs": {"dim": -1}},
        ],
        "outputs": ["probabilities"],
    }


def dump(document: dict[str, object]) -> str:
    """Return the graph as JSON text with one tensor or node per line."""
    lines: list[str] = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Train on 1437 images, hold 360 out, write everything in float16."""
    images, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images / PIXEL_LEVELS, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED
    )
    model = MLPClassifier(HIDDEN, alpha=1e-3, max_iter=400, random_state=SEED).fit(train_images, train_labels)
    weights: dict[str, npt.NDArray[np.float16]] = {}
    for layer, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_), 1):
        weights[f"w{layer}"] = np.ascontiguousarray(weight.T.astype(np.float16))
        weights[f"b{layer}"] = bias.astype(np.float16)
    save_file(weights, HERE / "weights.safetensors")
    np.savez_compressed(HERE / "heldout.npz", images=test_images.astype(np.float16))
    np.save(HERE / "labels.npy", test_labels.astype(np.uint8))
    shapes = [(weights[f"w{layer}"].shape[0], weights[f"w{layer}"].shape[1]) for layer in range(1, len(HIDDEN) + 2)]
    (HERE / "graph.json").write_text(dump(graph(shapes)), encoding="utf-8")
    print(f"held-out accuracy in scikit-learn: {model.score(test_images, test_labels):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
