"""Ten questions, each answered with at most three clicks: the list of docs/report.md, as a user clicks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser.conftest import Pages
from tests.support.browsing import Page


@pytest.fixture
def asked(page: Page, pages: Pages) -> Page:
    return page.open(pages.granite)


@pytest.fixture(autouse=True)
def few_clicks(page: Page) -> Iterator[None]:
    yield
    assert 1 <= page.clicks <= 3


def test_which_op_makes_this_output_element(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Correctness")
    output = pages.data["outputs"][0]
    grid = output["grid"]
    row, column = grid["rows"] // 2, grid["columns"] // 2
    width, height = asked.extent(".stage-surface")
    share = (column + 0.5) / grid["columns"], (row + 0.5) / grid["rows"]
    asked.click_at(64 + (width - 80) * share[0], 10 + (height - 44) * share[1])
    core = grid["cores"][row * grid["columns"] + column]
    answer = asked.text(".answer")
    assert f"made by {output['op']} {pages.data['ops'][output['op']]['op']}" in answer
    assert f"on core {core}" in answer
    assert f"rows {row * grid['row_step']}" in answer


def test_why_is_this_tensor_not_in_lx(asked: Page) -> None:
    asked.click(".tab", "Memory")
    asked.click(".tab", "Device memory")
    asked.click(".virtual-row", "query_flat")
    why = asked.text(".inspector")
    assert "device memory" in why
    assert "never had it as a candidate" in why or "decision" in why or "copy: " in why


def test_what_does_core_7_do_at_30_us(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Time")
    width, _ = asked.extent(".stage-surface")
    at = 30 / pages.data["time"]["us"]
    asked.click_at(92 + at * (width - 108), 8 + 26 + 7 * 10 + 5)
    answer = asked.text(".answer")
    assert answer.startswith("Core 7 at ")
    begin = 0.0
    moment = float(asked.find(".timeline-card input[type=number][step=any]").get_attribute("value") or 0)
    assert abs(moment - 30) < 0.2
    for op in pages.data["ops"]:  # no loops: one after the other
        if begin <= moment < begin + op["us"]:
            assert f"{op['op']} → {op['name']}" in answer
        begin += op["us"]
    assert "waits for" in answer or "works" in answer or "no share" in answer


def test_what_changed_against_yesterday(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Compare")
    assert "yesterday was, today is" in asked.text(".main")
    asked.click(".tab", "Moved tensors")
    moved = pages.data["against"]["moved"][0]
    assert moved["name"] in asked.text(".table-body")
    assert moved["is"] in asked.text(".table-body")


def test_where_in_the_model_does_this_superdsc_come_from(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Provenance")
    asked.click(".pane .virtual-row", "sdsc_3.json")
    node = next(op for op in pages.data["ops"] if op["file"] == "sdsc_3.json")["node"]
    assert f'"name":"{node}"' in asked.text('[data-pane="source"] .is-ancestor')


def test_which_operation_is_the_most_expensive_and_what_limits_it(asked: Page, pages: Pages) -> None:
    asked.click(".virtual-row")
    most = max(pages.data["ops"], key=lambda op: op["us"])
    assert str(most["limit"]) in asked.text(".inspector")
    assert any(
        f"{op['op']} → {op['name']}" == asked.text(".inspector-title")
        for op in pages.data["ops"]
        if op["us"] == most["us"]
    )


def test_what_moves_more_than_it_has_to(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Memory")
    asked.click(".tab", "Traffic")
    excess = {op["name"]: op.get("read", 0) + op.get("written", 0) - op.get("bound", 0) for op in pages.data["ops"]}
    first = asked.all(".table-body .virtual-row")[0].find_elements("css selector", ".cell")[2].text
    assert excess[first] == max(excess.values())


def test_where_is_lx_full(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Memory")
    peak = pages.data["memory"]["lx"][0]["peak"]
    assert f"at most {peak:,} B" in asked.text(".card-head")


def test_at_which_address_lies_an_element(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Memory")
    asked.click(".tab", "Sticks")
    asked.click(".stick-cell", "0,0,5")
    x = next(tensor for tensor in pages.data["tensors"] if tensor["name"] == "x")
    assert "x[0, 0, 5] lies at device coordinate (0, 0, 0, 5), byte 10 of" in asked.text(".reason")
    assert f"{x['address'] + 10:#x} in device memory" in asked.text(".reason")


def test_is_the_result_right_and_where_is_it_least_so(asked: Page, pages: Pages) -> None:
    asked.click(".tab", "Correctness")
    check = pages.data["run"]["checks"][0]
    assert "within its bounds" in asked.text(".main")
    assert f"at [{', '.join(map(str, check['worst']['index']))}], made by core {check['worst']['core']}" in asked.text(
        ".main"
    )
