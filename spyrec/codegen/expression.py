"""Coordinate expressions in a frozen normal form.

A :class:`CoordinateExpression` is a constant plus a sum of coefficient times atom.  An atom is an iteration symbol, a
floored quotient, a remainder, or a row number read from an index tensor.  Two that normalise alike are equal.
``expression_parser`` reads the text form, ``str()`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
