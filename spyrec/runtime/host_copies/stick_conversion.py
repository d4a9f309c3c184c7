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

FETCHED, STREAMED = 1, 2
"""Flags of a copy of sticks: memory is fetched ahead; whole lines are stored past the caches."""

INNER_LOOPS = 3
"""Loops that every part of a copy has: lanes, and two that are walked in blocks."""

WORDS_BEFORE_LOOPS = 11
"""Of a part of a copy; each loop has three: size, source step, destination step."""

STICK_BYTES = STICK_LANES * PATTERN_BYTES

_LINE_LANES = LINE_BYTES // PATTERN_BYTES
_INDEX = ir.IntType(32)
_WORD = ir.IntType(64)
_PATTERN = ir.IntType(16)
_BYTE = ir.IntType(8).as_pointer()

_Conversion = Callable[[Any, Any], Any]
"""``(builder, patterns)``: the patterns of the other format."""

_NormalConversion = Callable[[Any, Any], tuple[Any, Any]]
"""The same, and numbers below :data:`_NORMALS` at the lanes where the patterns are right: at normal numbers."""

_NORMALS = 0x7C00 - 0x400
"""How many magnitudes of halves are normal numbers."""


def _number(bits: Any) -> Callable[[int], ir.Constant]:  # noqa: ANN401
    """Return what makes vectors of one number, as wide as ``bits``."""
    return lambda value: ir.Constant(bits.type, [value] * bits.type.count)


def _normals_to_dlfloat(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    # half of what the exponents differ by, and of the rounding, are added before the last bit goes
    result = builder.lshr(builder.add(magnitude, every(((31 - 15) << 10) + 1)), every(1))
    return builder.or_(result, builder.and_(bits, every(0x8000))), builder.sub(magnitude, every(0x400))


def _normals_to_half(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    every = _number(bits)
    result = builder.sub(builder.add(bits, bits), every((31 - 15) << 10))
    return builder.or_(result, builder.and_(bits, every(0x8000))), builder.sub(result, every(0x400))


def _with_zeros(builder: Any, bits: Any, normals: tuple[Any, Any]) -> tuple[Any, Any]:  # noqa: ANN401
    """Return what is right at zeros as well; one without a sign is what both formats' zeros become."""
    every = _number(bits)
    is_zero = builder.icmp_unsigned("==", builder.and_(bits, every(0x7FFF)), every(0))
    result, excess = (builder.select(is_zero, every(0), found) for found in normals)
    return result, excess


def _are_below(builder: Any, values: Any, limit: int) -> Any:  # noqa: ANN401
    """Return whether all lanes are, unsigned: of halves of the lanes the larger ones, until few are left."""
    while values.type.count > _LINE_LANES // 2:
        half = values.type.count // 2
        one, other = (_lanes(builder, values, first, half) for first in (0, half))
        values = builder.select(builder.icmp_unsigned(">", one, other), one, other)
    beyond = builder.icmp_unsigned(">=", values, _number(values)(limit))
    lanes = ir.IntType(values.type.count)
    return builder.icmp_unsigned("==", builder.bitcast(beyond, lanes), ir.Constant(lanes, 0))


def _lanes(builder: Any, values: Any, first: int, count: int) -> Any:  # noqa: ANN401
    numbers = ir.Constant(ir.VectorType(_INDEX, count), list(range(first, first + count)))
    return builder.shuffle_vector(values, values, numbers)


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

    normals: _NormalConversion
    in_full: _Conversion


_TO_DLFLOAT = _Direction(_normals_to_dlfloat, _all_to_dlfloat)
_TO_HALF = _Direction(_normals_to_half, _all_to_half)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """How sticks go past the caches, or through them.

    ``distances``: to what is read and written soon, in bytes, where memory is asked for it.
    """

    distances: Sequence[Any]
    is_streamed: bool

    def ask(self, builder: Any, places: Sequence[Any]) -> None:  # noqa: ANN401
        """Ask for what comes soon; lines that are streamed are not read first.  It need not be memory."""
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INDEX, _INDEX, _INDEX])
        called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for is_write, (place, distance) in enumerate(zip(places, self.distances, strict=False)):
            for line in range(0 if is_write and self.is_streamed else 2):
                soon = builder.add(builder.add(place, distance), _word(line * LINE_BYTES))
                numbers = [ir.Constant(_INDEX, value) for value in (is_write, 3, 1)]
                builder.call(called, [builder.inttoptr(soon, _BYTE), *numbers])


@dataclass(frozen=True, slots=True)
class _RunWriter:
    """Writes the conversion of runs; ``places`` of its methods: the addresses read and written."""

    builder: Any
    direction: _Direction

    def stick(self, places: Sequence[Any], *, is_streamed: bool) -> None:
        """Convert a stick, in as few steps as are right for all of its lanes."""
        builder = self.builder
        read, written = (_pointer(builder, place, ir.VectorType(_PATTERN, STICK_LANES)) for place in places)
        normals = self.direction.normals(builder, self._loaded_anew(read))
        # a line that goes past the caches is stored once: twice takes a hundred times as long
        with builder.if_else(_are_below(builder, normals[1], _NORMALS), likely=True) as (simple, others):
            with simple:
                self._store(normals[0], written, is_streamed)
            with others:
                value = self._loaded_anew(read)
                result, excess = _with_zeros(builder, value, self.direction.normals(builder, value))
                with builder.if_else(_are_below(builder, excess, _NORMALS), likely=True) as (zeros, full):
                    with zeros:
                        self._store(result, written, is_streamed)
                    with full:
                        self._store(self.direction.in_full(builder, self._loaded_anew(read)), written, is_streamed)

    def _loaded_anew(self, read: Any) -> Any:  # noqa: ANN401
        """Return what is read; registers that would hold it, and all made of it, are few where vectors are narrow."""
        self.builder.fence("seq_cst", "singlethread")  # an instruction of none: what is loaded was not loaded before it
        return self.builder.load(read, align=PATTERN_BYTES)

    def _store(self, stick: Any, written: Any, is_streamed: bool) -> None:  # noqa: ANN401
        builder = self.builder
        if not is_streamed:
            builder.store(stick, written, align=PATTERN_BYTES)
            return
        line_type = ir.VectorType(_PATTERN, _LINE_LANES).as_pointer()
        for line in range(2):
            place = cgutils.gep(builder, builder.bitcast(written, line_type), line)
            stored = builder.store(_lanes(builder, stick, line * _LINE_LANES, _LINE_LANES), place, align=LINE_BYTES)
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_INDEX, 1)]))

    def sticks(self, places: Sequence[Any], steps: Sequence[Any], count: Any, ahead: _Ahead) -> None:  # noqa: ANN401
        """Convert sticks that are ``steps`` bytes apart, one after the other."""
        with cgutils.for_range(self.builder, count, intp=_WORD) as loop:
            here = [self._further(place, loop.index, step) for place, step in zip(places, steps, strict=True)]
            ahead.ask(self.builder, here)
            self.stick(here, is_streamed=ahead.is_streamed)

    def rest(self, places: Sequence[Any], lanes: Any) -> None:  # noqa: ANN401
        """Convert less than a stick, at least :data:`FEW` lanes: in two vectors, where that is right for all lanes."""
        builder = self.builder
        is_done = cgutils.alloca_once_value(builder, cgutils.false_bit)
        self._pair_of(_LINE_LANES, places, lanes, is_done)
        with builder.if_then(builder.not_(builder.load(is_done)), likely=False):
            count = builder.lshr(builder.add(lanes, _word(FEW - 1)), _word(3))
            last = builder.sub(lanes, _word(FEW))
            with cgutils.for_range(builder, count, intp=_WORD) as loop:
                first = builder.mul(loop.index, _word(FEW))
                first = builder.select(builder.icmp_signed("<", first, last), first, last)
                read, written = self._vectors(FEW, places, first)
                value = builder.load(read, align=PATTERN_BYTES)
                builder.store(self.direction.in_full(builder, value), written, align=PATTERN_BYTES)

    def _pair_of(self, count: int, places: Sequence[Any], lanes: Any, is_done: Any) -> None:  # noqa: ANN401
        """Convert the first and the last of the lanes as one vector of twice ``count``, or fewer."""
        builder = self.builder
        if count < FEW:
            return
        with builder.if_else(builder.icmp_unsigned(">=", lanes, _word(count))) as (fits, is_less):
            with fits:
                ends = [self._vectors(count, places, first) for first in (_word(0), builder.sub(lanes, _word(count)))]
                first, last = (builder.load(read, align=PATTERN_BYTES) for read, _ in ends)
                both = ir.Constant(ir.VectorType(_INDEX, 2 * count), list(range(2 * count)))
                value = builder.shuffle_vector(first, last, both)
                result, excess = _with_zeros(builder, value, self.direction.normals(builder, value))
                is_right = _are_below(builder, excess, _NORMALS)
                builder.store(is_right, is_done)
                with builder.if_then(is_right, likely=True):
                    for (_, written), start in zip(ends, (0, count), strict=True):
                        builder.store(_lanes(builder, result, start, count), written, align=PATTERN_BYTES)
            with is_less:
                self._pair_of(count // 2, places, lanes, is_done)

    def _vectors(self, count: int, places: Sequence[Any], first: Any) -> list[Any]:  # noqa: ANN401
        """Return pointers to so many patterns, from one on."""
        kind = ir.VectorType(_PATTERN, count)
        return [_pointer(self.builder, self._further(place, first, _word(PATTERN_BYTES)), kind) for place in places]

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
                place = _pointer(builder, self._further(read, number, read_step), _PATTERN)
                value = builder.insert_element(
                    value, builder.load(place, align=PATTERN_BYTES), ir.Constant(_INDEX, lane)
                )
            result = self.direction.in_full(builder, value)
            for lane, number in enumerate(numbers):
                place = _pointer(builder, self._further(written, number, write_step), _PATTERN)
                builder.store(builder.extract_element(result, ir.Constant(_INDEX, lane)), place, align=PATTERN_BYTES)

    def _further(self, place: Any, count: Any, size_bytes: Any) -> Any:  # noqa: ANN401
        return self.builder.add(place, self.builder.mul(count, size_bytes))


def _word(value: int) -> ir.Constant:
    return ir.Constant(_WORD, value)


def _writer(builder: Any, to_device: Any) -> _RunWriter:  # noqa: ANN401
    return _RunWriter(builder, _TO_DLFLOAT if to_device.literal_value else _TO_HALF)


@literal_intrinsic
def _convert_sticks(  # noqa: ANN202
    _context: Any,  # noqa: ANN401
    to_device: Any,  # noqa: ANN401
    _flags: Any,  # noqa: ANN401
    _read: Any,  # noqa: ANN401
    _write: Any,  # noqa: ANN401
    _count: Any,  # noqa: ANN401
    _read_step: Any,  # noqa: ANN401
    _write_step: Any,  # noqa: ANN401
    _read_ahead: Any,  # noqa: ANN401
    _write_ahead: Any,  # noqa: ANN401
):
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _, flags, read, write, count, *numbers = arguments
        steps, distances = numbers[:2], numbers[2:]
        writer = _writer(builder, to_device)

        def has(flag: int) -> Any:  # noqa: ANN401
            return builder.icmp_unsigned("!=", builder.and_(flags, _word(flag)), _word(0))

        with builder.if_else(has(STREAMED)) as (past_caches, others):
            with past_caches:
                writer.sticks((read, write), steps, count, _Ahead(distances, is_streamed=True))
            with others, builder.if_else(has(FETCHED)) as (fetched, usual):
                with fetched:
                    writer.sticks((read, write), steps, count, _Ahead(distances, is_streamed=False))
                with usual:
                    writer.sticks((read, write), steps, count, _Ahead((), is_streamed=False))
        return _word(0)

    return types.int64(to_device, *[types.int64] * 8), generate


convert_sticks = cast("Callable[[bool, int, int, int, int, int, int, int, int], None]", _convert_sticks)
"""``(to_device, flags, read, write, count, read_step, write_step, read_ahead, write_ahead)``: rounds sticks, so many
bytes apart (inside kernels only).

``to_device``, a constant: IEEE half to DLFloat16, else the other way.  ``flags``: :data:`FETCHED` asks for memory so
many bytes ahead; :data:`STREAMED`, for sticks written to whole lines, stores them past the caches, and
:func:`ordered` makes others see them.
"""


@literal_intrinsic
def _convert_rest(_context: Any, to_device: Any, _read: Any, _write: Any, _lanes: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _, *places, lanes = arguments
        _writer(builder, to_device).rest(places, lanes)
        return _word(0)

    return types.int64(to_device, *[types.int64] * 3), generate


convert_rest = cast("Callable[[bool, int, int, int], None]", _convert_rest)
"""``(to_device, read, write, lanes)``: the same of adjacent patterns, :data:`FEW` and less than a stick."""


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


@intrinsic
def _outer_start(_context: Any, _part: Any, _place: Any, _pass: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        part, place, number = arguments

        def word(loop: Any, number: Any) -> Any:  # noqa: ANN401
            index = builder.add(builder.mul(loop, _word(3)), builder.add(number, _word(WORDS_BEFORE_LOOPS)))
            return builder.load(builder.gep(_pointer(builder, part, _WORD), [index]), align=8)

        start, left = (cgutils.alloca_once_value(builder, value) for value in (_word(0), number))
        loops = builder.load(_pointer(builder, part, _WORD), align=8)
        with cgutils.for_range(builder, builder.sub(loops, _word(INNER_LOOPS)), intp=_WORD) as loop:
            number = builder.add(loop.index, _word(INNER_LOOPS))
            size, passes = word(number, _word(0)), builder.load(left)
            step = builder.mul(builder.urem(passes, size), word(number, place))
            builder.store(builder.add(builder.load(start), step), start)
            builder.store(builder.udiv(passes, size), left)
        return builder.load(start)

    return types.int64(types.int64, types.int64, types.int64), generate


outer_start = cast("Callable[[int, int, int], int]", _outer_start)
"""``(part, place, pass)``: how far from its first element a pass of a part's outer loops begins; ``part``: an address.

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
