"""The words of a correction: what a launch tells a program, one unsigned 64-bit number each, in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spyrec.bundle.json_cursor import MALFORMED, Cursor
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
        match self.kind:
            case WordKind.ARGUMENT:
                return {"kind": self.kind.value, "index": self.index}
            case WordKind.POOL:
                return {"kind": self.kind.value}
            case WordKind.VALUE:
                return {"kind": self.kind.value, "name": self.name}
            case WordKind.STICK_STRIDE:
                return {"kind": self.kind.value, "index": self.index, "dim": self.dim}

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


def read_words(cursor: Cursor) -> tuple[Word, ...]:
    """Read an array of words; errors SPY0620: a wrong form, a word that stands twice, too many."""
    if len(cursor.array()) > MAX_WORDS:
        cursor.refuse(MALFORMED, f"{len(cursor.array())} words, at most {MAX_WORDS} are read")
    words = tuple(_read_word(item) for item in cursor.items())
    if len(set(words)) != len(words):
        twice = next(word for word in words if words.count(word) > 1)
        cursor.refuse(MALFORMED, f"{twice} stands twice")
    return words


def _read_word(cursor: Cursor) -> Word:
    known = {kind.value: kind for kind in WordKind}
    name = cursor.member("kind").text()
    if name not in known:
        cursor.refuse(MALFORMED, f'a word of kind "{name[:80]}", the kinds are {", ".join(known)}')
    match known[name]:
        case WordKind.ARGUMENT:
            return Word(WordKind.ARGUMENT, cursor.member("index").integer(0, _MOST_ARGUMENTS))
        case WordKind.POOL:
            return Word(WordKind.POOL)
        case WordKind.VALUE:
            value = cursor.member("name")
            if not 0 < len(value.text()) <= _LONGEST_NAME:
                value.refuse(MALFORMED, f"a name of {len(value.text())} characters, 1 to {_LONGEST_NAME} are read")
            return Word(WordKind.VALUE, name=value.text())
        case WordKind.STICK_STRIDE:
            index = cursor.member("index").integer(0, _MOST_ARGUMENTS)
            return Word(WordKind.STICK_STRIDE, index, cursor.member("dim").integer(0, _MOST_DIMS))
