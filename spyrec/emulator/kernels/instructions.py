"""Small steps of kernels written as instructions: numba takes 20 to 100 ms for each function that would do the same."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from spyrec.emulator.kernels.jit import inlined

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)


def _pointer(builder: Any, address: Any, index: Any, kind: ir.Type, size_bytes: int) -> Any:  # noqa: ANN401
    place = builder.add(address, builder.mul(index, ir.Constant(_WORD, size_bytes)))
    return builder.inttoptr(place, kind.as_pointer())


@intrinsic
def _word_at(_context: Any, _address: Any, _index: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, index = arguments
        return builder.load(_pointer(builder, address, index, _WORD, 8), align=8)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _lesser(_context: Any, _left: Any, _right: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.select(builder.icmp_signed("<", *arguments), *arguments)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _clear(_context: Any, _address: Any, _count: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, count = arguments
        place = builder.inttoptr(address, _BYTE.as_pointer())
        cgutils.memset(builder, place, builder.mul(count, ir.Constant(_WORD, 4)), 0)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _is_adjacent(_context: Any, _offsets: Any, _count: Any, _step: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        offsets, count, step_bytes = arguments
        first = builder.load(_pointer(builder, offsets, ir.Constant(_WORD, 0), _WORD, 8), align=8)
        differing = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
        with cgutils.for_range(builder, count, intp=_WORD) as loop:
            expected = builder.add(first, builder.mul(loop.index, step_bytes))
            found = builder.load(_pointer(builder, offsets, loop.index, _WORD, 8), align=8)
            builder.store(builder.or_(builder.load(differing), builder.xor(found, expected)), differing)
        return builder.icmp_signed("==", builder.load(differing), ir.Constant(_WORD, 0))

    return types.boolean(types.int64, types.int64, types.int64), generate


def _floats_on_stack(count: int) -> Callable[[], int]:
    """Return what gives the address of ``count`` float32 that a call of the kernel has for itself."""

    @intrinsic
    def room(_context: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> object:  # noqa: ANN401
            place = cgutils.alloca_once(builder, ir.ArrayType(ir.FloatType(), count))
            return builder.ptrtoint(place, _WORD)

        return types.int64(), generate

    return cast("Callable[[], int]", room)


word_at = cast("Callable[[int, int], int]", _word_at)
"""``(address, index)``: the int64 that stands ``index`` words behind an address (inside kernels only)."""

lesser = cast("Callable[[int, int], int]", _lesser)
"""The lesser of two int64 (inside kernels only)."""

clear = cast("Callable[[int, int], None]", _clear)
"""``(address, count)``: makes ``count`` float32 zero (inside kernels only)."""

is_adjacent = cast("Callable[[int, int, int], bool]", _is_adjacent)
"""``(offsets, count, step)``: whether int64 offsets, given by address, are ``step`` apart (inside kernels only)."""

one_float = _floats_on_stack(1)
"""The address of room for one float32 of this call (inside kernels only)."""

tile_of_sticks = _floats_on_stack(8 * 64)
"""The address of room for 8 times 64 float32 of this call (inside kernels only)."""


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


_ORDER = "seq_cst"


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
