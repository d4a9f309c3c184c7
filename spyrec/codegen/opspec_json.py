"""Reader and writer of ``spyrec.opspec/1``, the OpSpec IR as JSON; what it holds is said in ``opspec``."""

from __future__ import annotations

import json
from dataclasses import replace

from spyrec.codegen.opspec import FORMAT, MALFORMED, DynamicSize, LoopSpec, OpSpec, OpSpecFile
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, capped, refuse, standing_for
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.json_records import JsonRecord, Problem, WrongForm

_OPSPEC_FILE = JsonRecord(OpSpecFile)


def read_opspecs(text: str | bytes, file: str | None = None) -> OpSpecFile:
    """Return the OpSpecs of a ``spyrec.opspec/1`` text.

    Raises one error with all problems: 01xx no strict JSON; SPY0501 and SPY0502 a coordinate; SPY0503 a missing or
    unknown key, a wrong type or value; SPY0504 another format; SPY0505 an allocation; SPY0513 an unknown device format;
    SPY0532.
    """
    data, source = load_json(text, file)
    root = Location(file, "", source=source)
    found = data.get("format") if isinstance(data, dict) else None
    if isinstance(data, dict) and found != FORMAT:
        shown = json.dumps(found)[:60] if "format" in data else "no format"
        raise refuse("SPY0504", f'expected format "{FORMAT}", found {shown}', root.child("format"))
    try:
        found = _OPSPEC_FILE.read(data, root)
        return replace(found, location=root, specs=tuple(map(_with_largest_sizes, found.specs)))
    except WrongForm as error:
        listed = capped(error.problems, lambda item: item.kind)
        raise SpyrecError([standing_for(_diagnostic(item, root), count) for item, count in listed]) from None


def _with_largest_sizes(spec: OpSpec | LoopSpec) -> OpSpec | LoopSpec:
    """Return a spec whose dynamic sizes know how large they can be."""
    if isinstance(spec, LoopSpec):
        return replace(spec, body=tuple(map(_with_largest_sizes, spec.body)))
    if not spec.symbolic_dim_bounds:
        return spec
    sizes = (
        DynamicSize(dim.size.name, spec.symbolic_dim_bounds[dim.size.name].max)
        if isinstance(dim.size, DynamicSize)
        else dim.size
        for dim in spec.iteration_space
    )
    space = tuple(replace(dim, size=size) for dim, size in zip(spec.iteration_space, sizes, strict=True))
    return replace(spec, iteration_space=space)


def _diagnostic(problem: Problem, root: Location) -> Diagnostic:
    return Diagnostic(MALFORMED, problem.fact, problem.place(root))


def write_opspecs(file: OpSpecFile) -> str:
    """Return the text of an OpSpec file; reading it gives the same OpSpecs."""
    return json.dumps(_OPSPEC_FILE.write(file), indent=1) + "\n"


def opspec_schema() -> str:
    """Return the text of ``schemas/opspec.schema.json``."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "opspec.schema.json"}
    return json.dumps({**head, **_OPSPEC_FILE.schema(), "title": FORMAT}, indent=2) + "\n"
