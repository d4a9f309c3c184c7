"""tile-loops: kernels that a graph's ``loops`` ask to tile run tile by tile inside counted loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.diagnostics import Location, refuse
from spyrec.ir.access import Access, Coordinate
from spyrec.ir.graph import Node, location_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, Use, copy_kernel
from spyrec.ir.kernel_form import Rule
from spyrec.ir.types import TensorType
from spyrec.passes.assign_layouts.layout_candidates import layout_of_pin
from spyrec.passes.base import PassContext, Refused, TileGroup
from spyrec.passes.tile_loops.accumulation import accumulate, can_accumulate
from spyrec.passes.tile_loops.cutting import DimTiles, loses_digit
from spyrec.passes.tile_loops.expansion import Expansion, is_followable
from spyrec.passes.tile_loops.levels import Path, TileLevel, nodes_by_place, read_levels
from spyrec.passes.tile_loops.order import group_together, refuse_outside_dependences
from spyrec.passes.tile_loops.placement import per_tile_depths, with_full_copies
from spyrec.passes.tile_loops.segments import part_groups
from spyrec.passes.tile_loops.symbolic import refuse_symbolic_sums
from spyrec.passes.tile_loops.tree import LoopTree, dim_of


def tile_loops(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Return the graph with its requested loops, or those of ``tile_groups``; without either the graph itself.

    ``for [i<1024] y[i] = a[i] + b[i]  -->  loop l<2: for [i<512] y[512 l + i] = a[512 l + i] + b[512 l + i]``

    A kernel stands in the longest run of its requested loops, from the outermost, whose dims it has.  Where it reads
    another tile than the one being written, or the whole of a reduction, the loop ends and a sibling loop begins.
    Errors: SPY0420 more tiles than elements, SPY0421 a dim name on two axes of one operation, SPY0424 a group that
    depends on itself through an operation outside of it, SPY0425 a sum over a symbolic dim without whole tiles.
    """
    source = graph.source
    assert source is not None, "the driver hands the source graph on"
    groups = context.options.tile_groups
    if not source.loops and not groups:
        refuse_symbolic_sums(graph, {kernel.name: () for kernel in graph.kernels})
        return graph
    if groups:
        graph, paths, extents = _in_groups(graph, groups)
    else:
        refuse_outside_dependences(source)
        paths, extents = levels_of_kernels(graph), source.extents
    refuse_symbolic_sums(graph, paths)
    buffers = dict(graph.buffers)
    kernels = _with_written_views(graph.kernels, paths, buffers)
    kernels = group_together(kernels, paths)
    borders = part_groups(kernels, paths, buffers, context.options)
    tree = LoopTree()
    for kernel in kernels:
        if kernel.name in borders:
            tree.close()
        _add(tree, kernel, paths[kernel.name], buffers)
    with_full_copies(tree.body, buffers)
    expansion = Expansion(buffers, extents, source.symbolic_dims, per_tile_depths(tree.body, buffers))
    expansion.run(tree.body)
    places = {name: use for name, use in graph.places.items() if use.buffer in expansion.buffers}
    tiled = replace(graph, buffers=expansion.buffers, kernels=tuple(expansion.kernels), loops=expansion.loops)
    return replace(tiled, places=places)


def levels_of_kernels(graph: KernelGraph) -> dict[str, Path]:
    """Return the levels of the source graph's loops that each kernel can stand in, by its name.

    Errors: SPY0420, SPY0421 as :func:`tile_loops`.
    """
    assert graph.source is not None
    nodes = nodes_by_place(graph.source)
    requested = read_levels(graph.source, _stick_lanes(graph, nodes))
    extents = graph.source.extents
    paths: dict[str, Path] = {}
    for kernel in graph.kernels:
        node = nodes.get(location_of(kernel.origin))
        paths[kernel.name] = () if node is None else _possible(kernel, requested.get(node.name, ()), extents)
    return paths


def _in_groups(graph: KernelGraph, groups: Sequence[TileGroup]) -> tuple[KernelGraph, dict[str, Path], dict[str, int]]:
    """Return the graph with a name for the dim that each group tiles, the levels by kernel, and the names' extents."""
    paths: dict[str, Path] = {kernel.name: () for kernel in graph.kernels}
    kernels = {kernel.name: kernel for kernel in graph.kernels}
    extents: dict[str, int] = {}
    for number, group in enumerate(groups):
        level = TileLevel(f"axis{number}", group.tile, Location())
        extents[level.dim] = group.extent
        for name, tiled in sorted(group.dims):
            if not paths[name]:
                paths[name] = (level,)
                names = tuple(level.dim if dim == tiled else None for dim in range(len(kernels[name].extents)))
                kernels[name] = replace(kernels[name], dims=names)
    return graph.with_kernels(tuple(kernels.values())), paths, extents


def _stick_lanes(graph: KernelGraph, nodes: Mapping[Location, Node]) -> dict[str, dict[str, int]]:
    """Return, by node, the dims that come last in a buffer of its kernels or are contracted, and a stick's lanes."""
    found: dict[str, dict[str, int]] = {}
    for kernel in graph.kernels:
        node = nodes.get(location_of(kernel.origin))
        if node is None or not kernel.dims:
            continue
        own = found.setdefault(node.name, {})
        for use in kernel.uses:
            lanes = graph.buffers[use.buffer].device_format.elements_per_stick
            last = _stick_coordinates(graph.buffers[use.buffer], use)
            dims = [term.dim for coordinate in last for term in coordinate.terms if term.coefficient == 1]
            for dim in (*dims, *(kernel.reduced if kernel.rule is Rule.CONTRACTION else ())):
                name = kernel.dims[dim]
                if name is not None and lanes is not None:
                    own[name] = max(lanes, own.get(name, 1))
    return found


def _stick_coordinates(buffer: KernelBuffer, use: Use) -> tuple[Coordinate, ...]:
    """Return the coordinate of the dim that lies in sticks: the last one, or what a pin says."""
    if buffer.pin is None:
        return use.access.coordinates[-1:]
    pinned = layout_of_pin(buffer, buffer.pin)
    if isinstance(pinned, Refused):
        raise pinned.error
    stick_dim = pinned.stick_dim
    return () if stick_dim is None else (use.access.coordinates[stick_dim],)


def _possible(kernel: Kernel, path: Path, extents: Mapping[str, int]) -> Path:
    """Return the longest run of levels whose dims a kernel has, or whose results it can combine."""
    found: list[int] = []
    for level in path:
        if kernel.dims.count(level.dim) > 1:
            raise refuse(
                "SPY0421",
                f'{kernel.op}, made from a node that is tiled along "{level.dim}", has two dims of that name',
                location_of(kernel.origin),
                notes=(f"its dims are named {', '.join(str(name) for name in kernel.dims)}",),
                hint="give the axes different dim names",
            )
        dim = dim_of(kernel, level)
        if dim is None or kernel.extents[dim] != extents[level.dim]:
            break
        same = [other for other in path[: len(found) + 1] if other.dim == level.dim]
        if dim in kernel.reduced and not can_accumulate(kernel, tile_sizes(extents[level.dim], same)):
            break
        found.append(dim)
    return path[: len(found)]


def tile_sizes(extent: int, levels: Sequence[TileLevel]) -> tuple[int, ...]:
    """Return the sizes of the innermost tiles of an extent, in order, under loops over its dim."""
    sizes = [extent]
    for level in levels:
        sizes = [part for size in sizes for part in _parts(size, min(level.tile, size))]
    return tuple(sizes)


def _parts(size: int, tile: int) -> list[int]:
    rest = size % tile
    return [tile] * (size // tile) + ([rest] if rest else [])


def _add(tree: LoopTree, kernel: Kernel, path: Path, buffers: dict[str, KernelBuffer]) -> None:
    depth = next((depth for depth, level in enumerate(path) if dim_of(kernel, level) in kernel.reduced), None)
    if depth is None:
        tree.add(kernel, path)
        return
    parts = accumulate(kernel, buffers)
    for buffer in parts.buffers:
        buffers.setdefault(buffer.name, buffer)
    tree.open_for(kernel, path)
    tree.add_before(parts.before, depth)
    for inner in parts.inside:
        tree.add_inside(inner, depth if inner.output.buffer == parts.total else None)
    if parts.after is not None:
        tree.add(parts.after, path[:depth])


def _with_written_views(
    kernels: Sequence[Kernel], paths: dict[str, Path], buffers: dict[str, KernelBuffer]
) -> tuple[Kernel, ...]:
    """Write out, outside of all loops, the operands whose views the tiles would cut apart."""
    result: list[Kernel] = []
    for kernel in kernels:
        tiles = [
            DimTiles(dim, 0, level.tile, 1)
            for level in paths[kernel.name]
            for dim in [dim_of(kernel, level)]
            if dim is not None
        ]
        inputs: list[Use] = []
        for position, use in enumerate(kernel.inputs):
            if is_followable(use.access, tiles) and not loses_digit(use.access, tiles):
                inputs.append(use)
                continue
            copy = _written_view(kernel, position, buffers)
            paths[copy.name] = ()
            result.append(copy)
            inputs.append(Use(copy.output.buffer, copy.output.access))
        result.append(replace(kernel, inputs=tuple(inputs)))
    return tuple(result)


def _written_view(kernel: Kernel, position: int, buffers: dict[str, KernelBuffer]) -> Kernel:
    use = kernel.inputs[position]
    name = f"{kernel.name}.view{position}"
    whole = Access.identity(kernel.extents)
    dtype = buffers[use.buffer].type.dtype
    buffers[name] = KernelBuffer(name, TensorType(kernel.extents, dtype), BufferRole.INTERMEDIATE, kernel.origin)
    copy = copy_kernel(name, use, Use(name, whole), kernel.origin)
    return replace(copy, reason="tiles would cut the digits of a reshape apart")
