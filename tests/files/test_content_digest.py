"""Digests of values: one for what is equal, whoever made it in which process, another for everything else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import field
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.dataclass import dataclass
from spyrec.files.content_digest import ContentDigests
from tests.support.examples import examples


class Kind(Enum):
    """Two members of one value each."""

    ONE = 1
    TWO = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """Two values, and one that does not count."""

    first: object
    second: object
    about: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class OtherPair:
    """The same fields."""

    first: object
    second: object


@dataclass(frozen=True, slots=True)
class Alone:
    """One field."""

    first: object


UNLIKE: Sequence[object] = [
    None, "None", 0, False, 0.0, -0.0, 1, True, 1.0, "1", "", (), ((),), (0,), (0, 0), ("ab", "c"), ("a", "bc"),
    ("a", ("b",)), (("a", "b"),), frozenset({1, 2}), (1, 2), {1: 2}, {(1, 2): 0}, {"a": 1, "b": 2}, {"b": 2, "a": 1},
    Kind.ONE, Kind.TWO, Pair(1, 2), Pair(2, 1), Pair((1, 2), ()), OtherPair(1, 2), Alone(1), Alone((1,)),
]  # fmt: skip


def test_no_two_values_that_differ_have_one_digest() -> None:
    digests = ContentDigests()
    assert len({digests.of(item) for item in UNLIKE}) == len(UNLIKE)


def test_equal_values_have_one_digest_whoever_made_them() -> None:
    one, other = (ContentDigests().of(Pair((1, Pair("a", Kind.TWO, about)), frozenset("xyz"))) for about in ("m", "n"))
    assert one == other
    code = "from tests.files.test_content_digest import *; print(ContentDigests().of(tuple(UNLIKE)))"
    path = ":".join(sys.path)
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=environment).stdout
        for environment in ({"PYTHONHASHSEED": seed, "PYTHONPATH": path} for seed in ("1", "2"))
    ]
    assert said == [ContentDigests().of(tuple(UNLIKE)) + "\n"] * 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.builds(Pair, inner, inner),
    max_leaves=8,
)


@examples(200)
@given(VALUES, VALUES)
def test_what_is_not_equal_is_told_apart(one: object, other: object) -> None:
    digests = ContentDigests()
    assert (digests.of(one) == digests.of(other)) == (repr(one) == repr(other))


def test_what_has_no_canonical_form_is_no_key() -> None:
    with pytest.raises(AssertionError, match="no canonical form"):
        ContentDigests().of((1, object()))
