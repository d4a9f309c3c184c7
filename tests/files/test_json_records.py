"""A frozen class says once what its JSON is: keys, order, absences, checks, and the classes inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from json import loads
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.manifest_json import ManifestFile
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.files.json_form import COUNT, EXTENTS, NAME, NOT_IN_FILE, Form, Parsed, Shape, json, omitted, optional
from spyrec.files.json_records import JsonRecord, WrongForm, _Place  # pyright: ignore[reportPrivateUsage] -- one way of reading beside the other
from spyrec.files.json_values import Unlike

ROOT = Path(__file__).resolve().parent.parent.parent


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf."""

    name: str = field(metadata=json(NAME))
    weight: float = field(default=0.5, metadata=json(Form(digits=2)))


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree."""

    maximum: int = field(metadata=json(COUNT, "max"))
    colour: Colour
    leaves: tuple[Leaf, ...] = field(metadata=json(Form(max_length=3, each=Form(without={"weight": 1.5}))))
    best: Leaf | None = field(default=None, metadata=omitted())
    counts: Mapping[str, int] = field(default_factory=dict[str, int], metadata=optional(Form(keys=NAME, each=COUNT)))
    label: str = field(default="", metadata=json(Form(shape=Shape(list[str], "".join, list))))
    note: str = field(default="none", metadata=NOT_IN_FILE)


TREE = JsonRecord(Tree)
SHOWN: dict[str, object] = {"max": 3, "colour": "blue", "leaves": [{"name": "a"}], "counts": {}, "label": ["x", "y"]}
BUILT = Tree(3, Colour.BLUE, (Leaf("a", 1.5),), None, {}, "xy")


def test_a_record_is_written_under_its_keys_in_their_order_and_read_again() -> None:
    assert TREE.write(BUILT) == SHOWN
    assert list(TREE.write(BUILT)) == ["max", "colour", "leaves", "counts", "label"]
    assert TREE.keys == ("max", "colour", "leaves", "best", "counts", "label")
    assert TREE.read(SHOWN) == BUILT


def test_an_omitted_key_is_written_where_the_value_is_not_the_default() -> None:
    tree = Tree(3, Colour.RED, (), Leaf("b", 0.128), {"k": 1})
    assert TREE.write(tree)["best"] == {"name": "b", "weight": 0.13}
    assert TREE.read(TREE.write(tree)) == Tree(3, Colour.RED, (), Leaf("b", 0.13), {"k": 1})


def test_an_optional_key_may_be_absent_and_a_required_one_may_not_even_with_a_default() -> None:
    assert TREE.read({key: value for key, value in SHOWN.items() if key != "counts"}) == BUILT
    with pytest.raises(WrongForm) as caught:
        TREE.read({key: value for key, value in SHOWN.items() if key != "label"})
    assert [(item.message, item.tokens) for item in caught.value.problems] == [("field required", ("label",))]


def test_all_problems_are_reported_at_their_places() -> None:
    damaged: dict[str, object] = {
        **SHOWN,
        "max": -1,
        "colour": "green",
        "leaves": [{"name": "", "weight": 1.0}, 7],
        "maximum": 3,
    }
    with pytest.raises(WrongForm) as caught:
        TREE.read({**damaged, "counts": {"": True}})
    assert [(item.message, item.tokens) for item in caught.value.problems] == [
        ("input should be greater than or equal to 0", ("max",)),
        ("input should be 'red' or 'blue'", ("colour",)),
        ("string should have at least 1 character", ("leaves", 0, "name")),
        ("extra inputs are not permitted", ("leaves", 0, "weight")),
        ("input should be a valid dictionary", ("leaves", 1)),
        ("string should have at least 1 character", ("counts", "")),
        ("input should be a valid integer", ("counts", "")),
        ("extra inputs are not permitted", ("maximum",)),
    ]


def _number(text: str) -> int:
    if not text.isdigit():
        raise refuse("SPY0501", f"{text} is no number")
    return int(text)


def _power(found: object) -> object:
    if isinstance(found, int) and 0 <= found <= 64:
        return 2**found
    raise ValueError("a power is a count")


def _exponent(power: int) -> int:
    return power.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Nut:
    """A nut, whose size is written as text."""

    size: int = field(metadata=json(Form(shape=Shape(str, _number, str, otherwise=0))))
    power: int = field(
        default=1, metadata=omitted(Form(parsed=Parsed(_power, _exponent, {"type": "integer"}, type=object)))
    )
    thread: int | None = field(
        default=None,
        metadata=optional(
            Form(shape=Shape(int | None, lambda found: found, lambda kept: -1 if kept is None else kept))
        ),
    )


def _lacks_parts(part: Nut | Box) -> Iterator[Diagnostic]:
    if isinstance(part, Box) and not part.parts:
        yield Diagnostic("SPY0503", "a box is empty", Location().child("parts"))


_PART = Form(second_under="box", check=_lacks_parts)


@dataclass(frozen=True, slots=True)
class Box:
    """Nuts, and boxes of them."""

    parts: tuple[Nut | Box, ...] = field(metadata=json(Form(each=_PART)))
    best: Nut = field(default=Nut(3), metadata=optional())


BOX = JsonRecord(Box)
NUT: dict[str, object] = {"size": "3", "thread": -1}
BOXES: dict[str, object] = {
    "parts": [{"size": "7", "thread": 2}, {"box": {"parts": [NUT], "best": NUT}}],
    "best": {"size": "1", "power": 5, "thread": -1},
}


def test_of_two_classes_the_second_stands_under_a_key_and_may_hold_itself() -> None:
    built = BOX.read(BOXES)
    assert built == Box((Nut(7, thread=2), Box((Nut(3, thread=-1),), Nut(3, thread=-1))), Nut(1, 32, -1))
    assert BOX.read({"parts": [{"box": {"parts": [NUT]}}]}).best == Nut(3, thread=-1)
    assert BOX.write(Box((Nut(7), Box((), Nut(1))))) == {
        "parts": [{"size": "7", "thread": -1}, {"box": {"parts": [], "best": {"size": "1", "thread": -1}}}],
        "best": NUT,
    }


def test_problems_inside_either_class_are_reported_at_the_places_of_the_file() -> None:
    damaged: dict[str, object] = {"parts": [{"box": {"parts": [{}]}}, {"size": 3}, {"size": "", "power": -1}, 3]}
    with pytest.raises(WrongForm) as caught:
        BOX.read(damaged)
    assert [(item.message, item.tokens, item.found) for item in caught.value.problems] == [
        ("field required", ("parts", 0, "box", "parts", 0, "size"), {}),
        ("input should be a valid string", ("parts", 1, "size"), 3),
        ("a power is a count", ("parts", 2, "power"), -1),
        ("input should be a valid dictionary", ("parts", 3), 3),
    ]


def test_what_has_the_right_form_and_is_wrong_is_reported_all_at_once_in_its_place() -> None:
    damaged: dict[str, object] = {"parts": [{"box": {"parts": []}}, {"size": "a"}], "best": {"size": "b"}}
    with pytest.raises(SpyrecError) as caught:
        BOX.read(damaged, Location("f.json", "/top"))
    assert [(item.code, item.message, item.location) for item in caught.value.diagnostics] == [
        ("SPY0503", "a box is empty", Location("f.json", "/top/parts/0/parts")),
        ("SPY0501", "a is no number", Location("f.json", "/top/parts/1/size")),
        ("SPY0501", "b is no number", Location("f.json", "/top/best/size")),
    ]


@dataclass(frozen=True, slots=True)
class Values:
    """Every kind of value and of limit."""

    number: float = field(metadata=json(Form(above=0, at_most=1e6, is_finite=True)))
    loose: float
    count: int = field(metadata=json(COUNT))
    is_set: bool
    kind: Literal["a", "b"]
    name: str = field(metadata=json(NAME))
    shape: tuple[int, ...] | None = field(metadata=json(EXTENTS))
    power: int = field(default=1, metadata=omitted(Form(parsed=Parsed(_power, _exponent, {}, type=int))))
    colours: tuple[Colour, ...] = field(default=(Colour.RED,), metadata=optional(Form(min_length=1, max_length=2)))
    anything: object = field(default=None, metadata=optional())


VALUES = JsonRecord(Values)
VALUE: dict[str, object] = {
    "number": 3, "loose": 1.5, "count": 7, "is_set": True, "kind": "a", "name": "é", "shape": [1, 2], "power": 3,
    "colours": ["red", "blue"], "anything": [1],
}  # fmt: skip


def _as_read(read: Callable[[], object]) -> object:
    try:
        return read()
    except SpyrecError as error:
        return error.diagnostics


def read_by(record: JsonRecord[Any], data: object, checked: Callable[[object], Any]) -> object:
    """Return the record of data that was checked one way, or what is wrong with it."""
    place = _Place(Location(), (), [])
    return _as_read(lambda: (record.of_checked(checked(data), place), place.refused))


MANIFEST = loads((ROOT / "examples" / "seed_add_mul" / "golden" / "manifest.json").read_text())
EXAMPLES: list[tuple[JsonRecord[Any], object]] = [
    (TREE, SHOWN), (BOX, BOXES), (VALUES, VALUE), (JsonRecord(ManifestFile), MANIFEST),
]  # fmt: skip
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.sampled_from([1 << 63, 1 << 1100]),
    st.text(max_size=3),
    st.sampled_from(["", "a\n", "\ud800", "red", "a", "SEN169_FP16"]), st.just([]), st.just({}), st.just([1, "x"]),
)  # fmt: skip


def changed(data: object, draw: st.DataObject) -> object:
    """Return parsed JSON with one value somewhere changed, taken away or added."""
    if not isinstance(data, list | dict) or draw.draw(st.integers(0, 5)) == 0:
        return draw.draw(ODD)
    if isinstance(data, list):
        given = [*cast("list[object]", data)]
        if not given:
            return [draw.draw(ODD)]
        place = draw.draw(st.integers(0, len(given) - 1))
        given[place] = changed(given[place], draw)
        return given
    named = {**cast("dict[str, object]", data)}
    key = draw.draw(st.sampled_from([*named, "more"]))
    if key in named and draw.draw(st.booleans()):
        del named[key]
        return named
    named[key] = changed(named.get(key), draw)
    return named


@pytest.mark.parametrize(("record", "data"), EXAMPLES)
def test_what_is_right_is_taken_without_pydantic_as_the_same_record(record: JsonRecord[Any], data: object) -> None:
    assert read_by(record, data, record.take) == read_by(record, data, record.checked_by_pydantic)


@settings(max_examples=400)
@given(st.data())
def test_whatever_is_taken_pydantic_takes_as_the_same_record(draw: st.DataObject) -> None:
    record, data = draw.draw(st.sampled_from(EXAMPLES))
    for _ in range(draw.draw(st.integers(1, 2))):
        data = changed(data, draw)
    try:
        record.take(data)
    except Unlike:
        return
    assert repr(read_by(record, data, record.take)) == repr(read_by(record, data, record.checked_by_pydantic))
