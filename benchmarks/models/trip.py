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
from spyrec.ir.evaluate import apply_reference, node_operands
from spyrec.ir.graph import Graph
from spyrec.ir.numbers import as_computed, decode

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[np.generic]
Form = Literal["pt2", "onnx"]

_SIMULATED_RUNS = 8
_SAFETY = 4.0
_ROUNDOFF = 2.0**-10
"""Half a unit in the last place of DLFloat16, which has nine fraction bits."""


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
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model.{form}")
        names = _export(example, path)
        start = time.perf_counter()
        builder = spyrec.import_program(path) if form == "pt2" else spyrec.import_onnx(path)
        graph = builder.build()
        imported = time.perf_counter()
        bundle = spyrec.compile(builder)
        compiled = time.perf_counter()
        given = _given(example, names, graph)
        result = spyrec.run(bundle, given, spyrec.RunOptions(check=True))
        ran = time.perf_counter()
        wanted = _wanted(example)
    error = _relative([result.outputs[output].astype(np.float64) for output in graph.outputs], wanted)
    is_checked = all(report.ok for report in (result.check or {}).values())
    times = (imported - start, compiled - imported, ran - compiled)
    return Trip(name, form, len(graph.nodes), is_checked, error, tolerance(graph, given), *times)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
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


def _export(example: Example, path: Path) -> list[str]:
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

    leaves = torch.utils._pytree.tree_leaves((example.arguments, dict(example.keywords)))  # noqa: SLF001 -- no public one
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _given(example: Example, names: Sequence[str], graph: Graph) -> dict[str, Array]:
    """Return the inputs that the graph kept, floats in its dtype."""
    found: dict[str, Array] = {}
    for name, tensor in zip(names, _tensors(example), strict=True):
        if name in graph.inputs:
            dtype = graph.type_of(name).dtype
            found[name] = tensor.numpy().astype(dtype.carrier) if dtype.is_float else tensor.numpy()
    return found


def _wanted(example: Example) -> list[npt.NDArray[np.float64]]:
    """Return what torch computes in float64."""
    import torch

    def widened(leaf: object) -> object:
        return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    tree_map = torch.utils._pytree.tree_map  # noqa: SLF001 -- no public one
    with torch.no_grad():
        result = example.module.double()(
            *tree_map(widened, example.arguments), **tree_map(widened, dict(example.keywords))
        )
    leaves = torch.utils._pytree.tree_leaves(result)  # noqa: SLF001 -- no public one
    return [leaf.double().numpy().astype(np.float64) for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _relative(found: Sequence[npt.NDArray[np.float64]], wanted: Sequence[npt.NDArray[np.float64]]) -> float:
    """Return the largest error of an output over its largest magnitude."""
    worst = 0.0
    for left, right in zip(found, wanted, strict=True):
        assert left.shape == right.shape, (left.shape, right.shape)
        if right.size:
            scale = float(np.abs(right).max())
            worst = max(worst, float(np.abs(left - right).max()) / max(scale, 1e-9))
    return worst


def tolerance(graph: Graph, given: Mapping[str, Array]) -> float:
    """Return four times the largest error that random roundings of every value made in eight runs."""
    exact = _simulated(graph, given, None)
    runs = [_simulated(graph, given, np.random.default_rng(seed)) for seed in range(_SIMULATED_RUNS)]
    return _SAFETY * max(_relative(run, exact) for run in runs)


def _simulated(
    graph: Graph, given: Mapping[str, Array], random: np.random.Generator | None
) -> list[npt.NDArray[np.float64]]:
    """Return the outputs of a graph in float64; ``random`` rounds every float to one of its neighbours."""
    values: dict[str, Array] = {name: decode(array, graph.type_of(name).dtype) for name, array in given.items()}
    for name, data in graph.constants.items():
        assert data.array is not None
        values[name] = decode(np.asarray(data.array), graph.type_of(name).dtype)
    for node in graph.nodes:
        with np.errstate(all="ignore"):
            results = apply_reference(node, node_operands(graph, node, values))
        for name, result in zip(node.outputs, results, strict=False):
            dtype = graph.type_of(name).dtype
            made = as_computed(result, dtype)
            is_rounded = random is not None and dtype.is_float and not node.on_host
            if is_rounded and random is not None:
                made = made.astype(np.float64) * (1 + _ROUNDOFF * random.uniform(-2, 2, made.shape))
            values[name] = made
    return [values[name].astype(np.float64) for name in graph.outputs]
