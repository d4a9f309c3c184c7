"""Pages of real bundles and of one long report, and a browser to open them in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.granite_block.make_graph import NARROW, write
from spyrec.cli import main
from spyrec.report.page import page_of
from tests.report.browser.synthetic import report_of

if TYPE_CHECKING:
    from tests.support.browsing import Page, WebDriver

collect_ignore_glob = [] if find_spec("selenium") else ["test_*.py"]  # all of them import what drives browsers

ROOT = Path(__file__).resolve().parents[3]
NEWER = ROOT / "tests" / "fixtures" / "examples_2026_08"
LONG = 2000


@dataclass(frozen=True, slots=True)
class Pages:
    """Files to open. ``granite``: the block with small shapes, its run, and the same bundle without scratchpads beside it."""

    granite: Path
    data: dict[str, Any]
    plain: Path
    foreign: Path
    handles: Path
    long: Path


def spyrec(*arguments: str, expects: int = 0) -> None:
    """Run a verb as the command line does, in this process; ``expects``: its exit code."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        code = main(arguments)
    assert code == expects, said.getvalue()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    directory = tmp_path_factory.mktemp("pages")
    graph = write(directory / "graph", NARROW)

    def path(name: str) -> str:
        return str(directory / name)

    def page_file(name: str, data: dict[str, Any]) -> Path:
        file = directory / f"{name}.html"
        file.write_text(page_of(data, data["name"]), encoding="utf-8")
        return file

    def reported(name: str, *arguments: str) -> dict[str, Any]:
        spyrec("report", path(name), *arguments, "--format", "json", "-o", path(f"{name}.json"))
        return json.loads((directory / f"{name}.json").read_bytes())

    spyrec("compile", str(graph), "-o", path("today"), "--target", "2026-08")
    spyrec("compile", str(graph), "-o", path("yesterday"), "--target", "2026-08", "--lx-planner", "none")
    spyrec("run", path("today"), "--random", "1", "--check", "--record", path("run.json"))
    data = reported("today", "--run", path("run.json"), "--against", path("yesterday"))
    for name, fixture in (("handles", "debug_handle"), ("foreign", "add")):  # bundles that torch-spyre's writer made
        shutil.copytree(NEWER / fixture, directory / name, ignore=shutil.ignore_patterns("opspecs.json"))
    long = report_of(LONG)
    return Pages(
        granite=page_file("granite", data),
        data=data,
        plain=page_file("plain", reported("yesterday")),
        foreign=page_file("foreign", reported("foreign")),
        handles=page_file("handles", reported("handles")),
        long=page_file("long", long),
    )


@pytest.fixture(scope="session", params=["chromium", "firefox"])
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    from tests.support.browsing import lacking, start  # late: it needs the extra browser

    browser: str = request.param
    reason = lacking(browser)
    if reason is not None:
        pytest.skip(f"{browser} {reason}")
    found = start(browser, tmp_path_factory.mktemp(browser))
    yield found
    found.quit()


@pytest.fixture
def page(driver: WebDriver) -> Iterator[Page]:
    """A page at its usual size; when a test is done with it, the console must have said nothing."""
    from tests.support.browsing import HEIGHT, WIDTH, Page  # late, as above

    found = Page(driver)
    found.size(WIDTH, HEIGHT)
    found.complaints()
    yield found
    assert found.complaints() == []
