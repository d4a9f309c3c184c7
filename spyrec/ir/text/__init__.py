"""The text form of the IR: what ``--print-after`` prints and ``spyrec opt`` prints and reads (docs/ir_text.md).

Text to IR to text, and IR to text to IR, give what they were given, at every stage of the pipeline.
"""

from __future__ import annotations

from pathlib import Path

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph


def print_ir(
    graph: Graph | KernelGraph, has: tuple[str, ...] = (), base: Path | None = None, source: Graph | None = None
) -> str:
    """Return a graph as text, ending in a newline.

    ``has``: what passes have established, in words.  ``base``: the directory that constants in files are named in.
    ``source``: the graph that ``graph`` was made of, where that is another; kernels know it themselves.
    """
    from spyrec.ir.text.print_graph import graph_lines
    from spyrec.ir.text.print_kernels import kernel_lines

    is_graph = isinstance(graph, Graph)
    lines = graph_lines(graph, has, base, source) if is_graph else kernel_lines(graph, has, base)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class IrText:
    """What a text says: the graph, the words that it has for what passes have established, and its source."""

    graph: Graph | KernelGraph
    has: tuple[str, ...]
    source: Graph


def read_ir(text: str | bytes, file: str | None = None) -> IrText:
    """Read what :func:`print_ir` prints.

    Files that constants name are neither looked for nor opened.  Origins are lines and columns of the text.
    Errors, always one: SPY0104 too long, SPY0101 not UTF-8, SPY0180 not of this form, SPY0181 and the codes of nodes
    (SPY0118, SPY0121, 02xx) for what no graph may be.
    """
    from spyrec.ir.text.read_graph import GraphReader
    from spyrec.ir.text.read_kernels import KernelReader
    from spyrec.ir.text.tokens import MAX_TEXT_BYTES, Cursor, TokenKind

    if len(text) > MAX_TEXT_BYTES:
        raise refuse("SPY0104", f"the text has more than {MAX_TEXT_BYTES} bytes", Location(file))
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise refuse("SPY0101", "the text is not UTF-8", Location(file, None, line, 1)) from None
    cursor = Cursor(text, file)
    if cursor.accept("kernels"):
        kernels = KernelReader(cursor)
        found = kernels.read()
        assert found.source is not None, "the reader asks for it"
        read = IrText(found, kernels.has, found.source)
    elif cursor.accept("graph"):
        nodes = GraphReader(cursor)
        graph = nodes.read()
        read = IrText(graph, nodes.has, nodes.source or graph)
    else:
        raise cursor.expected('"graph" or "kernels"')
    if cursor.peek().kind is not TokenKind.END:
        raise cursor.expected("the end of the text")
    return read
