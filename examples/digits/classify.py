"""Compile the digits classifier, run it on the emulated device on every held-out image, and compare with float64.

Prints both accuracies, the confusion table of the emulated model, bytes moved and cores used::

    python examples/digits/classify.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

import spyrec

HERE = Path(__file__).resolve().parent
CLASSES = 10
LAYERS = 3
LARGEST_ACCURACY_GAP = 0.005

Labels = npt.NDArray[np.intp]


def read_heldout() -> tuple[npt.NDArray[np.float16], Labels]:
    """Return the held-out images ``[360, 64]`` and their labels ``[360]``."""
    with np.load(HERE / "heldout.npz", allow_pickle=False) as archive:
        images: npt.NDArray[np.float16] = archive["images"]
    return images, np.load(HERE / "labels.npy", allow_pickle=False).astype(np.intp)


def classify_float64(images: npt.NDArray[np.float16]) -> Labels:
    """Return the predictions of the same weights in float64, written out by hand: nothing of spyrec is used."""
    weights = load_file(HERE / "weights.safetensors")
    active = images.astype(np.float64)
    for layer in range(1, LAYERS + 1):
        active = active @ weights[f"w{layer}"].astype(np.float64).T + weights[f"b{layer}"].astype(np.float64)
        if layer < LAYERS:
            active = np.maximum(active, 0.0)
    return active.argmax(axis=1)


def accuracy(labels: Labels, predicted: Labels) -> float:
    """Return the share of right predictions, 0 to 1."""
    return np.count_nonzero(predicted == labels) / len(labels)


def confusion_table(labels: Labels, predicted: Labels) -> str:
    """Return digits against predictions as text, a dot for zero."""
    counts = np.zeros((CLASSES, CLASSES), dtype=np.intp)
    np.add.at(counts, (labels, predicted), 1)
    rows = [" digit | predicted " + " ".join(f"{digit:3}" for digit in range(CLASSES))]
    for digit, row in enumerate(counts.tolist()):
        rows.append(f"   {digit}   |           " + " ".join(f"{count or '.':>3}" for count in row))
    return "\n".join(rows)


def main() -> int:
    """Run everything; return 1 where the two accuracies differ by more than half a point."""
    images, labels = read_heldout()
    bundle = spyrec.compile(HERE / "graph.json")
    result = spyrec.run(bundle, {"images": images})
    predicted: Labels = np.asarray(result.outputs["probabilities"]).astype(np.float64).argmax(axis=1)
    emulated = accuracy(labels, predicted)
    exact = accuracy(labels, classify_float64(images))

    print(f"{len(labels)} held-out images of handwritten digits\n")
    print(confusion_table(labels, predicted))
    print(f"\naccuracy   emulated DL16  {emulated:8.2%}\n           float64        {exact:8.2%}")
    total = result.stats.total
    print(f"\nmoved      hbm_read_bytes  {total.hbm_read_bytes:>9,}")
    print(f"           hbm_write_bytes {total.hbm_write_bytes:>9,}")
    cores = [operation.cores for operation in result.stats.ops]
    print(f"\ncores      up to {max(cores)}, in {len(cores)} SuperDSCs")
    return 0 if abs(emulated - exact) <= LARGEST_ACCURACY_GAP else 1


if __name__ == "__main__":
    sys.exit(main())
