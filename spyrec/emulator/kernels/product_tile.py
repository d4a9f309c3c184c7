"""The register tile of a product: as many sums as the processor's registers hold, for use inside kernels.

Each element is one chain of fused multiply-adds, k ascending, whatever the tile's shape and the vectors' width: every
row and every lane takes the same steps, so that an element's bits depend neither on where it stands nor on the
processor (D040, D170 of docs/decisions.md).
"""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir

from spyrec.emulator.kernels.dl16 import (
    ABOVE,
    BELOW,
    FIRST,
    GROUP,
    HALF,
    SECOND,
    SHORTS,
    decode_vectors,
    encode_vectors,
    joined,
    lanes_of,
    pointer,
)
from spyrec.files.host_processor import KernelVariant, host_processor
from spyrec.files.numba_names import cgutils, intrinsic, types

_VARIANT = host_processor().variant

TILE_ROWS = _VARIANT.tile_rows
"""Rows of one register tile."""

TILE_COLUMNS = _VARIANT.tile_columns
"""Columns of one register tile, whole vectors."""

_WORD = ir.IntType(64)
_INDEX = ir.IntType(32)


PART_ROWS = 4
"""Rows of a smaller tile for what is left over: eight sums, as many as keep two units of four steps at work."""

_MOST_SHARED = 2 * PART_ROWS - TILE_ROWS
"""Rows of the last tile up to which it and the one before are better done as two smaller ones."""


@intrinsic
def _tile_start(_context: Any, _tile: Any, _rows: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        tile, rows = arguments
        zero, start = ir.Constant(_WORD, 0), builder.mul(tile, ir.Constant(_WORD, TILE_ROWS))
        left = builder.sub(rows, start)
        is_last = builder.and_(
            builder.icmp_signed(">", left, zero), builder.icmp_signed("<=", left, ir.Constant(_WORD, _MOST_SHARED))
        )
        is_short = builder.and_(is_last, builder.icmp_signed(">", tile, zero))
        return builder.select(is_short, builder.sub(start, ir.Constant(_WORD, TILE_ROWS - PART_ROWS)), start)

    return types.int64(types.int64, types.int64), generate


tile_start = cast("Callable[[int, int], int]", _tile_start)
"""``(tile, rows)``: the first of so many rows that a tile has; a tile behind the last begins past them (inside kernels
only).

32 rows by tiles of 6 are four of these and two of 4, which take a sixteenth less than five and one of 4 half empty.
"""


def _tile_of(rows: int) -> Callable[[int, int, int, int], None]:
    """Return what computes the first rows of a tile."""

    @intrinsic
    def multiply(_context: Any, _a: Any, _b: Any, _c: Any, _depth: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            TileWriter(builder, _VARIANT, rows).write(*arguments)
            return ir.Constant(_WORD, 0)

        return types.int64(types.int64, types.int64, types.int64, types.int64), generate

    return cast("Callable[[int, int, int, int], None]", multiply)


multiply_tile = _tile_of(TILE_ROWS)
"""``(a, b, c, depth)``: ``c[rows, columns] += a[depth, rows]^T b[depth, columns]``, float32 at byte addresses, k
ascending, one fused step per k (inside kernels only)."""

multiply_part = _tile_of(PART_ROWS)
"""The same of a tile's first rows alone; the others stay as they are (inside kernels only)."""


@intrinsic
def _decode_line(_context: Any, _source: Any, _target: Any, _pitch: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, target, pitch = arguments
        split = decode_vectors(builder, builder.load(pointer(builder, source, SHORTS), align=2))
        order = [*FIRST, *SECOND]
        for part, place in enumerate(_parts(builder, target, pitch)):
            lanes = order[part * _PART : (part + 1) * _PART]
            builder.store(lanes_of(builder, *split, lanes), place, align=4)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _encode_line(_context: Any, _source: Any, _pitch: Any, _target: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, pitch, target = arguments
        parts = [builder.load(place, align=4) for place in _parts(builder, source, pitch)]
        halves = joined(builder, parts, 2)
        split = [lanes_of(builder, *halves, lanes) for lanes in (BELOW, ABOVE)]
        patterns = encode_vectors(builder, (split[0], split[1]))
        builder.store(patterns, pointer(builder, target, SHORTS), align=2)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


_PART = min(TILE_COLUMNS, HALF)


def _parts(builder: Any, address: Any, pitch: Any) -> list[Any]:  # noqa: ANN401
    """Return pointers to the vectors of a row of 32 elements, whose tiles are ``pitch`` bytes apart."""
    kind = ir.VectorType(ir.FloatType(), _PART)
    found: list[Any] = []
    for column in range(0, GROUP, _PART):
        tile, within = divmod(column, TILE_COLUMNS)
        place = builder.add(address, builder.mul(pitch, ir.Constant(_WORD, tile)))
        found.append(pointer(builder, builder.add(place, ir.Constant(_WORD, 4 * within)), kind))
    return found


decode_line = cast("Callable[[int, int, int], None]", _decode_line)
"""``(source, target, pitch)``: decodes 32 patterns of DLFloat16 to a row of as many tiles as they fill, which are
``pitch`` bytes apart (inside kernels only)."""

encode_line = cast("Callable[[int, int, int], None]", _encode_line)
"""``(source, pitch, target)``: rounds such a row to 32 patterns (inside kernels only)."""


class TileWriter:
    """Writes the register tile's loop as LLVM instructions, in vectors of the variant: LLVM prefers narrower ones."""

    def __init__(self, builder: Any, variant: KernelVariant, rows: int | None = None) -> None:  # noqa: ANN401
        """``rows``: the first ones of the tile, by default all of them."""
        self.builder = builder
        self.lanes, self.columns = variant.lanes, variant.tile_columns
        self.pitch, self.rows = variant.tile_rows, rows or variant.tile_rows
        self.vector = ir.VectorType(ir.FloatType(), variant.lanes)
        function = ir.FunctionType(self.vector, [self.vector] * 3)
        self.fma = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{variant.lanes}f32")

    def write(self, a: Any, b: Any, c: Any, depth: Any) -> None:  # noqa: ANN401
        """Write it: addresses of A, B and the sums, and how many k there are."""
        builder = self.builder
        offsets = [
            ir.Constant(_WORD, row * self.columns + column)
            for row in range(self.rows)
            for column in range(0, self.columns, self.lanes)
        ]
        initial = [self._load(c, offset, self.vector) for offset in offsets]
        entry = builder.block
        head = builder.append_basic_block("tile.head")
        body = builder.append_basic_block("tile.body")
        done = builder.append_basic_block("tile.done")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(_WORD)
        index.add_incoming(ir.Constant(_WORD, 0), entry)
        sums = [builder.phi(self.vector) for _ in offsets]
        for phi, value in zip(sums, initial):
            phi.add_incoming(value, entry)
        builder.cbranch(builder.icmp_signed("<", index, depth), body, done)
        builder.position_at_end(body)
        updated = self._step(a, b, index, sums)
        following = builder.add(index, ir.Constant(_WORD, 1))
        index.add_incoming(following, body)
        for phi, value in zip(sums, updated):
            phi.add_incoming(value, body)
        builder.branch(head)
        builder.position_at_end(done)
        for offset, value in zip(offsets, sums):
            builder.store(value, self._place(c, offset, self.vector), align=4)

    def _step(self, a: Any, b: Any, index: Any, sums: list[Any]) -> list[Any]:  # noqa: ANN401
        builder = self.builder
        b_index = builder.mul(index, ir.Constant(_WORD, self.columns))
        columns = range(0, self.columns, self.lanes)
        line = [self._load(b, builder.add(b_index, ir.Constant(_WORD, n)), self.vector) for n in columns]
        a_index = builder.mul(index, ir.Constant(_WORD, self.pitch))
        undefined = ir.Constant(self.vector, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(_INDEX, self.lanes), [0] * self.lanes)
        updated: list[Any] = []
        for row in range(self.rows):
            scalar = self._load(a, builder.add(a_index, ir.Constant(_WORD, row)), ir.FloatType())
            single = builder.insert_element(undefined, scalar, ir.Constant(_INDEX, 0))
            splat = builder.shuffle_vector(single, undefined, zeros)
            own = sums[row * len(line) : (row + 1) * len(line)]
            updated += [builder.call(self.fma, [splat, values, total]) for values, total in zip(line, own)]
        return updated

    def _load(self, base: Any, element: Any, kind: ir.Type) -> Any:  # noqa: ANN401
        return self.builder.load(self._place(base, element, kind), align=4)

    def _place(self, base: Any, element: Any, kind: ir.Type) -> Any:  # noqa: ANN401
        builder = self.builder
        address = builder.add(base, builder.mul(element, ir.Constant(_WORD, 4)))
        return builder.inttoptr(address, kind.as_pointer())
