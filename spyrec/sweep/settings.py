"""``spyrec.sweep/1``: what a sweep tries, as a TOML file; its keys are the fields of the classes here."""

from __future__ import annotations

import json as json_module
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import cast

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, listed, refuse
from spyrec.diagnostics.near_names import one_of
from spyrec.diagnostics.toml_text import TomlText
from spyrec.files.file_kinds import SWEEP_FORMAT
from spyrec.files.json_form import Form, json, optional
from spyrec.files.json_records import JsonRecord, Problem, WrongForm
from spyrec.files.reading import read_at_most

CODE = "SPY0843"
"""Code of whatever is wrong with a sweep file."""

MAX_BYTES = 1 << 20
MAX_LIST = 10_000

_TEXT = Form(min_length=1, max_length=4096)
_TEXTS = Form(max_length=MAX_LIST, each=_TEXT)
_NAME = Form(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$")
_EXTENT = Form(at_least=1, at_most=(1 << 40))
_BY_NAME = Form(max_length=64, keys=_TEXT, each=Form(min_length=1, max_length=MAX_LIST, each=_EXTENT))
_NUMBERS = Form(max_length=MAX_LIST, each=Form(at_least=1, at_most=1 << 20))
_LOOPS = Form(max_length=2, each=Form(pattern="^(keep|unroll)$"))
_FLAGS = Form(max_length=2)
_SEEDS = Form(min_length=1, max_length=MAX_LIST, each=Form(at_least=0, at_most=(1 << 63) - 1))
_LINE = re.compile(r"\(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True, slots=True)
class Graphs:
    """Some graphs: exactly one of ``files``, ``models`` and ``calls``, patterns of paths from the sweep file's folder.

    ``files``: graphs (spyrec.graph/1).  ``models``: .pt2 and .onnx files, imported with ``dtype`` and the sizes
    ``dims`` of their symbolic dims (``512``, or ``64:4096:64`` for a dim that stays open).  ``calls``: lists of models'
    calls, each a graph of its own, scaled down to tensors of at most ``max_elements``; with ``only`` those functions.
    """

    files: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    models: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    calls: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    dtype: str = field(default="float16", metadata=optional(Form(pattern="^(float16|bfloat16|keep)$")))
    dims: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=optional(Form(max_length=64, keys=_TEXT, each=_TEXT))
    )
    max_elements: int | None = field(default=None, metadata=optional(Form(at_least=1, at_most=1 << 40)))
    only: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))


@dataclass(frozen=True, slots=True)
class Grid:
    """Lists of values, of which every combination is tried; the names are those of ``spyrec.CompileOptions``.

    ``dims``: extents of a graph's dims, by name.  ``tiles``: into how many tiles its loops over a dim divide it.
    """

    cores: tuple[int, ...] = field(default=(), metadata=optional(_NUMBERS))
    target: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    profile: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    lx_planner: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    loops: tuple[str, ...] = field(default=(), metadata=optional(_LOOPS))
    compat: tuple[str, ...] = field(default=(), metadata=optional(_TEXTS))
    correction_slots: tuple[int, ...] = field(default=(), metadata=optional(_NUMBERS))
    auto_tile: tuple[bool, ...] = field(default=(), metadata=optional(_FLAGS))
    fixed_io_layouts: tuple[bool, ...] = field(default=(), metadata=optional(_FLAGS))
    symbolic_args: tuple[bool, ...] = field(default=(), metadata=optional(_FLAGS))
    symbolic_strides: tuple[bool, ...] = field(default=(), metadata=optional(_FLAGS))
    tile_reductions: tuple[bool, ...] = field(default=(), metadata=optional(_FLAGS))
    dims: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict[str, "tuple[int, ...]"], metadata=optional(_BY_NAME)
    )
    tiles: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict[str, "tuple[int, ...]"], metadata=optional(_BY_NAME)
    )


@dataclass(frozen=True, slots=True)
class Checks:
    """What is done with each case beyond compiling it.

    ``run``: it is executed on numbers drawn from each of ``seeds``.  ``check``: its outputs are held against the
    float64 reference, which executes it, too.  ``sanitize``: as of ``spyrec run --sanitize``.  ``golden``: the folder
    that holds a bundle of each case by its name, as ``bundles/`` of another sweep's results does.
    """

    run: bool = field(default=False, metadata=optional())
    check: bool = field(default=False, metadata=optional())
    sanitize: str = field(default="", metadata=optional(Form(max_length=64)))
    golden: str = field(default="", metadata=optional(Form(max_length=4096)))
    seeds: tuple[int, ...] = field(default=(1,), metadata=optional(_SEEDS))
    max_executions: int = field(default=10**9, metadata=optional(Form(at_least=0, at_most=1 << 62)))

    @property
    def executes(self) -> bool:
        """Whether a case is executed."""
        return self.run or self.check or bool(self.sanitize)


@dataclass(frozen=True, slots=True)
class CaseLimits:
    """What one case may take: seconds, and MiB of memory."""

    seconds: float = field(default=300.0, metadata=optional(Form(at_least=0.1, at_most=1e6, is_finite=True)))
    memory_mib: int = field(default=4096, metadata=optional(Form(at_least=256, at_most=1 << 24)))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept beside the rows: ``bundles`` of no case, of those that are not right, or of all; a Parquet file."""

    bundles: str = field(default="none", metadata=optional(Form(pattern="^(none|wrong|all)$")))
    parquet: bool = field(default=False, metadata=optional())


@dataclass(frozen=True, slots=True)
class SweepFile:
    """A sweep (spyrec.sweep/1): every graph with every combination of the grid, and of ``options`` where these are.

    ``options``: combinations that are tried beside each other, each with every one of the grid; a value is a list here,
    too.
    """

    graphs: tuple[Graphs, ...] = field(metadata=json(Form(min_length=1, max_length=MAX_LIST)))
    format: str = field(default=SWEEP_FORMAT, metadata=json(Form(pattern=f"^{re.escape(SWEEP_FORMAT)}$")))
    name: str = field(default="sweep", metadata=optional(_NAME))
    grid: Grid = field(default=Grid(), metadata=optional())
    options: tuple[Grid, ...] = field(default=(), metadata=optional(Form(max_length=MAX_LIST)))
    checks: Checks = field(default=Checks(), metadata=optional())
    limits: CaseLimits = field(default=CaseLimits(), metadata=optional())
    keep: Kept = field(default=Kept(), metadata=optional())


SWEEP_FILE = JsonRecord(SweepFile)


def read_settings(path: Path) -> SweepFile:
    """Return what a sweep file says.  Errors: SPY0843, all that is wrong, with places in the form of JSON pointers."""
    content = _read(path)
    place = Location(str(path))
    try:
        text = content.decode()
        if text.startswith("\ufeff"):
            raise refuse(CODE, "the file begins with a byte order mark", place, hint="save it as UTF-8 without one")
        data = cast("object", tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise refuse(CODE, f"the file is not UTF-8 at byte {error.start}", place) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _no_toml(str(error) or "it is nested too deeply", place) from None
    place = Location(str(path), source=TomlText(text, str(path)))
    try:
        found = SWEEP_FILE.read(_tuples(data), place)
    except WrongForm as error:
        raise SpyrecError(listed(_told(item, place) for item in error.problems)) from None
    _refuse_two_kinds(found.graphs, place)
    _refuse_keys_of_other_kinds(found.graphs, place)
    _refuse_unknown_sanitizers(found.checks.sanitize, place.child("checks", "sanitize"))
    return found


def _told(problem: Problem, place: Location) -> Diagnostic:
    """Return what is wrong with one value; of a key that nobody knows, which one was meant."""
    at = place.child(*problem.tokens)
    if problem.kind != "extra_forbidden":
        return Diagnostic(CODE, problem.fact, at)
    *above, key = map(str, problem.tokens)
    tables = {"graphs": Graphs, "grid": Grid, "options": Grid, "checks": Checks, "limits": CaseLimits, "keep": Kept}
    table = tables.get(above[0], SweepFile) if above else SweepFile
    known = [item.name for item in fields(table)]
    return Diagnostic(CODE, problem.fact, at, hint=one_of(key, known, "the keys are"))


def _read(path: Path) -> bytes:
    try:
        content = read_at_most(path, MAX_BYTES)
    except OSError as error:
        fact = f"the sweep file cannot be read: {(error.strerror or str(error)).lower()}"
        raise refuse(CODE, fact, Location(str(path))) from None
    if content is None:
        raise refuse(CODE, f"a sweep file has at most {MAX_BYTES} bytes", Location(str(path)))
    return content


def _no_toml(message: str, place: Location) -> SpyrecError:
    found = _LINE.search(message)
    fact = message[: found.start()].strip() if found else message
    line, column = (int(found[1]), int(found[2])) if found else (None, None)
    return refuse(CODE, f"the file is no TOML: {fact[:1].lower()}{fact[1:]}", Location(place.file, None, line, column))


def _tuples(value: object) -> object:
    """Return parsed TOML as parsed JSON has it: no dates, which stand as their text."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list):
        return [_tuples(item) for item in cast("Sequence[object]", value)]
    return value if isinstance(value, str | int | float | bool) else str(value)


def _refuse_two_kinds(graphs: Sequence[Graphs], place: Location) -> None:
    for number, item in enumerate(graphs):
        kinds = [name for name in ("files", "models", "calls") if getattr(item, name)]
        if len(kinds) != 1:
            fact = f"graphs are of one kind, and these are {' and '.join(kinds) or 'of none'}"
            hint = "give files, models or calls; several [[graphs]] may stand one after the other"
            raise refuse(CODE, fact, place.child("graphs", number), hint=hint)


_ONLY_OF = {"dtype": "models", "dims": "models", "max_elements": "calls", "only": "calls"}


def _refuse_keys_of_other_kinds(graphs: Sequence[Graphs], place: Location) -> None:
    """Refuse what would change nothing."""
    default = Graphs()
    for number, item in enumerate(graphs):
        for key, kind in _ONLY_OF.items():
            if not getattr(item, kind) and getattr(item, key) != getattr(default, key):
                own = next(name for name in ("files", "models", "calls") if getattr(item, name))
                at = place.child("graphs", number, key)
                raise refuse(CODE, f'"{key}" is of graphs that are {kind}, and these are {own}', at)


def _refuse_unknown_sanitizers(text: str, place: Location) -> None:
    from spyrec.runtime.findings import sanitizers_named

    try:
        sanitizers_named(text or None)
    except SpyrecError as error:
        problem = error.diagnostics[0]
        raise refuse(CODE, problem.message, place, hint=problem.advice) from None


def sweep_schema() -> str:
    """Return the text of ``schemas/sweep.schema.json``: the JSON schema of what the TOML holds."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SWEEP_FILE.schema()}
    schema["title"] = "sweep of spyrec (SWEEP.toml)"
    return json_module.dumps(schema, indent=2) + "\n"
