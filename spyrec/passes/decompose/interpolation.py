"""interpolate by whole factors: each element repeated along each dim, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spyrec.ir.graph import Operand
from spyrec.ir.ops.interpolation import InterpolateAttributes, factors
from spyrec.ir.ops.movement import RepeatAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


def _interpolate(builder: NodeBuilder) -> str:
    """``[.., n, ..] --> [.., n, 1, ..] --> [.., n, f, ..] --> [.., n f, ..]`` for each dim behind the channels."""
    value: Operand
    (value,) = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, InterpolateAttributes)
    times = factors(builder.type_of(value).shape, attributes)
    assert times is not None
    for axis, factor in enumerate(times, 2):
        if factor == 1:
            continue
        shape = builder.type_of(value).shape
        opened = (*shape[: axis + 1], 1, *shape[axis + 1 :])
        counts = tuple(factor if dim == axis + 1 else 1 for dim in range(len(opened)))
        view = builder.emit("reshape", value, attributes=ReshapeAttributes(opened))
        view = builder.emit("repeat", view, attributes=RepeatAttributes(counts))
        whole = (*shape[:axis], shape[axis] * factor, *shape[axis + 1 :])
        value = builder.emit("reshape", view, attributes=ReshapeAttributes(whole))
    assert isinstance(value, str)
    return value


REWRITES: Mapping[str, Rewrite] = {"interpolate": _interpolate}
