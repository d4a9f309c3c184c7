"""One model's way: export, import, compile, run with a check, and compare with torch in float64.

The tolerance is what rounding does: four times the largest of eight runs of the float64 graph in which every value is
rounded to a random neighbour of 16 bits.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

import spyrec
from benchmarks.models.architectures import Example, build
from spyrec.compare.random_roundings import relative_error, rounding_errors
from spyrec.ir.graph import Graph

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[np.generic]
Form = Literal["pt2", "onnx"]

_SAFETY = 4.0


@dataclass(frozen=True, slots=True)
class Distance:
    """The error of an output over its largest magnitude, and what it may be."""

    error: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Trip:
    """What was found: the largest error over the largest magnitude of an output, what it may be, and the seconds."""

    name: str
    form: Form
    nodes: int
    is_checked: bool
    error: float
    tolerance: float
    import_s: float
    compile_s: float
    run_s: float

    @property
    def is_right(self) -> bool:
        """Whether the check holds and the error is within what rounding does."""
        return self.is_checked and self.error <= self.tolerance


def travel(name: str, form: Form) -> Trip:
    """Take one model through; raises what any step raises."""
    example = build(name)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model.{form}")
        names = export(example, path)
        start = time.perf_counter()
        builder = spyrec.import_program(path) if form == "pt2" else spyrec.import_onnx(path)
        graph = builder.build()
        imported = time.perf_counter()
        bundle = spyrec.compile(builder)
        compiled = time.perf_counter()
        given = {**given_inputs(example, names, graph), **_state(graph, path)}
        result = spyrec.run(bundle, given, spyrec.RunOptions(check=True))
        ran = time.perf_counter()
        wanted = wanted_outputs(example)
    worst = distance(graph, given, result.outputs, wanted)
    is_checked = all(report.ok for report in (result.check or {}).values())
    times = (imported - start, compiled - imported, ran - compiled)
    return Trip(name, form, len(graph.nodes), is_checked, worst.error, worst.tolerance, *times)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the exporters from talking."""
    sink = io.StringIO()
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def export(example: Example, path: Path) -> list[str]:
    """Write a model and return the names of its inputs in the order of its tensors."""
    import torch

    keywords = dict(example.keywords)
    with torch.no_grad():
        if path.suffix == ".onnx":
            torch.onnx.export(example.module, example.arguments, str(path), kwargs=keywords, dynamo=True, verbose=False)
            import onnx

            return [item.name for item in onnx.load_model(str(path), load_external_data=False).graph.input]
        program = torch.export.export(example.module, example.arguments, kwargs=keywords, strict=False)
        torch.export.save(program, str(path))
        kinds = [spec.kind.name == "USER_INPUT" for spec in program.graph_signature.input_specs]
        specs = zip(kinds, program.graph_signature.input_specs, strict=True)
        return [spec.arg.name for is_user, spec in specs if is_user and type(spec.arg).__name__ == "TensorArgument"]


def _tensors(example: Example) -> list[torch.Tensor]:
    import torch
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves((example.arguments, dict(example.keywords)))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def given_inputs(example: Example, names: Sequence[str], graph: Graph) -> dict[str, Array]:
    """Return the inputs that the graph kept, floats in its dtype."""
    tensors = zip(names, _tensors(example), strict=True)
    return {name: _as_given(tensor, graph, name) for name, tensor in tensors if name in graph.inputs}


def _state(graph: Graph, path: Path) -> dict[str, Array]:
    """Return what the program's file holds of the weights and buffers that it changes: inputs of the graph."""
    import torch

    if not graph.updates:
        return {}
    program = torch.export.load(str(path))
    keys = {**program.graph_signature.inputs_to_parameters, **program.graph_signature.inputs_to_buffers}
    tensors = {**program.state_dict, **program.constants}
    return {name: _as_given(tensors[keys[name]], graph, name) for name in graph.updates.values() if name in keys}


def _as_given(tensor: torch.Tensor, graph: Graph, name: str) -> Array:
    array, dtype = tensor.detach().numpy(), graph.type_of(name).dtype
    return array.astype(dtype.carrier) if dtype.is_float else array


def wanted_outputs(example: Example) -> list[npt.NDArray[np.float64]]:
    """Return what torch computes in float64."""
    import torch
    from torch.utils import _pytree

    def widened(leaf: object) -> object:
        return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    with torch.no_grad():
        result = example.module.double()(
            *_pytree.tree_map(widened, example.arguments), **_pytree.tree_map(widened, dict(example.keywords))
        )
    leaves = _pytree.tree_leaves(result)
    return [leaf.double().numpy().astype(np.float64) for leaf in leaves if isinstance(leaf, torch.Tensor)]


def distance(graph: Graph, given: Mapping[str, Array], found: Mapping[str, Array], wanted: Sequence[Array]) -> Distance:
    """Return how far the output is off that is furthest from what it may be; new contents of state are left out."""
    allowed = rounding_errors(graph, given)
    outputs = [name for name in graph.outputs if name not in graph.updates]
    distances = [
        Distance(relative_error(found[name], right), _SAFETY * allowed[name])
        for name, right in zip(outputs, wanted, strict=True)
    ]
    return max(distances, key=lambda item: item.error / item.tolerance if item.tolerance else float(item.error > 0))
