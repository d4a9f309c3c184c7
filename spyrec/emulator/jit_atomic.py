"""Integers in memory that several threads change, for use inside kernels: each access is one indivisible step."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_ORDER = "seq_cst"
_WORD = ir.IntType(64)


@intrinsic
def _add(_context: Any, _address: Any, _value: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, value = arguments
        return builder.atomic_rmw("add", builder.inttoptr(address, _WORD.as_pointer()), value, _ORDER)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _load(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.load_atomic(builder.inttoptr(arguments[0], _WORD.as_pointer()), _ORDER, align=8)

    return types.int64(types.int64), generate


@intrinsic
def _replace(_context: Any, _address: Any, _expected: Any, _value: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, expected, value = arguments
        pointer = builder.inttoptr(address, _WORD.as_pointer())
        found = builder.cmpxchg(pointer, expected, value, _ORDER, _ORDER)
        return builder.zext(builder.extract_value(found, 1), _WORD)

    return types.int64(types.int64, types.int64, types.int64), generate


atomic_add = cast("Callable[[int, int], int]", _add)
"""``(address, value)``: adds to the int64 at an address and returns what it was (inside kernels only)."""

atomic_load = cast("Callable[[int], int]", _load)
"""``(address)``: the int64 at an address (inside kernels only)."""

atomic_replace = cast("Callable[[int, int, int], int]", _replace)
"""``(address, expected, value)``: stores a value where the expected one stands; 1 where it did, else 0."""
