"""A frozen class says once what its JSON is: keys, order, absences, checks, and the classes inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pytest
from pydantic import ValidationError

from spyrec.files.json_form import COUNT, NAME, NOT_IN_FILE, Form, Shape, json, omitted, optional
from spyrec.files.json_records import JsonRecord, problems


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
    with pytest.raises(ValidationError) as caught:
        TREE.read({key: value for key, value in SHOWN.items() if key != "label"})
    assert [(item.message, item.tokens) for item in problems(caught.value)] == [("field required", ("label",))]


def test_all_problems_are_reported_at_their_places() -> None:
    damaged: dict[str, object] = {
        **SHOWN,
        "max": -1,
        "colour": "green",
        "leaves": [{"name": "", "weight": 1.0}, 7],
        "maximum": 3,
    }
    with pytest.raises(ValidationError) as caught:
        TREE.read({**damaged, "counts": {"": True}})
    assert [(item.message, item.tokens) for item in problems(caught.value)] == [
        ("input should be greater than or equal to 0", ("max",)),
        ("input should be 'red' or 'blue'", ("colour",)),
        ("string should have at least 1 character", ("leaves", 0, "name")),
        ("extra inputs are not permitted", ("leaves", 0, "weight")),
        ("input should be a valid dictionary", ("leaves", 1)),
        ("string should have at least 1 character", ("counts", "")),
        ("input should be a valid integer", ("counts", "")),
        ("extra inputs are not permitted", ("maximum",)),
    ]
