"""Places in a TOML text: heads, keys, arrays of tables, and nothing inside of strings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import cast

import pytest

from spyrec.diagnostics.toml_text import TomlText, key_places

TEXT = '''format = "x" # [no]
[[graphs]]
files = [
  "[a]",
  "b = 1",
]
[[graphs]] # another
  calls = ["c"]
[graphs.dims]
S = "1"
[grid]
dims.A = [1]
"odd key"."a/b" = 2
note = """
[grid.no]
cores = [1]
"""
cores = [3]
[grid . deep]
x = {y = 1}
'''


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", (1, 1)), ("/format", (1, 1)), ("/graphs", (2, 1)), ("/graphs/0", (2, 1)), ("/graphs/0/files/1", (3, 1)),
        ("/graphs/1", (7, 1)), ("/graphs/1/calls", (8, 3)), ("/graphs/1/dims/S", (10, 1)), ("/grid", (11, 1)),
        ("/grid/dims/A/0", (12, 1)), ("/grid/odd key/a~1b", (13, 1)), ("/grid/cores", (18, 1)),
        ("/grid/deep/x/y", (20, 1)), ("/nothing", (1, 1)), ("/graphs/7", (2, 1)),
    ],
)  # fmt: skip
def test_a_pointer_leads_to_its_key_or_the_next_above(pointer: str, place: tuple[int, int]) -> None:
    assert TomlText(TEXT).position(pointer) == place


def pointers(value: object, at: str = "") -> Iterator[str]:
    yield at
    if isinstance(value, dict):
        items = list(cast("Mapping[str, object]", value).items())
    else:
        found = cast("list[object]", value) if isinstance(value, list) else []
        items = [(str(number), item) for number, item in enumerate(found)]
    for name, item in items:
        yield from pointers(item, f"{at}/{name.replace('~', '~0').replace('/', '~1')}")


def test_every_place_that_is_found_is_one_that_the_reader_finds_too() -> None:
    assert set(key_places(TEXT)) <= set(pointers(tomllib.loads(TEXT)))
