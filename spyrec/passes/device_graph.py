"""The graph of device ops that a user's graph becomes, for tools that evaluate it.

A matmul tiled along what it contracts rounds like a sum of float16 products in float32.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph
from spyrec.ir.kernel_form import Rule
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.movement import ToAttributes
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.passes.base import PassContext, PipelineOptions
from spyrec.passes.builder import GraphRewriter, NodeBuilder
from spyrec.passes.form_kernels import form_kernels
from spyrec.passes.pipelines import DEVICE_GRAPH
from spyrec.passes.tile_loops import levels_of_kernels, tile_sizes
from spyrec.passes.tile_loops.tree import dim_of
from spyrec.passes.unpack_weights import unpack_weights


def device_graph(graph: Graph, *, has_windows: bool = False) -> Graph:
    """Return the graph whose nodes are device ops, views and movements only.

    ``has_windows``: as in the options of the pipeline.
    """
    context = PassContext(PipelineOptions(has_windows=has_windows), [])
    graph = unpack_weights(graph)
    for item in DEVICE_GRAPH:
        graph = item.run(graph, context)
    return graph


def rounding_graph(graph: Graph, *, has_windows: bool = False) -> Graph:
    """Return the device graph that rounds where the compiled one does: the tiles of tiled matmuls are its nodes too."""
    return _with_tiled_products(device_graph(graph, has_windows=has_windows), graph)


def _with_tiled_products(device: Graph, source: Graph) -> Graph:
    """Return a device graph in which every matmul that ``source`` tiles along its contracted dim is a sum of tiles.

    ``c = a @ b  -->  c = float16(float32(a[:, :64] @ b[:64]) + float32(a[:, 64:] @ b[64:]))``
    """
    if not source.loops:
        return device
    tiles = _contracted_tiles(device, source)
    builder = GraphRewriter(device, "tile-loops")
    for node in device.nodes:
        sizes = tiles.get(node.outputs[0])
        if sizes is None:
            builder.nodes.append(node)
            continue
        inner = NodeBuilder(builder, node, "tile-loops")
        _sum_of_products(inner, sizes)
        *others, last = inner.emitted
        builder.nodes.extend((*others, replace(last, name=node.name, outputs=node.outputs)))
    return replace(device, nodes=tuple(builder.nodes), values=builder.values, constants=builder.constants)


def _contracted_tiles(device: Graph, source: Graph) -> dict[str, tuple[int, ...]]:
    """Return the sizes of the tiles of the contracted dim, in order, by the name of the result."""
    formed = replace(form_kernels(device, PassContext(PipelineOptions(), [])), source=source)
    paths = levels_of_kernels(formed)
    found: dict[str, tuple[int, ...]] = {}
    for kernel in formed.kernels:
        levels = [level for level in paths[kernel.name] if dim_of(kernel, level) in kernel.reduced]
        if kernel.rule is Rule.CONTRACTION and levels:
            found[kernel.name] = tile_sizes(kernel.extents[-1], levels)
    return found


def _sum_of_products(builder: NodeBuilder, sizes: tuple[int, ...]) -> None:
    left, right = builder.node.inputs
    total: str | None = None
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        columns = builder.emit("slice", left, attributes=SliceAttributes(-1, end - size, end))
        rows = builder.emit("slice", right, attributes=SliceAttributes(-2, end - size, end))
        product = builder.emit("spyre.batchmatmul", columns, rows)
        partial = builder.emit("to", product, attributes=ToAttributes(DType.FLOAT32))
        total = partial if total is None else builder.emit("add", total, partial, attributes=AlphaAttributes())
    builder.emit("to", total, attributes=ToAttributes(DType.FLOAT16))
