"""A report's graph as a Mermaid flowchart, for README files: programs, loops and modules as subgraphs.

Mermaid draws at most 50,000 characters and 500 edges unless a page allows it more, and pages of hosts do not.  A graph
that is larger is drawn coarser: each innermost box as one node, then each program.  A comment says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spyrec.dataclass import dataclass
from spyrec.notebook import time_text, visible
from spyrec.report.exports.report_graph import (
    Box,
    boxes_of,
    counted,
    edges_of,
    op_facts,
    tensor_form,
    tensor_nodes,
    title_of,
)
from spyrec.report.model import Op, Report
from spyrec.report.report_file import REPORT_FORMAT

MOST_CHARACTERS = 50_000
MOST_EDGES = 500
"""What Mermaid draws by default (``maxTextSize``, ``maxEdges``)."""

_PLAIN = frozenset(" ,/:=[]")
"""Characters that mean nothing inside of a quoted label, beside letters and digits."""

_BETWEEN = frozenset("._")
"""Those that mean nothing between two letters or digits: ``1. x`` and ``_x_`` would be marks of Markdown."""


def render(report: Report) -> str:
    """Return the graph as a flowchart, as fine as Mermaid draws it; every operation is in exactly one of its nodes."""
    levels: list[tuple[str, Callable[[Box], bool]]] = [
        ("a node is an operation", lambda _: False),
        ("too large for a node for each operation: a node is an innermost box", _is_innermost),
        ("too large for a node for each box: a node is a program", lambda _: True),
    ]
    chart = ""
    for number, (level, is_node) in enumerate(levels):
        drawing = _Drawing(report, level, is_node)
        chart = drawing.text
        if drawing.fits or number == len(levels) - 1:
            return chart if drawing.fits else drawing.with_warning
    return chart


def _is_innermost(box: Box) -> bool:
    return not any(isinstance(item, Box) for item in box.items)


def escaped(label: str) -> str:
    """Return a text as it stands in a quoted label: what might be a mark of Mermaid, Markdown or HTML as its number.

    An empty label is no label to Mermaid: it becomes ``_``.
    """
    shown = visible(label) or "_"
    return "".join(char if _is_plain(shown, place) else f"#{ord(char)};" for place, char in enumerate(shown))


def _is_plain(shown: str, place: int) -> bool:
    char = shown[place]
    if char.isalnum() or char in _PLAIN:
        return True
    return char in _BETWEEN and shown[place - 1 : place].isalnum() and shown[place + 1 : place + 2].isalnum()


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A flowchart at one level; ``is_node``: whether a box is one node of it."""

    report: Report
    level: str
    is_node: Callable[[Box], bool]

    @property
    def text(self) -> str:
        """The flowchart."""
        return "\n".join([*self._head(), *self._body(), ""])

    @property
    def with_warning(self) -> str:
        """The flowchart, with a comment that pages draw it only where they are told to."""
        limit = f"%% beyond {MOST_CHARACTERS:,} characters or {MOST_EDGES:,} edges, which Mermaid draws by default"
        return "\n".join([*self._head(), limit, *self._body(), ""])

    @property
    def fits(self) -> bool:
        """Whether Mermaid draws it by default."""
        return len(self.text) <= MOST_CHARACTERS and len(self._edges()) <= MOST_EDGES

    def _head(self) -> list[str]:
        totals = self.report.totals
        time = "" if totals.us is None else f", {time_text(totals.us, totals.uncertainty)}"
        said = f"{self.report.name}: {counted(len(self.report.ops), 'operation')}{time}"
        return ["flowchart TB", f"%% {REPORT_FORMAT}: {self.level}", f"%% {_comment(said)}"]

    def _body(self) -> list[str]:
        edges = self._edges()
        tensors = tensor_nodes(edges_of(self.report))
        return [
            *(line for box in boxes_of(self.report) for line in self._box(box, "  ")),
            *(self._tensor(number) for number in tensors),
            *(f'  output{number}(["{escaped(output.name)}"])' for number, output in enumerate(self.report.outputs)),
            *(f'  {source} -->|"{escaped(label)}"| {target}' for (source, target), label in edges.items()),
        ]

    def _tensor(self, number: int) -> str:
        tensor = self.report.tensors[number]
        return f'  tensor{number}(["{_label(tensor.name, tensor_form(tensor))}"])'

    def _box(self, box: Box, indent: str) -> Iterator[str]:
        if self.is_node(box):
            yield f'{indent}{box.key}["{self._box_label(box)}"]'
            return
        yield f'{indent}subgraph {box.key}["{escaped(title_of(self.report, box))}"]'
        for item in box.items:
            if isinstance(item, Box):
                yield from self._box(item, f"{indent}  ")
            else:
                yield f'{indent}  op{item}["{_op_label(self.report.ops[item])}"]'
        yield f"{indent}end"

    def _box_label(self, box: Box) -> str:
        ops = [self.report.ops[number] for number in box.ops]
        moved = sum(op.read + op.written for op in ops)
        time = f"{sum(op.us or 0.0 for op in ops):,.3f} us, "
        return _label(title_of(self.report, box), counted(len(ops), "operation"), f"{time}{moved:,} bytes")

    def _edges(self) -> dict[tuple[str, str], str]:
        """Return the edges between nodes with what goes along: a tensor's form, or how many they are."""
        homes = dict(self._homes(boxes_of(self.report)))
        along: dict[tuple[str, str], set[int]] = {}
        for edge in edges_of(self.report):
            ends = homes.get(edge.source, edge.source), homes.get(edge.target, edge.target)
            if ends[0] != ends[1] or edge.source == edge.target:
                along.setdefault(ends, set()).add(edge.tensor)
        return {ends: self._along(tensors) for ends, tensors in along.items()}

    def _along(self, tensors: set[int]) -> str:
        (first, *others) = sorted(tensors)
        return f"{len(tensors):,} tensors" if others else tensor_form(self.report.tensors[first]) or "tensor"

    def _homes(self, items: tuple[Box | int, ...]) -> Iterator[tuple[str, str]]:
        """Yield operations that are inside of a node, and that node."""
        for item in items:
            if not isinstance(item, Box):
                continue
            if self.is_node(item):
                yield from ((f"op{number}", item.key) for number in item.ops)
            else:
                yield from self._homes(item.items)


def _op_label(op: Op) -> str:
    return _label(op.name, op.op, op_facts(op))


def _label(name: str, *lines: str) -> str:
    return "<br/>".join([escaped(name), *(escaped(line) for line in lines if line)])


def _comment(text: str) -> str:
    """Return a text as it stands in a comment, where braces could begin a directive."""
    return visible(text).replace("{", "(").replace("}", ")")
