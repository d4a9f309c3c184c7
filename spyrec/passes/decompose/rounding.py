"""ceil, trunc, frac and sign: steps that are all exact."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.steps import Rewrite, Steps


def _native(builder: NodeBuilder) -> tuple[Steps, str]:
    (operand,) = builder.node.inputs
    assert isinstance(operand, str)
    return Steps(builder, builder.type_of(operand).dtype), operand


def _ceil(builder: NodeBuilder) -> str:
    """``--> -floor(-x)``."""
    steps, x = _native(builder)
    return steps.of("neg", steps.of("floor", steps.of("neg", x)))


def _without_fraction(steps: Steps, x: str) -> str:
    """``--> floor(relu(x)) - floor(relu(-x))``: one of them is 0."""
    above, below = steps.of("relu", x), steps.of("relu", steps.of("neg", x))
    return steps.sub(steps.of("floor", above), steps.of("floor", below))


def _trunc(builder: NodeBuilder) -> str:
    return _without_fraction(*_native(builder))


def _frac(builder: NodeBuilder) -> str:
    """``--> x - trunc(x)``: the difference has the last place of x, and fewer places."""
    steps, x = _native(builder)
    return steps.sub(x, _without_fraction(steps, x))


def _sign(builder: NodeBuilder) -> str:
    """``--> (x > 0) - (x < 0)``."""
    steps, x = _native(builder)
    above, below = (steps.taken(steps.of(op, x, 0.0)) for op in ("gt", "lt"))
    return steps.sub(above, below)


REWRITES: Mapping[str, Rewrite] = {"ceil": _ceil, "trunc": _trunc, "frac": _frac, "sign": _sign}
