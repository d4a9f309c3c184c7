"""What the page computes by itself is held against Python: places of elements, and what a line comes from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from spyrec.layout.device_layout import DeviceLayout
from spyrec.report.page import page_of
from tests.report.browser.conftest import Pages
from tests.report.browser.synthetic import report_of
from tests.support.browsing import Page

LAYOUTS = (
    DeviceLayout.default((5, 100, 150), "float16"),
    DeviceLayout.default((5, 100, 150), "float16", dim_order=(1, 0, 2)),
    DeviceLayout.default((128, 200), "float32"),
    DeviceLayout.default((40, 30), "float16", dim_order=(0, 1, -1)),
    DeviceLayout.default((1, 7, 1, 65), "float16"),
    DeviceLayout((38, 64), (64, 1), "float16", host_shape=(40, 60)),
    DeviceLayout.default((300,), "int8"),
)
SHOWN = "return [...document.querySelectorAll('.index-input')].map((item) => Number(item.value))"
SET = """
const inputs = [...document.querySelectorAll('.index-input')].slice(arguments[0]);
arguments[1].forEach((value, at) => { inputs[at].value = value; });
inputs[0].dispatchEvent(new Event('change'));
return [[...document.querySelectorAll('.index-input')].map((item) => Number(item.value)), document.querySelector('.reason').textContent];
"""


@pytest.fixture(scope="module")
def layouts_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = report_of(60)
    for tensor, layout in zip(data["tensors"], LAYOUTS, strict=False):
        tensor["shape"] = list(layout.host_shape)
        tensor["layout"] = {
            "device_size": list(layout.device_size),
            "stride_map": list(layout.stride_map),
            "format": "any",
        }
    file = tmp_path_factory.mktemp("layouts") / "layouts.html"
    file.write_text(page_of(data, "layouts"), encoding="utf-8")
    return file


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_host_indices_and_addresses_are_those_of_the_layout(number: int, page: Page, layouts_page: Path) -> None:
    layout = LAYOUTS[number]
    chance = random.Random(number)
    page.open(layouts_page, f"view=memory&tab=sticks&tensor={number}")
    rank, device_rank = len(layout.host_shape), len(layout.device_size)
    for _ in range(12):
        index = tuple(chance.randrange(extent) for extent in layout.host_shape)
        shown, _ = page.script(SET, 0, index)
        assert tuple(shown[rank:-1]) == layout.device_coordinate(index)
        assert shown[-1] == layout.byte_address(index)
        address = chance.randrange(layout.nbytes)
        shown, said = page.script(SET, rank + device_rank, [address])
        coordinate = layout.at_byte_address(address)
        assert tuple(shown[rank:-1]) == coordinate
        want = layout.host_index(coordinate)
        assert said.startswith("Padding") == (want is None), (coordinate, said)
        if want is not None:
            assert tuple(shown[:rank]) == want


def related(texts: list[dict[str, Any]], text: int, line: int) -> tuple[int, int]:
    """Return how many lines a line comes from, and how many came of it: all pairs, again until nothing is added."""

    def sources(at: int, row: int) -> list[tuple[int, int]]:
        rows: list[int | list[int] | None] = texts[at].get("from", [])
        found = rows[row] if row < len(rows) else None
        several = found if isinstance(found, list) else [] if found is None else [found]
        return [(int(texts[at]["of"]), item) for item in several]

    above = set(sources(text, line))
    while more := {source for at, row in above for source in sources(at, row)} - above:
        above |= more
    everything = [(at, row) for at, item in enumerate(texts) for row in range(len(item["lines"]))]
    below = {(text, line)}
    while more := {place for place in everything if place not in below and below.intersection(sources(*place))}:
        below |= more
    return len(above), len(below) - 1


def test_relatives_of_lines_are_those_of_a_plain_walk(page: Page, pages: Pages) -> None:
    texts = pages.data["texts"]
    chance = random.Random(3)
    page.open(pages.granite, "view=provenance")
    for text in range(len(texts)):
        for line in chance.sample(range(len(texts[text]["lines"])), 3):
            page.script(
                "history.pushState(null, '', '#' + arguments[0]); dispatchEvent(new PopStateEvent('popstate'))",
                f"view=provenance&text={text}&line={line}",
            )
            above, below = related(texts, text, line)
            words = f"{above:,} line{'s'[: above != 1]} above it, {below:,} line{'s'[: below != 1]} below"
            assert words in page.text(".view-note"), (texts[text]["name"], line)
