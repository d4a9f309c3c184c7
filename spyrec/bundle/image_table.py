"""``/table.json`` of a program image: what the program's arguments are, and what each word of a correction holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import orjson

from spyrec.bundle.argument_uses import AddressSpan, argument_uses
from spyrec.bundle.correction_word import WORDS, Word, WordKind
from spyrec.bundle.device_program import DeviceProgram, ProgramFacts
from spyrec.bundle.dynamic_sizes import largest_sizes
from spyrec.bundle.json_cursor import MALFORMED, Cursor
from spyrec.bundle.json_members import FLAG, TEXT, Member, Members, read_members, whole_number, written
from spyrec.bundle.manifest import Manifest, PlanStep, baked_base
from spyrec.bundle.program import ARGUMENT_PARAMETER, is_value_parameter
from spyrec.bundle.superdsc_operands import read_format
from spyrec.bundle.tile_contract import TileContract, programs_beside, strided_places
from spyrec.bundle.validate import POOL_PARAMETER
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES

NO_STRIDE_WORDS = "SPY0972"
"""Code of a program that a tile contract gives stick strides, and whose correction has no words for them."""

TABLE_FILE = "/table.json"
"""The name of the table among the files of an image's code section: one that no file of a bundle can have."""

_MAX_RANK = 32
_MAX_ARGUMENTS = 1 << 16


@dataclass(frozen=True, slots=True)
class ImageArgument:
    """One argument of a program; its place in the table is its index.

    ``device_size``: outermost first, the last one elements per stick.  ``baked_base``: its device address, in bytes,
    in a program without correction.
    """

    name: str
    device_size: tuple[int, ...]
    device_dtype: DeviceFormat
    baked_base: int
    is_read: bool
    is_written: bool

    @property
    def size_bytes(self) -> int:
        """Bytes of device memory."""
        return math.prod(self.device_size[:-1]) * STICK_BYTES


@dataclass(frozen=True, slots=True)
class ImageTable:
    """What a program is launched with.

    ``pool_bytes``: 0 without a pool.  ``value_maxima``: the largest value of each value parameter, where it is known.
    ``words``: of a correction, in order; an argument without a word lies at its baked base.
    """

    arguments: tuple[ImageArgument, ...]
    pool_bytes: int
    value_maxima: Mapping[str, int]
    words: tuple[Word, ...]


class ImageTables:
    """The tables of the programs of a manifest, which is looked through once for all of them."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._arguments = {item.name: item for item in manifest.arguments}
        self.facts: dict[str, ProgramFacts] = {}
        """What was found out of programs, by directory."""
        self._contracts: dict[str, list[TileContract]] = {}
        for contract in manifest.tile_contracts.values():
            for program in {contract.program: None, **dict.fromkeys(programs_beside(contract))}:
                self._contracts.setdefault(program, []).append(contract)

    def of(self, program: DeviceProgram, step: PlanStep) -> ImageTable:
        """Return the table of one step of the plan, whose program was checked against the manifest."""
        is_only = len(self._manifest.plan) == 1 and step in self._manifest.plan
        arguments = [self._arguments[name] for name in step.arguments]
        listed = [
            ImageArgument(
                item.name, item.device_size, item.device_dtype,
                baked_base(item, index, step, is_only=is_only), is_read=False, is_written=False,
            )
            for index, item in enumerate(arguments)
        ]  # fmt: skip
        maxima = {**step.values, **{name: item.max_trips for name, item in step.trip_counts.items()}}
        plain = ImageTable(tuple(listed), step.pool_bytes, maxima, ())
        facts = self.facts[step.program] = facts_of(program, plain)
        table = _completed(plain, facts)
        more = stride_words(step.program, self._contracts.get(step.program, ()), table.arguments)
        return replace(table, words=(*table.words, *more))


def stride_words(
    program: str, contracts: Iterable[TileContract], arguments: Sequence[ImageArgument]
) -> tuple[Word, ...]:
    """Return the words by which launches set the stick strides of a program's arguments, as contracts promise them.

    Every program that a launch gives strides has them: the body, and what stores its results in place of it.
    """
    promised = frozenset[int]().union(*(strided_places(contract, program) for contract in contracts))
    return tuple(
        Word(WordKind.STICK_STRIDE, index, dim)
        for index in sorted(promised)
        for dim in range(len(arguments[index].device_size) - 1)
    )


def check_stride_words(words: Iterable[Word], table: ImageTable, where: Location) -> None:
    """Refuse a program that launches give stick strides and that has no words for them; errors SPY0972.

    It would walk its tiles at the compiled distances, and nothing else would tell.
    """
    missing = [word for word in words if word.kind is WordKind.STICK_STRIDE and word not in table.words]
    if missing:
        argument = table.arguments[missing[0].index]
        held = sum(word.kind is WordKind.STICK_STRIDE and word.index == missing[0].index for word in table.words)
        fact = f'launches set {len(argument.device_size) - 1} stick strides of "{argument.name}"'
        raise refuse(NO_STRIDE_WORDS, f"{fact}, the program's correction has words for {held}", where)


def completed(program: DeviceProgram, table: ImageTable) -> ImageTable:
    """Return a table with what the program itself says: uses of arguments, and the words of a correction."""
    return _completed(table, facts_of(program, table))


def facts_of(program: DeviceProgram, table: ImageTable) -> ProgramFacts:
    """Return what a program says of its launches; ``table``: where baked addresses put its arguments."""
    if program.written is not None:
        return program.written.facts
    spans = [AddressSpan(item.baked_base, item.size_bytes) for item in table.arguments]
    uses = argument_uses(program.program, program.superdscs, spans)
    names = tuple([item.name for item in program.program.parameters])
    return ProgramFacts(tuple(sorted(uses.read)), tuple(sorted(uses.written)), largest_sizes(program.program), names)


def _completed(table: ImageTable, facts: ProgramFacts) -> ImageTable:
    arguments = tuple(
        ImageArgument(
            item.name, item.device_size, item.device_dtype, item.baked_base, index in facts.read, index in facts.written
        )
        for index, item in enumerate(table.arguments)
    )
    maxima = {**facts.sizes, **table.value_maxima}
    return ImageTable(arguments, table.pool_bytes, maxima, tuple(map(word_of_parameter, facts.parameters)))


def program_words(program: DeviceProgram) -> tuple[Word, ...]:
    """Return the words that a program's parameters are, in their order."""
    return tuple(word_of_parameter(item.name) for item in program.program.parameters)


def word_of_parameter(name: str) -> Word:
    """Return the word that holds a parameter of a device program."""
    if name == POOL_PARAMETER:
        return Word(WordKind.POOL)
    if is_value_parameter(name):
        return Word(WordKind.VALUE, name=name)
    match = ARGUMENT_PARAMETER.fullmatch(name)
    assert match is not None, f"validation refuses parameter {name}"
    return Word(WordKind.ARGUMENT, int(match[1]))


def write_table(table: ImageTable) -> bytes:
    """Return the bytes of ``/table.json``."""
    return orjson.dumps(written(_TABLE, _TABLE_FIELDS(table)))


def read_table(root: Cursor) -> ImageTable:
    """Read ``/table.json``; errors SPY0620 a wrong form, words of arguments or dims that there are not."""
    table = ImageTable(**read_members(root, _TABLE))
    for word, place in zip(table.words, root.member("words").items(), strict=True):
        _check_word(word, table, place)
    return table


def _read_argument(cursor: Cursor) -> ImageArgument:
    argument = ImageArgument(**read_members(cursor, _ARGUMENT))
    sizes, per_stick = argument.device_size, argument.device_dtype.elements_per_stick
    if not 0 < len(sizes) <= _MAX_RANK or sizes[-1] != per_stick:
        fact = f"device_size {list(sizes)[:8]} of {argument.device_dtype.name}, whose sticks have {per_stick} elements"
        cursor.member("device_size").refuse(MALFORMED, fact)
    return argument


def _read_arguments(cursor: Cursor) -> tuple[ImageArgument, ...]:
    if len(cursor.array()) > _MAX_ARGUMENTS:
        cursor.refuse(MALFORMED, f"{len(cursor.array())} arguments, at most {_MAX_ARGUMENTS} are read")
    return tuple(_read_argument(item) for item in cursor.items())


def _write_arguments(arguments: Sequence[ImageArgument]) -> list[JsonValue]:
    return [written(_ARGUMENT, _ARGUMENT_FIELDS(item)) for item in arguments]


_ARGUMENT: Members = {
    "name": TEXT,
    "device_size": Member(lambda cursor: cursor.integers(1), list),
    "device_dtype": Member(read_format, attrgetter("name")),
    "baked_base": whole_number(),
    "is_read": FLAG,
    "is_written": FLAG,
}
_TABLE: Members = {
    "arguments": Member(_read_arguments, _write_arguments),
    "pool_bytes": whole_number(),
    "value_maxima": Member(lambda cursor: {name: item.integer(0) for name, item in cursor.members()}, dict),
    "words": WORDS,
}
"""What the fields of an argument, and of a table, are in the file, under their own names."""

_ARGUMENT_FIELDS, _TABLE_FIELDS = attrgetter(*_ARGUMENT), attrgetter(*_TABLE)


def _check_word(word: Word, table: ImageTable, place: Cursor) -> None:
    takes_argument = word.kind in {WordKind.ARGUMENT, WordKind.STICK_STRIDE}
    if takes_argument and word.index >= len(table.arguments):
        place.refuse(MALFORMED, f"{word}, of {len(table.arguments)} arguments")
    if word.kind is WordKind.STICK_STRIDE and word.dim >= len(table.arguments[word.index].device_size) - 1:
        place.refuse(MALFORMED, f"{word}, which has {len(table.arguments[word.index].device_size) - 1} dims of sticks")
    if word.kind is WordKind.POOL and table.pool_bytes == 0:
        place.refuse(MALFORMED, f"{word}, which has 0 bytes")
