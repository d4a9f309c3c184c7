"""Cache lines asked for ahead of use, inside kernels."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from spyrec.emulator.jit import inlined

LINE_BYTES = 64
"""Bytes of a cache line."""

_INDEX = ir.IntType(32)


def fetch(builder: Any, address: Any) -> None:  # noqa: ANN401
    """Write what asks for the cache line at an address, which need not be memory."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INDEX, _INDEX, _INDEX])
    called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(called, [builder.inttoptr(address, byte), *(ir.Constant(_INDEX, value) for value in (0, 3, 1))])


@intrinsic
def _fetch_line(_context: Any, _address: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        fetch(builder, arguments[0])
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(types.int64), generate


_fetch = cast("Callable[[int], None]", _fetch_line)


@inlined
def fetch_run(address: int, size_bytes: int) -> None:
    """Ask for the cache lines of a run of bytes, which need not be memory (inside kernels only)."""
    for place in range(0, size_bytes, LINE_BYTES):
        _fetch(address + place)
