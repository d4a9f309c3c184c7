"""What torch computes of a ``.pt2`` program in float64: the reference that an import is verified with."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from spyrec.diagnostics import Location
from spyrec.frontends.model_import.source_graph import HostArray, ReferenceRun
from spyrec.frontends.torch_export.archive import read_archive
from spyrec.frontends.torch_export.named_arrays import read_arrays, write_arrays
from spyrec.frontends.torch_export.program_process import run_with_torch

_MODULE = "spyrec.frontends.torch_export.float64_reader"


def run_in_float64(path: Path, given: Mapping[str, HostArray], *, is_filled: bool = False) -> ReferenceRun | None:
    """Let torch compute a program in float64, in a process of its own.

    ``given``: inputs by the program's names, floats in float64; those that are missing are the program's example
    inputs, and buffers what the file holds.  Where an input is missing that the file holds no example of, as of none
    where one of them is an object of a class (a cache), nothing is computed (``None``); with ``is_filled`` it is zeros.
    Errors: SPY0160 to SPY0165.
    """
    archive = read_archive(path)
    with tempfile.TemporaryDirectory(prefix="spyrec-verify-") as folder:
        stripped, inputs, found = (Path(folder, name) for name in ("stripped.pt2", "given.npz", "found.npz"))
        archive.write_stripped(stripped)
        write_arrays(inputs, given)
        missing = ["zeros"] if is_filled else []
        run_with_torch(_MODULE, [str(stripped), str(path), str(inputs), str(found), *missing], Location(str(path)))
        arrays = read_arrays(found)
    if not arrays:
        return None
    return ReferenceRun(
        _with_prefix(arrays, "in "),
        tuple(_with_prefix(arrays, "out ").values()),
        _with_prefix(arrays, "new "),
        _with_prefix(arrays, "mod "),
    )


def _with_prefix(arrays: Mapping[str, HostArray], prefix: str) -> dict[str, HostArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
