"""What the reference evaluator of the onnx package computes of a model in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.diagnostics import Location, refuse
from spyrec.frontends.model_import.source_graph import HostArray, ReferenceRun
from spyrec.frontends.model_import.symbolic_sizes import DimChoice
from spyrec.frontends.onnx.model import DTYPES, OnnxModel, load_onnx, weight_of
from spyrec.ir.numbers import decode

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

_DOUBLE = 11
_FLOATS = frozenset(number for number, (name, _) in DTYPES.items() if "float" in name)


def run_in_float64(path: Path, dims: Mapping[str, DimChoice], given: Mapping[str, HostArray]) -> ReferenceRun:
    """Compute a model with the reference evaluator, floats in float64.

    ``given``: inputs by name; one that is missing, because no output depends on it, is zeros.
    Errors: SPY0160 to SPY0164.
    """
    from onnx.reference import ReferenceEvaluator

    model = load_onnx(path, dims)
    _widen(model.proto.graph, model)
    largest = {name: dim if isinstance(dim, int) else dim.largest for name, dim in dims.items()}
    missing = {item.name: item for item in model.proto.graph.input if item.name not in given}
    zeros = {
        name: np.zeros(
            [dim.dim_value or largest.get(dim.dim_param, 1) for dim in item.type.tensor_type.shape.dim],
            DTYPES[item.type.tensor_type.elem_type][1],
        )
        for name, item in missing.items()
    }
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(model.proto)
            run = cast("Callable[[None, Mapping[str, HostArray]], list[HostArray]]", evaluator.run)  # pyright: ignore[reportUnknownMemberType] -- it is untyped
            results = run(None, {**_typed(model.proto.graph, given), **zeros})
    except Exception as error:  # noqa: BLE001 -- the package raises what its operators raise
        message = f"the reference evaluator of the onnx package does not run the model: {str(error)[:300]}"
        raise refuse("SPY0164", message, Location(str(path))) from None
    return ReferenceRun(dict(given), tuple(np.asarray(result) for result in results), {})


def _typed(graph: GraphProto, given: Mapping[str, HostArray]) -> dict[str, HostArray]:
    """Return inputs with whole numbers in the dtypes that the model has them in; floats are float64."""
    dtypes = {item.name: DTYPES[item.type.tensor_type.elem_type][1] for item in graph.input if item.name in given}
    return {name: array if array.dtype.kind == "f" else array.astype(dtypes[name]) for name, array in given.items()}


def _widen(graph: GraphProto, model: OnnxModel) -> None:
    """Make float64 of every float that the graph names or holds; what lies in other files is taken in."""
    from onnx import numpy_helper

    for tensor in _tensors(graph):
        is_outside = tensor.data_location == tensor.EXTERNAL
        if tensor.data_type in _FLOATS or is_outside:
            weight = weight_of(tensor, model)
            numbers = np.asarray(weight.read())
            if tensor.data_type in _FLOATS:
                numbers = np.asarray(decode(numbers, weight.dtype))
            tensor.CopyFrom(numpy_helper.from_array(numbers.reshape(weight.shape), tensor.name))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in _FLOATS:
            value.type.tensor_type.elem_type = _DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype") and attribute.i in _FLOATS:
                attribute.i = _DOUBLE
            if attribute.HasField("g"):
                _widen(attribute.g, model)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        yield from _held(node)


def _held(node: NodeProto) -> Iterator[TensorProto]:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
