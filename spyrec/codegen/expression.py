"""Coordinate expressions in a frozen normal form, and their text.

A :class:`CoordinateExpression` is a constant plus a sum of coefficient times atom.  An atom is an iteration symbol, a
floored quotient, a remainder, or a row number read from an index tensor.  Two that normalise alike are equal.

``str()`` writes the text form, :func:`parse_expression` reads it by recursive descent.  Grammar, blanks free::

    expr   := ["-"] term (("+" | "-") term)*
    term   := factor ("*" factor)*
    factor := int | symbol | "floor(" expr "/" int ")" | "Mod(" expr "," int ")"
            | "IndirectAccess(" name ")" | "(" expr ")"

A product may have at most one factor that is not a constant: coordinates are linear in their atoms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse

INTEGER_LIMIT = 2**63
"""Coefficients, offsets, divisors and values stay below this magnitude, as addresses on the device do."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An iteration symbol."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Floor:
    """``floor(inner / divisor)``, divisor at least 2."""

    inner: CoordinateExpression
    divisor: int

    def __str__(self) -> str:
        text = str(self.inner)
        return f"floor(({text}) / {self.divisor})" if self.inner.is_sum else f"floor({text} / {self.divisor})"


@dataclass(frozen=True, slots=True)
class Modulo:
    """``Mod(inner, modulus)``, modulus at least 2, result in ``0 .. modulus - 1``."""

    inner: CoordinateExpression
    modulus: int

    def __str__(self) -> str:
        return f"Mod({self.inner}, {self.modulus})"


@dataclass(frozen=True, slots=True)
class IndirectAccess:
    """The row number read from the index tensor called ``name`` at the current iteration point."""

    name: str

    def __str__(self) -> str:
        return f"IndirectAccess({self.name})"


Atom = Symbol | Floor | Modulo | IndirectAccess


@dataclass(frozen=True, slots=True)
class CoordinateTerm:
    """``coefficient * atom``; the coefficient is never 0."""

    coefficient: int
    atom: Atom

    def __str__(self) -> str:
        if self.coefficient == 1:
            return str(self.atom)
        return f"-{self.atom}" if self.coefficient == -1 else f"{self.coefficient}*{self.atom}"


@dataclass(frozen=True, slots=True)
class CoordinateExpression:
    """``offset + sum(terms)``; terms are distinct in their atoms and sorted by text, so that equality is structural."""

    terms: tuple[CoordinateTerm, ...] = ()
    offset: int = 0

    @classmethod
    def constant(cls, value: int) -> CoordinateExpression:
        """Return the constant ``value``."""
        return cls((), value)

    @classmethod
    def symbol(cls, name: str) -> CoordinateExpression:
        """Return the iteration symbol ``name``."""
        return cls((CoordinateTerm(1, Symbol(name)),))

    @classmethod
    def indirect(cls, name: str) -> CoordinateExpression:
        """Return the row number read from index tensor ``name``."""
        return cls((CoordinateTerm(1, IndirectAccess(name)),))

    @classmethod
    def floor(cls, inner: str | CoordinateExpression, divisor: int) -> CoordinateExpression:
        """Return ``floor(inner / divisor)``; whole multiples of the divisor move outside. ``divisor`` is positive."""
        assert divisor > 0
        base = cls.symbol(inner) if isinstance(inner, str) else inner
        if divisor == 1:
            return base
        outside = [
            CoordinateTerm(term.coefficient // divisor, term.atom)
            for term in base.terms
            if not term.coefficient % divisor
        ]
        rest = tuple(term for term in base.terms if term.coefficient % divisor)
        whole, remainder = divmod(base.offset, divisor)
        if rest:
            outside.append(CoordinateTerm(1, Floor(cls(rest, remainder), divisor)))
        return cls.sum_of(outside, whole)

    @classmethod
    def mod(cls, inner: str | CoordinateExpression, modulus: int) -> CoordinateExpression:
        """Return ``inner`` modulo ``modulus``; whole multiples of the modulus vanish. ``modulus`` is positive."""
        assert modulus > 0
        base = cls.symbol(inner) if isinstance(inner, str) else inner
        rest = tuple(term for term in base.terms if term.coefficient % modulus)
        if not rest:
            return cls((), base.offset % modulus)
        return cls((CoordinateTerm(1, Modulo(cls(rest, base.offset % modulus), modulus)),))

    @classmethod
    def sum_of(cls, terms: Iterable[CoordinateTerm], offset: int = 0) -> CoordinateExpression:
        """Return the normalised sum of ``terms`` and ``offset``."""
        coefficients: dict[Atom, int] = {}
        for term in terms:
            coefficients[term.atom] = coefficients.get(term.atom, 0) + term.coefficient
        kept = [CoordinateTerm(coefficient, atom) for atom, coefficient in coefficients.items() if coefficient]
        if len(kept) > 1:
            kept.sort(key=lambda term: str(term.atom))
        return cls(tuple(kept), offset)

    def __add__(self, other: CoordinateExpression | int) -> CoordinateExpression:
        if isinstance(other, int):
            return CoordinateExpression(self.terms, self.offset + other)
        return CoordinateExpression.sum_of((*self.terms, *other.terms), self.offset + other.offset)

    def __mul__(self, factor: int) -> CoordinateExpression:
        return CoordinateExpression.sum_of(
            (CoordinateTerm(term.coefficient * factor, term.atom) for term in self.terms), self.offset * factor
        )

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        text = parts[0]
        for part in parts[1:]:
            text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return text

    @property
    def is_constant(self) -> bool:
        """Whether the expression has no terms."""
        return not self.terms

    @property
    def is_zero(self) -> bool:
        """Whether the expression is the constant 0."""
        return not self.terms and self.offset == 0

    @property
    def is_sum(self) -> bool:
        """Whether the text form has more than one summand, so that it needs brackets inside a quotient."""
        return len(self.terms) + (self.offset != 0) > 1

    @property
    def symbols(self) -> tuple[str, ...]:
        """The iteration symbols that occur anywhere in the expression, sorted by name, each once."""
        if len(self.terms) == 1:
            atom = self.terms[0].atom
            if isinstance(atom, Symbol):
                return (atom.name,)
            return () if isinstance(atom, IndirectAccess) else atom.inner.symbols
        names: set[str] = set()
        for term in self.terms:
            names.update(CoordinateExpression((term,)).symbols)
        return tuple(sorted(names))

    @property
    def indirect_names(self) -> tuple[str, ...]:
        """The index tensors whose values occur anywhere in the expression, sorted by name, each once."""
        names: set[str] = set()
        for term in self.terms:
            if isinstance(term.atom, IndirectAccess):
                names.add(term.atom.name)
            elif not isinstance(term.atom, Symbol):
                names.update(term.atom.inner.indirect_names)
        return tuple(sorted(names))

    def evaluate(self, values: Mapping[str, int], rows: Mapping[str, int] | None = None) -> int:
        """Return the value at one iteration point.

        ``values`` maps iteration symbols (absent: 0) and ``rows`` index tensor names to the row number read.
        """
        total = self.offset
        for term in self.terms:
            total += term.coefficient * _evaluate_atom(term.atom, values, rows or {})
        return total


def _evaluate_atom(atom: Atom, values: Mapping[str, int], rows: Mapping[str, int]) -> int:
    match atom:
        case Symbol(name):
            return values.get(name, 0)
        case Floor(inner, divisor):
            return inner.evaluate(values, rows) // divisor
        case Modulo(inner, modulus):
            return inner.evaluate(values, rows) % modulus
        case IndirectAccess(name):
            return rows[name]


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
