"""A bundle with one operation that computes something else, and one that reads LX elsewhere: where the page says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.superdsc import Component, SuperDsc
from tests.report.browser.conftest import Pages, spyrec
from tests.support.browsing import Page
from tests.support.planting import other_op, planted

FILE = "sdsc_54.json"  # gated = silu(gate) * up


def elsewhere(superdsc: SuperDsc) -> SuperDsc:
    """Let every core read an operand from where its scratchpad holds nothing."""
    assert superdsc.operands[1].component is Component.LX
    starts = tuple(start + 2048 for start in superdsc.operands[1].start_addresses)
    return replace(
        superdsc,
        operands=tuple(
            replace(item, start_addresses=starts) if number == 1 else item
            for number, item in enumerate(superdsc.operands)
        ),
    )


FAULTS: dict[str, tuple[Callable[[SuperDsc], SuperDsc], tuple[str, ...]]] = {
    "check": (lambda found: other_op(found, "add"), ("--check",)),
    "bisect": (lambda found: other_op(found, "add"), ("--bisect",)),
    "sanitize": (elsewhere, ("--check", "--sanitize", "all")),
}


@pytest.fixture(scope="module")
def faulty(pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("faulty")
    whole = Bundle.load(pages.granite.parent / "today")
    made: dict[str, Path] = {}
    for name, (change, options) in FAULTS.items():
        folder, record, made[name] = (directory / f"{name}{end}" for end in ("", ".json", ".html"))
        planted(whole, FILE, change).save(folder)
        spyrec("run", str(folder), "--random", "1", "--no-verify", *options, "--record", str(record), expects=1)
        spyrec("report", str(folder), "--run", str(record), "-o", str(made[name]))
    return made


def test_a_wrong_operation_shows_in_the_map_with_the_cores_that_made_its_parts(
    page: Page, faulty: dict[str, Path]
) -> None:
    page.open(faulty["check"], "view=correctness")
    assert "elements beyond the bound" in page.text(".pill.is-bad")
    assert "made by core" in page.text(".view")
    page.click_at(400, 300)
    assert "made by 57 add → block_out on core " in page.text(".answer")
    assert "× its bound at row " in page.text(".answer")


def test_bisect_names_the_operation_and_what_is_wrong_with_it(page: Page, faulty: dict[str, Path]) -> None:
    page.open(faulty["bisect"], "view=correctness&tab=bisect")
    assert page.text(".pill.is-bad") == "an operation is wrong"
    assert "it stored something else than its inputs explain" in page.text(".view")
    assert page.extent(".pill.is-bad")[0] < 200
    page.click(".view .link, .view a, .view button", "gated")
    page.until(lambda: page.has(".inspector:not([hidden])"), "the guilty operation is not shown")
    assert "gated" in page.text(".inspector-title")


def test_a_finding_stands_at_its_operation_core_and_address(page: Page, faulty: dict[str, Path]) -> None:
    page.open(faulty["sanitize"], "view=correctness&tab=findings")
    assert "reads LX that nothing wrote on this core" in page.text(".view")
    assert "54 mul" in page.text(".view")
    assert "0x" in page.text(".view")
