"""The reviewed bundles of the examples, ``examples/NAME/golden``: a change in one is read before it lands.

They keep what people read, and hold the rest by the hashes in their manifests, as ``spyrec diff`` allows
(``spyrec/compare/diff.py``).  Their JSON is written with more on a line: white space is no difference.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import spyrec
from examples.granite_block import make_graph
from spyrec.compare.bundle_listing import LEFT_OUT_FILE
from spyrec.diagnostics.json_reading import JsonValue

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MANIFEST = "manifest.json"
LINE = 120
"""Longest line of JSON that holds more than one value."""

SHORT = 36
"""Longest item of an array or object that shares its line where the whole does not fit on one."""

NARROW_CORES = 2


def compiled(graph: Path, cores: int | None, directory: Path) -> Path:
    """Compile a graph into ``directory/bundle`` and return that path."""
    bundle = directory / "bundle"
    spyrec.compile(graph, spyrec.CompileOptions(cores=cores)).save(bundle)
    return bundle


def granite_narrow(directory: Path) -> Path:
    """Return the bundle of the narrow block; few cores, since a SuperDSC grows with them."""
    return compiled(make_graph.write(directory / "graph", make_graph.NARROW), NARROW_CORES, directory)


GOLDEN: dict[str, Callable[[Path], Path]] = {
    "digits": lambda directory: compiled(EXAMPLES / "digits" / "graph.json", None, directory),
    "granite_block": granite_narrow,
    "seed_add_mul": lambda directory: compiled(EXAMPLES / "seed_add_mul" / "graph.json", None, directory),
    "seed_tiling_default": lambda directory: compiled(EXAMPLES / "seed_tiling_default" / "graph.json", None, directory),
    "seed_tiling_rows": lambda directory: compiled(EXAMPLES / "seed_tiling_rows" / "graph.json", None, directory),
}
"""Name of an example -> function that makes its bundle below a directory and returns where."""


def read_by_people(bundle: Path) -> set[str]:
    """Return the paths of the files that a golden bundle keeps; it holds every other one by its hash.

    They are the manifest, the graph, every ``bundle.mlir``, and of each kind of generated file one: a SuperDSC for
    each operation, one plan of a launch, one pair of transfers.  Binary files are never among them.
    """
    kept = {MANIFEST, "graph.json"} & listing(bundle)
    kinds: set[str] = set()
    for name in sorted(listing(bundle), key=_in_reading_order):
        kind = _kind(bundle, name)
        if kind is not None and (kind not in kinds or kind == "bundle.mlir"):
            kinds.add(kind)
            kept.add(name)
    return kept


def listing(bundle: Path) -> set[str]:
    """Return the paths of all files of a bundle."""
    return {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}


def _in_reading_order(name: str) -> list[tuple[int, str]]:
    """Sort ``kernels/2`` before ``kernels/10``."""
    return [(int(part or 0), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _kind(bundle: Path, name: str) -> str | None:
    """Return what a file shows, ``None`` where it is not for reading."""
    path = bundle / name
    if path.suffix not in {".json", ".mlir"}:
        return None
    if path.name.startswith("sdsc_"):
        (superdsc,) = json.loads(path.read_bytes())
        return superdsc.partition("_")[2]  # the number of the SuperDSC is no kind
    return "".join(path.suffixes[-2:]) if path.parent.name == "dci" else path.name  # NAME.h2d.json


def readable(value: JsonValue, indent: str = "") -> str:
    """Return JSON text whose arrays and objects stand on one line where they fit; the order of keys stays."""
    text = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(indent) + len(text) <= LINE:
        return text
    deeper = indent + " "
    if isinstance(value, list):
        items = [readable(item, deeper) for item in value]
    else:
        items = [f"{json.dumps(key)}: {readable(item, deeper)}" for key, item in value.items()]
    marks = "[]" if isinstance(value, list) else "{}"
    lines = f",\n{deeper}".join(_lines(items, LINE - len(deeper)))
    return f"{marks[0]}\n{deeper}{lines}\n{indent}{marks[1]}"


def _lines(items: list[str], width: int) -> list[str]:
    """Join neighbours where every item is short, as in a table of one entry per core."""
    if max(map(len, items)) > SHORT:
        return items
    lines = [items[0]]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 2 <= width:
            lines[-1] = f"{lines[-1]}, {item}"
        else:
            lines.append(item)
    return lines


def write(bundle: Path, golden: Path) -> None:
    """Write what people read of a bundle to a new directory, and which files it leaves out."""
    kept = read_by_people(bundle)
    for name in sorted(kept):
        text = (bundle / name).read_text(encoding="utf-8")
        path = golden / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(readable(json.loads(text)) + "\n" if path.suffix == ".json" else text, encoding="utf-8")
    left_out = sorted(listing(bundle) - kept, key=_in_reading_order)
    (golden / LEFT_OUT_FILE).write_text("".join(f"{name}\n" for name in left_out), encoding="utf-8")


def rewrite() -> None:
    """Replace every golden bundle by what the compiler writes now."""
    for name, make in GOLDEN.items():
        golden = EXAMPLES / name / "golden"
        with tempfile.TemporaryDirectory() as directory:
            fresh = make(Path(directory))
            if golden.exists():
                shutil.rmtree(golden)
            write(fresh, golden)
