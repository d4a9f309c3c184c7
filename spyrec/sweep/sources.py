"""The graphs of a sweep: files, imported models, calls of models; each with its hash and what a worker needs of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from glob import glob, has_magic
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson

from spyrec.bundle.paths import is_inside
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.diagnostics.near_names import one_of
from spyrec.files.reading import read_at_most
from spyrec.sweep.settings import CODE, Graphs

if TYPE_CHECKING:
    from spyrec.frontends.model_import.imported import ImportedModel

MOST_INLINE_BYTES = 1 << 16
"""A graph without weights that is no longer than this travels with each of its cases: it is not worth a file."""

MOST_FILE_BYTES = 1 << 34
GRAPH_FILE = "graph.json"


@dataclass(frozen=True, slots=True)
class Source:
    """One graph.  ``payload``: what :mod:`spyrec.sweep.case_run` makes it from.

    ``files``: of its group, by name; none where the payload is all.  ``settings``: of an import.  ``calls``: of a call,
    how often each model makes it.  ``refusal``: why there is no graph.
    """

    name: str
    kind: str
    digest: str
    payload: Mapping[str, JsonValue]
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: Mapping[str, int] = field(default_factory=dict[str, int])
    refusal: Diagnostic | None = None


def sources_of(graphs: Sequence[Graphs], base: Path, models: Path, place: Location) -> Iterator[Source]:
    """Yield the graphs of a sweep file in ``base``; imported models are written below ``models``, once.

    Errors: SPY0843 a pattern that matches nothing, a list that is none, a function that no list has.  A model that
    cannot be imported is a source with its refusal.
    """
    for number, item in enumerate(graphs):
        at = place.child("graphs", number)
        for path in _matching(item.files, base, at.child("files")):
            yield graph_source(_shown(path, base), "file", path)
        for path in _matching(item.models, base, at.child("models")):
            yield _model_source(_shown(path, base), path, item, models)
        functions: set[str] = set()
        for path in _matching(item.calls, base, at.child("calls")):
            yield from _call_sources(_shown(path, base), path, item, functions)
        for index, name in enumerate(item.only):
            if name not in functions:
                hint = one_of(name, sorted(functions), "their functions are")
                raise refuse(CODE, f'no list has a call of "{name[:200]}"', at.child("only", index), hint=hint)


def _matching(patterns: Sequence[str], base: Path, place: Location) -> Iterator[Path]:
    """Yield the files that match, sorted by pattern and name, each once."""
    known: set[Path] = set()
    for number, pattern in enumerate(patterns):
        whole = str(base / pattern)
        paths = sorted(glob(whole, recursive=True)) if has_magic(pattern) else [whole]  # noqa: PTH207 -- begins anywhere
        found = [path for path in map(Path, paths) if path.is_file()]
        if not found:
            what = "no file matches" if has_magic(pattern) else "there is no file"
            raise refuse(CODE, f'{what} "{pattern[:200]}"', place.child(number), hint=f"paths start from {base}")
        yield from (path for path in found if path not in known)
        known.update(found)


def _shown(path: Path, base: Path) -> str:
    """Return a path as it stands from the sweep file; .json goes without saying."""
    shown = os.path.relpath(path, base)
    return (str(path) if shown.startswith("..") else shown).removesuffix(".json")


def _content(path: Path) -> bytes:
    found = read_at_most(path, MOST_FILE_BYTES)
    if found is None:
        raise refuse(CODE, f"the file has more than {MOST_FILE_BYTES} bytes", Location(str(path)))
    return found


def graph_source(name: str, kind: str, path: Path) -> Source:
    """Return the source of a graph file, with the files of its constants."""
    text = _content(path)
    beside = _files_beside(text, path.parent)
    digest = group_digest({path.name: text}, beside)
    if not beside and len(text) <= MOST_INLINE_BYTES:
        with suppress(UnicodeDecodeError):  # what is no text is refused where it is read
            return Source(name, kind, digest, {"text": text.decode(), "file": path.name})
    return Source(name, kind, digest, {"group": digest, "file": path.name}, {path.name: path, **beside})


def group_digest(contents: Mapping[str, bytes], files: Mapping[str, Path] | None = None) -> str:
    """Return the hash of a group of files by name: of contents, and of files that are read one after the other."""
    found = {name: sha256(content).digest() for name, content in contents.items()}
    found |= {name: sha256(_content(path)).digest() for name, path in (files or {}).items()}
    content = sha256(b"".join(name.encode() + b"\0" + found[name] for name in sorted(found)))
    return content.hexdigest()[:32]


def group_content(digest: str, files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the files of a group as they were when the sweep was planned.  Errors: SPY0843 one is another now."""
    first = next(iter(files.values()))
    try:
        found = {name: _content(path) for name, path in files.items()}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refuse(CODE, f"a file of the sweep cannot be read any more: {reason}", Location(str(first))) from None
    if group_digest(found) != digest:
        fact = "the files of this graph have changed since the sweep was planned"
        raise refuse(CODE, fact, Location(str(first)), hint="give the same command again: what has its row is kept")
    return found


def _files_beside(text: bytes, folder: Path) -> dict[str, Path]:
    """Return the files that a graph's constants name, as far as they are there; the rest the reader refuses."""
    try:
        data: object = orjson.loads(text)
    except ValueError:
        return {}
    constants = cast("Mapping[str, object]", data).get("constants") if isinstance(data, dict) else None
    listed = cast("list[object]", constants) if isinstance(constants, list) else []
    names = {_file_of(item) for item in listed}
    found = {name: folder / name for name in sorted(item for item in names if item is not None)}
    return {name: path for name, path in found.items() if is_inside(name) and path.is_file()}


def _file_of(constant: object) -> str | None:
    data = cast("Mapping[str, object]", constant).get("data") if isinstance(constant, dict) else None
    file = cast("Mapping[str, object]", data).get("file") if isinstance(data, dict) else None
    return file if isinstance(file, str) else None


def _model_source(name: str, path: Path, item: Graphs, models: Path) -> Source:
    """Import a model, unless it was, and return its graph's source."""
    from spyrec.compilation_cache import program_digest
    from spyrec.frontends.model_import.files import write_model

    settings = orjson.dumps([item.dtype, dict(sorted(item.dims.items())), program_digest()])
    digest = sha256(settings + sha256(_content(path)).digest()).hexdigest()[:32]
    folder, said = models / digest, {"dtype": item.dtype, **{f"dim.{dim}": size for dim, size in item.dims.items()}}
    try:
        if not folder.exists():
            models.mkdir(parents=True, exist_ok=True)
            write_model(_imported(path, item), folder, path.name)
    except SpyrecError as error:
        return Source(name, "model", digest, {}, settings=said, refusal=error.diagnostics[0])
    return replace(graph_source(name, "model", folder / GRAPH_FILE), settings=said)


def _imported(path: Path, item: Graphs) -> ImportedModel:
    from spyrec.frontends.model_import.symbolic_sizes import choices
    from spyrec.model_import import ImportDType, settled

    dims = choices(item.dims)
    if path.suffix == ".onnx":
        from spyrec.frontends.onnx.model import read_onnx

        source, weights = read_onnx(path, dims, ())
    else:
        from spyrec.frontends.torch_export.program import read_program

        source, weights = read_program(path, dims, ())
    return settled(source, weights, cast("ImportDType", item.dtype))


def _call_sources(name: str, path: Path, item: Graphs, functions: set[str]) -> Iterator[Source]:
    """Yield the distinct calls of a list, as they are once scaled down: those that scale to the same are one.

    The names of all its functions are added to ``functions``.
    """
    from spyrec.sweep.model_calls.cases import Case, entries_of, read_case
    from spyrec.sweep.model_calls.scale import scaled_or_same
    from spyrec.sweep.model_calls.signatures import public_name

    forms: dict[Case, tuple[JsonValue, Counter[str]]] = {}
    for number, entry in enumerate(entries_of(path)):
        case, models = read_case(entry, Location(str(path), f"/{number}"))
        functions.add(public_name(case.op))
        if not item.only or public_name(case.op) in item.only:
            _, calls = forms.setdefault(scaled_or_same(case, item.max_elements), (entry, Counter()))
            calls.update(models)
    for form, (entry, calls) in forms.items():
        function = public_name(form.op)
        payload: dict[str, JsonValue] = {"call": _arguments(entry), "max_elements": item.max_elements}
        digest = sha256(repr(form).encode()).hexdigest()[:32]
        yield Source(f"{name}/{function}/{digest[:8]}", "call", digest, payload, calls=dict(sorted(calls.items())))


def _arguments(entry: JsonValue) -> dict[str, JsonValue]:
    """Return function and arguments of an entry, without who makes the call and how often."""
    members = cast("dict[str, JsonValue]", entry)
    return {name: members[name] for name in ("op", "inputs", "kwargs") if name in members}
