"""``spyrec.import_program``: a program of ``torch.export``, from memory or from a ``.pt2`` file, as a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spyrec.frontends.model_import.source_graph import HostArray, SourceGraph, Weight, Weights, weight_dtype
from spyrec.frontends.model_import.symbolic_sizes import DimChoice
from spyrec.frontends.torch_export.archive import read_archive
from spyrec.frontends.torch_export.foreign_operations import foreign_operations
from spyrec.frontends.torch_export.kept import kept_operations
from spyrec.frontends.torch_export.lower import lower
from spyrec.frontends.torch_export.program_process import traced

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


def read_program(
    program: ExportedProgram | str | os.PathLike[str], dims: Mapping[str, DimChoice], keep_ops: Sequence[str] = ()
) -> tuple[SourceGraph, Weights]:
    """Return a program as a graph in its own dtypes, and its weights; no more of them is in memory than a piece.

    ``dims``: extents of symbolic dims, or their bounds.  ``keep_ops``: operations that are one op each.
    Errors: SPY0160 to SPY0165 for a file, SPY0167 an operation cannot be kept, SPY0168 the bounds.
    """
    kept = kept_operations(keep_ops)
    if isinstance(program, str | os.PathLike):
        archive = read_archive(Path(program))
        foreign = foreign_operations(archive.program)
        if foreign:
            return SourceGraph(None, (), foreign), archive.weights()
        archive.check_contents()
        return lower(traced(archive, _bound(dims), kept), dims, kept), archive.weights()
    from spyrec.frontends.torch_export.walk import walk

    return lower(walk(program, _bound(dims), kept), dims, kept), weights_of(program)


def _bound(dims: Mapping[str, DimChoice]) -> dict[str, int | None]:
    return {name: choice if isinstance(choice, int) else None for name, choice in dims.items()}


def weights_of(program: ExportedProgram) -> Weights:
    """Return the tensors of a program by their keys; nothing of them is read."""
    import torch

    tensors: dict[str, object] = {**program.constants, **program.state_dict}
    return {key: weight_of(tensor) for key, tensor in tensors.items() if isinstance(tensor, torch.Tensor)}


def weight_of(tensor: torch.Tensor) -> Weight:
    """Return a tensor of torch as a weight; NumPy looks at its memory."""
    import torch

    name = str(tensor.dtype).removeprefix("torch.")

    def read() -> HostArray:
        held = tensor.detach().cpu()
        if name == "bfloat16":
            return held.view(torch.int16).numpy().view(np.uint16)
        if name.startswith("float8"):
            return held.view(torch.uint8).numpy()
        return held.numpy()

    place = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.stride()))
    return Weight(weight_dtype(name), tuple(int(extent) for extent in tensor.shape), read, place)
