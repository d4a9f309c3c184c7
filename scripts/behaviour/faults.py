"""Programs with a planted fault: a number or a line of a file changed, as a wrong compiler might have written it.

They are run as bundles of others: without a manifest, so that no hash tells, with a table of their arguments.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import spyrec
from scripts.behaviour.facts import Facts
from scripts.behaviour.runs import record_run
from tests.support.graph_files import JsonObject
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph

ROOT = Path(__file__).resolve().parent.parent.parent
REFERENCES = ROOT / "tests" / "fixtures" / "examples"
TABLES = ROOT / "tests" / "fixtures" / "examples_args"
MAX_EXECUTIONS = "500"

_COLUMNS = (
    "name",
    "arg_index",
    "role",
    "address",
    "shape",
    "dtype",
    "device_size",
    "stride_map",
    "device_dtype",
)


def table_of(manifest: JsonObject) -> JsonObject:
    """Return the table of arguments of a bundle of one program; its constants are given as inputs."""
    rows = [
        {key: row[key] for key in _COLUMNS if row.get(key) is not None}
        for row in cast("list[JsonObject]", manifest["arguments"])
        if row.get("arg_index") is not None
    ]
    for row in rows:
        row["role"] = "output" if row["role"] == "output" else "input"
    return {"format": "spyrec.args/1", "pool_bytes": manifest["pool_bytes"], "arguments": rows}


def run_faulty_reference(number: int, facts: Facts, directory: Path) -> None:
    """Record a reference example with a fault."""
    tables = sorted(TABLES.glob("*.host.json"))
    table = tables[number % len(tables)]
    name, _, only = table.name.removesuffix(".host.json").partition(".")
    target = directory / "program"
    shutil.copytree(REFERENCES / name, target)
    (target / "opspecs.json").unlink(missing_ok=True)
    rng = Random(f"reference {number}")
    facts.number("fault", plant(target, rng, only=f"{only}.json" if only else None))
    options = ("--only", f"{only}.json") if only else ()
    _run(facts, directory, table, options)


def run_faulty_program(number: int, facts: Facts, directory: Path) -> None:
    """Record a compiled program with a fault."""
    rng = Random(f"program {number}")
    make = looped_graph if number % 3 else random_graph
    graph, _ = make(1000 + number, 4)
    options = spyrec.CompileOptions(cores=rng.choice((None, 4)), symbolic_args=rng.random() < 0.5)
    try:
        spyrec.compile(graph, options).save(directory / "bundle")
    except spyrec.SpyrecError as error:
        facts.refusal("compile.refused", error)
        return
    manifest: JsonObject = json.loads((directory / "bundle" / "manifest.json").read_bytes())
    plan = cast("list[JsonObject]", manifest["plan"])
    facts.number("programs", len(plan))
    if len(plan) != 1:
        return
    target = directory / "program"
    target.mkdir()
    for path in sorted((directory / "bundle" / str(plan[0]["program"])).iterdir()):
        if path.name == "bundle.mlir" or path.name.startswith("sdsc_"):
            shutil.copyfile(path, target / path.name)
    table = directory / "args.json"
    table.write_text(json.dumps(table_of(manifest)), encoding="utf-8")
    if number % 8:
        facts.number("fault", plant(target, rng))
    _run(facts, directory, table, ())


def _run(facts: Facts, directory: Path, table: Path, options: tuple[str, ...]) -> None:
    common = ("--args", table, "--random", "1", "--max-executions", MAX_EXECUTIONS, *options)
    record_run("watched", facts, directory, directory / "program", *common, "--sanitize", "all")
    record_run("run", facts, directory, directory / "program", *common)


def plant(directory: Path, rng: Random, only: str | None = None) -> str:
    """Change one file of a program and return what was changed."""
    files = sorted(path for path in directory.iterdir() if only is None or path.name in (only, "bundle.mlir"))
    superdscs = [path for path in files if path.suffix == ".json"]
    kinds = (_other_number, _no_line, _swapped_files, _moved_operand, _moved_operand, _moved_operand, _other_member)
    kind = rng.choice(kinds)
    is_program = kind in (_other_number, _no_line, _swapped_files)
    path = directory / "bundle.mlir" if is_program else rng.choice(superdscs)
    text, what = kind(path.read_text("utf-8"), rng)
    path.write_text(text, encoding="utf-8")
    return f"{path.name}: {what}"


def _other_number(text: str, rng: Random) -> tuple[str, str]:
    """Change an integer in a line that is no call."""
    found = list(re.finditer(r"(?<![\w%#.])\d+(?![\w.])", text))
    if not found:
        return text, "nothing"
    chosen = rng.choice(found)
    value = _changed(int(chosen[0]), rng)
    return text[: chosen.start()] + str(value) + text[chosen.end() :], f"{chosen[0]} becomes {value}"


def _no_line(text: str, rng: Random) -> tuple[str, str]:
    """Leave out a call, or where there is one only, any line."""
    lines = text.splitlines(keepends=True)
    calls = [number for number, line in enumerate(lines) if "sdsc_execute" in line]
    chosen = rng.choice(calls) if len(calls) > 1 else rng.randrange(len(lines))
    return "".join(lines[:chosen] + lines[chosen + 1 :]), f"no line {chosen}"


def _swapped_files(text: str, rng: Random) -> tuple[str, str]:
    """Two calls change their files."""
    names = sorted(set(re.findall(r"sdsc_\d+\.json", text)))
    one, other = rng.choice(names), rng.choice(names)
    swapped = re.sub(r"sdsc_\d+\.json", lambda found: {one: other, other: one}.get(found[0], found[0]), text)
    return swapped, f"{one} and {other} swapped"


def _moved_operand(text: str, rng: Random) -> tuple[str, str]:
    """An operand lies some sticks off on every core."""
    document: object = json.loads(text)
    places: dict[str, list[tuple[JsonObject | list[object], str | int]]] = {}
    for holder, key, pointer in _members(document, ""):
        operand, found, _ = pointer.partition("/startAddressCoreCorelet_/data_/")
        if found:
            places.setdefault(operand, []).append((holder, key))
    chosen = rng.choice(sorted(places))
    by = 128 * rng.choice((-8, -1, 1, 2, 64))
    for holder, key in places[chosen]:
        value = int(holder[key])  # type: ignore[index,call-overload] -- a list has numbers for keys, an object texts
        moved = value - by if value < 0 else max(0, value + by)  # a symbol stays one, of another argument
        holder[key] = str(moved)  # type: ignore[index] -- the same
    return json.dumps(document), f"{chosen} moved by {by}"


def _other_member(text: str, rng: Random) -> tuple[str, str]:
    """Change a number in a SuperDSC, or leave a member out; most often an address, a gap or an extent."""
    document: object = json.loads(text)
    found = list(_members(document, ""))
    likely = [item for item in found if re.search(r"(?i)start|gap|offset|size|stride|ss_|el_|mask|N_", item[2])]
    holder, key, pointer = rng.choice(likely if likely and rng.random() < 0.7 else found)
    value = holder[key]  # type: ignore[index] -- a list has numbers for keys, an object texts
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, str) and not value.isdigit()):
        what = f"no {pointer}"
        del holder[key]  # type: ignore[arg-type] -- the same
    else:
        changed = _changed(int(value), rng)
        what = f"{pointer} {value} becomes {changed}"
        holder[key] = str(changed) if isinstance(value, str) else changed  # type: ignore[index] -- the same
    return json.dumps(document), what


def _changed(value: int, rng: Random) -> int:
    changes: tuple[Callable[[int], int], ...] = (
        lambda v: v + 128,
        lambda v: v + 128,
        lambda v: max(0, v - 128),
        lambda v: v + 1,
        lambda v: v - 1,
        lambda v: 2 * v,
        lambda v: v // 2,
        lambda _: 0,
    )
    return rng.choice(changes)(value)


def _members(data: object, pointer: str) -> list[tuple[JsonObject | list[object], str | int, str]]:
    """Return every leaf below as its holder, its key and its JSON pointer."""
    if isinstance(data, dict):
        holder: JsonObject | list[object] = cast("JsonObject", data)
        items: list[tuple[str | int, object]] = list(cast("JsonObject", data).items())
    elif isinstance(data, list):
        holder = cast("list[object]", data)
        items = list(enumerate(holder))
    else:
        return []
    found: list[tuple[JsonObject | list[object], str | int, str]] = []
    for key, value in items:
        below = _members(value, f"{pointer}/{key}")
        found += below or [(holder, key, f"{pointer}/{key}")]
    return found
