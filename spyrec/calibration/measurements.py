"""Measured kernel times: a CSV file of configurations, and the graph that each of them is.

The columns read are ``id``, ``family``, ``op``, ``shape``, ``cores``, ``split``, ``tiles``, ``placement``, ``layout``,
``measured_us``, ``scope`` and ``flags``; others are ignored.  An operation of a name that is not known is left out.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.files.reading import read_at_most

_MOST_BYTES = 64 << 20
_MOST_ROWS = 100_000
_LARGEST_SIZE = 1 << 24
_COLUMNS = (
    "id",
    "family",
    "op",
    "shape",
    "cores",
    "split",
    "tiles",
    "placement",
    "layout",
    "measured_us",
    "scope",
    "flags",
)

_SLICES = re.compile(r"([0-9]{1,2})x([0-9]{1,2})(?:([kb])([0-9]{1,2}))?")

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One configuration and its measured time.

    ``slices``: of the dims of the first node, as a graph pins them; empty where no division was forced.
    ``is_free``: a division was left to the compiler that measured, or asked for and not to be had.
    ``uses_lx``: intermediates could lie in the scratchpads.  ``orders``: dim orders of a product's operands.
    """

    name: str
    family: str
    op: str
    shape: tuple[int, ...]
    cores: int
    slices: Mapping[str, int]
    is_free: bool
    tiles: int
    uses_lx: bool
    orders: tuple[tuple[int, ...] | None, ...]
    scope: str
    flags: frozenset[str]
    measured_us: float

    @property
    def is_in_scope(self) -> bool:
        """Whether it judges a model: in scope, or a chain, and no bad sample."""
        return self.scope in ("in", "out:chain") and "bad-sample" not in self.flags

    @property
    def is_judged(self) -> bool:
        """Whether its time is held against the simulated one: in scope, and divided as here."""
        return self.is_in_scope and not self.is_free


def read_measurements(path: Path) -> tuple[Measurement, ...]:
    """Return the configurations of a file, in its order; errors SPY0789 with the line."""
    place = Location(str(path))
    content = read_at_most(path, _MOST_BYTES)
    if content is None:
        raise _wrong(place, f"a file of measurements has at most {_MOST_BYTES} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(place, f"it is not UTF-8 at byte {error.start}") from None
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    found: list[Measurement] = []
    lines: dict[str, int] = {}
    try:
        missing = [name for name in _COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise _wrong(place, f"it has no column {', '.join(missing)}")
        for row in rows:
            here = Location(f"{path}:{rows.line_num}")
            measurement = _measurement(row, here)
            first = lines.setdefault(measurement.name, rows.line_num)
            if first != rows.line_num:
                raise _wrong(here, f'id is "{measurement.name[:40]}", line {first} has it too')
            if measurement.op in _GRAPHS:
                found.append(measurement)
            if len(found) > _MOST_ROWS:
                raise _wrong(place, f"a file of measurements has at most {_MOST_ROWS} rows")
    except csv.Error as error:
        raise _wrong(Location(f"{path}:{rows.line_num}"), f"it is no CSV: {error}") from None
    return tuple(found)


def _measurement(row: Mapping[str, str | None], place: Location) -> Measurement:
    cells = {name: row[name] for name in _COLUMNS}
    empty = [name for name, cell in cells.items() if cell is None]
    if empty:
        raise _wrong(place, f"the row ends before column {empty[0]}")
    given = {name: cell or "" for name, cell in cells.items()}
    op, layout = given["op"], given["layout"]
    sizes = given["shape"].split("x")
    shape = tuple(_integer(size, "shape", _LARGEST_SIZE, place) for size in sizes)
    if op in _RANKS and len(shape) != _RANKS[op]:
        raise _wrong(place, f'shape is "{given["shape"]}", {op} has {_RANKS[op]} sizes')
    split = given["split"]
    slices = _SLICES.fullmatch(split)
    if split not in ("", "auto") and slices is None and not split.startswith("r"):
        raise _wrong(place, f'split is "{split}", neither MxN, MxNkK, MxNbB, auto nor empty')
    return Measurement(
        name=given["id"],
        family=given["family"],
        op=op,
        shape=shape,
        cores=_integer(given["cores"], "cores", 32, place),
        slices={} if slices is None else _pins(op, slices),
        is_free=split == "auto" or split.startswith("r") or "preferred" in layout,
        tiles=_integer(given["tiles"], "tiles", _LARGEST_SIZE, place),
        uses_lx="LX" in given["placement"] and not op.endswith("_sep"),
        orders=_orders(layout),
        scope=given["scope"],
        flags=frozenset(given["flags"].split()),
        measured_us=_microseconds(given["measured_us"], place),
    )


def _integer(text: str, column: str, most: int, place: Location) -> int:
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= most:
        raise _wrong(place, f'{column} is "{text[:40]}", it must be 1 to {most}')
    return int(text)


def _microseconds(text: str, place: Location) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0.0):
        raise _wrong(place, f'measured_us is "{text[:40]}", it must be a positive number')
    return found


def _wrong(place: Location, message: str) -> SpyrecError:
    return refuse("SPY0789", message, place)


def _pins(op: str, slices: re.Match[str]) -> dict[str, int]:
    first = 0 if op.startswith(("mm", "matmul")) else 1
    found = {f"out.{first}": int(slices[1]), f"out.{first + 1}": int(slices[2])}
    if slices[3] == "k":
        found["reduce.0"] = int(slices[4])
    if slices[3] == "b":
        found["out.0"] = int(slices[4])
    return {name: count for name, count in found.items() if count > 1} or {f"out.{first}": 1}


def _orders(layout: str) -> tuple[tuple[int, ...] | None, ...]:
    other = (1, 0, 2)
    both = layout.startswith("A and B in alternative")
    left = both or layout.startswith("A alternative")
    right = both or "B alternative" in layout
    return (other if left else None, other if right else None)


def graph_of(measurement: Measurement) -> JsonObject:
    """Return the graph that was measured, as graph JSON."""
    graph = _GRAPHS[measurement.op](measurement)
    if measurement.slices:
        graph["nodes"][0]["work_division"] = dict(measurement.slices)
    if measurement.tiles > 1:
        first = graph["inputs"][0]
        graph["dims"] = {"R": first["shape"][0]}
        first["shape"] = ["R", *first["shape"][1:]]
        graph["loops"] = [{"dim": "R", "tiles": measurement.tiles, "body": [graph["nodes"][0]["name"]]}]
    return graph


Make = Callable[[Measurement], JsonObject]


def _graph(inputs: list[JsonObject], nodes: list[JsonObject], outputs: list[str] | None = None) -> JsonObject:
    return {
        "format": "spyrec.graph/1",
        "name": "measured",
        "inputs": inputs,
        "nodes": nodes,
        "outputs": outputs or [nodes[-1]["name"]],
    }


def _input(name: str, *shape: int, order: tuple[int, ...] | None = None) -> JsonObject:
    found: JsonObject = {"name": name, "shape": list(shape), "dtype": "float16"}
    return found if order is None else {**found, "layout": {"dim_order": list(order)}}


def _node(name: str, op: str, *inputs: object, **attrs: object) -> JsonObject:
    found: JsonObject = {"name": name, "op": op, "inputs": list(inputs)}
    return {**found, "attrs": attrs} if attrs else found


def _whole(op: str, operands: int = 1, **attrs: object) -> Make:
    """Return what makes one operation of operands that have the shape."""
    names = "ab"[:operands]

    def make(item: Measurement) -> JsonObject:
        return _graph([_input(name, *item.shape) for name in names], [_node("y", op, *names, **attrs)])

    return make


def _with_part(op: str, *, of_rows: bool) -> Make:
    def make(item: Measurement) -> JsonObject:
        rows, columns = item.shape
        part = (rows, 1) if of_rows else (1, columns)
        return _graph([_input("a", rows, columns), _input("b", *part)], [_node("y", op, "a", "b")])

    return make


def _plus_one(item: Measurement) -> JsonObject:
    return _graph([_input("a", *item.shape)], [_node("y", "add", "a", 1.0)])


def _twice(dim: int) -> Make:
    def make(item: Measurement) -> JsonObject:
        return _graph([_input("a", *item.shape)], [_node("y", "cat", "a", "a", dim=dim)])

    return make


def _sum_of(count: int) -> Make:
    names = "abcdef"[:count]

    def make(item: Measurement) -> JsonObject:
        nodes = [_node("y1", "add", "a", "b")]
        nodes += [_node(f"y{place}", "add", f"y{place - 1}", names[place]) for place in range(2, count)]
        return _graph([_input(name, *item.shape) for name in names], nodes)

    return make


def _two_sums(item: Measurement) -> JsonObject:
    nodes = [_node("y", "add", "a", "b"), _node("z", "add", "c", "d")]
    return _graph([_input(name, *item.shape) for name in "abcd"], nodes, ["y", "z"])


def _product(*, has_batch: bool, is_shared: bool = False) -> Make:
    def make(item: Measurement) -> JsonObject:
        batch, rows, depth, columns = item.shape
        left, right = [rows, depth], [depth, columns]
        if has_batch:
            left, right = [batch, *left], right if is_shared else [batch, *right]
        orders = item.orders if has_batch and not is_shared else (None, None)
        inputs = [_input("a", *left, order=orders[0]), _input("b", *right, order=orders[1])]
        return _graph(inputs, [_node("y", "matmul", "a", "b")])

    return make


_PRODUCT, _BATCHED = _product(has_batch=False), _product(has_batch=True)
_GRAPHS: Mapping[str, Make] = {
    "add": _whole("add", 2),
    "mul": _whole("mul", 2),
    "exp": _whole("exp"),
    "neg": _whole("neg"),
    "gelu": _whole("gelu"),
    "bcast": _with_part("add", of_rows=False),
    "mulbcast": _with_part("mul", of_rows=False),
    "bcastcol": _with_part("add", of_rows=True),
    "copy": _plus_one,
    "cat0": _twice(0),
    "cat1": _twice(1),
    "transpose": _whole("transpose", dim0=0, dim1=1),
    "transpose_outer": _whole("transpose", dim0=0, dim1=1),
    "amax": _whole("amax", dim=-1),
    "mean": _whole("mean", dim=-1),
    "read": _whole("sum", dim=1),
    "sumrow": _whole("sum", dim=1),
    "sumcol": _whole("sum", dim=0),
    "sumall": _whole("sum"),
    **{f"add{count}{end}": _sum_of(count) for count in range(3, 7) for end in ("", "_sep")},
    "add_indep2": _two_sums,
    "softmax": _whole("softmax", dim=-1),
    "ctsum": _whole("sum", dim=0),
    "mm": _PRODUCT,
    "matmul_row_tiling": _PRODUCT,
    "bmm": _BATCHED,
    "bmm_3d2d": _product(has_batch=True, is_shared=True),
}
"""What makes the graph of each operation of the file."""

_RANKS = {
    name: 4 if name in ("mm", "matmul_row_tiling", "bmm", "bmm_3d2d") else 3 if name == "transpose_outer" else 2
    for name in _GRAPHS
}
