"""Where operations come from, in the public shape: ``debug_handle_`` objects, and the sidecar ``spyrec.provenance/1``.

A bundle with handles has them in its files.  Of one without, they are made of what a compilation knows: the node and
its place in the model, the names on the way to the file, the passes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import field, replace

import orjson

from spyrec.bundle.debug_handle import DebugHandle, SourceRange, Transformation
from spyrec.compare.bundle_reading import ProgramReading
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.files.json_form import json as key
from spyrec.files.json_records import JsonRecord
from spyrec.ir.graph import Derived, Origin, location_of
from spyrec.report.compiled import Compiled
from spyrec.report.model import Op, Report
from spyrec.report.numbers import ENTRIES, TEXT
from spyrec.report.report_file import read_form

PROVENANCE_FORMAT = "spyrec.provenance/1"

_VERSION = 2
"""Of what an id is made of."""


@dataclass(frozen=True, slots=True)
class HandleOf:
    """The handle of one operation: its file in the bundle, its function, and where it comes from."""

    file: str = field(metadata=key(TEXT))
    op: str = field(metadata=key(TEXT))
    handle: DebugHandle | None = field(metadata=key(name="debug_handle_"))


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The handles of a bundle's operations, beside the bundle."""

    bundle: str = field(metadata=key(TEXT))
    operations: tuple[HandleOf, ...] = field(metadata=key(ENTRIES))

    def by_file(self) -> dict[str, DebugHandle]:
        """Return the handles by file; of a file that is named twice the first."""
        found: dict[str, DebugHandle] = {}
        for item in self.operations:
            if item.handle is not None:
                found.setdefault(item.file, item.handle)
        return found


_SIDECAR = JsonRecord(Sidecar)


def sidecar_text(report: Report) -> str:
    """Return the sidecar of a report: the handle of every operation, once per file."""
    found: dict[str, HandleOf] = {}
    for op in report.ops:
        handle = None if op.handle is None else report.handles[op.handle]
        found.setdefault(op.file, HandleOf(op.file, op.op, handle))
    content = {"format": PROVENANCE_FORMAT, **_SIDECAR.write(Sidecar(report.name, tuple(found.values())))}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def read_sidecar(text: bytes, file: str) -> Sidecar:
    """Read a sidecar; errors SPY0101 to SPY0104, SPY0850."""
    return read_form(_SIDECAR, text, file, PROVENANCE_FORMAT)


def handles_of(
    ops: Sequence[Op],
    programs: Sequence[ProgramReading],
    compiled: Compiled | None,
    sidecar: Sidecar | None,
) -> tuple[tuple[Op, ...], tuple[DebugHandle, ...]]:
    """Return operations with the numbers of their handles, and the handles.

    Those of the files hold; a sidecar has those of others; what is left is made of the compilation.
    """
    given = {} if sidecar is None else sidecar.by_file()
    own = {item.number: item.superdsc.debug_handle for program in programs for item in program.operations}
    numbers: dict[DebugHandle, int] = {}
    found: list[Op] = []
    for number, op in enumerate(ops):
        handle = own.get(number) or given.get(op.file)
        if handle is None and compiled is not None and number in compiled.made_of:
            handle = _made_handle(compiled, number, op)
        if handle is None:
            found.append(op)
            continue
        place = None if handle.source is None else handle.source.shown
        origin = op.origin if op.origin is not None else handle.aten_op
        source = op.source if op.source is not None else place
        found.append(replace(op, handle=numbers.setdefault(handle, len(numbers)), source=source, origin=origin))
    return tuple(found), tuple(numbers)


def _made_handle(compiled: Compiled, number: int, op: Op) -> DebugHandle:
    kernel = compiled.made_of[number].kernel
    roots = _roots(kernel.origin)
    nodes = {location_of(node.origin): node.name for node in compiled.source.nodes}
    parts = [_handle(_source(root), _operation(root), (nodes[root],) if root in nodes else ()) for root in roots]
    fused = tuple(parts) if len(parts) > 1 else ()
    places = dict.fromkeys((item.source, item.aten_op) for item in parts)
    source, operation = next(iter(places)) if len(places) == 1 else (None, None)
    names = [nodes[root] for root in roots if root in nodes] if len(roots) == 1 else []
    chain = tuple(dict.fromkeys([*names, kernel.name, op.file]))
    history = tuple(Transformation(_kind_of(name), name) for name in _passes(kernel.origin))
    return replace(_handle(source, operation, chain, fused), transform_history=history)


def _handle(
    source: SourceRange | None, operation: str | None, chain: tuple[str, ...], fused: tuple[DebugHandle, ...] = ()
) -> DebugHandle:
    found = DebugHandle("0", source, operation, chain, fused)
    return replace(found, id=handle_id(found))


def handle_id(handle: DebugHandle) -> str:
    """Return the id of a handle as torch-spyre makes it: of all but the history, and of the ids of what was fused."""
    content = {
        "aten_op": handle.aten_op,
        "fused_from": [item.id for item in handle.fused_from],
        "ir_chain": list(handle.ir_chain),
        "source": None if handle.source is None else handle.source.document(),
        "version": _VERSION,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1)


def _roots(origin: Origin) -> list[Location]:
    """Return the places in the user's input that something goes back to, each once."""
    if not isinstance(origin, Derived):
        return [origin]
    return [*dict.fromkeys(root for parent in origin.parents for root in _roots(parent))]


def _passes(origin: Origin) -> list[str]:
    """Return the passes that made something, the first one first."""
    if not isinstance(origin, Derived):
        return []
    before = [name for parent in origin.parents for name in _passes(parent)]
    return [*dict.fromkeys((*before, origin.pass_name))]


def _kind_of(pass_name: str) -> str:
    return "decomposition" if pass_name.startswith("decompose") else "rewrite"


def _source(root: Location) -> SourceRange | None:
    model = root.model
    if model is not None and model.file is not None:
        return SourceRange(model.file, model.line or 1, 0)
    place = root.resolved()
    return None if place.file is None or place.line is None else SourceRange(place.file, place.line, place.column or 0)


def _operation(root: Location) -> str | None:
    return None if root.model is None else root.model.op


def with_model(ops: Sequence[Op], compiled: Compiled | None) -> tuple[tuple[Op, ...], tuple[str, ...]]:
    """Return operations with the node and the module that each comes from, and the paths of all modules, sorted."""
    if compiled is None:
        return tuple(ops), ()
    nodes = {location_of(node.origin): node for node in compiled.source.nodes}
    roots = {number: location_of(item.kernel.origin) for number, item in compiled.made_of.items()}
    paths = {root.model.module for root in roots.values() if root.model is not None}
    modules = {path: number for number, path in enumerate(_with_parents(paths))}
    found: list[Op] = []
    for number, op in enumerate(ops):
        root = roots.get(number)
        if root is None:
            found.append(op)
            continue
        model, node = root.model, nodes.get(root)
        shown = None if model is None or model.file is None else f"{model.file}:{model.line}"
        found.append(
            replace(
                op,
                name=compiled.made_of[number].kernel.name,
                node=None if node is None else node.name,
                module=None if model is None or not model.module else modules[model.module],
                source=shown if op.source is None else op.source,
                origin=op.origin if model is None or op.origin is not None else model.op,
            )
        )
    return tuple(found), tuple(modules)


def _with_parents(paths: set[str]) -> list[str]:
    """Return module paths and all that they are inside of, sorted; no path is empty."""
    parts = (path.split(".") for path in paths)
    return sorted({".".join(own[:depth]) for own in parts for depth in range(1, len(own) + 1)} - {""})
