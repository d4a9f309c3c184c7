"""Compare the product that the emulated device computed with NumPy's, in float64::

python examples/foreign_bundle/compare.py product.npz
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

SEED = 1  # of `spyrec run --random 1`
LARGEST_ERROR = 2.0**-8  # a few roundings to the 10 significant bits of DLFloat16


def main(path: Path) -> int:
    """Print the worst error in units of the largest product; return 1 where it is too large."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    left, right = (generator.standard_normal(shape, dtype=np.float32) for shape in ((512, 256), (256, 1024)))
    rounded = (matrix.astype(np.float16).astype(np.float64) for matrix in (left, right))
    want = next(rounded) @ next(rounded)
    with np.load(path, allow_pickle=False) as archive:
        got: npt.NDArray[np.float16] = archive["c"]
    error = float(np.abs(got.astype(np.float64) - want).max() / np.abs(want).max())
    print(f"{got.shape[0]} x {got.shape[1]} products, worst error {error:.1e} of the largest")
    return 0 if error <= LARGEST_ERROR else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
