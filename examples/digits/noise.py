"""Load the digits classifier once and call it again and again, with more noise in the images each time.

Prints the accuracy at each level of noise; two threads share the model, whose calls take turns::

    python examples/digits/noise.py
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

import spyrec

HERE = Path(__file__).resolve().parent
LEVELS = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Standard deviations of the noise; a pixel is 0 to 1."""


def accuracies() -> dict[float, float]:
    """Return the share of right predictions by level of noise."""
    with np.load(HERE / "heldout.npz", allow_pickle=False) as archive:
        images: npt.NDArray[np.float16] = archive["images"]
    labels: npt.NDArray[np.int64] = np.load(HERE / "labels.npy", allow_pickle=False)
    noise = np.random.Generator(np.random.PCG64(0)).standard_normal(images.shape, dtype=np.float32)

    with spyrec.load(spyrec.compile(HERE / "graph.json")) as model, ThreadPoolExecutor(2) as threads:

        def accuracy(level: float) -> float:
            outputs = model(images=np.add(images, level * noise, dtype=np.float32).astype(np.float16))
            predicted: npt.NDArray[np.intp] = np.asarray(outputs["probabilities"]).astype(np.float64).argmax(axis=1)
            return np.count_nonzero(predicted == labels) / len(labels)

        return dict(zip(LEVELS, threads.map(accuracy, LEVELS), strict=True))


def main() -> int:
    """Print the table; return 1 where noise does not make the network worse."""
    found = accuracies()
    for level, accuracy in found.items():
        print(f"noise {level:.1f}  accuracy {accuracy:7.2%}")
    return 0 if found[LEVELS[0]] > found[LEVELS[-1]] else 1


if __name__ == "__main__":
    sys.exit(main())
