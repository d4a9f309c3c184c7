"""Functions that kernels call by address, so that each is compiled once, and only where it is used.

What numba links into a kernel it optimises anew in every kernel: decoding, for one, cost more in each of its callers
than the caller itself.  A call by address costs a few nanoseconds: linked functions work on runs and blocks.
"""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property, partial
from inspect import signature
from typing import Any, cast

from llvmlite import ir

from spyrec.files.kernel_cache import kernel_code
from spyrec.files.numba_names import cgutils, intrinsic, types

_WORD = ir.IntType(64)
_STATUS = ir.IntType(32)

_UNREAD_OPERANDS = 2
"""Addresses that each function takes before its own operands, for what it returns and for what it raises: nothing.

So is it called without the wrapper that numba would make for calls of C, with a copy of the function in it: that took
15 to 30 ms each.
"""

_unread = ctypes.c_int64()


def called_at(address: int, operands: int) -> Callable[..., None]:
    """Return what calls the linked function at an address from Python, without the interpreter lock."""
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (_UNREAD_OPERANDS + operands))(address)
    return partial(function, *[ctypes.addressof(_unread)] * _UNREAD_OPERANDS)


class Linked:
    """A function of integers (counts, addresses) that returns nothing; kernels get its :attr:`address` and ``call``.

    It raises nothing: nobody would look.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self.py_func = function
        self._operands = len(signature(function).parameters)

    @cached_property
    def address(self) -> int:
        """Where the function stands in this process; compiled, or read from the disk, when first asked for."""
        address, result = kernel_code(self.py_func, (int,) * self._operands)
        assert result == "none", "a linked function returns nothing"
        return address

    def __call__(self, *operands: int) -> None:
        """Call it from Python, without the interpreter lock."""
        self._from_python(*operands)

    @cached_property
    def _from_python(self) -> Callable[..., None]:
        return called_at(self.address, self._operands)


def linked(function: Callable[..., None]) -> Linked:
    """Make a function of integers one that is called by address."""
    return Linked(function)


@intrinsic
def _call(_context: Any, _address: Any, operands: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(context: Any, builder: Any, own: Any, arguments: Any) -> object:  # noqa: ANN401
        address, values = arguments
        given = [
            context.cast(builder, builder.extract_value(values, place), kind, types.int64)
            for place, kind in enumerate(own.args[1].types)
        ]
        unread = cgutils.alloca_once(builder, _WORD)
        function = ir.FunctionType(_STATUS, [unread.type] * _UNREAD_OPERANDS + [_WORD] * len(given))
        builder.call(builder.inttoptr(address, function.as_pointer()), [unread] * _UNREAD_OPERANDS + given)
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
