"""What the host computes before a launch: the correction tensor, from addresses and values, as data says it.

The specification stands in ``spyrecode.json`` as the ``hcm`` object of a ``ComputeOnHost``; it is interpreted, and
never holds code.  The tensor's bytes are described in ``docs/program_image.md``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from spyrec.bundle.correction_word import MAX_WORDS, UNRESOLVED, WORDS, Word, WordKind
from spyrec.bundle.json_cursor import Cursor
from spyrec.bundle.json_members import Member, Members, Schema, object_schema, read_members, schema_of, written
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.target import STICK_BYTES

MALFORMED_SPECIFICATION = "SPY0656"
"""Code of a host computation whose specification is not understood."""

MISSING_INPUT = "SPY0658"
"""Code of a host computation that needs a number which the launch does not give."""

CORRECTION_MAGIC = b"SPYRCORR"
CORRECTION_VERSION = 1
SPECIFICATION_VERSION = 1

_HEADER = struct.Struct("<8sII")
"""Magic, version, number of words; the rest of the first stick is 0."""


@dataclass(frozen=True, slots=True)
class HostComputeSpec:
    """What the words of a correction tensor are, in order."""

    words: tuple[Word, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, whole sticks; 0 without words."""
        return correction_bytes(len(self.words))

    def to_json(self) -> dict[str, JsonValue]:
        """Return the ``hcm`` object: torch-spyre's two keys, empty, and ours."""
        return {"vdci": {}, "senConstants": [], "spyrec": written(_OWN, (SPECIFICATION_VERSION, self.words))}


@dataclass(frozen=True, slots=True)
class HostComputeInputs:
    """What a launch gives: device addresses in bytes by argument index, that of the pool, values by parameter name.

    ``stick_strides``: by argument index, the sticks between neighbours along each device dim but the last.
    """

    addresses: tuple[int, ...]
    pool: int | None = None
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    stick_strides: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])


def correction_bytes(words: int) -> int:
    """Return the bytes of a correction tensor: a stick of header, then the words, in whole sticks."""
    return 0 if words == 0 else STICK_BYTES + -(-8 * words // STICK_BYTES) * STICK_BYTES


def evaluate(spec: HostComputeSpec, inputs: HostComputeInputs) -> bytes:
    """Return the correction tensor.

    Errors: SPY0658 a number is not given, is negative, or does not fit a word.
    """
    count = len(spec.words)
    header, padding_bytes = _frame(count)
    return struct.pack(
        f"<{STICK_BYTES}s{count}Q{padding_bytes}x", header, *[_number(item, inputs) for item in spec.words]
    )


@lru_cache(64)
def _frame(words: int) -> tuple[bytes, int]:
    """Return what begins a tensor, and the bytes of zeros that end it."""
    header = _HEADER.pack(CORRECTION_MAGIC, CORRECTION_VERSION, words)
    return header, correction_bytes(words) - STICK_BYTES - 8 * words


def _number(word: Word, inputs: HostComputeInputs) -> int:
    is_argument = word.kind is WordKind.ARGUMENT and word.index < len(inputs.addresses)  # most of them
    number = inputs.addresses[word.index] if is_argument else _given(word, inputs)
    if number is None:
        raise refuse(MISSING_INPUT, f"the correction needs {word}, which the launch does not give")
    if not 0 <= number < UNRESOLVED:
        raise refuse(MISSING_INPUT, f"{word} is {number}, a correction holds 0 to {UNRESOLVED - 1}")
    return number


def _given(word: Word, inputs: HostComputeInputs) -> int | None:
    match word.kind:
        case WordKind.ARGUMENT:
            return inputs.addresses[word.index] if word.index < len(inputs.addresses) else None
        case WordKind.POOL:
            return inputs.pool
        case WordKind.VALUE:
            return inputs.values.get(word.name)
        case WordKind.STICK_STRIDE:
            strides = inputs.stick_strides.get(word.index, ())
            return strides[word.dim] if word.dim < len(strides) else None


def correction_words(tensor: bytes | memoryview, words: int) -> tuple[int, ...] | None:
    """Return the words of a correction tensor; ``None`` where the bytes are no tensor of that many words."""
    assert 0 < words <= MAX_WORDS
    if len(tensor) < correction_bytes(words):
        return None
    if _HEADER.unpack_from(tensor) != (CORRECTION_MAGIC, CORRECTION_VERSION, words):
        return None
    return struct.unpack_from(f"<{words}Q", tensor, STICK_BYTES)


def _read_version(cursor: Cursor) -> int:
    version = cursor.integer(0)
    if version != SPECIFICATION_VERSION:
        fact = f"a specification of version {version}, version {SPECIFICATION_VERSION} is read"
        cursor.refuse(MALFORMED_SPECIFICATION, fact)
    return version


_OWN: Members = {
    "version": Member(_read_version, schema={"const": SPECIFICATION_VERSION}),
    "words": WORDS,
}
"""The object that is spyrec's own in an ``hcm`` object."""


def specification_schema() -> Schema:
    """Return the schema of an ``hcm`` object, as far as it is read."""
    return object_schema({"spyrec": schema_of(_OWN)})


def read_specification(cursor: Cursor) -> HostComputeSpec:
    """Read an ``hcm`` object; errors SPY0656: another version, another form."""
    try:
        return HostComputeSpec(read_members(cursor.member("spyrec"), _OWN)["words"])
    except SpyrecError as error:
        raise _recoded(error, cursor.location) from None


def _recoded(error: SpyrecError, fallback: Location) -> SpyrecError:
    item = error.diagnostics[0]
    hint = "the form is described in docs/program_image.md; write the bundle again"
    return refuse(MALFORMED_SPECIFICATION, item.message, item.location or fallback, hint=hint)
