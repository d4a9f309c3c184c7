"""Lines of forms of a program, and what each is about: what links lines of one form with those of the next."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.ir.graph import Derived, Graph, Origin, location_of
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.text.print_graph import graph_lines
from spyrec.ir.text.print_kernels import kernel_lines
from spyrec.passes.driver import Stage

_SOURCE = "  source graph "
_KERNEL = "for ["
_PLACED = (" in LX at ", " in pool at ")
_NOTE = "note "


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its text, and the things that it is about.

    ``names``: of the values, nodes or kernels that it defines.  ``origin``: where that was made of.
    ``uses``: names of what it says something about, defined elsewhere.
    """

    text: str
    names: tuple[str, ...] = ()
    origin: Origin | None = None
    uses: tuple[str, ...] = ()


@dataclass(slots=True)
class Index:
    """Where the lines of a form are, by what they define."""

    names: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    origins: dict[Origin, list[int]] = field(default_factory=lambda: defaultdict(list))
    places: dict[Location, list[int]] = field(default_factory=lambda: defaultdict(list))
    lines: Sequence[Line] = ()

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Index:
        """Return the index of a form."""
        found = cls(lines=lines)
        for number, line in enumerate(lines):
            for name in line.names:
                found.names[name].append(number)
            if line.origin is not None:
                found.origins[line.origin].append(number)
                found.places[location_of(line.origin)].append(number)
        return found

    def parents(self, line: Line) -> tuple[int, ...]:
        """Return the lines of this form that a line of the next one comes from.

        What keeps its name and its origin is the same thing.  Else it comes from what has its name, from what its
        origin says that it was made of, or, where a pass says no more, from all that goes back to the same place.
        """
        named = [number for name in (*line.names, *line.uses) for number in self.names.get(name, ())]
        same = [number for number in named if line.origin is not None and self.lines[number].origin == line.origin]
        if same or line.origin is None:
            return tuple(sorted(set(same or named)))
        made_of = [number for parent in _parents(line.origin) for number in self.origins.get(parent, ())]
        beside = self.origins.get(line.origin, [])
        found = {*named, *made_of} or set(beside) or set(self.places.get(location_of(line.origin), ()))
        return tuple(sorted(found))


def _parents(origin: Origin) -> tuple[Origin, ...]:
    return origin.parents if isinstance(origin, Derived) else ()


def stage_lines(stage: Stage) -> list[Line]:
    """Return the lines of a form between passes, without the graph that it was made of, which has a text of its own."""
    if isinstance(stage.graph, Graph):
        return [*_graph(stage.graph, _before_source(graph_lines(stage.graph, (), None, stage.source)))]
    return [*_kernels(stage.graph, _before_source(kernel_lines(stage.graph)))]


def _before_source(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith(_SOURCE):
            break
        yield line
    yield "}"


def _graph(graph: Graph, lines: Iterator[str]) -> Iterator[Line]:
    values = [*graph.inputs, *graph.constants]
    yield Line(next(lines))
    for _ in graph.dims:
        yield Line(next(lines))
    for name in values:
        yield Line(next(lines), (name,), graph.values[name].origin)
    for node in graph.nodes:
        yield Line(next(lines), tuple(dict.fromkeys((node.name, *node.outputs))), node.origin)
    yield from map(Line, lines)


def _kernels(graph: KernelGraph, lines: Iterator[str]) -> Iterator[Line]:
    yield Line(next(lines))
    for buffer in graph.buffers.values():
        yield Line(next(lines), (f"buffer {buffer.name}",), buffer.origin, (buffer.name,))
    kernels = iter(graph.kernels)
    for text in lines:
        bare = text.lstrip()
        if bare.startswith(_KERNEL):
            kernel = next(kernels)
            yield Line(text, (kernel.name,), kernel.origin, (kernel.output.buffer,))
        elif any(word in bare for word in _PLACED):
            name = bare.rpartition(" in ")[0]
            yield Line(text, uses=(f"buffer {_unquoted(name)}",))
        elif bare.startswith(_NOTE):
            subject = str(json.JSONDecoder().raw_decode(bare.removeprefix(_NOTE))[0])
            yield Line(text, uses=(f"buffer {subject}", subject))
        else:
            yield Line(text)


def _unquoted(name: str) -> str:
    return str(json.loads(name)) if name.startswith('"') else name


def kernel_numbers(graph: KernelGraph, lines: Sequence[Line]) -> dict[int, int]:
    """Return by position of a kernel its line."""
    found = [number for number, line in enumerate(lines) if line.text.lstrip().startswith(_KERNEL)]
    return dict(zip(range(len(graph.kernels)), found, strict=True))


_LISTS = ("inputs", "constants", "prologue", "nodes")


def graph_json_lines(text: bytes, graph: Graph | None) -> list[Line]:
    """Return a bundle's ``graph.json`` with a line for each input, constant and node."""
    try:
        data = load_json(text, "graph.json")[0]
    except SpyrecError:
        return [Line(line) for line in text.decode(errors="replace").splitlines()]
    if not isinstance(data, dict):
        return [Line(_dumped(data))]
    places: Mapping[str, tuple[tuple[str, ...], Origin | None]] = {} if graph is None else _places(graph)
    lines = [Line("{")]
    for key, value in data.items():
        if key not in _LISTS or not isinstance(value, list):
            lines.append(Line(f"  {json.dumps(key)}: {_dumped(value)},"))
            continue
        lines.append(Line(f"  {json.dumps(key)}: ["))
        for place, item in enumerate(value):
            names, origin = places.get(f"/{key}/{place}", (_named(item), None))
            lines.append(Line(f"    {_dumped(item)},", names, origin))
        lines.append(Line("  ],"))
    return [*lines, Line("}")]


def _dumped(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


def _named(item: JsonValue) -> tuple[str, ...]:
    name = item.get("name") if isinstance(item, dict) else None
    return (name,) if isinstance(name, str) else ()


def _places(graph: Graph) -> dict[str, tuple[tuple[str, ...], Origin | None]]:
    """Return by JSON pointer what a graph has there."""
    found: dict[str, tuple[tuple[str, ...], Origin | None]] = {}
    for name in (*graph.inputs, *graph.constants):
        origin = graph.values[name].origin
        found[location_of(origin).pointer or ""] = (name,), origin
    for node in graph.nodes:
        names = tuple(dict.fromkeys((node.name, *node.outputs)))
        found[location_of(node.origin).pointer or ""] = names, node.origin
    return found
