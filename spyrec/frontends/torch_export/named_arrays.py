"""Arrays by name between this process and the one that torch runs in: an ``.npz`` file without pickled objects."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spyrec.frontends.model_import.source_graph import HostArray


def write_arrays(path: Path, arrays: Mapping[str, HostArray]) -> None:
    """Write arrays; names may be any text, those of NumPy's own parameters included."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)


def read_arrays(path: Path) -> dict[str, HostArray]:
    """Return the arrays that :func:`write_arrays` wrote."""
    with np.load(path, allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
