"""Batched products: inputs in which no batch lies between neighbouring rows, and what it costs where one does.

In the default layout of ``[B, M, K]`` the batches lie innermost, between the rows of one matrix; a product reads such
an operand several times slower than one whose batches follow each other (``MatmulTerms.left_order``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import BatchOrder, order_us
from spyrec.ir.device_layout import BufferLayout, pinned_layout
from spyrec.ir.kernel import BufferRole, KernelBuffer, KernelGraph, Use
from spyrec.ir.kernel_form import Rule
from spyrec.layout.device_layout import DeviceLayout
from spyrec.passes.base import PipelineOptions


@dataclass(frozen=True, slots=True)
class _BatchedOperand:
    """A buffer as one operand of a batched product: its dims that are batches, and the product's arithmetic.

    ``macs``: of all executions.
    """

    is_left: bool
    batch_dims: frozenset[int]
    macs: int
    element_bytes: int

    def excess_bytes(self, layout: BufferLayout, options: PipelineOptions) -> int:
        """Return what the order of a layout costs the product, as the bytes that take as long."""
        batches = _interleaved(layout, self.batch_dims)
        order = BatchOrder(left=batches) if self.is_left else BatchOrder(right=batches)
        time_us = order_us(order, self.macs, self.element_bytes, options.cores, options.profile)
        return round(time_us * options.profile.memory_bytes_per_us)


OrderCosts = Mapping[str, Mapping[BufferLayout, int]]
"""By name of a buffer that batched products read: its layouts, and what each of them costs these, in bytes."""

NO_ORDERS: OrderCosts = {}


def order_costs(
    graph: KernelGraph, plain: Mapping[str, tuple[BufferLayout, ...]], options: PipelineOptions
) -> OrderCosts:
    """Return what layouts of inputs and constants cost batched products; beside the ``plain`` ones those in order.

    A buffer that may get one layout only is not in it.
    """
    found: dict[str, dict[BufferLayout, int]] = {}
    for name, operands in _batched_operands(graph, options).items():
        if len(plain[name]) > 1:
            buffer = graph.buffers[name]
            layouts = dict.fromkeys((*plain[name], *_ordered_layouts(buffer, operands)))
            found[name] = {
                layout: sum(operand.excess_bytes(layout, options) for operand in operands) for layout in layouts
            }
    return found


def _batched_operands(graph: KernelGraph, options: PipelineOptions) -> Mapping[str, Sequence[_BatchedOperand]]:
    """Return the inputs and constants that batched products read; none where order costs nothing."""
    found: defaultdict[str, list[_BatchedOperand]] = defaultdict(list)
    if options.profile.matmul is None:
        return found
    for kernel in graph.kernels:
        if kernel.rule is not Rule.CONTRACTION:
            continue
        batch = frozenset(dim for dim in range(len(kernel.extents)) if _walks(kernel.uses, dim))
        for position, use in enumerate(kernel.inputs):
            buffer = graph.buffers[use.buffer]
            if buffer.pin is None and buffer.role in (BufferRole.INPUT, BufferRole.CONSTANT):
                dims = _batch_dims(use, batch)
                if dims and len(dims) == buffer.type.rank - 2:
                    macs = math.prod(kernel.extents) * graph.trips(kernel.loops)
                    width = buffer.type.dtype.item_bytes
                    found[use.buffer].append(_BatchedOperand(position == 0, dims, macs, width))
    return found


def _ordered_layouts(buffer: KernelBuffer, operands: Sequence[_BatchedOperand]) -> tuple[BufferLayout, ...]:
    """Return a buffer's layouts with whole matrices one after the other, for either of their dims in the sticks."""
    found: list[BufferLayout] = []
    rank = buffer.type.rank
    for dims in dict.fromkeys(operand.batch_dims for operand in operands):
        one, other = (dim for dim in range(rank) if dim not in dims)
        for row, stick in ((one, other), (other, one)):
            order = (row, *sorted(dims), stick)
            layout = pinned_layout(
                DeviceLayout.default(buffer.type.shape, buffer.type.dtype, dim_order=order), buffer.type.shape
            )
            found += [] if layout is None else [layout]
    return tuple(found)


def _walks(uses: Sequence[Use], dim: int) -> bool:
    return all(use.access.depends_on(dim) for use in uses)


def _batch_dims(use: Use, batch: AbstractSet[int]) -> frozenset[int]:
    """Return the dims of an operand's buffer that nothing but batches of a product walks; none where no batch does."""
    walked = [{term.dim for term in coordinate.terms} for coordinate in use.access.coordinates]
    found = frozenset(place for place, dims in enumerate(walked) if dims <= batch)
    return found if any(walked[place] for place in found) else frozenset()


def _interleaved(layout: BufferLayout, batch_dims: AbstractSet[int]) -> int:
    """Return how many batches lie between neighbouring rows or columns of sticks of one."""
    found = 1
    for digit in reversed(layout.digits[:-1]):
        if digit.extent == 1 or digit.host_dim is None:
            continue
        if digit.host_dim not in batch_dims:
            return found
        found *= digit.extent
    return 1
