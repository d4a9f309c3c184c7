"""Says what is wrong with the form of a graph file: pydantic's findings as diagnostics with JSON pointers.

What has the right form is read on even where something else has not (``salvage.py``), so that one reading reports
wrong keys, wrong names and wrong ops together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location, capped, standing_for
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.form import kind_of
from spyrec.ir.graph_model import (
    ConstantModel,
    DataModel,
    GraphModel,
    InputModel,
    LayoutModel,
    LoopModel,
    Model,
    NodeModel,
    OriginModel,
    SymbolicDimModel,
    as_text,
)
from spyrec.ir.graph_text import GraphForm
from spyrec.ir.near_names import MOST_GUESSES, nearest
from spyrec.ir.salvage import salvage

_HINTS = {
    "SPY0114": "rename it",
    "SPY0124": "extents run from 0, those of loops and symbolic dims from 1, to 2**63 - 1",
    "SPY0137": 'name at least one value in "outputs"',
}


def read_wrong_form(data: dict[str, JsonValue], root: Location, sink: DiagnosticSink) -> GraphForm:
    """Return what of a file of the right format can be read, and report the rest to ``sink``.

    Errors: those of :func:`spyrec.ir.form.read_form`.
    """
    try:
        return GraphForm(as_text(GraphModel.model_validate(data)))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
    items = capped(details, lambda item: (item["type"], len(item["loc"])))
    meant = _meant_keys([item for item, count in items if count == 1])
    renamed = {(*location[:-1], key) for location, key in meant.items()}
    findings = [
        standing_for(_diagnostic(item, data, root, meant), count)
        for item, count in items
        if item["type"] != "missing" or item["loc"] not in renamed  # it is there under another name
    ]
    unique: dict[tuple[str | None, str], Diagnostic] = {}
    for finding in findings:
        assert finding.location is not None
        unique.setdefault((finding.location.pointer, finding.code), finding)
    for finding in unique.values():
        sink.add(finding)
    return salvage(data)


def _resolve(location: tuple[int | str, ...], data: JsonValue) -> tuple[list[str | int], JsonValue]:
    """Return the tokens of a pydantic location that exist in the data (union tags do not), and what is there."""
    tokens: list[str | int] = []
    here = data
    for token in location:
        if (isinstance(here, dict) and token in here) or (
            isinstance(here, list) and isinstance(token, int) and token < len(here)
        ):
            here = cast("dict[str | int, JsonValue]", here)[token]
            tokens.append(token)
    return tokens, here


def _diagnostic(item: ErrorDetails, data: JsonValue, root: Location, meant: Mapping[_Place, str]) -> Diagnostic:
    tokens, here = _resolve(item["loc"], data)
    place = root.child(*tokens)
    last = item["loc"][-1] if item["loc"] else ""
    kind = item["type"]
    if kind.startswith("SPY"):
        return Diagnostic(kind, item["msg"], place, hint=_HINTS.get(kind))
    if kind == "missing":
        return Diagnostic("SPY0112", f'key "{last}" is missing', place)
    if kind == "extra_forbidden":
        hint = "the keys are " + ", ".join(_known_keys(item["loc"]))
        if item["loc"] in meant:
            hint = f'did you mean "{meant[item["loc"]]}"? {hint}'
        where = replace(place, is_key=True)
        return Diagnostic("SPY0111", f'key "{str(last)[:80]}" is unknown here', where, hint=hint)
    if kind == "too_short":
        hint = "put something there, or leave out what holds it"
        return Diagnostic("SPY0110", f'"{tokens[-1]}" is an empty list', place, hint=hint)
    message = item["msg"]
    return Diagnostic("SPY0110", f"{message[:1].lower()}{message[1:]}: found {kind_of(here)}", place)


_KEYS: dict[str, type[Model]] = {
    "inputs": InputModel,
    "constants": ConstantModel,
    "prologue": NodeModel,
    "nodes": NodeModel,
    "loops": LoopModel,
    "dims": SymbolicDimModel,
}
_INNER: dict[int | str, type[Model]] = {"layout": LayoutModel, "data": DataModel, "origin": OriginModel}
_Place = tuple[int | str, ...]


def _known_keys(location: _Place) -> list[str]:
    """Return the keys of the object that holds the unknown key at a pydantic location."""
    holder = location[:-1]
    model: type[Model] = GraphModel
    if holder:
        section = str(holder[0])
        model = _KEYS[section] if section in ("loops", "dims") else _INNER.get(holder[-1], _KEYS[section])
    return [field.alias or name for name, field in model.model_fields.items()]


def _meant_keys(items: Sequence[ErrorDetails]) -> dict[_Place, str]:
    """Return what unknown keys probably mean, by their places; of very many the first."""
    unknown = (item["loc"] for item in items if item["type"] == "extra_forbidden")
    places = list(islice(unknown, MOST_GUESSES))
    found = {place: nearest(str(place[-1]), _known_keys(place)) for place in places}
    return {place: key for place, key in found.items() if key is not None}
