"""``spyrec.import_program`` and ``spyrec.import_onnx``: models as people have them, as graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from spyrec.diagnostics import Diagnostic, SpyrecError, refuse
from spyrec.hardware.dtypes import DType

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch.export import ExportedProgram

    from spyrec.frontends.graph_builder import GraphBuilder
    from spyrec.frontends.model_import.imported import ImportedModel
    from spyrec.frontends.model_import.source_graph import Problem, SourceGraph, Weights

ImportDType = Literal["float16", "bfloat16", "keep"]
DTYPES: tuple[ImportDType, ...] = ("float16", "bfloat16", "keep")

_NO_DIMS: Mapping[str, int | str] = {}


def import_program(
    program: ExportedProgram | str | os.PathLike[str],
    dtype: ImportDType = "float16",
    *,
    dims: Mapping[str, int | str] = _NO_DIMS,
    keep_ops: Sequence[str] = (),
) -> GraphBuilder:
    """Return a program of ``torch.export`` as a graph, its weights included.

    ``program``: an ``ExportedProgram``, or the path of a ``.pt2`` file.  ``dtype``: what its floats become; ``keep``
    leaves them.  ``dims``: of its symbolic dims by name, an extent, or bounds within
    its own, ``"64:4096:64"`` (least, most, multiple).  ``keep_ops``: operations that are one op of the graph
    whatever they could be taken apart into: ``mylib::rms_norm``, or ``mylib::norm=rms_norm`` where an op is called
    otherwise; their tensors are its operands, in order.
    Errors: SPY0160 to SPY0165 for a file, SPY0166 each thing of the program that a graph does not have, SPY0167 an
    operation that cannot be kept, SPY0168 the dims, SPY0771 for a dtype that is no choice.
    """
    from spyrec.frontends.graph_builder import GraphBuilder
    from spyrec.frontends.model_import.symbolic_sizes import choices
    from spyrec.frontends.torch_export.program import read_program

    check_dtype(dtype)
    source, weights = read_program(program, choices(dims), keep_ops)
    return GraphBuilder.of(settled(source, weights, dtype).in_memory())


def import_onnx(
    model: ModelProto | str | os.PathLike[str],
    dtype: ImportDType = "float16",
    *,
    dims: Mapping[str, int | str] = _NO_DIMS,
    keep_ops: Sequence[str] = (),
) -> GraphBuilder:
    """Return an ONNX model as a graph, its weights included; torch is not needed.

    ``model``: a ``ModelProto``, or the path of a ``.onnx`` file, whose external data lie in its directory.  The rest as
    :func:`import_program`; ``keep_ops``: functions of the model, ``MyGelu=Gelu``, that are an operator of ONNX each.
    """
    from spyrec.frontends.graph_builder import GraphBuilder
    from spyrec.frontends.model_import.symbolic_sizes import choices
    from spyrec.frontends.onnx.model import read_onnx

    check_dtype(dtype)
    source, weights = read_onnx(model, choices(dims), keep_ops)
    return GraphBuilder.of(settled(source, weights, dtype).in_memory())


def check_dtype(dtype: str) -> None:
    """Refuse a dtype that is no choice.  Errors: SPY0771."""
    if dtype not in DTYPES:
        raise refuse("SPY0771", f"dtype is {dtype!r:.60}, and the choices are {', '.join(DTYPES)}")


def settled(source: SourceGraph, weights: Weights, dtype: ImportDType) -> ImportedModel:
    """Return a source graph as a model.  Errors: SPY0166, all at once."""
    from spyrec.frontends.model_import.imported import finish

    if source.problems:
        raise SpyrecError(problem_diagnostics(source.problems))
    if source.graph is None:
        raise refuse("SPY0137", "the program has no outputs")
    return finish(source, weights, None if dtype == "keep" else DType(dtype))


def problem_diagnostics(problems: Sequence[Problem]) -> list[Diagnostic]:
    """Return one diagnostic for each kind of problem: how often, with which dtypes, and where the first one is."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.what, problem.reason), []).append(problem)
    found: list[Diagnostic] = []
    for (what, reason), items in groups.items():
        dtypes = sorted({", ".join(item.dtypes) for item in items})
        said = [f"{len(items)} times"] if len(items) > 1 else []
        said += [f"operands: {'; '.join(dtypes[:4])}"] if any(dtypes) else []
        notes = [", ".join(said)] if said else []
        places = [str(item.place) for item in items if item.place is not None]
        notes += [f"in {place}" for place in places[:3]]
        if len(places) > 3:
            notes.append(f"and in {len(places) - 3} more places")
        found.append(Diagnostic("SPY0166", f"{what}: {reason}", None, tuple(notes), items[0].hint))
    return found
