"""Reads the form of a graph file; what is wrong with it, ``wrong_form.py`` says, which is imported for nothing else."""

from __future__ import annotations

import json

from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.json_values import Unlike
from spyrec.ir.graph_text import FORMAT, GraphForm, take_graph

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    type(None): "null",
}


def read_form(data: JsonValue, root: Location, sink: DiagnosticSink) -> GraphForm:
    """Return the file as records, and what of it has no right form; that is reported to ``sink``.

    Errors: SPY0110 another type of value, SPY0111 unknown key, SPY0112 missing key, SPY0113
    another format (raised: nothing is known of the rest), SPY0114 no name, SPY0124 an extent out of range, SPY0137 no
    outputs.
    """
    _require_format(data, root)
    assert isinstance(data, dict)
    try:
        right = take_graph(data)
    except Unlike:
        right = None
    if right is not None:
        return GraphForm(right)
    from spyrec.ir.wrong_form import read_wrong_form

    return read_wrong_form(data, root, sink)


def _require_format(data: JsonValue, root: Location) -> None:
    if not isinstance(data, dict):
        message = f"a graph is a JSON object, not {kind_of(data)}"
        raise SpyrecError([Diagnostic("SPY0110", message, root)])
    if data.get("format") != FORMAT:
        found = data.get("format")
        message = f"format is {json.dumps(found):.60}" if "format" in data else '"format" is missing'
        place = root.child("format") if "format" in data else root
        raise SpyrecError([Diagnostic("SPY0113", f'{message}, and this reader takes "{FORMAT}"', place)])


def kind_of(value: object) -> str:
    """Return what messages call the type of a JSON value."""
    return _KINDS.get(type(value), "a number")
