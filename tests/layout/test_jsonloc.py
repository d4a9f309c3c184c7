"""Strict JSON reading and locating values in its text."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import Location, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.diagnostics.source_text import MAX_NESTING, SourceText
from tests.support.json_pointers import pointers_of

TEXT = """{
  "a/b": [10, {"~": "x\\"}"},
    [true, [], {}]],
  "c": {"d": -1.5e3}
}
"""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", (1, 1)),
        ("/a~1b", (2, 10)),
        ("/a~1b/0", (2, 11)),
        ("/a~1b/1/~0", (2, 21)),
        ("/a~1b/2/1", (3, 12)),
        ("/a~1b/2/2", (3, 16)),
        ("/c/d", (4, 14)),
        ("/c/d/e/f", (4, 14)),
        ("/nowhere", (1, 1)),
    ],
)
def test_position_is_that_of_the_value_or_its_deepest_ancestor(pointer: str, place: tuple[int, int]) -> None:
    assert SourceText(TEXT).position(pointer) == place


@given(json_values, st.sampled_from([None, 1]))
def test_at_the_position_of_each_pointer_the_value_itself_is_written(data: JsonValue, indent: int | None) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    read, source = load_json(text)
    assert read == data
    lines = text.split("\n")
    for pointer, value in pointers_of(data):
        line, column = source.position(pointer)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == value


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        (b'{"a": 1,}', "SPY0101", 1, 9),
        (b"", "SPY0101", 1, 1),
        (b'{"a": \xff}', "SPY0101", 1, 7),
        (b'["\\ud800"]', "SPY0101", 1, 2),
        (b'{"a": 1,\n "\\u0061": 2}', "SPY0102", 2, 2),
        (b'[{"x": 1}, {"y": {"k": 1, "k": 1}}]', "SPY0102", 1, 27),
        (b'{"a": NaN}', "SPY0103", 1, 7),
        (b"[1, -Infinity]", "SPY0103", 1, 5),
        (b"[1e400]", "SPY0103", 1, 2),
        (b"[" + b"9" * 5000 + b"]", "SPY0103", 1, 2),
        (b"[" * 101 + b"]" * 101, "SPY0104", 1, 101),
        (b"[" * 100_000, "SPY0104", 1, 101),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "SPY0104", 1, 501),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(text: bytes, code: str, line: int, column: int) -> None:
    with pytest.raises(SpyrecError) as caught:
        load_json(text, "model.json")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.location == Location(
        "model.json", diagnostic.location and diagnostic.location.pointer, line, column
    )


def test_the_deepest_legal_nesting_and_large_finite_numbers_are_read() -> None:
    deep = "[" * MAX_NESTING + "]" * MAX_NESTING
    assert json.dumps(load_json(deep)[0]).replace(" ", "") == deep
    assert load_json('[1e308, 1e-400, "\\ud83d\\ude00 1e999 NaN"]')[0] == [1e308, 0.0, "\U0001f600 1e999 NaN"]


def test_digits_in_strings_are_not_taken_for_numbers_that_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes hold ``1e234`` as often as not: walking over all tokens for them took most of reading a manifest."""

    def walk(_: str) -> NoReturn:
        raise AssertionError("the text is walked over for nothing")

    monkeypatch.setattr("spyrec.diagnostics.json_reading.scan", walk)
    text = json.dumps({"a": "f1e234ab", "b": "9" * 250, 'c"\\': '1e999"'})
    assert load_json(text)[0] == json.loads(text)


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "9" * 400, "0.1e310"])
def test_a_number_that_overflows_is_found_beside_strings_that_look_like_one(number: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        load_json('{"a\\"": "1e999", "b": ["x\\\\", ' + number + "]}")
    (found,) = caught.value.diagnostics
    assert (found.code, found.location and found.location.pointer) == ("SPY0103", "/b/1")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("\ufeff{}", "it begins with a byte order mark"),
        (" \n", "the text is empty"),
        ('{"a": [1, 2,\n ]}', 'a comma stands before "]"'),
        ('{"a": 1,}', 'a comma stands before "}"'),
        ('{"a": }', "expecting value"),
    ],
)
def test_what_is_no_json_is_told_in_words(text: str, fact: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        load_json(text.encode(), "a.json")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("SPY0101", f"not JSON: {fact}")


def test_the_place_of_a_key_is_where_it_begins() -> None:
    source = SourceText(TEXT)
    root = Location("a.json", "", source=source)
    places = [root.key("c"), root.child("c").key("d"), root.child("c", "d"), root.child("a/b").key("0")]
    found = [(place.resolved().line, place.resolved().column) for place in places]
    assert found == [(4, 3), (4, 9), (4, 14), (2, 11)]
