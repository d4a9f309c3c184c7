"""Conversion of runs of 16-bit patterns inside kernels, written as instructions on addresses.

As functions of numba's they took five times as long to compile, which whoever copies for the first time waits for.

Patterns that are or become zero or a normal number need a handful of steps, infinities, NaNs and what is or becomes a
subnormal half several times as many.  So a stick goes the first way, and where that does not serve all of its lanes the
other one: a softmax of thousands of elements gives subnormal halves in every stick.
"""

# numba and llvmlite ship no type information: what they return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir

from spyrec.dataclass import dataclass
from spyrec.files.numba_names import cgutils, intrinsic, literal_intrinsic, types

LINE_BYTES = 64
"""A line of the host's caches, half a stick."""

STICK_LANES = 64
"""Lanes of a stick, two lines."""

PATTERN_BYTES = 2

FEW = 8
"""Lanes of the vectors of what is no half of a stick: those that every processor has."""

_LINE_LANES = LINE_BYTES // PATTERN_BYTES
_STICK_BYTES = STICK_LANES * PATTERN_BYTES
_INDEX = ir.IntType(32)
_WORD = ir.IntType(64)
_PATTERN = ir.IntType(16)
_BYTE = ir.IntType(8).as_pointer()

_Conversion = Callable[[Any, Any], Any]
"""``(builder, patterns)``: the patterns of the other format."""

_SimpleConversion = Callable[[Any, Any], tuple[Any, Any]]
"""The same, and the lanes where they are right."""


def _number(bits: Any) -> Callable[[int], ir.Constant]:  # noqa: ANN401
    """Return what makes vectors of one number, as wide as ``bits``."""
    return lambda value: ir.Constant(bits.type, [value] * bits.type.count)


def _signed_or_zero(builder: Any, bits: Any, result: Any, halves: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return ``result`` with the sign of ``bits``, zero where it is no normal number, and where that is right.

    ``halves``: magnitudes of the half patterns.
    """
    every = _number(bits)
    is_normal = builder.icmp_unsigned("<", builder.sub(halves, every(0x400)), every(0x7C00 - 0x400))
    is_zero = builder.icmp_unsigned("==", builder.and_(bits, every(0x7FFF)), every(0))
    signed = builder.or_(result, builder.and_(bits, every(0x8000)))
    return builder.select(is_normal, signed, every(0)), builder.or_(is_normal, is_zero)


def _normals_to_dlfloat(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the patterns, and where they are right: at zeros and normal numbers."""
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    # half of what the exponents differ by, and of the rounding, are added before the last bit goes
    result = builder.lshr(builder.add(magnitude, every(((31 - 15) << 10) + 1)), every(1))
    return _signed_or_zero(builder, bits, result, magnitude)


def _normals_to_half(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the patterns, and where they are right: at zeros and what becomes a normal number."""
    result = builder.sub(builder.add(bits, bits), _number(bits)((31 - 15) << 10))
    return _signed_or_zero(builder, bits, result, result)


def _all_to_dlfloat(builder: Any, bits: Any) -> Any:  # noqa: ANN401
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    normal = builder.add(builder.lshr(builder.add(magnitude, every(1)), every(1)), every((31 - 15) << 9))
    is_subnormal = builder.icmp_unsigned("<", magnitude, every(0x400))
    result = builder.select(is_subnormal, _normalised(builder, magnitude), normal)
    result = builder.select(builder.icmp_unsigned(">=", magnitude, every(0x7C00)), every(0x7FFF), result)
    result = builder.or_(result, builder.and_(bits, every(0x8000)))
    result = builder.select(builder.icmp_unsigned(">", magnitude, every(0x7C00)), every(0x7FFF), result)
    return builder.select(builder.icmp_unsigned("==", magnitude, every(0)), every(0), result)


def _normalised(builder: Any, magnitude: Any) -> Any:  # noqa: ANN401
    """Return DLFloat16 patterns of subnormal halves, which count units of 2**-24.

    Of such a number as a float32, exponent and top fraction bits are the result's.
    """
    wide, single = (ir.VectorType(kind, magnitude.type.count) for kind in (_INDEX, ir.FloatType()))
    pattern = builder.bitcast(builder.sitofp(builder.zext(magnitude, wide), single), wide)
    every = _number(pattern)
    return builder.trunc(builder.sub(builder.lshr(pattern, every(14)), every((127 - 31 + 24) << 9)), magnitude.type)


def _all_to_half(builder: Any, bits: Any) -> Any:  # noqa: ANN401
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    normal = builder.shl(builder.sub(magnitude, every((31 - 15) << 9)), every(1))
    # 65536 is what half's largest number becomes on the device
    result = builder.select(builder.icmp_unsigned("==", magnitude, every((31 + 16) << 9)), every(0x7BFF), normal)
    result = builder.select(builder.icmp_unsigned(">", magnitude, every((31 + 16) << 9)), every(0x7C00), result)
    is_subnormal = builder.icmp_unsigned("<", magnitude, every((31 - 14) << 9))
    result = builder.select(is_subnormal, _subnormal(builder, magnitude), result)
    result = builder.or_(result, builder.and_(bits, every(0x8000)))
    return builder.select(builder.icmp_unsigned("==", magnitude, every(0)), every(0), result)


def _subnormal(builder: Any, magnitude: Any) -> Any:  # noqa: ANN401
    """Return units of 2**-24, to nearest, ties to even, of DLFloat16 numbers below 2**-14.

    One is its ten bits, the first of them hidden, shifted right by 16 less its exponent: here by one more, of eleven.
    """
    every = _number(magnitude)
    exponent = _at_most(builder, builder.lshr(magnitude, every(9)), 16)
    shift = _at_most(builder, builder.sub(every(17), exponent), 15)  # from 12 on nothing is left
    bits = builder.shl(builder.or_(builder.and_(magnitude, every(0x1FF)), every(0x200)), every(1))
    is_odd = builder.and_(builder.lshr(bits, shift), every(1))
    nearly_half = builder.sub(builder.shl(every(1), builder.sub(shift, every(1))), every(1))
    return builder.lshr(builder.add(builder.add(bits, nearly_half), is_odd), shift)


def _at_most(builder: Any, values: Any, most: int) -> Any:  # noqa: ANN401
    limit = _number(values)(most)
    return builder.select(builder.icmp_unsigned("<", values, limit), values, limit)


def _pointer(builder: Any, address: Any, kind: ir.Type) -> Any:  # noqa: ANN401
    return builder.inttoptr(address, kind.as_pointer())


@dataclass(frozen=True, slots=True)
class _Direction:
    """How patterns of one format become those of the other."""

    simply: _SimpleConversion
    in_full: _Conversion


_TO_DLFLOAT = _Direction(_normals_to_dlfloat, _all_to_dlfloat)
_TO_HALF = _Direction(_normals_to_half, _all_to_half)


@dataclass(frozen=True, slots=True)
class _RunWriter:
    """Writes the conversion of runs; ``places`` of its methods: the addresses read and written."""

    builder: Any
    direction: _Direction

    def stick(self, places: Sequence[Any], *, is_streamed: bool) -> None:
        """Convert a stick, simply where that is right for all lanes."""
        builder = self.builder
        read, written = (_pointer(builder, place, ir.VectorType(_PATTERN, STICK_LANES)) for place in places)
        value = builder.load(read, align=PATTERN_BYTES)
        result, right = self.direction.simply(builder, value)
        is_right = builder.icmp_unsigned("==", builder.bitcast(right, _WORD), _word(-1))
        # a line that goes past the caches is stored once: twice takes a hundred times as long
        with builder.if_else(is_right, likely=True) as (simple, full):
            with simple:
                self._store(result, written, is_streamed)
            with full:
                self._store(self.direction.in_full(builder, value), written, is_streamed)

    def _store(self, stick: Any, written: Any, is_streamed: bool) -> None:  # noqa: ANN401
        builder = self.builder
        if not is_streamed:
            builder.store(stick, written, align=PATTERN_BYTES)
            return
        line_type = ir.VectorType(_PATTERN, _LINE_LANES).as_pointer()
        for line in range(2):
            lanes = ir.Constant(
                ir.VectorType(_INDEX, _LINE_LANES), [line * _LINE_LANES + k for k in range(_LINE_LANES)]
            )
            place = cgutils.gep(builder, builder.bitcast(written, line_type), line)
            stored = builder.store(builder.shuffle_vector(stick, stick, lanes), place, align=LINE_BYTES)
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_INDEX, 1)]))

    def few(self, places: Sequence[Any], lanes: int) -> None:
        """Convert so many lanes as one vector."""
        builder = self.builder
        read, written = (_pointer(builder, place, ir.VectorType(_PATTERN, lanes)) for place in places)
        value = builder.load(read, align=PATTERN_BYTES)
        builder.store(self.direction.in_full(builder, value), written, align=PATTERN_BYTES)

    def sticks(self, places: Sequence[Any], count: Any, *, is_streamed: bool) -> None:  # noqa: ANN401
        """Convert whole sticks, one after the other."""
        with cgutils.for_range(self.builder, count, intp=_WORD) as loop:
            self.stick(self._further(places, loop.index, _STICK_BYTES), is_streamed=is_streamed)

    def rest(self, places: Sequence[Any], lanes: Any) -> None:  # noqa: ANN401
        """Convert less than a stick: a line, then vectors of 8, the last of which overlaps what is before it."""
        builder = self.builder
        has_line = builder.icmp_unsigned(">=", lanes, _word(_LINE_LANES))
        with builder.if_then(has_line):
            self.few(places, _LINE_LANES)
        places = self._further(places, builder.zext(has_line, _WORD), LINE_BYTES)
        lanes = builder.and_(lanes, _word(_LINE_LANES - 1))
        count = builder.lshr(builder.add(lanes, _word(FEW - 1)), _word(3))
        with cgutils.for_range(builder, count, intp=_WORD) as loop:
            first, last = builder.mul(loop.index, _word(FEW)), builder.sub(lanes, _word(FEW))
            first = builder.select(builder.icmp_signed("<", first, last), first, last)
            self.few(self._further(places, first, PATTERN_BYTES), FEW)

    def spaced(self, places: Sequence[Any], steps: Sequence[Any], lanes: Any) -> None:  # noqa: ANN401
        """Convert patterns that are ``steps`` bytes apart, in vectors of 8; those behind the last one are the last."""
        builder, last = self.builder, self.builder.sub(lanes, _word(1))
        (read, written), (read_step, write_step) = places, steps
        vectors = builder.lshr(builder.add(lanes, _word(FEW - 1)), _word(3))
        with cgutils.for_range(builder, vectors, intp=_WORD) as loop:
            first = builder.mul(loop.index, _word(FEW))
            numbers = [builder.add(first, _word(lane)) for lane in range(FEW)]
            numbers = [builder.select(builder.icmp_signed("<", number, last), number, last) for number in numbers]
            value = ir.Constant(ir.VectorType(_PATTERN, FEW), ir.Undefined)
            for lane, number in enumerate(numbers):
                place = _pointer(builder, builder.add(read, builder.mul(number, read_step)), _PATTERN)
                value = builder.insert_element(
                    value, builder.load(place, align=PATTERN_BYTES), ir.Constant(_INDEX, lane)
                )
            result = self.direction.in_full(builder, value)
            for lane, number in enumerate(numbers):
                place = _pointer(builder, builder.add(written, builder.mul(number, write_step)), _PATTERN)
                builder.store(builder.extract_element(result, ir.Constant(_INDEX, lane)), place, align=PATTERN_BYTES)

    def _further(self, places: Sequence[Any], count: Any, size_bytes: int) -> list[Any]:  # noqa: ANN401
        beyond = self.builder.mul(count, _word(size_bytes))
        return [self.builder.add(place, beyond) for place in places]


def _word(value: int) -> ir.Constant:
    return ir.Constant(_WORD, value)


def _writer(builder: Any, to_device: Any) -> _RunWriter:  # noqa: ANN401
    return _RunWriter(builder, _TO_DLFLOAT if to_device.literal_value else _TO_HALF)


@literal_intrinsic
def _convert_run(_context: Any, to_device: Any, _is_streamed: Any, _read: Any, _write: Any, _lanes: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _, streamed, *places, lanes = arguments
        writer, count = _writer(builder, to_device), builder.sdiv(lanes, _word(STICK_LANES))
        with builder.if_else(builder.icmp_signed("!=", streamed, _word(0))) as (past_caches, usual):
            with past_caches:
                writer.sticks(places, count, is_streamed=True)
            with usual:
                writer.sticks(places, count, is_streamed=False)
        rest = builder.sub(lanes, builder.mul(count, _word(STICK_LANES)))
        with builder.if_then(builder.icmp_signed("!=", rest, _word(0))):
            beyond = builder.mul(count, _word(_STICK_BYTES))
            writer.rest([builder.add(place, beyond) for place in places], rest)
        return _word(0)

    words = types.int64
    return words(to_device, words, words, words, words), generate


convert_run = cast("Callable[[bool, int, int, int, int], None]", _convert_run)
"""``(to_device, is_streamed, read, write, lanes)``: rounds adjacent patterns (inside kernels only).

``lanes``: at least :data:`FEW`.  ``to_device``, a constant: IEEE half to DLFloat16, else the other way.
``is_streamed``: not 0 where whole sticks, which begin with lines, are stored past the caches; :func:`ordered` makes
others see them.
"""


@literal_intrinsic
def _convert_spaced(_context: Any, to_device: Any, _read: Any, _step: Any, _write: Any, _pace: Any, _lanes: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _, read, read_step, write, write_step, lanes = arguments
        _writer(builder, to_device).spaced((read, write), (read_step, write_step), lanes)
        return _word(0)

    words = types.int64
    return words(to_device, words, words, words, words, words), generate


convert_spaced = cast("Callable[[bool, int, int, int, int, int], None]", _convert_spaced)
"""``(to_device, read, read_step, write, write_step, lanes)``: the same of any number, so many bytes apart."""


@intrinsic
def _word_at(_context: Any, _table: Any, _place: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        table, place = arguments
        return builder.load(builder.gep(_pointer(builder, table, _WORD), [place]), align=8)

    return types.int64(types.int64, types.int64), generate


word_at = cast("Callable[[int, int], int]", _word_at)
"""``(table, place)``: a word of a table at an address."""


WORDS_BEFORE_LOOPS = 5
"""Of a part of a copy; each loop has three: size, source step, destination step."""


@intrinsic
def _tile_start(_context: Any, _part: Any, _place: Any, _tile: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        part, place, tile = arguments

        def word(loop: Any, number: Any) -> Any:  # noqa: ANN401
            index = builder.add(builder.mul(loop, _word(3)), builder.add(number, _word(WORDS_BEFORE_LOOPS)))
            return builder.load(builder.gep(_pointer(builder, part, _WORD), [index]), align=8)

        start, left = (cgutils.alloca_once_value(builder, value) for value in (_word(0), tile))
        loops = builder.load(_pointer(builder, part, _WORD), align=8)
        with cgutils.for_range(builder, builder.sub(loops, _word(2)), intp=_WORD) as loop:
            number = builder.add(loop.index, _word(2))
            size, tiles = word(number, _word(0)), builder.load(left)
            step = builder.mul(builder.urem(tiles, size), word(number, place))
            builder.store(builder.add(builder.load(start), step), start)
            builder.store(builder.udiv(tiles, size), left)
        return builder.load(start)

    return types.int64(types.int64, types.int64, types.int64), generate


tile_start = cast("Callable[[int, int, int], int]", _tile_start)
"""``(part, place, tile)``: how far from its first element a tile of a part of a copy, an address, begins.

``place`` 1: where it is read, 2: where it is written.
"""


@intrinsic
def _ordered(_context: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> object:  # noqa: ANN401
        builder.fence("seq_cst")
        return ir.Constant(_WORD, 0)

    return types.int64(), generate


ordered = cast("Callable[[], None]", _ordered)
"""Stores past the caches come before all that follows."""


def _fetcher(*, is_write: bool) -> Callable[[int], None]:
    @intrinsic
    def fetched(_context: Any, _address: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INDEX, _INDEX, _INDEX])
            called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            for line in range(2):
                place = builder.add(arguments[0], ir.Constant(_WORD, line * LINE_BYTES))
                numbers = [ir.Constant(_INDEX, value) for value in (int(is_write), 3, 1)]
                builder.call(called, [builder.inttoptr(place, _BYTE), *numbers])
            return ir.Constant(_WORD, 0)

        return types.int64(types.int64), generate

    return cast("Callable[[int], None]", fetched)


fetch_to_read = _fetcher(is_write=False)
"""``(address)``: asks for the cache lines of 64 patterns, which need not be memory."""

fetch_to_write = _fetcher(is_write=True)
"""The same, for patterns that will be written."""
