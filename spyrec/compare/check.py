"""``--check``: the outputs of a run against the float64 reference of the graph, within what the formats explain.

The reference is the graph as its author wrote it; the tolerance comes from the device graph, see
``spyrec.compare.bounds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np

from spyrec.bundle.bundle_content import BundleContent
from spyrec.compare.bounds import LoadConstant, bound_outputs, tiled
from spyrec.compare.bundle_graph import graph_of_bundle
from spyrec.compare.locate import locate_output
from spyrec.compare.storage import Array, storage_of
from spyrec.compare.verdict import CheckReport, OutputCase
from spyrec.diagnostics import DiagnosticSink, SpyrecError, refuse
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate, load_constant
from spyrec.ir.graph import Graph, Node, Scalar
from spyrec.ir.numbers import decode
from spyrec.passes.device_graph import rounding_graph
from spyrec.runtime.inputs.binding import chosen_extents, expected_inputs

__all__ = [
    "CheckReport",
    "check_bundle",
    "check_outputs",
    "constant_loader",
    "warn_of_missing_bounds",
]


def check_outputs(  # noqa: PLR0913 -- a run, and how it was compiled
    graph: Graph,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    numerics: str = "dl16",
    constants: LoadConstant | None = None,
    *,
    has_windows: bool = False,
    compiled: Graph | None = None,
) -> dict[str, CheckReport]:
    """Compare each output of a run with the float64 reference of ``graph`` and return the verdicts in graph order.

    ``inputs`` and ``outputs`` are host arrays in the graph's dtypes and shapes, by name; ``numerics`` is what the run
    used; ``constants`` gives the numbers of the graph's constants, by default from where the graph says they are.
    ``has_windows``: pools and convolutions were compiled to the device's own operations where these have their forms.
    ``compiled``: the graph at the shapes that a launch in tiles was compiled for; sums of several tiles are stored in
    parts.

    What the host alone reads of bfloat16 is what it was given, and not the device's largest in its place: an element
    that is the graph's own number is right, too (D307).  A graph that a pass refuses raises what the pass raises.
    """
    source, given = graph, inputs
    graph = _with_held_numbers(graph, numerics)
    lowered = rounding_graph(graph, has_windows=has_windows)

    def load(name: str) -> Array:
        if constants is not None and name in graph.constants:
            return constants(name)
        return load_constant(graph if name in graph.constants else lowered, name)

    def held(name: str) -> Array:
        holder = graph if name in graph.values else lowered
        return _held(load(name), holder.type_of(name).dtype, numerics)

    inputs = {name: _held(array, graph.type_of(name).dtype, numerics) for name, array in inputs.items()}
    wanted = evaluate(graph, inputs, held)
    tiles = {} if compiled is None else tiled(rounding_graph(compiled, has_windows=has_windows), lowered)
    bounds = bound_outputs(lowered, inputs, held, numerics, graph, tiles)
    merges_nan = any(storage_of(value.type.dtype, numerics).merges_nan for value in lowered.values.values())
    cases: dict[str, OutputCase] = {}
    for name, bound in zip(graph.outputs, bounds):
        dtype = graph.type_of(name).dtype
        cases[name] = OutputCase(wanted[name], decode(outputs[name], dtype), bound, dtype, numerics)
    reports = {name: case.report(merges_nan=merges_nan) for name, case in cases.items()}
    failing = [name for name, report in reports.items() if not report.ok]
    if failing and any(value.type.dtype is DType.BFLOAT16 for value in graph.values.values()):
        exact = evaluate(source, given, load)
        reports |= {name: cases[name].beside(exact[name]).report(merges_nan=merges_nan) for name in failing}
    return reports


def _held(values: Array, dtype: DType, numerics: str) -> Array:
    """Return numbers of the host, those of bfloat16 beyond the device's format as its largest (D203)."""
    if dtype is not DType.BFLOAT16:
        return values
    numbers = decode(values, dtype).astype(np.float64)
    return storage_of(dtype, numerics).clipped(numbers)


def _with_held_numbers(graph: Graph, numerics: str) -> Graph:
    """Return the graph with the numbers of its nodes as the device has them: those of bfloat16 as :func:`_held`."""

    def clipped(number: float) -> float:
        return float(storage_of(DType.BFLOAT16, numerics).clipped(np.asarray(number, np.float64)))

    def held(node: Node) -> Node:
        if not any(graph.type_of(name).dtype is DType.BFLOAT16 for name in node.outputs):
            return node
        inputs = tuple(
            Scalar(clipped(item.value)) if isinstance(item, Scalar) and isinstance(item.value, float) else item
            for item in node.inputs
        )
        given = {item.name: getattr(node.attributes, item.name) for item in fields(node.attributes)}
        changed = {name: clipped(number) for name, number in given.items() if isinstance(number, float)}
        attributes = replace(node.attributes, **changed) if changed else node.attributes  # pyright: ignore[reportArgumentType]
        return replace(node, inputs=inputs, attributes=attributes)

    return replace(graph, nodes=tuple(held(node) for node in graph.nodes))


def check_bundle(
    bundle: BundleContent, inputs: Mapping[str, Array], outputs: Mapping[str, Array], numerics: str = "dl16"
) -> dict[str, CheckReport]:
    """Compare the outputs of a run of ``bundle`` with its own graph; the worst element is located on the device.

    The bundle holds its graph.  Errors: SPY0802 a constant of the graph is not in the bundle; SPY01xx and SPY02xx a
    ``graph.json`` that does not read.
    """
    expected = expected_inputs(bundle.manifest)
    extents = chosen_extents(inputs, expected, bundle.manifest.symbolic_dims)
    graph, stored = graph_of_bundle(bundle, extents)
    load = constant_loader(bundle, graph, stored)
    reports = check_outputs(graph, inputs, outputs, numerics, load, has_windows=_has_windows(bundle))
    return {name: located_report(bundle, name, report) for name, report in reports.items()}


def check_tiled(
    bundle: BundleContent, inputs: Mapping[str, Array], outputs: Mapping[str, Array], numerics: str = "dl16"
) -> dict[str, CheckReport]:
    """Compare the outputs of a run on larger inputs with the bundle's graph at their shapes.

    Errors: SPY0984 the graph states sizes that no longer fit; SPY0802.
    """
    shapes = {name: array.shape for name, array in inputs.items()}
    try:
        graph, stored = graph_of_bundle(bundle, shapes=shapes)
    except SpyrecError as error:
        hint = "run without the check, or check at the compiled shapes"
        fact = "the graph cannot be read at the shapes of this run"
        raise refuse("SPY0984", fact, notes=tuple(item.message for item in error.diagnostics), hint=hint) from error
    compiled = None
    if any(item.reduction is not None for item in bundle.manifest.tile_contracts.values()):
        expected = expected_inputs(bundle.manifest)
        compiled, _ = graph_of_bundle(bundle, shapes={item.name: item.shape for item in expected})
    load = constant_loader(bundle, graph, stored)
    windows = _has_windows(bundle)
    return check_outputs(graph, inputs, outputs, numerics, load, has_windows=windows, compiled=compiled)


def _has_windows(bundle: BundleContent) -> bool:
    known = bundle.manifest.planned_with
    return known is not None and known.has_windows


def constant_loader(bundle: BundleContent, graph: Graph, stored: frozenset[str]) -> LoadConstant:
    """Return what gives the numbers of a constant of the bundle's graph.

    Errors: SPY0802 the bundle lacks them, SPY0611 it has others than the graph says.
    """

    def load(name: str) -> Array:
        if name not in stored:
            return load_constant(graph, name)
        if name not in bundle.constants:
            hint = "compile the graph again, or run the bundle without the check"
            raise refuse("SPY0802", f'constant "{name}" of the graph has no numbers in the bundle', hint=hint)
        array, wanted = bundle.constants[name], graph.type_of(name)
        if (array.shape, array.dtype) != (wanted.shape, wanted.dtype.carrier):
            fact = (
                f'constant "{name}" is {wanted} in the graph, and {array.dtype.name}{list(array.shape)} in the bundle'
            )
            raise refuse("SPY0611", fact)
        return array

    return load


def located_report(bundle: BundleContent, name: str, report: CheckReport) -> CheckReport:
    """Return the verdict on an output with the place of its worst element on the device, as far as it is known."""
    place = locate_output(bundle, name, report.worst.index) if report.element_count else None
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
