"""Every view of the page in a real browser: what it shows, by pointer and by keyboard, light and dark, narrow, and long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.report.browser.conftest import LONG, Pages
from tests.report.browser.synthetic import HOSTILE, name_of
from tests.support.browsing import HEIGHT, Page

VIEWS = {
    "overview": [""],
    "provenance": [""],
    "graph": ["", "colour=bytes", "colour=memory", "colour=error", "by=none"],
    "memory": ["", "tab=device", "tab=traffic", "tab=sticks"],
    "time": ["", "tab=roofline"],
    "correctness": ["", "tab=bisect", "tab=findings"],
    "why": ["", "kind=resident"],
    "compare": ["", "tab=moved", "tab=only", "tab=facts"],
}
ADDRESSES = [f"view={view}&{more}" for view, all_more in VIEWS.items() for more in all_more]
PATCHES = (
    "window.seen = []; addEventListener('securitypolicyviolation', (event) => seen.push(event.violatedDirective));"
)


def files(pages: Pages) -> list[Path]:
    return [pages.granite, pages.plain, pages.foreign, pages.handles, pages.long]


def test_every_view_of_every_bundle_shows_something_and_stays_within_800_pixels(page: Page, pages: Pages) -> None:
    page.size(800, 900)
    for file in files(pages):
        page.open(file)
        for address in ADDRESSES:
            page.script(
                "history.pushState(null, '', '#' + arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", address
            )
            page.settled()
            assert page.has(".view, .empty"), f"{file.name} {address}"
            assert page.text(".tabs .tab[aria-selected=true]").lower().startswith(address[5:].partition("&")[0]), (
                address
            )
            wide = page.script(
                "return [document.documentElement.scrollWidth - innerWidth, document.querySelector('.main').scrollWidth - document.querySelector('.main').clientWidth]"
            )
            assert max(wide) <= 0, f"{file.name} {address}: {wide}"
        assert page.complaints() == []


def test_a_click_on_any_line_marks_its_relatives_in_all_panes(page: Page, pages: Pages) -> None:
    page.open(pages.granite, "view=provenance")
    texts = pages.data["texts"]
    source = next(at for at, text in enumerate(texts) if text["name"] == "graph.json")
    line = next(
        at for at, string in enumerate(texts[source]["lines"]) if '"name":"query_flat"' in pages.data["strings"][string]
    )
    list_ = '[data-pane="source"] .virtual'
    page.script("document.querySelector(arguments[0]).scrollTop = arguments[1]", list_, (line - 4) * 20)
    page.click(f'{list_} .virtual-row[data-index="{line}"]')
    assert page.has('[data-pane="source"] .is-self')
    assert page.has('[data-pane="compiler"] .is-descendant')
    assert page.has('[data-pane="product"] .is-descendant')
    made = {op for op, record in enumerate(pages.data["ops"]) if record.get("node") == "query_flat"}
    shown = int(str(page.script("return new URLSearchParams(location.hash.slice(1)).get('op')")))
    assert shown in made
    assert f"{len(made)} operation" in page.text(".view-note")
    page.click('[data-pane="product"] .is-descendant')
    assert page.has('[data-pane="source"] .is-ancestor')
    again = page.address()
    page.driver.back()
    page.until(lambda: page.has('[data-pane="source"] .is-self'), "back does not undo")
    page.open(pages.granite, again)
    assert page.has('[data-pane="product"] .is-self'), "a link shows what it was made of"


def test_search_finds_operations_tensors_and_lines(page: Page, pages: Pages) -> None:
    page.open(pages.granite, "view=provenance")
    page.press("/", *"gate_active"[:4])
    page.until(lambda: page.has(".search-item"), "nothing is found")
    names = [item.text for item in page.all(".search-name")]
    assert names
    assert all("gate" in name for name in names)
    page.press(Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
    page.until(lambda: page.has(".inspector:not([hidden])"), "what was chosen is not shown")
    assert "gate" in page.text(".inspector-title")
    page.find(".view-head input").send_keys("sdsc_3.json")
    page.until(lambda: page.has(".is-found"), "no line is marked")
    assert "sdsc_3.json" in page.text(".is-found")
    assert page.text(".view-head .faint").startswith("1 of ")
    page.press(Keys.ESCAPE)


def test_everything_is_reached_with_the_keyboard_alone(page: Page, pages: Pages) -> None:
    page.open(pages.granite)
    page.press(Keys.TAB)
    assert page.script("return document.activeElement.textContent") == "skip to the content"
    seen = set[str]()
    for _ in range(3):
        page.press(Keys.TAB)
        seen.add(
            str(page.script("return document.activeElement.getAttribute('role') || document.activeElement.tagName"))
        )
    assert seen == {"combobox", "BUTTON", "tab"}
    page.press(Keys.ARROW_RIGHT)  # roving: one stop for all tabs, arrows between them
    assert "view=provenance" in page.address()
    page.press(Keys.ARROW_RIGHT)
    assert "view=graph" in page.address()
    for _ in range(12):
        page.press(Keys.TAB)
        if page.script("return document.activeElement.classList.contains('stage-surface')"):
            break
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    page.until(lambda: page.text(".stage [role=status]"), "the drawing does not say where the focus is")
    assert page.has(".tooltip:not([hidden])"), "tooltips come with the focus too"
    page.press(Keys.ENTER)
    page.until(lambda: "op=" in page.address(), "Enter selects nothing")
    page.press(Keys.ESCAPE)
    assert not page.has(".tooltip:not([hidden])")
    page.open(pages.granite, "view=memory&tab=traffic")
    page.script("document.querySelector('.table-body').focus()")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.until(lambda: page.has(".virtual-row.is-chosen[aria-selected=true]"), "no row is chosen")


def test_what_can_be_operated_has_a_name_and_the_focus_is_seen(page: Page, pages: Pages) -> None:
    for address in ADDRESSES:
        page.open(pages.granite, address)
        nameless = page.script(
            """return [...document.querySelectorAll('button, input, select, a, [tabindex="0"], [role=listbox], [role=grid], [role=application]')]
            .filter((item) => item.offsetParent && !(item.ariaLabel || item.textContent.trim() || item.closest('label')?.textContent.trim()))
            .map((item) => item.outerHTML.slice(0, 120))"""
        )
        assert nameless == [], address
    page.press(Keys.TAB, Keys.TAB)
    assert page.script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_dark_and_light_have_contrast(page: Page, pages: Pages) -> None:
    page.open(pages.granite, "view=memory&op=3")
    first = page.script("return document.documentElement.dataset.theme")
    themes = set[str]()
    for _ in range(2):
        page.click(".theme-button")
        themes.add(str(page.script("return document.documentElement.dataset.theme")))
        for name in ("ink", "ink-soft", "ink-faint", "accent", "bad", "good"):
            ratio = page.script(CONTRAST, name)
            assert ratio >= 4.5, f"{name}: {ratio}"
    assert themes == {"light", "dark"}
    assert page.script("return document.documentElement.dataset.theme") == first


CONTRAST = """
const style = getComputedStyle(document.documentElement);
const luminance = (name) => {
  const colour = style.getPropertyValue(name).trim();
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const [one, other] = [luminance('--' + arguments[0]), luminance('--surface')].sort((a, b) => b - a);
return (one + 0.05) / (other + 0.05);
"""


def test_hostile_names_are_text_everywhere(page: Page, pages: Pages) -> None:
    page.open(pages.long)
    page.script(PATCHES)
    assert page.text("h1") == HOSTILE[0]
    scripts = page.script("return document.scripts.length")
    for address in (
        *ADDRESSES,
        "view=graph&op=0",
        "view=memory&tensor=10",
        "view=provenance&op=20",
        "view=time&at=3",
        "view=why&decision=30&tensor=30",
    ):
        page.script(
            "history.pushState(null, '', '#' + arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", address
        )
        page.settled()
        assert page.script("return [document.scripts.length, document.images.length]") == [scripts, 0], address
    assert page.text(".inspector-title") == name_of(30)
    assert page.script("return seen") == []
    assert page.complaints() == []


def test_the_policy_stops_what_is_not_the_files_own(page: Page, pages: Pages) -> None:
    """So that the test above would see a hole: the same page refuses a script, a style and an image that are put into it."""
    page.open(pages.plain)
    page.script(PATCHES)
    page.script(
        """const script = document.createElement('script'); script.textContent = 'window.hole = 1'; document.body.append(script);
        document.body.insertAdjacentHTML('beforeend', '<p style="color: red"></p><img src="https://example.invalid/x.png">');"""
    )
    page.until(lambda: len(page.script("return seen")) >= 3, "the policy stops less")
    assert page.script("return window.hole === undefined")
    assert page.complaints() or not hasattr(page.driver, "get_log")


def test_two_thousand_operations_are_usable(page: Page, pages: Pages, capsys: pytest.CaptureFixture[str]) -> None:
    page.open(pages.long)
    figures = [f"file {pages.long.stat().st_size / 1e6:.1f} MB"]
    paint = page.script("return performance.getEntriesByType('paint').map((entry) => entry.startTime)[0]")
    memory = page.script("return performance.memory ? performance.memory.usedJSHeapSize : 0")
    figures.append(f"first paint {paint:.0f} ms, {memory / 2**20:.0f} MiB of JavaScript")
    for address in (
        "view=provenance",
        "view=graph",
        "view=graph&by=none",
        "view=memory",
        "view=memory&tab=traffic",
        "view=time",
        "view=why",
        f"view=graph&op={LONG - 1}",
        "view=time&at=5000",
    ):
        began = time.perf_counter()
        page.script(
            "history.pushState(null, '', '#' + arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", address
        )
        page.settled()
        figures.append(f"{address}: {1000 * (time.perf_counter() - began):.0f} ms")
        assert page.script("return document.querySelectorAll('*').length") < 4000, address
    with capsys.disabled():
        print(f"\n  {LONG} operations, {page.driver.name}: " + "; ".join(figures))


def test_drawings_answer_pointers(page: Page, pages: Pages) -> None:
    page.open(pages.granite, "view=memory")
    _, height = page.extent(".stage-surface")
    page.click_at(120, height - 44)
    page.until(lambda: "tensor=" in page.address(), "a region of the scratchpad is no tensor")
    page.click(".inspector .jump .button")
    assert page.has(".view")
    page.open(pages.granite, "view=graph")
    page.size(1280, HEIGHT + 1)
    page.click(".stage-buttons .icon-button")
    page.settled()
