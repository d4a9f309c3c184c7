"""The graph of device ops that a user's graph becomes, for tools that evaluate it."""

from __future__ import annotations

from spyrec.diagnostics import DiagnosticSink
from spyrec.ir.graph import Graph
from spyrec.passes.base import PassContext, PipelineOptions
from spyrec.passes.pipelines import DEVICE_GRAPH
from spyrec.passes.tile_loops.products import with_tiled_products


def device_graph(graph: Graph) -> Graph:
    """Return the graph whose nodes are device ops, views and movements only."""
    context = PassContext(PipelineOptions(), DiagnosticSink(), [])
    for item in DEVICE_GRAPH:
        graph = item.run(graph, context)
    return graph


def rounding_graph(graph: Graph) -> Graph:
    """Return the device graph that rounds where the compiled one does: the tiles of tiled matmuls are its nodes too."""
    return with_tiled_products(device_graph(graph), graph)
