"""The ops of the catalogue as methods, made from their declarations; ``op_methods.pyi`` is what type checkers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spyrec.frontends.op_parameters import op_signature
from spyrec.ir.opdef import OpDef, catalogue


class OpMethods:
    """Every public op of the catalogue as a method."""

    def record_op(self, definition: OpDef, operands: Sequence[object], arguments: Mapping[str, object]) -> object:
        """Add a node and return its result, or all of them as a tuple."""
        raise NotImplementedError


def op_method(definition: OpDef) -> Callable[..., object]:
    """Return the method of an op.  It takes what it is given: what is wrong with it is said with a code."""

    def method(self: OpMethods, *operands: object, **arguments: object) -> object:
        return self.record_op(definition, operands, arguments)

    method.__name__ = definition.name
    method.__qualname__ = f"{OpMethods.__name__}.{definition.name}"
    method.__doc__ = definition.summary
    method.__dict__["__signature__"] = op_signature(definition)
    return method


for _definition in catalogue().values():
    if _definition.is_public:
        setattr(OpMethods, _definition.name, op_method(_definition))
