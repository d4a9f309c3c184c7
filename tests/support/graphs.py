"""Small graphs written in a line, and what the passes make of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import PassContext, PipelineOptions
from spyrec.passes.driver import DriverOptions, compile_graph, run_pipeline
from tests.support.graph_files import JsonObject, graph_data, node, tensor

__all__ = ["JsonObject", "graph_data", "node", "tensor"]  # with what the passes make of them

Arrays = dict[str, npt.NDArray[np.generic]]


def read(data: JsonObject) -> Graph:
    """Return the IR of a graph file's object that names no other file."""
    return read_graph_data(data)


def context(options: PipelineOptions | None = None) -> PassContext:
    """Return what a single pass takes beside the graph."""
    return PassContext(options or PipelineOptions(), [])


def scheduled(data: JsonObject, options: PipelineOptions | None = None) -> KernelGraph:
    """Return the kernels that the whole pipeline makes."""
    return compile_graph(read(data), options or PipelineOptions())


def after(pass_name: str, graph: Graph, options: PipelineOptions | None = None) -> KernelGraph:
    """Return the kernels after one pass, which makes or changes kernels."""
    result = run_pipeline(graph, options or PipelineOptions(), DriverOptions(stop_after=pass_name))
    assert isinstance(result, KernelGraph)
    return result


def random_arrays(data: JsonObject, seed: int = 0) -> Arrays:
    """Return numbers for the inputs: eighths from -2 to 2, so that float16 holds them and their sums exactly."""
    generator = np.random.default_rng(seed)
    arrays: Arrays = {}
    graph = read(data)
    for name in graph.inputs:
        found = graph.type_of(name)
        numbers = np.asarray(generator.integers(-16, 17, found.shape))
        arrays[name] = np.asarray(numbers > 0 if found.dtype is DType.BOOL else numbers / 8).astype(found.dtype.carrier)
    return arrays


def only_diagnostic(error: SpyrecError) -> Diagnostic:
    """Return the one diagnostic of an error."""
    (diagnostic,) = error.diagnostics
    return diagnostic
