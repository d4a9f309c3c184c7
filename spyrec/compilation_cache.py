"""Whole compilations by what they are made of: the graph with its weights, the options, spyrec itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, Severity, refuse
from spyrec.files.array_memory import digest, is_uniform
from spyrec.files.entry_store import EntryStore
from spyrec.options import CompileOptions, HostArray

if TYPE_CHECKING:
    from spyrec.bundle.bundle import Bundle
    from spyrec.codegen.known_code import KnownCode
    from spyrec.ir.graph import Graph
    from spyrec.ir.kept_answers import KeptAnswers

_UNUSABLE = "SPY0775"
_NOT_OF_THE_RESULT = frozenset({"cache", "cache_bytes"})
_SOLVERS = ("numpy", "omnimalloc", "ortools")


def compiled_once(
    graph: Graph,
    options: CompileOptions,
    compile_graph: Callable[[Known | None], Bundle],
    warn: Callable[[Diagnostic], None],
) -> Bundle:
    """Return the bundle of a graph: the one that is kept in the directory of the options, or a new one, kept there.

    A new one takes what the latest bundle of the graph's name has as well: the code of programs, answers about kernels.

    A directory that cannot be used is a warning, SPY0775.  Errors: SPY0771 for a size below 0 or a directory without a
    name, as ``compile_graph``.
    """
    from spyrec.bundle.packed_bundle import packed_bundle, unpacked_bundle

    if options.cache_bytes < 0:
        raise refuse("SPY0771", f"cache_bytes is {options.cache_bytes}, it must be 0 or more")
    assert options.cache is not None
    if not os.fspath(options.cache):  # a variable of a shell that is not set; a Path would be the working directory
        raise refuse("SPY0771", 'cache is "", it must name a directory')
    folder = Path(options.cache)
    try:
        store = EntryStore(folder, options.cache_bytes)
    except OSError as error:
        warn(_unusable(folder, error))
        return compile_graph(None)
    key = compilation_key(graph, options)
    shared = GraphConstants(graph)
    text = store.find(key)
    whole = None if text is None else unpacked_bundle(text, shared)
    if whole is not None:
        return whole
    stamps = _stamps(graph)
    latest = latest_key(graph, options)
    before = _entry_named(store, latest)
    known = _known(_maker(options), before)
    bundle = compile_graph(known).with_kept_files()
    packed = packed_bundle(bundle, shared, answers_text(known.answers))
    if packed is not None and _stamps(graph) == stamps:  # else it is the bundle of weights that came in between
        try:
            if store.keep(key, packed):
                store.keep(latest, key.encode())
        except OSError as error:
            warn(_unusable(folder, error))
    return bundle


@dataclass(frozen=True, slots=True)
class Known:
    """What a compilation may take of others: the code of programs, and answers about kernels."""

    code: KnownCode
    answers: KeptAnswers


def answers_text(answers: KeptAnswers) -> bytes:
    """Return the answers that a compilation used, as they stand beside its bundle."""
    return orjson.dumps(answers.used)


def _known(maker: str, before: bytes | None) -> Known:
    """Return what may be taken of a compilation that was kept; ``maker``: the compiler and its options, by hash."""
    from spyrec.bundle.packed_bundle import packed_programs
    from spyrec.codegen.known_code import KnownCode
    from spyrec.ir.kept_answers import KeptAnswers

    programs, beside = ((), b"") if before is None else packed_programs(before)
    try:
        answers: object = orjson.loads(beside)
    except ValueError:
        answers = None
    known = cast("dict[str, object]", answers) if isinstance(answers, dict) else {}
    return Known(KnownCode(maker, programs), KeptAnswers(maker, known))


def latest_key(graph: Graph, options: CompileOptions) -> str:
    """Return the key of the entry that names the latest compilation of a graph's name with these options."""
    return sha256(f"latest {_maker(options)} {graph.name}".encode()).hexdigest()


def _entry_named(store: EntryStore, key: str) -> bytes | None:
    """Return the entry whose key another entry holds, ``None`` where either is not there, or names none."""
    named = store.find(key)
    is_key = named is not None and len(named) == len(key) and not named.strip(b"0123456789abcdef")
    return store.find(named.decode()) if named is not None and is_key else None


def _maker(options: CompileOptions) -> str:
    """Return a hash of the compiler and of the options that a bundle follows from."""
    return sha256(repr([program_digest(), *_chosen(options)]).encode()).hexdigest()


def _unusable(folder: Path, error: OSError) -> Diagnostic:
    reason = (error.strerror or str(error)).lower()
    fact = f"compilations cannot be kept: {reason}"
    return Diagnostic(_UNUSABLE, fact, Location(str(folder)), severity=Severity.WARNING)


def compilation_key(graph: Graph, options: CompileOptions) -> str:
    """Return the SHA-256 of all that a bundle follows from.  Errors: SPY0130, SPY0131 weights that are gone."""
    from spyrec.ir.writer import write_graph

    content = sha256()
    for fact in (_maker(options), *_constants(graph)):
        content.update(repr(fact).encode())
        content.update(b"\n")
    content.update(write_graph(graph))
    return content.hexdigest()


def _chosen(options: CompileOptions) -> Iterator[object]:
    for item in fields(options):
        if item.name not in _NOT_OF_THE_RESULT:
            yield item.name, getattr(options, item.name)


def _constants(graph: Graph) -> Iterator[object]:
    """Yield the numbers of every constant, by hash, and how they are held."""
    arrays = GraphConstants(graph)
    for name, data in graph.constants.items():
        array = arrays[name]
        yield name, data.array is None, array.dtype.str, array.shape, is_uniform(array), digest(array)


class GraphConstants(Mapping[str, "HostArray"]):
    """The constants of a graph by name, loaded when they are asked for."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getitem__(self, name: str) -> HostArray:
        from spyrec.ir.constants import load_constant

        return load_constant(self._graph, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.constants)

    def __contains__(self, name: object) -> bool:
        return name in self._graph.constants

    def __len__(self) -> int:
        return len(self._graph.constants)


def _stamps(graph: Graph) -> list[tuple[int, ...] | None]:
    """Return what changes with the files of a graph's weights."""
    return [_stamp(data.file) for data in graph.constants.values() if data.file is not None]


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 -- the path is text
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@cache
def program_digest() -> str:
    """Return a hash of this package's sources, of the interpreter and of what else decides about plans."""
    root = Path(__file__).parent
    content = sha256(platform.python_version().encode())
    for name in _SOLVERS:
        content.update(f"{name} {_version(name)}\n".encode())
    for path in sorted(root.rglob("*.py")):
        content.update(f"{path.relative_to(root)}\n".encode())
        content.update(sha256(path.read_bytes()).digest())
    return content.hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
