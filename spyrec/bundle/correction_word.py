"""The words of a correction: what a launch tells a program, one unsigned 64-bit number each, in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from spyrec.bundle.json_cursor import MALFORMED, Cursor
from spyrec.bundle.json_members import (
    Member,
    Members,
    Schema,
    name_of,
    object_schema,
    read_members,
    whole_number,
)
from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue

UNRESOLVED = (1 << 64) - 1
"""A word that no correction has set; no device address and no value is as large."""

MAX_WORDS = 4096
"""Most words of one program: a few for each argument and value."""

_MOST_ARGUMENTS = 1 << 16
_MOST_DIMS = 32
_LONGEST_NAME = 256


class WordKind(Enum):
    """What a word holds."""

    ARGUMENT = "argument"
    POOL = "pool"
    VALUE = "value"
    STICK_STRIDE = "stick_stride"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a correction.

    ``ARGUMENT``: the device address of argument ``index``, in bytes.  ``POOL``: that of the pool.  ``VALUE``: the value
    parameter ``name``.  ``STICK_STRIDE``: the sticks from one entry of device dim ``dim`` of argument ``index`` to the
    next.
    """

    kind: WordKind
    index: int = 0
    dim: int = 0
    name: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the JSON form: the kind, and what it takes to name one word of that kind."""
        return {"kind": self.kind.value, **{key: getattr(self, key) for key in _NAMES[self.kind]}}

    def __str__(self) -> str:
        match self.kind:
            case WordKind.ARGUMENT:
                return f"the address of argument {self.index}"
            case WordKind.POOL:
                return "the address of the pool"
            case WordKind.VALUE:
                return f'the value "{self.name}"'
            case WordKind.STICK_STRIDE:
                return f"the stick stride of dim {self.dim} of argument {self.index}"


_INDEX = whole_number(_MOST_ARGUMENTS)
_NAMES: Mapping[WordKind, Members] = {
    WordKind.ARGUMENT: {"index": _INDEX},
    WordKind.POOL: {},
    WordKind.VALUE: {"name": name_of(_LONGEST_NAME)},
    WordKind.STICK_STRIDE: {"index": _INDEX, "dim": whole_number(_MOST_DIMS)},
}
"""What names one word of each kind in a file, beside its kind: fields of the word under their own names."""


_KINDS = {kind.value: kind for kind in WordKind}


def word_schema() -> Schema:
    """Return the schema of one word."""
    return {
        "oneOf": [
            object_schema({"kind": {"const": kind.value}, **{key: member.schema for key, member in names.items()}})
            for kind, names in _NAMES.items()
        ]
    }


def _read_word(cursor: Cursor) -> Word:
    name = cursor.member("kind").text()
    kind = _KINDS.get(name)
    if kind is None:
        cursor.refuse(MALFORMED, f'a word of kind "{name[:80]}", the kinds are {", ".join(_KINDS)}')
    return Word(kind, **read_members(cursor, _NAMES[kind]))


def _read_words(cursor: Cursor) -> tuple[Word, ...]:
    if len(cursor.array()) > MAX_WORDS:
        cursor.refuse(MALFORMED, f"{len(cursor.array())} words, at most {MAX_WORDS} are read")
    words = tuple(_read_word(item) for item in cursor.items())
    if len(set(words)) != len(words):
        twice = next(word for word in words if words.count(word) > 1)
        cursor.refuse(MALFORMED, f"{twice} stands twice")
    return words


WORDS = Member(
    _read_words,
    lambda words: [word.to_json() for word in words],
    {"type": "array", "items": {"$ref": "#/$defs/word"}, "maxItems": MAX_WORDS},
)
"""An array of words; errors SPY0620: a wrong form, a word that stands twice, too many."""
