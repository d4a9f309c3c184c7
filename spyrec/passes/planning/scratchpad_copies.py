"""Copies between device memory and the scratchpads, and from scratchpads to scratchpads."""

from __future__ import annotations

from dataclasses import replace

from spyrec.device_ops import SHUFFLE
from spyrec.ir.access import Access
from spyrec.ir.device_access import Inexpressible
from spyrec.ir.graph import Derived
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, Use, copy_kernel
from spyrec.ir.kernel_form import Rule
from spyrec.ir.types import TensorType
from spyrec.passes.planning.regions import BufferRegion, fetching_use, layout_of_region
from spyrec.passes.planning.shares import Share, copy_division, owners_of

PASS_NAME = "place-scratchpad"


def twin_of(graph: KernelGraph, buffer: KernelBuffer, region: BufferRegion, number: int) -> KernelBuffer | None:
    """Return the buffer that holds in the scratchpads a region of ``buffer``; ``number`` tells several apart.

    ``None`` where the region is no box of the device layout.
    """
    layout = layout_of_region(buffer.placed, buffer.type.shape, region.shape)
    if layout is None:
        return None
    return KernelBuffer(
        _unused(graph, f"{buffer.name}.lx{number or ''}"),
        TensorType(region.shape, buffer.type.dtype),
        BufferRole.INTERMEDIATE,
        Derived(PASS_NAME, (buffer.origin,)),
        layout=layout,
        home=region.loops,
    )


def again(twin: KernelBuffer, of: str, buffer: KernelBuffer, graph: KernelGraph) -> KernelBuffer:
    """Return a twin of the buffer named ``of`` as the twin of another that is alike."""
    name = _unused(graph, buffer.name + twin.name[len(of) :].rstrip("_"))
    return replace(twin, name=name, origin=Derived(PASS_NAME, (buffer.origin,)))


def _unused(graph: KernelGraph, name: str) -> str:
    while name in graph.buffers:
        name += "_"
    return name


def fetch(
    graph: KernelGraph, buffer: KernelBuffer, region: BufferRegion, twin: KernelBuffer, share: Share
) -> Kernel | None:
    """Return the kernel that fetches a region of ``buffer`` into the scratchpads, every core its own share.

    ``None`` where no division of a copy gives the cores these shares: where two cores hold one slice, for example.
    """
    read = fetching_use(buffer, region)
    write = Use(twin.name, Access.identity(region.shape))
    copy = replace(_copy(twin, read, write, region), dims=_dims(graph, region))
    return _divided(graph, copy, (buffer, twin), 1, share)


def drain(
    graph: KernelGraph, buffer: KernelBuffer, region: BufferRegion, twin: KernelBuffer, share: Share
) -> Kernel | None:
    """Return the kernel that stores what lies in the scratchpads into ``buffer``; ``None`` as for :func:`fetch`."""
    access = Access.identity(region.shape)
    copy = _copy(twin, Use(twin.name, access), Use(buffer.name, access), region)
    return _divided(graph, copy, (buffer, twin), 0, share)


def shuffle(
    graph: KernelGraph, source: KernelBuffer, region: BufferRegion, twin: KernelBuffer, shares: tuple[Share, Share]
) -> Kernel | None:
    """Return the kernel that brings ``source`` from the first of the ``shares`` in LX to ``twin`` in the second.

    ``source`` and ``twin`` hold the region alone.  ``None`` where no two one-to-one divisions of one copy among the
    same cores give these shares.
    """
    access = Access.identity(region.shape)
    copy = _copy(twin, Use(source.name, access), Use(twin.name, access), region)
    copy = replace(copy, name=f"{twin.name}.shuffle", op_func=SHUFFLE, dims=_dims(graph, region))
    form = _between(graph, (source, twin)).form_of(copy)
    if isinstance(form, Inexpressible):
        return None
    copy = replace(copy, form=form)
    owners = tuple(owner for place, share in enumerate(shares) if (owner := owners_of(copy, place, share)) is not None)
    if len(owners) < len(shares) or len({len(share.slices) for share in shares}) > 1:
        return None
    return replace(copy, owners=owners, division=owners[-1].division)


def _dims(graph: KernelGraph, region: BufferRegion) -> tuple[str | None, ...]:
    """Return the names of a region's dims: a dim that moves along a loop has the loop's."""
    names: list[str | None] = [None] * len(region.shape)
    for loop, step in zip(region.loops, region.steps, strict=True):
        for dim, moved in enumerate(step):
            names[dim] = graph.loops[loop].dim if moved else names[dim]
    return tuple(names)


def _copy(twin: KernelBuffer, read: Use, write: Use, region: BufferRegion) -> Kernel:
    name = f"{twin.name}.{'fetch' if write.buffer == twin.name else 'drain'}"
    return replace(
        copy_kernel(name, read, write, twin.origin),
        rule=Rule.SAME_STICK,
        extents=region.shape,
        loops=region.loops,
        tiled=tuple(tuple(dim for dim, moved in enumerate(step) if moved) for step in region.steps),
    )


def _divided(
    graph: KernelGraph, copy: Kernel, twins: tuple[KernelBuffer, KernelBuffer], position: int, share: Share
) -> Kernel | None:
    form = _between(graph, twins).form_of(copy)
    if isinstance(form, Inexpressible):
        return None
    copy = replace(copy, form=form)
    division = copy_division(copy, position, share)
    return None if division is None else replace(copy, division=division)


def _between(graph: KernelGraph, buffers: tuple[KernelBuffer, KernelBuffer]) -> KernelGraph:
    return replace(graph, buffers={item.name: item for item in buffers})
