"""A report's graph in the DOT language of Graphviz: programs, loops and modules as clusters, operations by their time.

Node names are numbers (``op3``); names of files stand in labels alone, quoted.  The fill is one hue, the darker the
longer an operation takes, so that it says the same to whoever does not tell colours apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from spyrec.notebook import time_text, visible
from spyrec.report.exports.report_graph import (
    Box,
    BoxKind,
    boxes_of,
    edges_of,
    op_facts,
    shares_of_time,
    tensor_form,
    tensor_nodes,
    title_of,
)
from spyrec.report.model import Report
from spyrec.report.report_file import REPORT_FORMAT

_LIGHT, _DARK = (0xFF, 0xFF, 0xFF), (0x56, 0xB4, 0xE9)
"""Fills of what takes no time and of what takes longest; black is read on both."""

_STYLES = {BoxKind.PROGRAM: "solid", BoxKind.LOOP: "bold", BoxKind.MODULE: "dashed"}


def render(report: Report) -> str:
    """Return the graph as a DOT file: every operation once, and an edge for every tensor that one of them reads."""
    edges = edges_of(report)
    shares = shares_of_time(report)
    return "\n".join(
        [
            f"// {REPORT_FORMAT}",
            f"digraph {quoted(report.name)} {{",
            f"  graph [label={quoted(_title(report))}, labelloc=t, compound=true, fontname=Helvetica];",
            "  node [shape=box, style=filled, fillcolor=white, fontname=Helvetica];",
            "  edge [fontname=Helvetica, fontsize=10];",
            *(line for box in boxes_of(report) for line in _cluster(report, box, shares, "  ")),
            *(f"  tensor{number} [{_tensor_label(report, number)}];" for number in tensor_nodes(edges)),
            *(
                f"  output{number} [label={quoted(output.name)}, shape=ellipse, peripheries=2];"
                for number, output in enumerate(report.outputs)
            ),
            *(
                f"  {edge.source} -> {edge.target} [label={quoted(tensor_form(report.tensors[edge.tensor]))}];"
                for edge in edges
            ),
            "}",
            "",
        ]
    )


def quoted(*lines: str) -> str:
    """Return lines as one quoted string of DOT, centred below each other; nothing in them is an escape or an entity."""
    escaped = (
        visible(line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("<", "&lt;")
        for line in lines
    )
    return '"' + "\\n".join(escaped) + '"'


def _title(report: Report) -> str:
    totals = report.totals
    time = "" if totals.us is None else f": {time_text(totals.us, totals.uncertainty)}"
    return f"{report.name}{time}"


def _cluster(report: Report, box: Box, shares: list[float], indent: str) -> Iterator[str]:
    yield f"{indent}subgraph cluster_{box.key} {{"
    yield f"{indent}  label={quoted(title_of(report, box))}; style={_STYLES[box.kind]};"
    for item in box.items:
        if isinstance(item, Box):
            yield from _cluster(report, item, shares, f"{indent}  ")
            continue
        op = report.ops[item]
        label = quoted(op.name, op.op, op_facts(op))
        yield f'{indent}  op{item} [label={label}, fillcolor="{_fill(shares[item])}"];'
    yield f"{indent}}}"


def _tensor_label(report: Report, number: int) -> str:
    tensor = report.tensors[number]
    return f"label={quoted(tensor.name, f'{tensor.role} {tensor_form(tensor)}')}, shape=ellipse"


def _fill(share: float) -> str:
    parts = (round(light + (dark - light) * share) for light, dark in zip(_LIGHT, _DARK, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)
