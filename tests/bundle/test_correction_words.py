"""A correction's words: the file, the reader and the published schema say the same of them, and tables keep theirs."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from spyrec.bundle.correction_word import Word, WordKind
from spyrec.bundle.host_compute import HostComputeSpec, read_specification
from spyrec.bundle.image_table import ImageArgument, ImageTable, read_table, write_table
from spyrec.bundle.json_cursor import Cursor
from spyrec.bundle.spyrecode_schema import spyrecode_schema
from spyrec.diagnostics import Location, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat

SCHEMA: Any = json.loads(spyrecode_schema())
SPECIFICATION: Any = Draft202012Validator({"$ref": "#/$defs/specification", "$defs": SCHEMA["$defs"]})

EDGES = st.sampled_from([-1, 0, 1, 31, 32, 33, 65535, 65536, 65537, 1 << 62, 1 << 63, "0", True, None])
NAMES = st.sampled_from(["", "n", "%n_value", "x" * 256, "x" * 257, 3, None])
KEYS = {"argument": {"index"}, "pool": set[str](), "value": {"name"}, "stick_stride": {"index", "dim"}}
"""What names one word of each kind (``docs/program_image.md``)."""

OBJECTS = st.fixed_dictionaries(
    {"kind": st.sampled_from([*KEYS, "", "words", None, 1])},
    optional={"index": EDGES, "dim": EDGES, "name": NAMES},
)
WORDS = st.one_of(
    st.builds(Word, st.just(WordKind.ARGUMENT), st.integers(0, 1 << 16)),
    st.just(Word(WordKind.POOL)),
    st.builds(Word, st.just(WordKind.VALUE), name=st.text(min_size=1, max_size=256)),
    st.builds(Word, st.just(WordKind.STICK_STRIDE), st.integers(0, 1 << 16), st.integers(0, 32)),
)


def codes_of(data: object) -> set[str]:
    """Return the codes that a specification is refused with."""
    try:
        read_specification(Cursor(json.loads(json.dumps(data)), Location("plan")))
    except SpyrecError as error:
        return {item.code for item in error.diagnostics}
    return set()


@given(OBJECTS)
def test_the_reader_takes_the_words_that_the_schema_allows_and_no_others(word: dict[str, object]) -> None:
    data = {"spyrec": {"version": 1, "words": [word]}}
    assert codes_of(data) == (set[str]() if SPECIFICATION.is_valid(data) else {"SPY0656"})


@given(st.lists(WORDS, max_size=6, unique=True))
def test_words_are_written_with_what_names_them_and_read_back(words: list[Word]) -> None:
    spec = HostComputeSpec(tuple(words))
    data = spec.to_json()
    assert SPECIFICATION.is_valid(data)
    assert read_specification(Cursor(data, Location("plan"))) == spec
    shown: Any = data["spyrec"]
    assert [item.keys() - {"kind"} for item in shown["words"]] == [KEYS[word.kind.value] for word in words]


def argument(name: str, sizes: list[int], kind: DeviceFormat, base: int, is_read: bool) -> ImageArgument:
    per_stick = kind.elements_per_stick
    assert per_stick is not None
    return ImageArgument(name, (*sizes, per_stick), kind, base, is_read, is_written=not is_read)


FORMATS = st.sampled_from([DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP32, DeviceFormat.SEN143_FP8])
SIZES = st.lists(st.integers(1, 1 << 40), min_size=1, max_size=4)
ARGUMENTS = st.lists(
    st.builds(argument, st.text(max_size=8), SIZES, FORMATS, st.integers(0, (1 << 63) - 1), st.booleans()),
    min_size=1,
    max_size=3,
)


@given(ARGUMENTS, st.integers(1, 1 << 50), st.dictionaries(st.text(max_size=4), st.integers(0, 1 << 40), max_size=2))
def test_tables_of_images_are_read_back_and_written_with_keys_in_one_order(
    arguments: list[ImageArgument], pool_bytes: int, maxima: dict[str, int]
) -> None:
    words = (Word(WordKind.POOL), Word(WordKind.ARGUMENT, len(arguments) - 1), Word(WordKind.STICK_STRIDE, 0, 0))
    table = ImageTable(tuple(arguments), pool_bytes, maxima, words)
    data = json.loads(write_table(table))
    assert list(data) == ["arguments", "pool_bytes", "value_maxima", "words"]
    assert [list(item) for item in data["arguments"]] == [
        ["name", "device_size", "device_dtype", "baked_base", "is_read", "is_written"]
    ] * len(arguments)
    assert read_table(Cursor(data, Location("image"))) == table
