"""Rounding ragged stick dims up to whole sticks, and what follows for the work division."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import OperandDims
from spyrec.codegen.opspec import OpSpec
from spyrec.device_ops import CASTS, MATMULS, RESTICKIFY, window_of
from spyrec.device_ops.record import WindowForm


def pad_contraction(spec: OpSpec, views: Sequence[ArgumentView], iteration: IterationSpace) -> IterationSpace:
    """Return a matmul's space with the contracted dim rounded up to whole sticks of the second operand's format.

    This is no stick padding: the second operand really has these rows, and they hold zeros.
    """
    if spec.op not in MATMULS:
        return iteration
    second, output = views[1], views[-1]
    for dim in second.dim_order:
        if dim != second.stick_dim and dim not in output.dim_order:
            elements = second.elements_per_stick
            return iteration.with_size(dim, -(-iteration.sizes[dim] // elements) * elements)
    return iteration


def pad_sticks(
    spec: OpSpec, views: Sequence[ArgumentView], dims: Sequence[OperandDims], iteration: IterationSpace
) -> IterationSpace:
    """Return the space with ragged stick dims rounded up.

    Which operands' sticks count depends on the family: all of them for matmuls, convolutions, casts and restickify, the
    input of other reductions, else the output.  Sticks of pairs round up both of their dims, to the elements of a
    stick.  A restickify does not divide the dims it pads.
    """
    for position in _padding_operands(spec, len(views)):
        # The synthetic row of a cast has no device axis: counting it would leave one-dimensional casts unpadded.
        order = [dim for dim in dims[position].dim_order if dim != iteration.cast_row]
        for stick_dim in dims[position].stick_dims:
            if stick_dim in order and order.index(stick_dim) < len(views[position].argument.device_size) - 1:
                iteration = iteration.padded(stick_dim, views[position].elements_per_stick)
    return iteration.undivided(iteration.padding) if spec.op == RESTICKIFY else iteration


def _padding_operands(spec: OpSpec, count: int) -> range:
    is_convolution = window_of(spec.op) in {WindowForm.CONVOLUTION, WindowForm.DEPTHWISE}
    if spec.op in MATMULS or spec.op in CASTS or spec.op == RESTICKIFY or is_convolution:
        return range(count)
    return range(1) if spec.is_reduction else range(count - 1, count)
