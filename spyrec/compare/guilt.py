"""The words of ``--bisect``: what a guilty step is called, what it read, and where its worst element lies."""

from __future__ import annotations

import numpy as np

from spyrec.bundle.bundle_content import CONSTANTS_FILE
from spyrec.compare.divergence import Divergence, DivergentOperand, Element, Guilt
from spyrec.compare.one_op import OpVerdict
from spyrec.compare.provenance import CompiledCall, Provenance, program_of
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, KernelBuffer


def guilty_call(known: Provenance, call: CompiledCall, guilt: Guilt, buffer: KernelBuffer) -> Divergence:
    """Return the guilt of a call, as yet without an element."""
    kernel = call.kernel
    location = location_of(kernel.origin)
    nodes = {location_of(node.origin).pointer: node.name for node in known.source.nodes}
    return Divergence(
        guilt=guilt,
        name=kernel.name,
        file=call.file,
        op=kernel.op_func,
        found_op=call.superdsc.op_func_name,
        node=nodes.get(location.pointer),
        location=location,
        tensor=buffer.name,
        element=None,
        failed_elements=0,
        element_count=int(np.prod(buffer.type.shape)),
        inputs=_operands(known, call),
        provenance=call.superdsc.provenance,
    )


def _operands(known: Provenance, call: CompiledCall) -> tuple[DivergentOperand, ...]:
    buffers, program = known.kernels.buffers, program_of(known, call)
    return tuple(
        DivergentOperand(
            use.buffer,
            "argument" if use.buffer in program.arguments else "lx" if use.buffer in program.lx_offsets else "pool",
            buffers[use.buffer].type.dtype.value,
            buffers[use.buffer].host_type.shape,
        )
        for use in call.kernel.inputs
    )


def worst_element(buffer: KernelBuffer, verdict: OpVerdict, core: int | None) -> Element:
    """Return the worst element of a verdict, and the core that stored it."""
    return Element(
        index=_host_index(buffer, verdict.index),
        device_coordinate=buffer.placed.device_coordinate(verdict.index),
        core=core,
        got=verdict.got,
        want=verdict.want,
        error=verdict.error,
        bound=verdict.bound,
        bound_ratio=verdict.ratio,
    )


def guilty_copy(buffer: KernelBuffer, verdict: OpVerdict, guilt: Guilt = Guilt.COPY_IN) -> Divergence:
    """Return the guilt of the host's copy of an input, constant or output."""
    is_constant = buffer.role is BufferRole.CONSTANT
    return Divergence(
        guilt=guilt,
        name=buffer.name,
        file=CONSTANTS_FILE if is_constant else None,
        op=None,
        found_op=None,
        node=None,
        location=location_of(buffer.origin),
        tensor=buffer.name,
        element=worst_element(buffer, verdict, None),
        failed_elements=verdict.failed_elements,
        element_count=verdict.element_count,
    )


def _host_index(buffer: KernelBuffer, index: tuple[int, ...]) -> tuple[int, ...]:
    if buffer.host_shape is None:
        return index
    flat = int(np.ravel_multi_index(index, buffer.type.shape))
    return tuple(int(position) for position in np.unravel_index(flat, buffer.host_shape))
