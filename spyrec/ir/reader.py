"""Graph JSON (``spyrec.graph/1``) to IR.

The form is checked first (``form.py``), then the meaning of all that has the right form, section by section; all
problems are collected, so that one reading reports everything that is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from spyrec.diagnostics import DiagnosticSink, Location, refuse
from spyrec.diagnostics.json_reading import MAX_TEXT_BYTES, JsonValue, load_json
from spyrec.diagnostics.source_text import SourceText
from spyrec.files.reading import read_at_most
from spyrec.ir.declarations import Declarations
from spyrec.ir.form import read_form
from spyrec.ir.graph import Graph
from spyrec.ir.near_names import did_you_mean
from spyrec.ir.node_reader import NodeReader
from spyrec.ir.requests import read_loops, read_outside_lx, read_updates, read_work_divisions


def read_graph(path: Path | str, base_dir: Path | None = None, *, warnings: DiagnosticSink | None = None) -> Graph:
    """Read a graph file; constants in files are found relative to its directory, or to ``base_dir``.

    ``warnings`` takes what was narrowed (SPY0152).
    Errors: SPY0138 the file cannot be read; those of :func:`load_json` and :func:`read_graph_data`.
    """
    file = Path(path)
    try:
        text = read_at_most(file, MAX_TEXT_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise refuse("SPY0138", f"the graph file cannot be read: {reason}", Location(str(path))) from None
    if text is None:
        message = f"the graph file has more than {MAX_TEXT_BYTES} bytes"
        raise refuse("SPY0104", message, Location(str(path)), hint="put numbers in bulk into a safetensors file")
    data, source = load_json(text, str(path))
    return read_graph_data(data, source, file.parent if base_dir is None else base_dir, warnings=warnings)


def read_graph_data(
    data: object,
    source: SourceText | None = None,
    base_dir: Path | str | None = None,
    *,
    warnings: DiagnosticSink | None = None,
) -> Graph:
    """Return the graph that JSON data describes, verified.

    ``source`` is the text that locations are resolved against; ``base_dir`` is the directory that constants in files
    lie in: without it they are refused.  ``warnings``: as :func:`read_graph`.  Node results take their op's dim names
    (see ``Value.dims``).
    Errors: 01xx and 02xx, all of them at once as far as one does not hide another.
    """
    root = Location(source.file if source is not None else None, "", source=source)
    sink = DiagnosticSink()
    form = read_form(cast("JsonValue", data), root, sink)
    model = form.model
    declarations = Declarations(root, sink, None if base_dir is None else Path(base_dir), form)
    declarations.read(model)
    nodes = NodeReader(declarations).read(model.nodes, model.prologue)
    outputs = _read_outputs(model.outputs, declarations)
    graph = Graph(
        name=model.name,
        dims=declarations.dims,
        inputs=tuple(item.name for item in model.inputs),
        constants=declarations.constants,
        nodes=read_work_divisions(model.nodes, nodes, declarations),
        values=declarations.values,
        outputs=outputs,
        loops=read_loops(model.loops, nodes, declarations),
        updates=read_updates(model, declarations),
        outside_lx=read_outside_lx(model, declarations),
    )
    sink.raise_if_errors()
    if warnings is not None:
        warnings.diagnostics.extend(sink.diagnostics)
    return graph


def _read_outputs(names: list[str], declarations: Declarations) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if declarations.is_dangling(name):
            place = declarations.root.child("outputs", index)
            hint = did_you_mean(name, declarations.values, declarations.sink)
            declarations.sink.error("SPY0116", f'output "{name}" is no value of the graph', place, hint=hint)
    return tuple(names)
