"""Coordinate expressions: text, normal form and value agree; other text is refused."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.codegen.expression import MAX_DEPTH, MAX_TEXT_LENGTH, CoordinateExpression, parse_expression
from spyrec.diagnostics import SpyrecError

SYMBOLS = ["c0", "c1", "z0"]
POINTS = st.fixed_dictionaries({symbol: st.integers(0, 500) for symbol in SYMBOLS})


def texts() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(SYMBOLS) | st.integers(0, 300).map(str)

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        numbers = st.integers(1, 130)
        return st.one_of(
            st.tuples(inner, st.sampled_from([" + ", " - ", "+", "-"]), inner).map("".join),
            st.tuples(numbers, inner).map(lambda pair: f"{pair[0]}*({pair[1]})"),
            st.tuples(inner, numbers).map(lambda pair: f"({pair[0]}) * {pair[1]}"),
            st.tuples(inner, numbers).map(lambda pair: f"floor({pair[0]} / {pair[1]})"),
            st.tuples(inner, numbers).map(lambda pair: f"Mod({pair[0]}, {pair[1]})"),
            inner.map(lambda text: f"({text})"),
        )

    return st.recursive(leaves, extend, max_leaves=8)


def python_value(text: str, point: Mapping[str, int]) -> int:
    """The value by Python's own parser and integer arithmetic."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as number):
                return number
            case ast.Name(id=name):
                return point[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return value(left) + value(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return value(left) - value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return value(left) * value(right)
            case ast.Call(func=ast.Name(id="floor"), args=[inner, divisor]):
                return value(inner) // value(divisor)
            case ast.Call(func=ast.Name(id="Mod"), args=[inner, modulus]):
                return value(inner) % value(modulus)
            case _:
                raise AssertionError(ast.dump(node))

    return value(ast.parse(text.replace(" / ", ", "), mode="eval").body)


@settings(max_examples=200)
@given(texts(), POINTS)
def test_text_is_read_with_its_usual_meaning_and_printing_keeps_it(text: str, point: dict[str, int]) -> None:
    expression = parse_expression(text)
    assert expression.evaluate(point) == python_value(text, point)
    again = parse_expression(str(expression))
    assert again == expression
    assert set(expression.symbols) <= set(SYMBOLS)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("floor((c1 + 128) / 64)", "2 + floor(c1/64)"),
        ("Mod(c0 + 640, 64)", "Mod(c0,64)"),
        ("floor(64*c0/64)", "c0"),
        ("c0 - c0", "0"),
        ("Mod(c0, 1)", "0"),
        ("c1 + c0", "c0 + c1"),
        (" IndirectAccess( arg1_1 ) ", "IndirectAccess(arg1_1)"),
    ],
)
def test_equal_coordinates_have_one_normal_form(text: str, same: str) -> None:
    assert parse_expression(text) == parse_expression(same)


def test_the_constructors_spell_what_torch_spyre_writes() -> None:
    assert str(CoordinateExpression.floor("c1", 64) + 1) == "floor(c1 / 64) + 1"
    assert str(CoordinateExpression.mod("c1", 64)) == "Mod(c1, 64)"
    assert str(CoordinateExpression.constant(0)) == "0"
    assert str(CoordinateExpression.symbol("c0") * 2 + -3) == "2*c0 - 3"
    assert CoordinateExpression.indirect("rows").indirect_names == ("rows",)


@pytest.mark.parametrize(
    "text",
    [
        "", "c0 +", "c0 c1", "floor(c0)", "floor(c0 / c1)", "Mod(c0)", "Mod(c0, 0)", "floor(c0 / 0)", "c0 * c1",
        "c0 / 2", "IndirectAccess(3)", "IndirectAccess(a + b)", "(c0", "c0)", "__import__('os')", "c0 ** 2", "1.5",
        "c0; c1", "lambda: 0", "floor", "c\u00e4", "\u0663", "c0\n", "--c0",
    ],
)  # fmt: skip
def test_text_outside_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        parse_expression(text)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0501"]


@pytest.mark.parametrize(
    "text",
    [
        "9" * 30,
        "9223372036854775808",
        "c0*4611686018427387904*4",
        "9223372036854775807 + 1",
        "(" * (MAX_DEPTH + 1) + "c0" + ")" * (MAX_DEPTH + 1),
        "c0 + " * MAX_TEXT_LENGTH + "c0",
    ],
)
def test_numbers_depth_and_length_are_bounded(text: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        parse_expression(text)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0502"]
