"""place-scratchpad: tensors that live inside one loop iteration get a place in the cores' scratchpads (LX).

A core's LX holds its own slice and nothing moves data between cores, so that every operation which writes or reads such
a tensor has to divide it among the same cores alike, and to walk all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spyrec.ir.device_access import DeviceAccess, Part
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, KernelProgram
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.passes.base import PassContext
from spyrec.passes.lifetimes import Lifetime, lifetimes
from spyrec.passes.solvers.interval_packing import Interval, pack
from spyrec.target import STICK_BYTES
from spyrec.work_slices import slices_of_cores


def place_scratchpad(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Return the graph with every tile that can lie in LX there, as far as the usable LX reaches.

    Tiles that are alive together do not overlap; the largest are left to the pool where not all fit.
    """
    alive = lifetimes(graph.kernels)
    usable = context.options.target.lx_usable_bytes
    programs = tuple(_placed(graph, program, alive, usable) for program in graph.programs)
    for program in programs:
        context.report.extend(f'"{name}" lies in LX at {offset}' for name, offset in program.lx_offsets.items())
    return replace(graph, programs=programs) if programs != graph.programs else graph


def _placed(graph: KernelGraph, program: KernelProgram, alive: dict[str, Lifetime], usable: int) -> KernelProgram:
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    sizes: dict[str, int] = {}
    for name in program.pool_offsets:
        size = _slice_bytes(graph, name, kernels)
        if size is not None:
            sizes[name] = size
    while sizes:
        intervals = [Interval(size, alive[name].first, alive[name].last) for name, size in sizes.items()]
        offsets = pack(intervals)
        if max(offset + item.size for offset, item in zip(offsets, intervals, strict=True)) <= usable:
            pool = {name: offset for name, offset in program.pool_offsets.items() if name not in sizes}
            return replace(program, pool_offsets=pool, lx_offsets=dict(zip(sizes, offsets, strict=True)))
        del sizes[max(sizes, key=lambda name: (sizes[name], name))]
    return program


def _slice_bytes(graph: KernelGraph, name: str, kernels: Sequence[Kernel]) -> int | None:
    """Return the bytes that each core holds of a tensor, ``None`` where it cannot lie in LX."""
    buffer = graph.buffers[name]
    if not buffer.home or buffer.role is not BufferRole.INTERMEDIATE:
        return None
    found: set[_Share | None] = set()
    for kernel in kernels:
        form = kernel.placed
        for position, use in enumerate(kernel.uses):
            if use.buffer == name:
                is_output = position == len(kernel.inputs)
                found.add(None if any(any(step) for step in use.steps) else _share(kernel, form, position, is_output))
    if len(found) != 1:
        return None
    share = found.pop()
    return None if share is None else share.size_bytes


@dataclass(frozen=True, slots=True)
class _Share:
    """How a tensor is divided: the slice of each device dim that each core has, and the sticks of one share."""

    slices: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of one core's share."""
        return math.prod(self.extents) * STICK_BYTES


def _share(kernel: Kernel, form: KernelForm, position: int, is_output: bool) -> _Share | None:
    """Return an operand's share, ``None`` where it walks less than all of a dim, or the operation takes no LX."""
    if kernel.rule is Rule.RESTICKIFY or form.unit_lane:
        return None
    division = kernel.division or (1,) * len(form.variables)
    operand = form.operands[position]
    if is_output and any(slices > 1 and index not in operand.variables for index, slices in enumerate(division)):
        return None  # cores combine partial results in memory that they share
    extents: list[int] = []
    walks: list[int | None] = []
    for dim in operand.dims[:-1]:
        covered = _covered(form, operand, dim.variable, dim.part)
        if dim.extent != covered or dim.offset:
            return None
        if dim.extent > 1:
            slices = 1 if dim.variable is None else division[dim.variable]
            if dim.extent % slices:
                return None
            extents.append(dim.extent // slices)
            walks.append(dim.variable)
    cores = slices_of_cores(division, contracts=kernel.rule is Rule.CONTRACTION)
    per_core = tuple(tuple(0 if walk is None else core[walk] for walk in walks) for core in cores)
    return _Share(per_core, tuple(extents))


def _covered(form: KernelForm, operand: DeviceAccess, variable: int | None, part: Part) -> int:
    """Return how many positions of a device dim an operand walks."""
    if variable is None:
        return 1
    size = form.variables[variable].size
    return -(-size // operand.lane_extent) if part is Part.TILE else size
