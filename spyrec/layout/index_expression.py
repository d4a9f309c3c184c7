"""Index expressions as text: a real parser into sympy, and exact evaluation over NumPy integers.

``expr := term (("+"|"-") term)*``, ``term := factor ("*" factor)*``, ``factor := int | symbol | "-" factor |
"(" expr ")" | "floor(" expr "/" int ")" | "FloorDiv(" expr "," int ")" | "Mod(" expr "," int ")" |
"ModularIndexing(" expr "," int "," int ")"``, blanks free.  ``ModularIndexing(a, b, c)`` is ``Mod(a // b, c)``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import sympy

from spyrec.diagnostics import SpyrecError, refuse

Expression = Any
"""A sympy expression; sympy has no types to name it by."""

Integers = npt.NDArray[np.int64]

_algebra: Any = sympy  # its functions have no types either

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|([-+*/(),]))")
_MAX_LENGTH = 10_000
_MAX_NESTING = 50
_MAX_NUMBER = 1 << 62


def symbol(name: str) -> Expression:
    """Return the loop variable of that name: a non-negative integer."""
    return sympy.Symbol(name, integer=True)


def expanded(expression: Expression) -> Expression:
    """Return the expression as a sum of products."""
    result = _algebra.expand_mul(expression)
    return expression if _gains_power(result, expression) else result


def modulo(value: Expression, divisor: int) -> Expression:
    """Return ``Mod(value, divisor)``, simplified where sympy does that right.

    sympy 1.14 is wrong about dividends that have a Mod inside: of ``Mod(c*Mod(x, m), n)`` it squares the inner one, or
    drops the outer one.
    """
    if isinstance(value, sympy.Mod) and isinstance(value.args[1], sympy.Integer):
        inner = int(value.args[1])
        if divisor % inner == 0:
            return value
        if inner % divisor == 0:
            return modulo(value.args[0], divisor)
    if value.atoms(sympy.Mod, sympy.Pow):
        return sympy.Mod(value, divisor, evaluate=False)
    return sympy.Mod(value, divisor)


def _gains_power(result: Expression, origin: Expression) -> bool:
    inside = [node for node in result.atoms(sympy.Pow) if node.atoms(sympy.Mod)]
    return any(node not in origin.atoms(sympy.Pow) for node in inside)


def variables(expression: Expression) -> frozenset[str]:
    """Return the names of the variables in an expression."""
    return frozenset(str(item.name) for item in expression.free_symbols)


def parse_index(text: str) -> Expression:
    """Return the expression that ``text`` writes; errors SPY0311 with the column where it stops being one."""
    if not isinstance(cast("object", text), str):
        raise refuse("SPY0311", f"index {text!r} is no text")
    return _Parser(text).whole()


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        self.position = 0
        self.depth = 0
        if len(text) > _MAX_LENGTH:
            raise refuse("SPY0311", f"an index expression of {len(text)} characters, more than {_MAX_LENGTH}")
        offset = 0
        while text[offset:].strip():
            match = _TOKEN.match(text, offset)
            if match is None:
                raise self.error(offset, "no number, name or operator")
            self.tokens.append((match.group().strip(), match.start(match.lastindex or 0)))
            offset = match.end()

    def error(self, offset: int, fact: str) -> SpyrecError:
        return refuse("SPY0311", f'index "{self.text[:80]}", column {offset + 1}: {fact}')

    def peek(self) -> str:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def fail(self, wanted: str) -> SpyrecError:
        at_end = self.position >= len(self.tokens)
        offset = len(self.text) if at_end else self.tokens[self.position][1]
        return self.error(offset, f"expected {wanted}, found {'the end' if at_end else repr(self.peek())}")

    def take(self, token: str) -> None:
        if self.peek() != token:
            raise self.fail(f'"{token}"')
        self.position += 1

    def whole(self) -> Expression:
        expression = self.sum()
        if self.position < len(self.tokens):
            raise self.fail("an operator or the end")
        return expression

    def sum(self) -> Expression:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise self.fail(f"at most {_MAX_NESTING} levels")
        terms = [self.product()]
        while self.peek() in {"+", "-"}:
            sign = 1 if self.peek() == "+" else -1
            self.position += 1
            terms.append(sign * self.product())
        self.depth -= 1
        return sympy.Add(*terms)

    def product(self) -> Expression:
        result = self.factor()
        while self.peek() == "*":
            self.position += 1
            result = result * self.factor()
        return expanded(result)

    def integer(self) -> int:
        if not self.peek().isdigit():
            raise self.fail("a number")
        if len(self.peek()) > 20 or int(self.peek()) > _MAX_NUMBER:
            raise self.fail(f"a number up to {_MAX_NUMBER}")
        self.position += 1
        return int(self.tokens[self.position - 1][0])

    def positive(self) -> int:
        value = self.integer()
        if value == 0:
            self.position -= 1
            raise self.fail("a positive number")
        return value

    def factor(self) -> Expression:
        token = self.peek()
        if token == "-":
            self.position += 1
            self.depth += 1
            if self.depth > _MAX_NESTING:
                raise self.fail(f"at most {_MAX_NESTING} levels")
            negated = -self.factor()
            self.depth -= 1
            return negated
        if token == "(":
            self.position += 1
            inner = self.sum()
            self.take(")")
            return inner
        if token.isdigit():
            return sympy.Integer(self.integer())
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise self.fail("a number, a variable or a function")
        self.position += 1
        if self.peek() != "(":
            return symbol(token)
        return self.call(token)

    def call(self, name: str) -> Expression:
        if name not in {"floor", "FloorDiv", "Mod", "ModularIndexing"}:
            self.position -= 1
            raise self.fail("floor, FloorDiv, Mod or ModularIndexing")
        self.take("(")
        inner = self.sum()
        self.take("/" if name == "floor" else ",")
        first = self.positive()
        second = None
        if name == "ModularIndexing":
            self.take(",")
            second = self.positive()
        self.take(")")
        if name == "Mod":
            return modulo(inner, first)
        quotient = sympy.floor(inner / first)
        return quotient if second is None else modulo(quotient, second)


def evaluate(expression: Expression, values: Mapping[str, Integers]) -> Integers:
    """Return the exact value of an integer expression at each point; ``values`` holds one array per variable."""
    if isinstance(expression, sympy.Integer):
        return np.asarray(int(expression), dtype=np.int64)
    if isinstance(expression, sympy.Symbol):
        return values[expression.name]
    if isinstance(expression, sympy.Mod):
        dividend, divisor = expression.args
        return evaluate(dividend, values) % evaluate(divisor, values)
    if isinstance(expression, sympy.floor):
        numerator, denominator = _algebra.fraction(_algebra.together(expression.args[0]))
        return evaluate(numerator, values) // evaluate(denominator, values)
    if isinstance(expression, sympy.Pow) and int(expression.args[1]) > 0:
        return evaluate(expression.args[0], values) ** int(expression.args[1])
    if not isinstance(expression, sympy.Add | sympy.Mul):
        raise refuse("SPY0311", f"{expression} is no sum or product of integers")
    parts = [evaluate(argument, values) for argument in expression.args]
    result = parts[0]
    for part in parts[1:]:
        result = result + part if isinstance(expression, sympy.Add) else result * part
    return result


def magnitude(expression: Expression, ranges: Mapping[str, int]) -> int:
    """Return a number that no value and no part of the expression exceeds, whatever its variables in their ranges."""
    if isinstance(expression, sympy.Integer):
        return max(1, abs(int(expression)))
    if isinstance(expression, sympy.Symbol):
        return ranges[expression.name]
    if isinstance(expression, sympy.floor):
        return max(magnitude(part, ranges) for part in _algebra.fraction(_algebra.together(expression.args[0])))
    if isinstance(expression, sympy.Pow) and int(expression.args[1]) > 0:
        return magnitude(expression.args[0], ranges) ** int(expression.args[1])
    parts = [magnitude(argument, ranges) for argument in expression.args]
    if isinstance(expression, sympy.Mul):
        return math.prod(parts)
    return sum(parts)  # a sum; of Mod the dividend and the divisor, more than either
