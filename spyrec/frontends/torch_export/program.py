"""``spyrec.import_program``: a program of ``torch.export``, from memory or from a ``.pt2`` file, as a graph."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spyrec.diagnostics import refuse
from spyrec.frontends.model_import.source_graph import HostArray, SourceGraph, Weight, Weights, weight_dtype
from spyrec.frontends.model_import.symbolic_sizes import DimChoice
from spyrec.frontends.torch_export.archive import LOST, read_archive
from spyrec.frontends.torch_export.foreign_operations import foreign_operations
from spyrec.frontends.torch_export.kept import kept_operations
from spyrec.frontends.torch_export.lower import lower
from spyrec.frontends.torch_export.program_process import traced
from spyrec.frontends.torch_export.traced import TracedProgram

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


def read_program(
    program: ExportedProgram | str | os.PathLike[str], dims: Mapping[str, DimChoice], keep_ops: Sequence[str] = ()
) -> tuple[SourceGraph, Weights]:
    """Return a program as a graph in its own dtypes, and its weights; no more of them is in memory than a piece.

    ``dims``: extents of symbolic dims, or their bounds.  ``keep_ops``: operations that are one op each.
    Errors: SPY0160 to SPY0165 for a file, SPY0164 for a program in memory, SPY0167 an operation cannot be kept, SPY0168
    the bounds.
    """
    kept = kept_operations(keep_ops)
    if isinstance(program, str | os.PathLike):
        archive = read_archive(Path(program))
        foreign = foreign_operations(archive.program)
        if foreign:
            return SourceGraph(None, (), foreign), archive.weights()
        archive.check_contents()
        return lower(traced(archive, _bound(dims), kept), dims, kept), archive.weights()
    return lower(_traced_here(program, _bound(dims), kept), dims, kept), weights_of(program)


def _traced_here(program: ExportedProgram, bound: Mapping[str, int | None], kept: Collection[str]) -> TracedProgram:
    """Return a program of this process as data.  Errors: SPY0164."""
    from spyrec.frontends.torch_export.walk import decomposed, walk_decomposed

    lost = next((key for key, tensor in program.constants.items() if _is_without_numbers(tensor)), None)
    if lost is not None:
        raise refuse("SPY0164", f'torch.export lost the numbers of the constant "{lost}"', hint=LOST)
    try:
        found = decomposed(program, kept)
    except Exception as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise refuse("SPY0164", f"torch does not take the program apart: {first[:300]}") from error
    return walk_decomposed(program, found, bound)


def _is_without_numbers(tensor: object) -> bool:
    """Whether a tensor is one that torch traced with, and that was never computed."""
    import torch
    from torch._C._functorch import is_functorch_wrapped_tensor
    from torch._subclasses import FakeTensor

    is_wrapped = isinstance(tensor, torch.Tensor) and is_functorch_wrapped_tensor(tensor)
    return is_wrapped or isinstance(tensor, FakeTensor)


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
