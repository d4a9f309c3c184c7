"""Views: their accesses compose; where one cannot, the value so far is written out."""

from __future__ import annotations

import math

from spyrec.ir.access import Access
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.device_access import Inexpressible, refine
from spyrec.ir.graph import Node
from spyrec.ir.kernel import Use
from spyrec.ir.ops.selection import SelectAttributes, SliceAttributes, selected, sliced
from spyrec.ir.ops.views import ExpandAttributes, permutation
from spyrec.ir.types import TensorType
from spyrec.passes.kernel_builder import KernelBuilder, copy_into


def form(builder: KernelBuilder, node: Node) -> None:
    """Give the view its access: that of its operand, re-indexed."""
    (operand,) = node.inputs
    use = builder.operand(operand)
    result = builder.graph.values[node.output].type
    attributes = node.attributes
    match attributes:
        case ExpandAttributes():
            access: Access | None = use.access.expand(result.shape)
        case SelectAttributes():
            dim, index = selected(use.access.extents, attributes)
            use, access = _windowed(builder, use, node, (dim, range(index, index + 1)))
            access = access.reshape(result.shape)
        case SliceAttributes():
            use, access = _windowed(builder, use, node, sliced(use.access.extents, attributes))
        case _ if node.op in ("permute", "transpose", "t"):
            access = use.access.permute(permutation(result.rank, attributes))
        case _:
            assert isinstance(attributes, DimAttributes) or node.op in _RESHAPES, node.op
            use, access = reshaped(builder, use, node, result)
    assert access is not None
    builder.uses[node.output] = Use(use.buffer, access)


_RESHAPES = ("reshape", "view", "flatten", "squeeze", "unsqueeze")


def _windowed(builder: KernelBuilder, use: Use, node: Node, window: tuple[int, range]) -> tuple[Use, Access]:
    dim, indices = window
    access = use.access.window(dim, indices.start, len(indices), indices.step)
    if access is None or not _is_walkable(access):
        use = write_out(builder, use, node, "the window cuts through the digits of an earlier reshape")
        access = use.access.window(dim, indices.start, len(indices), indices.step)
    assert access is not None
    return use, access


def _is_walkable(access: Access) -> bool:
    """Whether loops can follow it: steps over a buffer dim and cuts of an index both nest, each dividing the next."""
    cuts = frozenset(
        (term.dim, boundary)
        for coordinate in access.coordinates
        for term in coordinate.terms
        for boundary in (term.divisor, term.divisor * term.modulus)
    )
    return not isinstance(refine(access.extents, cuts), Inexpressible) and all(
        outer.coefficient % inner.coefficient == 0
        for coordinate in access.coordinates
        for outer, inner in zip(coordinate.terms, coordinate.terms[1:], strict=False)
    )


def reshaped(builder: KernelBuilder, use: Use, node: Node, result: TensorType) -> tuple[Use, Access]:
    """Return the reshaped access, writing the value out flat first where old and new dims do not nest."""
    access = use.access.reshape(result.shape)
    if access is not None and _is_walkable(access):
        return use, access
    reason = f"a reshape from {list(use.access.extents)} to {list(result.shape)} does not follow the buffer's dims"
    flat = use.access.reshape((math.prod(result.shape),))
    if flat is None or not _is_walkable(flat):
        use = write_out(builder, use, node, reason)
        flat = use.access.reshape((math.prod(result.shape),))
        assert flat is not None
    use = write_out(builder, Use(use.buffer, flat), node, reason)
    access = use.access.reshape(result.shape)
    assert access is not None
    return use, access


def write_out(builder: KernelBuilder, use: Use, node: Node, reason: str) -> Use:
    """Copy what ``use`` reads into a buffer of its own."""
    result = TensorType(use.access.extents, builder.buffers[use.buffer].type.dtype)
    target = builder.new_buffer(f"{node.name}.operand", result, node.origin)
    names = builder.dims_of(node.inputs[0])
    dims = names if use.access.extents == builder.type_of(node.inputs[0]).shape else ()
    return copy_into(builder, use, target, reason=reason, dims=dims)
