"""Calls by address, inside kernels: of linked functions, and of the system's."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir

from spyrec.files.linked_kernel import UNREAD_OPERANDS
from spyrec.files.numba_names import cgutils, intrinsic, types

_WORD = ir.IntType(64)
_STATUS = ir.IntType(32)


@intrinsic
def _call(_context: Any, _address: Any, operands: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(context: Any, builder: Any, own: Any, arguments: Any) -> object:  # noqa: ANN401
        address, values = arguments
        given = [
            context.cast(builder, builder.extract_value(values, place), kind, types.int64)
            for place, kind in enumerate(own.args[1].types)
        ]
        unread = cgutils.alloca_once(builder, _WORD)
        function = ir.FunctionType(_STATUS, [unread.type] * UNREAD_OPERANDS + [_WORD] * len(given))
        builder.call(builder.inttoptr(address, function.as_pointer()), [unread] * UNREAD_OPERANDS + given)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, operands), generate


call = cast("Callable[[int, tuple[int, ...]], None]", _call)
"""``(address, operands)``: calls the linked function at an address (inside kernels only)."""


@intrinsic
def _call_system(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        function = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [])
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64), generate


call_system = cast("Callable[[int], None]", _call_system)
"""``(address)``: calls a function of the system that takes nothing (inside kernels only)."""
