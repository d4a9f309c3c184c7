"""docs/architecture.md names every room of the package, and no place that is not there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "spyrec"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
QUOTED = re.compile(r"`([^`\s]+)`")
TOO_SMALL_FOR_A_ROOM = {"__init__.py", "__main__.py"}


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_every_room_is_named_and_there() -> None:
    named = {name.rstrip("/") for row in rows("Rooms") for name in QUOTED.findall(row[0])}
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    modules = {path.name for path in PACKAGE.glob("*.py")} - TOO_SMALL_FOR_A_ROOM
    assert named == folders | modules


def contract() -> list[str]:
    """Return the layers of pyproject.toml from the top, without the marks of names that may be missing."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [layer.replace("(", "").replace(")", "") for layer in layers]


def test_rooms_stand_in_the_order_of_the_contract() -> None:
    ranks = {name: rank for rank, layer in enumerate(contract()) for name in re.findall(r"\w+", layer)}
    rooms = [name.rstrip("/").removesuffix(".py") for row in rows("Rooms") for name in QUOTED.findall(row[0])]
    assert [ranks[name] for name in rooms] == sorted(ranks[name] for name in rooms)


def test_the_layers_of_the_guide_are_those_of_the_contract() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = guide.partition("\nLayers, from the top")[2].split("```\n")[1]
    assert [re.split(r" {2,}", line)[0] for line in block.splitlines()] == contract()


def is_there(base: Path, name: str) -> bool:
    """Whether a path leads to a file or folder; ``<family>`` in one stands for any that is there."""
    if name.endswith("/"):
        return (base / name).is_dir()
    return any(base.glob(re.sub(r"<\w+>", "*", name)))


def test_every_place_to_change_something_is_there() -> None:
    table = [row for row in rows("Where do I go to change ...") if not row[0].startswith("**")]
    assert all(len(row) == 3 for row in table)
    for what, where, tests in table:
        places = [name for name in QUOTED.findall(where) if "/" in name or name.endswith(".py")]
        assert places, what
        missing = [name for name in places if not is_there(PACKAGE, name) and not is_there(ROOT / "tests", name)]
        assert missing == [], what
        assert [name for name in QUOTED.findall(tests) if not is_there(ROOT / "tests", name)] == [], what


LINK = re.compile(r"\]\(([^)#:]+)\)")


def test_every_named_path_is_there() -> None:
    named = [name for name in QUOTED.findall(TEXT) if "/" in name or name.endswith(".py")]
    roots = (PACKAGE, ROOT / "tests", ROOT)
    assert len(named) > 100
    assert [name for name in named if not any(is_there(root, name) for root in roots)] == []
    links = LINK.findall(TEXT)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_a_row_names_a_place_once() -> None:
    places = [name for row in rows("Where do I go to change ...") if len(row) == 3 for name in [QUOTED.findall(row[1])]]
    assert [names for names in places if len(names) != len(set(names))] == []


def test_every_walk_has_stops() -> None:
    walks = section("Three walks").split("\n| stop |")[1:]
    assert [sum(line.startswith("| `") for line in walk.splitlines()) >= 5 for walk in walks] == [True] * 3
