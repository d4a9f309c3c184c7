"""The page as a file: one file that holds all it needs, forbids the rest, and is built of what lies beside it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scripts import build_report_assets
from spyrec.report.page import escaped_json, page_of
from tests.report.browser.synthetic import HOSTILE, report_of

ASSETS = build_report_assets.ASSETS


class Elements(HTMLParser):
    """What a browser would make of the file: elements with their attributes, and the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.is_inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")
        self.is_inside = True

    def handle_endtag(self, tag: str) -> None:
        self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            self.texts[-1] += data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, text) for (name, attributes), text in zip(self.found, self.texts, strict=True) if name == tag
        ]


@pytest.fixture(scope="module")
def page() -> Elements:
    return Elements(page_of(report_of(60), HOSTILE[1]))


def test_the_policy_names_the_hashes_of_script_and_style_and_allows_nothing_else(page: Elements) -> None:
    (policy,) = [attributes["content"] or "" for attributes, _ in page.of("meta") if attributes.get("http-equiv")]
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    (style,) = [text for _, text in page.of("style")]
    (script,) = [text for attributes, text in page.of("script") if "type" not in attributes]
    assert allowed == {
        "default-src": "'none'",
        "script-src": hash_of(script),
        "style-src": hash_of(style),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_nothing_is_loaded_and_no_name_becomes_an_element(page: Elements) -> None:
    assert {tag for tag, _ in page.found} == {"html", "head", "meta", "title", "style", "body", "noscript", "script"}
    assert all(not {"src", "href", "style"}.intersection(attributes) for _, attributes in page.found)
    assert all(not name.startswith("on") for _, attributes in page.found for name in attributes)
    assert HOSTILE[1] in page.of("title")[0][1]


def test_the_data_comes_back_as_it_was(page: Elements) -> None:
    (data,) = [text for attributes, text in page.of("script") if attributes.get("type") == "application/json"]
    assert json.loads(data) == report_of(60)
    assert not re.search("[<>&\u2028\u2029]", escaped_json({"a": "<>&\u2028\u2029", "b": list(HOSTILE)}))


def test_the_same_report_gives_the_same_bytes() -> None:
    assert page_of(report_of(12), "a") == page_of(report_of(12), "a")


def test_a_long_report_stays_below_three_megabytes_beside_its_data() -> None:
    data = report_of(60)
    assert len(page_of(data, "a").encode()) - len(escaped_json(data)) < 400_000


@pytest.mark.parametrize(
    ("name", "make"), [("report.js", build_report_assets.script), ("report.css", build_report_assets.style)]
)
def test_built_files_are_fresh(name: str, make: object) -> None:
    """By the hash of all sources; ``make report-assets`` builds them anew."""
    assert callable(make)
    built = (ASSETS / name).read_text(encoding="utf-8")
    assert built.startswith(f"/* sources: {build_report_assets.source_hash()} */\n")
    assert built == make()


def modules(directory: Path, **texts: str) -> Path:
    for file in build_report_assets.LIBRARIES:
        (directory / file).parent.mkdir(parents=True)
        (directory / file).write_text("var dagre = {};")
    (directory / "src").mkdir()
    for name, text in texts.items():
        (directory / "src" / f"{name}.js").write_text(text)
    return directory


def test_modules_stand_behind_those_that_they_import(tmp_path: Path) -> None:
    joined = build_report_assets.script(
        modules(
            tmp_path,
            main='import { a as b } from "./other.js";\nb();\n',
            other="export function a() {}\nexport const c = 1;\n",
        )
    )
    assert joined.index(
        "const module_other = (() => {\nfunction a() {}\nconst c = 1;\nreturn { a, c };"
    ) < joined.index("const { a: b } = module_other;\nb();")


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"main": 'import { a } from "./main.js";\n'}, "import each other"),
        ({"main": 'import { a } from "./absent.js";\n'}, "no such module"),
        ({"main": 'import * as a from "./other.js";\n', "other": "export const a = 1;\n"}, "form that is not known"),
        ({"main": "", "other": "export default 1;\n"}, "form that is not known"),
    ],
)
def test_what_joining_does_not_know_is_refused(texts: dict[str, str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=problem):
        build_report_assets.script(modules(tmp_path, **texts))


def test_each_library_has_its_licence_and_version() -> None:
    folders = sorted((ASSETS / "vendor").iterdir())
    assert [folder.name for folder in folders] == ["dagre-3.1.3", "graphlib-4.0.6"]
    for folder in folders:
        assert "Permission is hereby granted, free of charge" in (folder / "LICENSE").read_text()
    assert '"3.1.3"' in (ASSETS / build_report_assets.LIBRARIES[0]).read_text()
