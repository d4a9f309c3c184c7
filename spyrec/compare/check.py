"""``--check``: the outputs of a run against the float64 reference of the graph, within what the formats explain.

The reference is the graph as its author wrote it; the tolerance comes from the device graph, see
``spyrec.compare.bounds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE, BundleContent
from spyrec.compare.bounds import LoadConstant, bound_outputs
from spyrec.compare.locate import locate_output
from spyrec.compare.storage import Array, storage_of
from spyrec.compare.verdict import CheckReport, OutputCase
from spyrec.diagnostics import DiagnosticSink, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.ir.evaluate import evaluate, load_constant
from spyrec.ir.graph import ConstantData, Graph
from spyrec.ir.numbers import decode
from spyrec.ir.reader import read_graph_data
from spyrec.passes.device_graph import rounding_graph
from spyrec.runtime.inputs.binding import chosen_extents, expected_inputs

__all__ = [
    "CheckReport",
    "check_bundle",
    "check_outputs",
    "constant_loader",
    "graph_of_bundle",
    "warn_of_missing_bounds",
]


def check_outputs(
    graph: Graph,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    numerics: str = "dl16",
    constants: LoadConstant | None = None,
) -> dict[str, CheckReport]:
    """Compare each output of a run with the float64 reference of ``graph`` and return the verdicts in graph order.

    ``inputs`` and ``outputs`` are host arrays in the graph's dtypes and shapes, by name; ``numerics`` is what the run
    used; ``constants`` gives the numbers of the graph's constants, by default from where the graph says they are.
    A graph that a pass refuses raises what the pass raises.
    """
    lowered = rounding_graph(graph)

    def load(name: str) -> Array:
        if constants is not None and name in graph.constants:
            return constants(name)
        return load_constant(graph if name in graph.constants else lowered, name)

    wanted = evaluate(graph, inputs, load)
    bounds = bound_outputs(lowered, inputs, load, numerics)
    merges_nan = any(storage_of(value.type.dtype, numerics).merges_nan for value in lowered.values.values())
    reports: dict[str, CheckReport] = {}
    for name, bound in zip(graph.outputs, bounds):
        got = decode(outputs[name], graph.type_of(name).dtype)
        case = OutputCase(wanted[name], got, bound, graph.type_of(name).dtype, numerics)
        reports[name] = case.report(merges_nan=merges_nan)
    return reports


def check_bundle(
    bundle: BundleContent, inputs: Mapping[str, Array], outputs: Mapping[str, Array], numerics: str = "dl16"
) -> dict[str, CheckReport]:
    """Compare the outputs of a run of ``bundle`` with its own graph; the worst element is located on the device.

    The bundle holds its graph.  Errors: SPY0802 a constant of the graph is not in the bundle; SPY01xx and SPY02xx a
    ``graph.json`` that does not read.
    """
    assert bundle.graph_json is not None
    expected = expected_inputs(bundle.manifest)
    extents = chosen_extents(inputs, expected, bundle.manifest.symbolic_dims)
    graph, stored = graph_of_bundle(bundle.graph_json, extents)
    reports = check_outputs(graph, inputs, outputs, numerics, constant_loader(bundle, graph, stored))
    return {name: _located(bundle, name, report) for name, report in reports.items()}


def check_tiled(
    bundle: BundleContent, inputs: Mapping[str, Array], outputs: Mapping[str, Array], numerics: str = "dl16"
) -> dict[str, CheckReport]:
    """Compare the outputs of a run on larger inputs with the bundle's graph at their shapes.

    Errors: SPY0984 the graph states sizes that no longer fit; SPY0802.
    """
    assert bundle.graph_json is not None
    shapes = {name: array.shape for name, array in inputs.items()}
    try:
        graph, stored = graph_of_bundle(bundle.graph_json, shapes=shapes)
    except SpyrecError as error:
        hint = "run without the check, or check at the compiled shapes"
        fact = "the graph cannot be read at the shapes of this run"
        raise refuse("SPY0984", fact, notes=tuple(item.message for item in error.diagnostics), hint=hint) from error
    return check_outputs(graph, inputs, outputs, numerics, constant_loader(bundle, graph, stored))


def constant_loader(bundle: BundleContent, graph: Graph, stored: frozenset[str]) -> LoadConstant:
    """Return what gives the numbers of a constant of the bundle's graph; errors SPY0802 where the bundle lacks them."""

    def load(name: str) -> Array:
        if name not in stored:
            return load_constant(graph, name)
        if name not in bundle.constants:
            hint = "compile the graph again, or run the bundle without the check"
            raise refuse("SPY0802", f'constant "{name}" of the graph has no numbers in the bundle', hint=hint)
        return bundle.constants[name]

    return load


def graph_of_bundle(
    text: bytes, extents: Mapping[str, int] | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[Graph, frozenset[str]]:
    """Return the graph of a bundle's ``graph.json``, and the constants whose numbers are among the bundle's own.

    Those are read as one number for all elements, which takes no memory: the bundle need not lie in a directory.
    ``extents``: what a run chose for symbolic dims; loops in larger tiles are then left out.  ``shapes``: of inputs
    that a run gave other shapes; the graph has no loops then.
    """
    data, source = load_json(text, GRAPH_FILE)
    if extents and isinstance(data, dict):
        _choose(data, extents)
    if shapes and isinstance(data, dict):
        _reshape(data, shapes)
    stored: set[str] = set()
    items = data.get("constants") if isinstance(data, dict) else None
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.pop("data", None) is not None:
            stored.add(str(item.get("name")))
            item["value"] = False if item.get("dtype") == "bool" else 0
    graph = read_graph_data(data, source)
    # passes look into constants of one number for all elements: what stands in for numbers elsewhere is none of them
    held = {name: ConstantData(file=CONSTANTS_FILE, tensor=name) for name in graph.constants if name in stored}
    return replace(graph, constants={**graph.constants, **held}), frozenset(stored)


def _choose(data: dict[str, JsonValue], extents: Mapping[str, int]) -> None:
    """Give symbolic dims of a parsed graph the extents of a run."""
    dims = data.get("dims")
    if isinstance(dims, dict):
        dims.update(extents)
    loops = data.get("loops")
    if isinstance(loops, list):
        data["loops"] = [loop for loop in loops if _fits(loop, extents)]


def _reshape(data: dict[str, JsonValue], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Give inputs of a parsed graph the shapes of a run; loops, which name their dims, are left out."""
    data.pop("loops", None)
    inputs = data.get("inputs")
    for item in inputs if isinstance(inputs, list) else []:
        if isinstance(item, dict) and item.get("name") in shapes:
            item["shape"] = list(shapes[str(item["name"])])


def _fits(loop: JsonValue, extents: Mapping[str, int]) -> bool:
    """Whether no level of a loop has tiles larger than a chosen extent."""
    if not isinstance(loop, dict):
        return True
    dim, size, body = loop.get("dim"), loop.get("tile_size"), loop.get("body")
    names = dim if isinstance(dim, list) else [dim]
    is_small = not isinstance(size, int) or all(size <= extents.get(str(name), size) for name in names)
    return is_small and all(_fits(item, extents) for item in (body if isinstance(body, list) else []))


def _located(bundle: BundleContent, name: str, report: CheckReport) -> CheckReport:
    place = locate_output(bundle, name, report.worst.index)
    if place is None:
        return report
    worst = replace(report.worst, device_coordinate=place.device_coordinate, core=place.core)
    return replace(report, worst=worst)


def warn_of_missing_bounds(reports: Mapping[str, CheckReport], sink: DiagnosticSink) -> None:
    """Add a warning (SPY0801) for each output that has no bound on any element: its check proves nothing."""
    for name, report in reports.items():
        if not report.has_bound:
            hint = "check a smaller part of the graph, or inputs farther from poles and overflow"
            message = f'no bound for output "{name}": its {report.element_count} elements may hold anything'
            sink.warning("SPY0801", message, hint=hint)
