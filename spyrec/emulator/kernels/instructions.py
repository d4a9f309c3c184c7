"""Small steps of kernels written as instructions: numba takes 20 to 100 ms for each function that would do the same."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir

from spyrec.emulator.kernels.product_tile import TILE_ROWS
from spyrec.files.host_processor import host_processor
from spyrec.files.numba_names import cgutils, intrinsic, types

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)
_ZERO = ir.Constant(_WORD, 0)

_STICK = 64  # float32 of a stick that is decoded

FLOATS_AT_ONCE = host_processor().variant.lanes

LINE_BYTES = 64
"""Bytes of a cache line."""


def pointer_at(builder: Any, address: Any, index: Any, kind: ir.Type) -> Any:  # noqa: ANN401
    """Return a pointer to what stands ``index`` items of 64 bits behind an address."""
    return _pointer(builder, address, index, kind, 8)


def _pointer(builder: Any, address: Any, index: Any, kind: ir.Type, size_bytes: int) -> Any:  # noqa: ANN401
    place = builder.add(address, builder.mul(index, ir.Constant(_WORD, size_bytes)))
    return builder.inttoptr(place, kind.as_pointer())


@intrinsic
def _word_at(_context: Any, _address: Any, _index: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, index = arguments
        return builder.load(_pointer(builder, address, index, _WORD, 8), align=8)

    return types.int64(types.int64, types.int64), generate


def _division(instruction: str) -> Callable[[int, int], int]:
    @intrinsic
    def divided(_context: Any, _left: Any, _right: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            return getattr(builder, instruction)(*arguments)

        return types.int64(types.int64, types.int64), generate

    return cast("Callable[[int, int], int]", divided)


def _bound(comparison: str) -> Callable[[int, int], int]:
    @intrinsic
    def chosen(_context: Any, _left: Any, _right: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            return builder.select(builder.icmp_signed(comparison, *arguments), *arguments)

        return types.int64(types.int64, types.int64), generate

    return cast("Callable[[int, int], int]", chosen)


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


@intrinsic
def _set_word(_context: Any, _address: Any, _index: Any, _value: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, index, value = arguments
        builder.store(value, _pointer(builder, address, index, _WORD, 8), align=8)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _byte_at(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.zext(builder.load(builder.inttoptr(arguments[0], _BYTE.as_pointer())), _WORD)

    return types.int64(types.int64), generate


def _setter(bits: int) -> Callable[[int, int], None]:
    kind = ir.IntType(bits)

    @intrinsic
    def store(_context: Any, _address: Any, _value: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            address, value = arguments
            builder.store(builder.trunc(value, kind), builder.inttoptr(address, kind.as_pointer()), align=bits // 8)
            return ir.Constant(_WORD, 0)

        return types.int64(types.int64, types.int64), generate

    return cast("Callable[[int, int], None]", store)


@intrinsic
def _float_at(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.load(builder.inttoptr(arguments[0], ir.FloatType().as_pointer()), align=4)

    return types.float32(types.int64), generate


@intrinsic
def _double_at(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.load(builder.inttoptr(arguments[0], ir.DoubleType().as_pointer()), align=8)

    return types.float64(types.int64), generate


@intrinsic
def _set_double(_context: Any, _address: Any, _value: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, value = arguments
        builder.store(value, builder.inttoptr(address, ir.DoubleType().as_pointer()), align=8)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.float64), generate


@intrinsic
def _bits_of(_context: Any, _value: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.bitcast(arguments[0], _WORD)

    return types.int64(types.float64), generate


@intrinsic
def _double_of(_context: Any, _bits: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _is_any(_context: Any, _address: Any, _count: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, count = arguments
        found = cgutils.alloca_once_value(builder, ir.Constant(_BYTE, 0))
        with cgutils.for_range(builder, count, intp=_WORD) as loop:
            flag = builder.load(_pointer(builder, address, loop.index, _BYTE, 1))
            builder.store(builder.or_(builder.load(found), flag), found)
        return builder.zext(builder.icmp_unsigned("!=", builder.load(found), ir.Constant(_BYTE, 0)), _WORD)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _pack_line(_context: Any, _source: Any, _skipped: Any, _target: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, skipped, target = arguments
        is_kept = builder.icmp_unsigned("==", builder.load(_pointer(builder, skipped, _ZERO, _BYTE, 1)), _BYTE(0))
        for row in range(TILE_ROWS):
            values, place = (_pointer(builder, start, ir.Constant(_WORD, step * row), ir.FloatType(), 4)
                             for start, step in ((source, _STICK), (target, 1)))  # fmt: skip
            value = builder.load(values, align=4)
            builder.store(builder.select(is_kept, value, ir.FloatType()(0.0)), place, align=4)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _add_floats(_context: Any, _target: Any, _source: Any, _count: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        target, source, count = arguments
        kind = ir.VectorType(ir.FloatType(), FLOATS_AT_ONCE)
        vectors = builder.sdiv(count, ir.Constant(_WORD, FLOATS_AT_ONCE))
        with cgutils.for_range(builder, vectors, intp=_WORD) as loop:
            places = [_pointer(builder, start, loop.index, kind, 4 * FLOATS_AT_ONCE) for start in (target, source)]
            values = [builder.load(place, align=4) for place in places]
            builder.store(builder.fadd(*values), places[0], align=4)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _room_of(_context: Any, _size: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        malloc = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_POINTER, [_WORD]), "malloc")
        place = builder.ptrtoint(builder.call(malloc, arguments), _WORD)
        with builder.if_then(builder.icmp_unsigned("==", place, ir.Constant(_WORD, 0)), likely=False):
            # nobody could be told: a kernel raises nothing
            builder.call(cgutils.get_or_insert_function(builder.module, _NOTHING, "llvm.trap"), [])
        return place

    return types.int64(types.int64), generate


_NOTHING = ir.FunctionType(ir.VoidType(), [])
_POINTER = _BYTE.as_pointer()


@intrinsic
def _give_back(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        free = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_POINTER]), "free")
        builder.call(free, [builder.inttoptr(arguments[0], _POINTER)])
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64), generate


def floats_on_stack(count: int) -> Callable[[], int]:
    """Return what gives the address of ``count`` float32 that a call of the kernel has for itself."""

    @intrinsic
    def room(_context: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> object:  # noqa: ANN401
            with builder.goto_entry_block():  # numba's own way fills it with zeros, one by one: 13 s for 49,152 bytes
                place = builder.alloca(ir.ArrayType(ir.FloatType(), count))
            place.align = LINE_BYTES
            return builder.ptrtoint(place, _WORD)

        return types.int64(), generate

    return cast("Callable[[], int]", room)


word_at = cast("Callable[[int, int], int]", _word_at)
"""``(address, index)``: the int64 that stands ``index`` words behind an address (inside kernels only)."""

set_word = cast("Callable[[int, int, int], None]", _set_word)
"""``(address, index, value)``: stores an int64 ``index`` words behind an address (inside kernels only)."""

byte_at = cast("Callable[[int], int]", _byte_at)
"""The byte at an address (inside kernels only)."""

set_byte = _setter(8)
"""``(address, value)``: stores a byte (inside kernels only)."""

set_short = _setter(16)
"""``(address, value)``: stores 16 bits (inside kernels only)."""

float_at = cast("Callable[[int], float]", _float_at)
"""The float32 at an address (inside kernels only)."""

double_at = cast("Callable[[int], float]", _double_at)
"""The float64 at an address (inside kernels only)."""

set_double = cast("Callable[[int, float], None]", _set_double)
"""``(address, value)``: stores a float64 (inside kernels only)."""

bits_of = cast("Callable[[float], int]", _bits_of)
"""The bits of a float64 (inside kernels only)."""

double_of = cast("Callable[[int], float]", _double_of)
"""The float64 with these bits (inside kernels only)."""

is_any = cast("Callable[[int, int], int]", _is_any)
"""``(address, count)``: 1 if one of so many bytes is not zero, else 0 (inside kernels only)."""

pack_line = cast("Callable[[int, int, int], None]", _pack_line)
"""``(source, skipped, target)``: brings a float32 of each row of a tile, 64 apart, side by side, zeros if the
byte at ``skipped`` is not zero (inside kernels only)."""

add_floats = cast("Callable[[int, int, int], None]", _add_floats)
"""``(target, source, count)``: adds float32 to as many others, :data:`FLOATS_AT_ONCE` at a time (inside kernels
only).  LLVM does not see that the two are apart."""

room_of = cast("Callable[[int], int]", _room_of)
"""The address of so many bytes of memory, to be given back: C's own, numba's allocator would need numba (inside kernels
only)."""

give_back = cast("Callable[[int], None]", _give_back)
"""Give back what :data:`room_of` has given (inside kernels only)."""

quotient = _division("udiv")
"""``a // b`` of two int64 that are not negative: Python's rule for negative ones takes branches (inside kernels only).
"""

remainder = _division("urem")
"""``a % b`` of two int64 that are not negative (inside kernels only)."""

lesser = _bound("<")
"""The lesser of two int64 (inside kernels only)."""

greater = _bound(">")
"""The greater of two int64 (inside kernels only)."""

clear = cast("Callable[[int, int], None]", _clear)
"""``(address, count)``: makes ``count`` float32 zero (inside kernels only)."""

is_adjacent = cast("Callable[[int, int, int], bool]", _is_adjacent)
"""``(offsets, count, step)``: whether int64 offsets, given by address, are ``step`` apart (inside kernels only)."""

one_float = floats_on_stack(1)
"""The address of room for one float32 of this call (inside kernels only)."""

tile_of_sticks = floats_on_stack(TILE_ROWS * _STICK)
"""The address of room for 64 float32 of each row of a tile of this call (inside kernels only)."""

_INDEX = ir.IntType(32)


def fetch(builder: Any, address: Any) -> None:  # noqa: ANN401
    """Write what asks for the cache line at an address, which need not be memory."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INDEX, _INDEX, _INDEX])
    called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(called, [builder.inttoptr(address, byte), *(ir.Constant(_INDEX, value) for value in (0, 3, 1))])


def _fetch_lines(builder: Any, address: Any, size_bytes: Any) -> None:  # noqa: ANN401
    lines = builder.add(size_bytes, ir.Constant(_WORD, LINE_BYTES - 1))
    with cgutils.for_range(builder, builder.sdiv(lines, ir.Constant(_WORD, LINE_BYTES)), intp=_WORD) as loop:
        fetch(builder, builder.add(address, builder.mul(loop.index, ir.Constant(_WORD, LINE_BYTES))))


@intrinsic
def _fetch_rows(_context: Any, _address: Any, _rows: Any, _step: Any, _size: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, rows, step_bytes, size_bytes = arguments
        with cgutils.for_range(builder, rows, intp=_WORD) as loop:
            _fetch_lines(builder, builder.add(address, builder.mul(loop.index, step_bytes)), size_bytes)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


fetch_rows = cast("Callable[[int, int, int, int], None]", _fetch_rows)
"""``(address, rows, step_bytes, size_bytes)``: asks for the cache lines of rows of bytes, which need not be memory
(inside kernels only)."""


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
