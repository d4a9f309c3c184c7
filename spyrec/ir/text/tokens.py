"""The words of the text form: how names are written, and a cursor that reads a text word by word.

Nothing of a text is trusted: whatever stands where another word is due is refused with its line and column, and a
number or a list is bounded before anything is made of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from enum import Enum
from typing import NoReturn, TypeVar

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.diagnostics.source_text import SourceText

T = TypeVar("T")

NOT_UNDERSTOOD, BROKEN = "SPY0180", "SPY0181"
"""Codes of a text that cannot be read, and of one that reads well and says what no graph may be."""

MAX_TEXT_BYTES = 1 << 25
MAX_LIST = 4096
"""Entries of a list that is written out: numbers in bulk are written as bytes."""

MAX_DEPTH = 64
_LIMIT = 1 << 63
_MOST_DIGITS = 20
_SHOWN = 40

WORDS = frozenset(
    {"dim", "input", "constant", "loop", "update", "outside_lx", "mask", "return", "null", "true", "false"}
)
"""Words that stand where a name may stand: a name that is one of them is written in quotes."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*", re.ASCII)
_BLANK = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<number>[+-]inf\b|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_.]*)
    |(?P<symbol>//|\.\.|[{}\[\](),:=<%*+/@-])""",
    re.VERBOSE | re.ASCII,
)


def name_text(name: str) -> str:
    """Return a name as it is written: in quotes where it could be taken for something else."""
    return name if _PLAIN.fullmatch(name) and name not in WORDS else json.dumps(name)


def number_text(number: float | bool) -> str:
    """Return a number so that the same is read back."""
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, int):
        return str(int(number))
    return f"{number:+}" if math.isinf(number) else repr(float(number))


class TokenKind(Enum):
    """What a word is."""

    STRING = "string"
    NUMBER = "number"
    NAME = "name"
    SYMBOL = "symbol"
    END = "the end of the text"


@dataclass(frozen=True, slots=True)
class Token:
    """One word: its kind, its text as it stands, and where it begins."""

    kind: TokenKind
    text: str
    offset: int


class Cursor:
    """A text and a place in it; every method that takes something refuses (SPY0180) what is something else."""

    def __init__(self, text: str, file: str | None) -> None:
        self._source = SourceText(text, file)
        self._text = text
        self._end = 0
        self._next: Token | None = None
        self._depth = 0

    # --- places and refusals ---

    def place(self, token: Token | None = None) -> Location:
        """Return the line and column of a word; of the next one where none is given."""
        line, column = self._source.line_and_column((token or self.peek()).offset)
        return Location(self._source.file, None, line, column, source=self._source)

    def refuse(self, message: str, token: Token | None = None, code: str = NOT_UNDERSTOOD) -> SpyrecError:
        """Return the error of a word; of the next one where none is given."""
        return refuse(code, message, self.place(token))

    def expected(self, what: str) -> SpyrecError:
        """Return the error of the next word, which is not what is due."""
        return self.refuse(f"{what} is due where {self._shown(self.peek())} stands")

    def _shown(self, token: Token) -> str:
        if token.kind is TokenKind.END:
            return token.kind.value
        return token.text[:_SHOWN] if token.kind is TokenKind.STRING else f'"{token.text[:_SHOWN]}"'

    # --- words ---

    def peek(self) -> Token:
        """Return the next word."""
        if self._next is None:
            self._next = self._scan(self._end)
        return self._next

    def take(self) -> Token:
        """Return the next word and go on."""
        token = self.peek()
        self._end, self._next = token.offset + len(token.text), None
        return token

    def _scan(self, offset: int) -> Token:
        start = self._after_blanks(offset)
        if start == len(self._text):
            return Token(TokenKind.END, "", start)
        found = _TOKEN.match(self._text, start)
        if found is None or found.lastgroup is None:
            self._refuse_character(start)
        return Token(TokenKind(found.lastgroup), found[0], start)

    def _after_blanks(self, offset: int) -> int:
        """Return where the next word begins: behind blanks, and lines that begin with ``//``."""
        while True:
            found = _BLANK.match(self._text, offset)
            start = offset if found is None else found.end()
            begins_line = offset == 0 or "\n" in self._text[offset - 1 : start]
            if not (begins_line and self._text.startswith("//", start)):
                return start
            end = self._text.find("\n", start)
            offset = len(self._text) if end < 0 else end

    def _refuse_character(self, offset: int) -> NoReturn:
        line, column = self._source.line_and_column(offset)
        fact = f"{self._text[offset]!r} begins no word"
        raise refuse(NOT_UNDERSTOOD, fact, Location(self._source.file, None, line, column))

    def at(self, text: str) -> bool:
        """Whether the next word is this symbol or word of the form."""
        token = self.peek()
        return token.text == text and token.kind in (TokenKind.SYMBOL, TokenKind.NAME)

    def accept(self, text: str) -> bool:
        """Take the next word where it is this one; return whether it was."""
        if not self.at(text):
            return False
        self.take()
        return True

    def expect(self, text: str) -> Token:
        """Take this symbol or word of the form."""
        if not self.at(text):
            raise self.expected(f'"{text}"')
        return self.take()

    # --- values ---

    def is_name(self) -> bool:
        """Whether the next word is a name."""
        token = self.peek()
        return token.kind is TokenKind.STRING or (token.kind is TokenKind.NAME and token.text not in WORDS)

    def is_key(self) -> bool:
        """Whether the next word is the name of an attribute, with ``=`` behind it."""
        token = self.peek()
        if token.kind is not TokenKind.NAME:
            return False
        behind = self._scan(token.offset + len(token.text))
        return behind.kind is TokenKind.SYMBOL and behind.text == "="

    def name(self) -> str:
        """Take a name."""
        if not self.is_name():
            raise self.expected("a name")
        return self.string() if self.peek().kind is TokenKind.STRING else self.take().text

    def string(self) -> str:
        """Take a text in quotes."""
        if self.peek().kind is not TokenKind.STRING:
            raise self.expected("a text in quotes")
        token = self.take()
        try:
            found = json.loads(token.text)
        except ValueError:
            raise self.refuse("the text in quotes has a wrong escape", token) from None
        if any("\ud800" <= character <= "\udfff" for character in found):
            raise self.refuse("the text in quotes holds half of a surrogate pair", token)
        return str(found)

    def integer(self, least: int = -_LIMIT, most: int = _LIMIT - 1) -> int:
        """Take a whole number in a range."""
        token = self.peek()
        if token.kind is not TokenKind.NUMBER or not token.text.removeprefix("-").isdigit():
            raise self.expected("a whole number")
        found = int(token.text) if len(token.text) <= _MOST_DIGITS else _LIMIT
        if not least <= found <= most:
            raise self.refuse(f"{token.text[:_SHOWN]} is not within {least} and {most}")
        self.take()
        return found

    def number(self) -> float | int | bool:
        """Take a number, ``true`` or ``false``; what has a point or an exponent, and infinity, is a float."""
        if self.at("true") or self.at("false"):
            return self.take().text == "true"
        token = self.peek()
        if token.kind is not TokenKind.NUMBER:
            raise self.expected("a number")
        if token.text.removeprefix("-").isdigit():
            return self.integer()
        found = float(token.text)
        if math.isinf(found) and "inf" not in token.text:
            raise self.refuse(f"{token.text[:_SHOWN]} is no number of 64 bits")
        self.take()
        return found

    def items(self, opening: str, closing: str, item: Callable[[], T], most: int = MAX_LIST) -> list[T]:
        """Take what stands between two symbols with commas between."""
        self.expect(opening)
        found: list[T] = []
        while not self.at(closing):
            if found:
                self.expect(",")
            if len(found) == most:
                raise self.refuse(f"a list has {most} entries at most")
            found.append(item())
        self.take()
        return found

    def integers(self, least: int = -_LIMIT, most: int = _LIMIT - 1) -> tuple[int, ...]:
        """Take a list of whole numbers in brackets."""
        return tuple(self.items("[", "]", lambda: self.integer(least, most)))

    def listed(self, item: Callable[[], T]) -> list[T]:
        """Take one or more with commas between."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return found

    def json_value(self) -> JsonValue:
        """Take a value of JSON that is no object; an infinity is the text ``"inf"``."""
        if self.at("["):
            return self.deeper(lambda: list(self.items("[", "]", self.json_value)))
        if self.peek().kind is TokenKind.STRING:
            return self.string()
        return None if self.accept("null") else self.number()

    def deeper(self, read: Callable[[], T]) -> T:
        """Return what ``read`` takes, one level further inside."""
        if self._depth == MAX_DEPTH:
            raise self.refuse(f"the text nests deeper than {MAX_DEPTH} levels")
        self._depth += 1
        try:
            return read()
        finally:
            self._depth -= 1
