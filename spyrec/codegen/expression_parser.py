"""The text form of coordinate expressions, read by recursive descent.

Grammar, blanks free::

    expr   := ["-"] term (("+" | "-") term)*
    term   := factor ("*" factor)*
    factor := int | symbol | "floor(" expr "/" int ")" | "Mod(" expr "," int ")"
            | "IndirectAccess(" name ")" | "(" expr ")"

A product may have at most one factor that is not a constant: coordinates are linear in their atoms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spyrec.codegen.expression import INTEGER_LIMIT, CoordinateExpression
from spyrec.diagnostics import Location, SpyrecError, refuse

MAX_TEXT_LENGTH = 1000
MAX_DEPTH = 16

_TOKEN = re.compile(r"[ \t]*(?:(?P<integer>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<mark>[-+*/(),]))", re.ASCII)
_FUNCTIONS = frozenset({"floor", "Mod", "IndirectAccess"})


def parse_expression(text: str, location: Location | None = None) -> CoordinateExpression:
    """Return the expression that ``text`` spells.

    Raises SPY0501 where the text is not in the grammar, SPY0502 where a number, the length or the depth is too large.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise refuse("SPY0502", f"coordinate has {len(text)} characters, at most {MAX_TEXT_LENGTH} are read", location)
    parser = _Parser(text, _tokens(text, location), location)
    result = parser.expression(0)
    if parser.token.kind != "end":
        raise parser.unexpected("an operator or the end")
    return result


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def _tokens(text: str, location: Location | None) -> list[_Token]:
    found: list[_Token] = []
    position, end = 0, len(text.rstrip(" \t"))
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            column = len(text) - len(text[position:].lstrip(" \t")) + 1
            raise refuse(
                "SPY0501",
                f"coordinate {text!r} has an unexpected character {text[column - 1]!r} at column {column}",
                location,
            )
        kind = match.lastgroup
        assert kind is not None
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        position = match.end()
    found.append(_Token("end", "", end + 1))
    return found


class _Parser:
    """One pass over the tokens of one coordinate."""

    def __init__(self, text: str, tokens: list[_Token], location: Location | None) -> None:
        self._text = text
        self._tokens = tokens
        self._location = location
        self._next = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._next]

    def unexpected(self, wanted: str) -> SpyrecError:
        found = f"{self.token.text!r}" if self.token.kind != "end" else "the end"
        return refuse(
            "SPY0501",
            f"coordinate {self._text!r} has {found} at column {self.token.column} where {wanted} is expected",
            self._location,
        )

    def expression(self, depth: int) -> CoordinateExpression:
        if depth > MAX_DEPTH:
            raise refuse("SPY0502", f"coordinate nests deeper than {MAX_DEPTH} levels", self._location)
        negative = self._accept("-")
        result = self._term(depth)
        if negative:
            result = result * -1
        while self.token.text in {"+", "-"}:
            sign = 1 if self._take().text == "+" else -1
            result = self._bounded(result + self._term(depth) * sign)
        return result

    def _term(self, depth: int) -> CoordinateExpression:
        result = self._factor(depth)
        while self._accept("*"):
            column = self.token.column
            other = self._factor(depth)
            if not result.is_constant and not other.is_constant:
                raise refuse(
                    "SPY0501",
                    f"coordinate {self._text!r} multiplies two variables at column {column}",
                    self._location,
                    hint="a coordinate is linear: one factor of a product is a constant",
                )
            result = self._bounded(other * result.offset if result.is_constant else result * other.offset)
        return result

    def _factor(self, depth: int) -> CoordinateExpression:
        token = self.token
        if token.kind == "integer":
            return CoordinateExpression.constant(self._integer())
        if token.kind == "name":
            self._take()
            return (
                self._function(token.text, depth)
                if token.text in _FUNCTIONS
                else CoordinateExpression.symbol(token.text)
            )
        if self._accept("("):
            inner = self.expression(depth + 1)
            self._expect(")")
            return inner
        raise self.unexpected("a number, a symbol or '('")

    def _function(self, name: str, depth: int) -> CoordinateExpression:
        self._expect("(")
        if name == "IndirectAccess":
            if self.token.kind != "name":
                raise self.unexpected("the name of an index tensor")
            result = CoordinateExpression.indirect(self._take().text)
        else:
            inner = self.expression(depth + 1)
            self._expect("/" if name == "floor" else ",")
            divisor = self._divisor()
            result = (
                CoordinateExpression.floor(inner, divisor)
                if name == "floor"
                else CoordinateExpression.mod(inner, divisor)
            )
        self._expect(")")
        return result

    def _divisor(self) -> int:
        if self.token.kind != "integer" or not self.token.text.strip("0"):
            raise self.unexpected("a positive number")
        return self._integer()

    def _integer(self) -> int:
        text = self._take().text
        if len(text.lstrip("0")) > len(str(INTEGER_LIMIT)) or int(text) >= INTEGER_LIMIT:
            raise refuse("SPY0502", f"number {text} in coordinate {self._text!r} is 2**63 or more", self._location)
        return int(text)

    def _bounded(self, value: CoordinateExpression) -> CoordinateExpression:
        largest = max((abs(term.coefficient) for term in value.terms), default=0)
        if max(largest, abs(value.offset)) >= INTEGER_LIMIT:
            raise refuse("SPY0502", f"coordinate {self._text!r} has a value of 2**63 or more", self._location)
        return value

    def _take(self) -> _Token:
        token = self.token
        self._next += 1
        return token

    def _accept(self, mark: str) -> bool:
        if self.token.kind == "mark" and self.token.text == mark:
            self._next += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self.unexpected(f"'{mark}'")
