"""The cases of a sweep: every graph with every combination of options and every seed, each named by its hash."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from hashlib import sha256
from importlib.metadata import version
from itertools import product
from math import prod
from pathlib import Path
from typing import cast

import orjson

from spyrec import __version__
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, located, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.sweep.case_run import FUNCTION, compile_options
from spyrec.sweep.rows import REFUSED, Row
from spyrec.sweep.settings import CODE, Checks, Grid, SweepFile
from spyrec.sweep.sources import Source, group_digest
from spyrec.sweep.tasks import Task

_VERSIONS = ("numpy", "numba", "llvmlite")
_CHANGES = ("dims", "tiles")
_KEY_DIGITS = 32

MOST_CASES = 1 << 22
"""Of one sweep: the client holds 4 KB of each."""

Options = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Program:
    """What runs the cases: a row follows from it, too."""

    spyrec: str
    digest: str
    versions: str


def this_program() -> Program:
    """Return the spyrec of this process, and what else its figures follow from."""
    from spyrec.compilation_cache import program_digest

    found = [f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in _VERSIONS)]
    return Program(__version__, program_digest(), ", ".join(found))


@dataclass(frozen=True, slots=True)
class Combination:
    """Options of a compile, and changes of the graph itself."""

    options: Options
    changes: Mapping[str, Mapping[str, int]]

    def shown(self) -> dict[str, str]:
        """Return what is tried by name, as a row has it."""
        found = {name: _shown(value) for name, value in self.options.items()}
        for kind, changed in self.changes.items():
            found |= {f"{kind}.{name}": str(value) for name, value in changed.items()}
        return found


def _shown(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Case:
    """One case: ``row`` with nothing found yet, and what it is made of, which it shares with others.

    ``checks``: what is done with it, its seed and the digest of its golden bundle ("": there is none).  ``keep``: as of
    :class:`spyrec.sweep.settings.Kept`.  ``groups``: of files, by digest.
    """

    row: Row
    graph: Mapping[str, JsonValue]
    combination: Combination
    checks: Mapping[str, JsonValue]
    keep: str
    groups: Mapping[str, Mapping[str, Path]] = field(default_factory=dict[str, "Mapping[str, Path]"])

    @property
    def payload(self) -> bytes:
        """What :mod:`spyrec.sweep.case_run` is asked."""
        request = {
            "graph": self.graph,
            "changes": self.combination.changes,
            "options": self.combination.options,
            "checks": self.checks,
            "keep": self.keep,
        }
        return orjson.dumps(request)

    @property
    def key(self) -> str:
        """The hash of all that the row follows from."""
        return self.row.key

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to run: its model was refused."""
        return self.row.status == REFUSED

    def task(self) -> Task:
        """Return what the engine runs."""
        return Task(self.key, FUNCTION, self.payload, tuple(self.groups))


def combinations(settings: SweepFile, place: Location) -> list[Combination]:
    """Return the combinations of options, each once, in the order of the file.

    Errors: SPY0750, SPY0771 and SPY0414 for options that no graph can be compiled with, at their place; SPY0843 there
    are too many.
    """
    count = _count(settings.grid) * (sum(map(_count, settings.options)) or 1)
    if count > MOST_CASES:
        raise _too_many(f"every graph has {count:,} combinations of options", place.child("grid"))
    beside = [(found, place.child("options", number)) for number, item in enumerate(settings.options)
              for found in _products(item)] or [({}, place.child("grid"))]  # fmt: skip
    made: dict[bytes, Combination] = {}
    for own in _products(settings.grid):
        for others, at in beside:
            values = {**own, **others}
            options = {name: value for name, value in values.items() if name not in _CHANGES}
            changes = {name: cast("Mapping[str, int]", values.get(name, {})) for name in _CHANGES}
            with located(at):
                _refuse_wrong(options)
            text = orjson.dumps([options, changes], option=orjson.OPT_SORT_KEYS)
            made.setdefault(text, Combination(options, changes))
    return list(made.values())


def _count(grid: Grid) -> int:
    lists = [getattr(grid, item.name) for item in fields(grid) if item.name not in _CHANGES]
    lists += [*grid.dims.values(), *grid.tiles.values()]
    return prod(len(values) or 1 for values in lists)


def _too_many(fact: str, place: Location) -> SpyrecError:
    hint = f"a sweep has at most {MOST_CASES:,} cases: make several of it"
    return refuse(CODE, fact, place, hint=hint)


def _products(grid: Grid) -> Iterator[dict[str, JsonValue]]:
    """Yield every combination of a grid's values."""
    axes: list[list[dict[str, JsonValue]]] = []
    for item in fields(grid):
        value = getattr(grid, item.name)
        if item.name in _CHANGES:
            axes.append([{item.name: chosen} for chosen in _each(cast("Mapping[str, Sequence[int]]", value))])
        elif value:
            axes.append([{item.name: one} for one in value])
    for parts in product(*axes):
        yield {name: value for part in parts for name, value in part.items() if value != {}}


def _each(lists: Mapping[str, Sequence[int]]) -> list[dict[str, JsonValue]]:
    return [dict(zip(lists, values)) for values in product(*lists.values())]


def _refuse_wrong(options: Options) -> None:
    """Refuse options that are refused whatever the graph is."""
    from spyrec.front import pipeline_options

    pipeline_options(compile_options(options))


def cases_of(
    sources: Iterator[Source], settings: SweepFile, base: Path, place: Location, program: Program
) -> Iterator[Case]:
    """Yield the cases graph by graph, so that files which they share are needed one after the other.

    Errors: as :func:`combinations`; SPY0843 there are too many cases, or no folder of golden bundles.
    """
    checks = settings.checks
    golden = base / checks.golden if checks.golden else None
    if golden is not None and not golden.is_dir():
        fact = f'there is no folder "{checks.golden[:200]}"'
        raise refuse(CODE, fact, place.child("checks", "golden"), hint=f"paths start from {base}")
    chosen = combinations(settings, place)
    count = 0
    for source in sources:
        seeds = checks.seeds if checks.executes and source.kind != "call" else (None,)
        count += len(chosen) * len(seeds)
        if count > MOST_CASES:
            raise _too_many(f"there are {count:,} cases and more", place.child("graphs"))
        for combination, seed in product(chosen, seeds):
            yield _case(source, combination, seed, settings, golden, program)


def _case(  # noqa: PLR0913 -- all that a row follows from
    source: Source,
    combination: Combination,
    seed: int | None,
    settings: SweepFile,
    golden: Path | None,
    program: Program,
) -> Case:
    checks, options = settings.checks, {**source.settings, **combination.shown()}
    case = _hash([source.name, options, _asked(checks), seed])
    groups: dict[str, Mapping[str, Path]] = {source.digest: source.files} if source.files else {}
    digest: str | None = None
    if golden is not None:
        files = golden_files(golden / folder_name(source.name, options))
        digest = group_digest({}, files) if files else ""
        groups |= {digest: files} if files else {}
    ran_by = [program.spyrec, program.digest, program.versions]
    key = _hash([case, source.digest, source.calls, digest, checks.max_executions, ran_by])
    row = Row(
        key, case, source.name, source.kind, source.digest, options, _asked(checks), "ok", source.calls, seed,
        spyrec=program.spyrec, program=program.digest, versions=program.versions,
    )  # fmt: skip
    asked = {
        "executes": checks.executes,
        "check": checks.check,
        "sanitize": checks.sanitize,
        "max_executions": checks.max_executions,
        "golden": digest,
        "seed": seed or 0,
    }
    return Case(_refused(row, source.refusal), source.payload, combination, asked, settings.keep.bundles, groups)


def _refused(row: Row, refusal: Diagnostic | None) -> Row:
    if refusal is None:
        return row
    return replace(row, status=REFUSED, code=refusal.code, message=refusal.message[:2000])


def _asked(checks: Checks) -> str:
    """Return what is done with a case, as a row has it."""
    asked = ["compile", *(["run"] if checks.executes else []), *(["check"] if checks.check else [])]
    asked += [f"sanitize={checks.sanitize}"] if checks.sanitize else []
    return " ".join([*asked, *(["golden"] if checks.golden else [])])


def _hash(content: JsonValue | list[object]) -> str:
    """Return a hash that the order of members does not change."""
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_KEY_DIGITS]


def folder_name(graph: str, options: Mapping[str, str]) -> str:
    """Return the name of a bundle's folder: what can stand in a path of the graph's name, and a hash.

    A bundle follows from graph and options alone: cases that differ in checks or seed have one.
    """
    plain = "".join(char if (char.isalnum() and char.isascii()) or char in "-_." else "." for char in graph)
    return f"{plain.strip('.')[-80:] or 'graph'}-{_hash([graph, options])[:12]}"


def golden_files(folder: Path) -> dict[str, Path]:
    """Return the files of a golden bundle by relative path, none where there is none."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return {path.relative_to(folder).as_posix(): path for path in paths}
