"""How kernels reach device memory by address, and the register tile of products.

Kernels take byte addresses as int64: operands of any format, in any allocation, then share one signature, so that each
kernel is compiled once.  Rule V6 and V8 have bounded every address before a kernel sees it.
"""

# numba ships no type information: what it returns is unknown to the checker, here and nowhere else.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from spyrec.files.numba_names import arrayobj, cgutils, intrinsic, types

TILE_ROWS = 8
"""Rows of one matmul register tile."""

TILE_COLUMNS = 32
"""Columns of one matmul register tile: two vectors of 16 float32."""

_VECTOR = ir.VectorType(ir.FloatType(), 16)


@intrinsic
def _data_address(_context: Any, array: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> object:  # noqa: ANN401
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(held.data, ir.IntType(64))

    return types.int64(array), generate


address_of = cast("Callable[[npt.NDArray[np.generic]], int]", _data_address)
"""The address of an array's first element (inside kernels only); unlike ``ctypes``, counts no reference.

An array that is used no more is freed, whoever still knows its address.
"""


def _array_at(name: str) -> Any:  # noqa: ANN401
    """Return ``(address, count)`` for use inside kernels: memory as an array of a type, which owns nothing."""

    @intrinsic
    def view(_context: Any, _address: Any, _count: Any):  # noqa: ANN202, ANN401
        element = getattr(types, name)
        kind = types.Array(element, 1, "C")

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            array = context.make_array(kind)(context, builder)
            item = context.get_constant(types.intp, element.bitwidth // 8)
            data = builder.inttoptr(arguments[0], context.get_data_type(element).as_pointer())
            arrayobj.populate_array(array, data, [arguments[1]], [item], item, meminfo=None)
            return array._getvalue()  # noqa: SLF001 - numba's way to say: the value

        return kind(types.int64, types.int64), generate

    return view


@intrinsic
def _table_at(_context: Any, _address: Any, _rows: Any, _columns: Any):  # noqa: ANN202, ANN401
    kind = types.Array(types.int64, 2, "C")

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, rows, columns = arguments
        array = context.make_array(kind)(context, builder)
        item = context.get_constant(types.intp, 8)
        data = builder.inttoptr(address, ir.IntType(64).as_pointer())
        steps = [builder.mul(columns, item), item]
        arrayobj.populate_array(array, data, [rows, columns], steps, item, meminfo=None)
        return array._getvalue()  # noqa: SLF001 - as above

    return kind(types.int64, types.int64, types.int64), generate


table_at = cast("Callable[[int, int, int], npt.NDArray[np.int64]]", _table_at)
"""``(address, rows, columns)``: int64 from an address on as rows (inside kernels only)."""

# Written as instructions and not as functions: numba compiles a function for each mix of types it is called with.
bytes_at = cast("Callable[[int, int], npt.NDArray[np.uint8]]", _array_at("uint8"))
"""``count`` bytes of memory from ``address`` on as an array (inside kernels only); so are the others, by their type."""

words16_at = cast("Callable[[int, int], npt.NDArray[np.uint16]]", _array_at("uint16"))
words32_at = cast("Callable[[int, int], npt.NDArray[np.uint32]]", _array_at("uint32"))
integers_at = cast("Callable[[int, int], npt.NDArray[np.int64]]", _array_at("int64"))
floats_at = cast("Callable[[int, int], npt.NDArray[np.float32]]", _array_at("float32"))
doubles_at = cast("Callable[[int, int], npt.NDArray[np.float64]]", _array_at("float64"))


@intrinsic
def _multiply_tile(_context: Any, _a: Any, _b: Any, _c: Any, _depth: Any):  # noqa: ANN202, ANN401
    """``c[8, 32] += a[depth, 8]^T b[depth, 32]``, float32 at byte addresses, k ascending, one fused step per k.

    Written as vectors of 16 because LLVM otherwise prefers half the machine's width; every row of a tile takes the
    same steps in the same order, so that a row's bits do not depend on where it stands.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _TileWriter(builder).write(*arguments)
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


multiply_tile = cast("Callable[[int, int, int, int], None]", _multiply_tile)
"""``(a, b, c, depth)``: ``c[8, 32] += a[depth, 8]^T b[depth, 32]`` (inside kernels only)."""


class _TileWriter:
    """Writes the register tile's loop as LLVM instructions."""

    def __init__(self, builder: Any) -> None:  # noqa: ANN401
        self.builder = builder
        function = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self.fma = cgutils.get_or_insert_function(builder.module, function, "llvm.fma.v16f32")

    def load(self, base: Any, element: Any, kind: ir.Type) -> Any:  # noqa: ANN401
        builder = self.builder
        address = builder.add(base, builder.mul(element, ir.Constant(ir.IntType(64), 4)))
        return builder.load(builder.inttoptr(address, kind.as_pointer()), align=4)

    def write(self, a: Any, b: Any, c: Any, depth: Any) -> None:  # noqa: ANN401
        builder = self.builder
        word = ir.IntType(64)
        places = [(row, half) for row in range(TILE_ROWS) for half in range(2)]
        offsets = [ir.Constant(word, row * TILE_COLUMNS + 16 * half) for row, half in places]
        initial = [self.load(c, offset, _VECTOR) for offset in offsets]
        entry = builder.block
        head = builder.append_basic_block("tile.head")
        body = builder.append_basic_block("tile.body")
        done = builder.append_basic_block("tile.done")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(word)
        index.add_incoming(ir.Constant(word, 0), entry)
        sums = [builder.phi(_VECTOR) for _ in places]
        for phi, value in zip(sums, initial):
            phi.add_incoming(value, entry)
        builder.cbranch(builder.icmp_signed("<", index, depth), body, done)
        builder.position_at_end(body)
        updated = self.step(a, b, index, sums)
        following = builder.add(index, ir.Constant(word, 1))
        index.add_incoming(following, body)
        for phi, value in zip(sums, updated):
            phi.add_incoming(value, body)
        builder.branch(head)
        builder.position_at_end(done)
        for offset, value in zip(offsets, sums):
            address = builder.add(c, builder.mul(offset, ir.Constant(word, 4)))
            builder.store(value, builder.inttoptr(address, _VECTOR.as_pointer()), align=4)

    def step(self, a: Any, b: Any, index: Any, sums: list[Any]) -> list[Any]:  # noqa: ANN401
        builder = self.builder
        word = ir.IntType(64)
        b_index = builder.mul(index, ir.Constant(word, TILE_COLUMNS))
        halves = [self.load(b, builder.add(b_index, ir.Constant(word, 16 * half)), _VECTOR) for half in range(2)]
        a_index = builder.mul(index, ir.Constant(word, TILE_ROWS))
        updated: list[Any] = []
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 16), [0] * 16)
        for row in range(TILE_ROWS):
            scalar = self.load(a, builder.add(a_index, ir.Constant(word, row)), ir.FloatType())
            single = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
            splat = builder.shuffle_vector(single, ir.Constant(_VECTOR, ir.Undefined), zeros)
            updated += [builder.call(self.fma, [splat, halves[h], sums[2 * row + h]]) for h in range(2)]
        return updated
