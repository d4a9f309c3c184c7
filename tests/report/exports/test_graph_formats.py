"""DOT and Mermaid: what is written parses, has every operation once in its boxes, every edge, and names as text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.notebook import visible
from spyrec.report.exports import dot, mermaid
from spyrec.report.exports.report_graph import Box, boxes_of, edges_of, title_of
from spyrec.report.model import Memory, Op, Report
from tests.support.examples import examples, seeds
from tests.support.reports import HOSTILE, random_report

NAMES = {"plain": None, "hostile": HOSTILE}


@dataclass
class Drawn:
    """A graph as it was read: nodes with the boxes around them, outermost first, edges, and the titles of boxes."""

    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    labels: dict[str, str] = field(default_factory=dict[str, str])
    edges: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    titles: dict[str, str] = field(default_factory=dict[str, str])


_TOKEN = re.compile(r'\s*(?://[^\n]*\n\s*)*("(?:[^"\\]|\\.)*"|->|[{}\[\];=,]|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?)')


def read_dot(source: str) -> Drawn:
    """Read the part of DOT that a graph of clusters needs; anything else is an assertion."""
    tokens: list[str] = []
    at, end = 0, len(source.rstrip())
    while at < end:
        found = _TOKEN.match(source, at)
        assert found, source[at : at + 40]
        tokens.append(found[1])
        at = found.end()
    assert tokens[0] == "digraph"
    assert tokens[2] == "{"
    drawn = Drawn()
    rest = _dot_body(tokens[3:], (), drawn)
    assert rest == []
    return drawn


def _dot_body(tokens: list[str], boxes: tuple[str, ...], drawn: Drawn) -> list[str]:
    while tokens[0] != "}":
        match tokens:
            case ["subgraph", name, "{", *rest]:
                tokens = _dot_body(rest, (*boxes, name.removeprefix("cluster_")), drawn)
            case [key, "=", value, ";", *rest]:
                if key == "label":
                    drawn.titles[boxes[-1]] = _dot_text(value)
                tokens = rest
            case ["graph" | "node" | "edge", "[", *rest]:
                _, tokens = _dot_attributes(rest)
            case [source, "->", target, "[", *rest]:
                drawn.edges[source, target] += 1
                _, tokens = _dot_attributes(rest)
            case [name, "[", *rest]:
                assert name not in drawn.nodes
                found, tokens = _dot_attributes(rest)
                drawn.nodes[name] = boxes
                drawn.labels[name] = _dot_text(found["label"])
            case _:
                pytest.fail(f"no statement: {tokens[:8]}")
    return tokens[1:]


def _dot_attributes(tokens: list[str]) -> tuple[dict[str, str], list[str]]:
    end = tokens.index("]")
    assert tokens[end + 1] == ";"
    inside = [token for token in tokens[:end] if token != ","]
    assert all(sign == "=" for sign in inside[1::3])
    return dict(zip(inside[::3], inside[2::3], strict=True)), tokens[end + 2 :]


def _dot_text(token: str) -> str:
    """What Graphviz shows of a string: ``\\n`` breaks a line, other escapes are of the character, entities are read."""
    assert token[0] == token[-1] == '"'
    plain = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], token[1:-1])
    return plain.replace("&lt;", "<").replace("&amp;", "&")


_LABEL = r'"((?:[^"#<>`{}|&;]|#\d+;|<br/>)+)"'
_MERMAID = (
    ("open", re.compile(rf"subgraph (\w+)\[{_LABEL}\]")),
    ("close", re.compile(r"end")),
    ("node", re.compile(rf"(\w+)(?:\[{_LABEL}\]|\(\[{_LABEL}\]\))")),
    ("edge", re.compile(rf"(\w+) -->\|{_LABEL}\| (\w+)")),
    ("comment", re.compile(r"%%[^{}]*")),
)


def read_mermaid(source: str) -> Drawn:
    """Read a flowchart of quoted labels, one statement a line; anything else is an assertion."""
    head, *lines = source.splitlines()
    assert head == "flowchart TB"
    drawn, boxes = Drawn(), list[str]()
    for line in lines:
        kind, found = next(
            ((kind, found) for kind, form in _MERMAID if (found := form.fullmatch(line.strip()))), ("", None)
        )
        assert found is not None, line
        match kind:
            case "open":
                boxes.append(found[1])
                drawn.titles[found[1]] = _mermaid_text(found[2])
            case "close":
                boxes.pop()
            case "node":
                assert found[1] not in drawn.nodes
                drawn.nodes[found[1]] = tuple(boxes)
                drawn.labels[found[1]] = _mermaid_text(found[2] or found[3])
            case "edge":
                drawn.edges[found[1], found[3]] += 1
            case _:
                pass
    assert boxes == []
    return drawn


def _mermaid_text(label: str) -> str:
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label.replace("<br/>", "\n"))


def _boxes_by_op(items: tuple[Box | int, ...], around: tuple[str, ...] = ()) -> Iterator[tuple[int, tuple[str, ...]]]:
    for item in items:
        if isinstance(item, Box):
            yield from _boxes_by_op(item.items, (*around, item.key))
        else:
            yield item, around


def assert_is_the_graph(drawn: Drawn, report: Report, *, counts_tensors: bool) -> None:
    homes = dict(_boxes_by_op(boxes_of(report)))
    assert len(homes) == len(report.ops)
    for number, op in enumerate(report.ops):
        assert drawn.nodes[f"op{number}"] == homes[number]
        name, *_ = drawn.labels[f"op{number}"].split("\n")
        assert name == (visible(op.name) or ("" if counts_tensors else "_"))
    assert {name for name in drawn.nodes if name.startswith("op")} == {f"op{number}" for number in homes}
    edges = Counter((edge.source, edge.target) for edge in edges_of(report))
    assert drawn.edges == (edges if counts_tensors else Counter(edges.keys()))
    assert {end for edge in drawn.edges for end in edge} <= drawn.nodes.keys()


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("seed", seeds(40))
def test_dot_has_every_operation_once_in_its_boxes_and_every_edge(seed: int, names: str) -> None:
    report = random_report(seed, NAMES[names])
    drawn = read_dot(dot.render(report))
    assert_is_the_graph(drawn, report, counts_tensors=True)
    for box in _all_boxes(boxes_of(report)):
        assert drawn.titles[box.key] == visible(title_of(report, box))


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("seed", seeds(40))
def test_mermaid_has_every_operation_once_in_its_boxes_and_every_edge(seed: int, names: str) -> None:
    report = random_report(seed, NAMES[names])
    assert_is_the_graph(read_mermaid(mermaid.render(report)), report, counts_tensors=False)


def _all_boxes(items: tuple[Box | int, ...]) -> Iterator[Box]:
    for item in items:
        if isinstance(item, Box):
            yield item
            yield from _all_boxes(item.items)


@pytest.mark.parametrize("seed", seeds(40))
def test_boxes_are_the_programs_loops_and_modules_of_their_operations(seed: int) -> None:
    report = random_report(seed)
    around = dict(_boxes_by_op(boxes_of(report)))
    boxes = {box.key: box for box in _all_boxes(boxes_of(report))}
    for number, op in enumerate(report.ops):
        kinds = [(boxes[key].kind.value, boxes[key].number) for key in around[number]]
        assert kinds[: len(op.loops) + 1] == [("program", op.program), *(("loop", loop) for loop in op.loops)]
        modules = [report.modules[which] for kind, which in kinds[len(op.loops) + 1 :] if kind == "module"]
        assert len(modules) == len(kinds) - len(op.loops) - 1
        if op.module is None:
            assert modules == []
        else:
            assert modules[-1] == report.modules[op.module]
            assert all(later.startswith(f"{earlier}.") for earlier, later in pairwise(modules))


@given(st.text(max_size=30))
@examples(100)
def test_any_text_is_a_label_that_reads_back(name: str) -> None:
    assert _dot_text(dot.quoted(name)) == visible(name)
    assert re.fullmatch(_LABEL, f'"{mermaid.escaped(name)}"')
    assert _mermaid_text(mermaid.escaped(name)) == (visible(name) or "_")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed (apt install graphviz)")
@pytest.mark.parametrize("names", NAMES)
def test_graphviz_draws_what_is_written(names: str) -> None:
    for seed in seeds(3):
        report = random_report(seed, NAMES[names])
        source = dot.render(report)
        found = subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=False, timeout=60)
        assert (found.returncode, found.stderr) == (0, b"")
        # a cluster, a node or an edge is a group with a class
        groups = Counter(re.findall(rb'class="(node|edge|cluster)"', found.stdout))
        drawn = read_dot(source)
        assert groups == {
            b"node": len(drawn.nodes),
            b"edge": sum(drawn.edges.values()),
            b"cluster": len(drawn.titles),
        }


def large(count: int, programs: int) -> Report:
    """A report of many operations, each of which reads the one before."""
    report = random_report(4, most_programs=1)
    first, ops = report.ops[0], list[Op]()
    for number in range(count):
        operands = tuple(replace(item, writer=number - 1 if number else None) for item in first.inputs[:1])
        program = number * programs // count
        ops.append(replace(first, name=f"op{number}", inputs=operands, loops=(), module=None, program=program))
    every = tuple(replace(report.programs[0], directory=f"kernels/{number}") for number in range(programs))
    bare = replace(report, outputs=(), loops=(), memory=Memory(), run=None, against=None)
    return replace(bare, ops=tuple(ops), programs=every)


def test_a_graph_that_mermaid_does_not_draw_is_drawn_coarser_and_says_so() -> None:
    report = large(600, 12)
    source = mermaid.render(report)
    assert len(source) <= mermaid.MOST_CHARACTERS
    assert "too large for a node for each operation" in source
    drawn = read_mermaid(source)
    assert len(drawn.edges) <= mermaid.MOST_EDGES
    programs = [label for name, label in drawn.labels.items() if name.startswith("program")]
    assert len(programs) == 12
    counts = [int(label.split("\n")[1].split()[0]) for label in programs]
    assert sum(counts) == len(report.ops)


def test_what_is_too_large_at_every_level_says_that_pages_have_to_allow_it() -> None:
    source = mermaid.render(large(1200, 600))
    assert "beyond 50,000 characters or 500 edges" in source
    assert len(read_mermaid(source).edges) > mermaid.MOST_EDGES


def test_fills_grow_darker_with_time_alone() -> None:
    report = random_report(1)
    times = [0.0, 1.0, 2.0]
    ops = tuple(replace(report.ops[0], us=us) for us in times)
    source = dot.render(replace(report, ops=ops, outputs=()))
    fills = re.findall(r'op\d \[label=.*fillcolor="#(\w\w)(\w\w)(\w\w)"', source)
    assert fills[0] == ("ff", "ff", "ff")
    assert [int(red, 16) for red, _, _ in fills] == sorted((int(red, 16) for red, _, _ in fills), reverse=True)
