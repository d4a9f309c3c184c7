"""Layouts as text and JSON: facts, a drawing of the sticks, the copy loops, and elements mapped both ways."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from spyrec.cli._fitted import columns, table_lines
from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.conversion_table import DataConversionInfo, Direction
from spyrec.layout.device_layout import DeviceLayout

_MOST_STICKS_DRAWN = 64
_COLUMNS = 64


@dataclass(frozen=True, slots=True)
class NamedLayout:
    """One tensor: name, layout, byte address in device memory, and what it is to a bundle."""

    name: str
    layout: DeviceLayout
    address: int
    role: str | None


@dataclass(frozen=True, slots=True)
class Questions:
    """Elements to map: a host index, a byte address."""

    index: tuple[int, ...] | None
    address: int | None

    def answers(self, named: Sequence[NamedLayout]) -> list[Answer]:
        """Return what lies there, per tensor that has such an element; errors SPY0310 where none has."""
        found: list[Answer] = []
        if self.index is not None:
            found += [_at_index(item, self.index) for item in named if len(named) == 1 or _has(item, self.index)]
        if self.address is not None:
            found += [_at_address(item, self.address) for item in named if _covers(item, self.address)]
        asked = (self.index is not None) + (self.address is not None)
        if asked and not found:
            raise refuse("SPY0310", f"no tensor has {'an element' if self.index is not None else 'a byte'} there")
        if self.address is not None and not any(_covers(item, self.address) for item in named):
            raise refuse("SPY0310", f"no tensor covers byte address {self.address}")
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """One element: the tensor, its host index (``None`` for padding), device coordinate and byte address.

    ``core``: in whose scratchpad the address is, ``None`` in device memory.
    """

    tensor: str
    index: tuple[int, ...] | None
    coordinate: tuple[int, ...]
    address: int
    core: int | None = None

    def __str__(self) -> str:
        what = "padding" if self.index is None else f"element {list(self.index)}"
        where = "" if self.core is None else f" of core {self.core}'s scratchpad"
        return f"{self.tensor}: {what} lies at device coordinate {list(self.coordinate)}, byte {self.address}{where}"

    def to_json(self) -> dict[str, object]:
        """Return the same facts for programs."""
        index = None if self.index is None else list(self.index)
        place: dict[str, object] = {"byte": self.address}
        if self.core is not None:
            place["core"] = self.core
        return {"tensor": self.tensor, "index": index, "device_coordinate": list(self.coordinate), **place}


def _has(item: NamedLayout, index: tuple[int, ...]) -> bool:
    shape = item.layout.host_shape
    return len(shape) == len(index) and all(0 <= at < size for at, size in zip(index, shape, strict=True))


def _covers(item: NamedLayout, address: int) -> bool:
    return item.address <= address < item.address + item.layout.nbytes


def _at_index(item: NamedLayout, index: tuple[int, ...]) -> Answer:
    coordinate = item.layout.device_coordinate(index)
    return Answer(item.name, index, coordinate, item.address + item.layout.byte_address(index))


def _at_address(item: NamedLayout, address: int) -> Answer:
    coordinate = item.layout.at_byte_address(address - item.address)
    return Answer(item.name, item.layout.host_index(coordinate), coordinate, address)


def describe(item: NamedLayout, questions: Questions, *, with_copies: bool = True) -> str:
    """Return everything about one tensor: facts, sticks, loops of the host copies, the elements asked for."""
    parts = [_facts(item), dims_table(item.layout), _sticks(item.layout)]
    if with_copies:
        parts += [pseudo_code(item.layout.dci(direction)) for direction in Direction]
    parts += [str(answer) for answer in questions.answers([item])]
    return "\n\n".join(part for part in parts if part)


def _facts(item: NamedLayout) -> str:
    layout = item.layout
    dtype = layout.dci(Direction.HOST_TO_DEVICE).host_format.name
    host = f"host    shape {list(layout.host_shape)}, strides {list(layout.host_strides)}, {dtype}"
    return "\n".join([str(layout), host, memory_line(layout, 100 * layout.padding_fraction)])


def memory_line(layout: DeviceLayout, padding_percent: float) -> str:
    """Return the line that tells the size of a tensor in device memory."""
    sticks = f"{layout.nbytes // STICK_BYTES} sticks of {layout.elements_per_stick} elements"
    return f"memory  {layout.nbytes} bytes in {sticks}, {padding_percent:.1f} % padding"


def dims_table(layout: DeviceLayout) -> str:
    """Return the table of device dims: extent, distance on the device, distance on the host."""
    lines = ["device dim   extent   device step     host step"]
    last = len(layout.device_size) - 1
    steps = zip(layout.device_size, layout.device_strides(), layout.stride_map, strict=True)
    for dim, (extent, device_step, host_step) in enumerate(steps):
        note = " (stick)" if dim == last else ""
        note += {0: " (replicated)", -1: " (no host counterpart)"}.get(host_step, "")
        lines.append(f"{dim:10d} {extent:8d} {device_step:13d} {host_step:13d}{note}")
    return "\n".join(lines)


def _sticks(layout: DeviceLayout) -> str:
    """Draw each stick of a small tensor as a row: ``#`` holds elements, ``.`` is padding."""
    count = math.prod(layout.device_size[:-1])
    if count > _MOST_STICKS_DRAWN or not count:
        return ""
    mask = layout.valid_lane_mask().reshape(count, -1)
    ends = [(str(list(item)), _elements_of(layout, item)) for item in _stick_coordinates(layout)]
    width = max(len(begin) for begin, _ in ends)
    room = columns()
    beside = width + max(len(end) for _, end in ends) + len("   || ")
    most = _COLUMNS if room is None else min(_COLUMNS, max(room - beside, 1))
    lanes_per_mark = 1
    while layout.elements_per_stick > most * lanes_per_mark:
        lanes_per_mark *= 2
    lanes_text = f"{lanes_per_mark} lane{'s'[: lanes_per_mark != 1]}"
    lines = [f"sticks in memory order (# elements, . padding; one mark is {lanes_text})"]
    for (begin, end), lanes in zip(ends, mask, strict=True):
        marks = "".join(
            "#" if lanes[at : at + lanes_per_mark].any() else "." for at in _marks(lanes_per_mark, lanes.size)
        )
        lines.append(f"  {begin:{width}} |{marks}| {end}".rstrip())
    return "\n".join(lines)


def _stick_coordinates(layout: DeviceLayout) -> Iterator[tuple[int, ...]]:
    return product(*(range(extent) for extent in layout.device_size[:-1]))


def _marks(lanes_per_mark: int, lanes: int) -> range:
    return range(0, lanes, lanes_per_mark)


def _elements_of(layout: DeviceLayout, stick: tuple[int, ...]) -> str:
    """Name the first and last element of a stick by host index."""
    inside = [layout.host_index((*stick, lane)) for lane in range(layout.elements_per_stick)]
    elements = [index for index in inside if index is not None]
    if not elements:
        return ""
    first, last = list(elements[0]), list(elements[-1])
    return f"{first}" if first == last else f"{first} .. {last}"


def pseudo_code(table: DataConversionInfo) -> str:
    """Return the loop nests of a copy as readable code, outermost loop first."""
    lines = [f"{table.direction.value}: {table.source_format.name} -> {table.destination_format.name}"]
    for nest in table.nests:
        depth = 0
        names: dict[int, str] = {}
        for loop in range(len(nest.sizes) - 1, -1, -1):
            if nest.sizes[loop] == 1:
                continue
            names[loop] = chr(ord("i") + depth) if depth < 18 else f"i{depth}"
            lines.append(f"{'  ' * depth}for {names[loop]} in range({nest.sizes[loop]}):")
            depth += 1
        source, destination = ("host", "device") if table.direction is Direction.HOST_TO_DEVICE else ("device", "host")
        left = _address(nest.destination_strides, nest.destination_offset, names)
        right = _address(nest.source_strides, nest.source_offset, names)
        lines.append(f"{'  ' * depth}{destination}[{left}] = {source}[{right}]")
    return "\n".join(lines)


def _address(strides: tuple[int, ...], offset: int, names: dict[int, str]) -> str:
    """Return the index of one side; ``names`` holds the loops that run, outermost first."""
    terms = [f"{strides[loop]}*{name}" if strides[loop] != 1 else name for loop, name in names.items() if strides[loop]]
    if offset or not terms:
        terms.append(str(offset))
    return " + ".join(terms)


def table(named: Sequence[NamedLayout], questions: Questions) -> str:
    """Return one line per tensor of a graph or bundle."""
    heads = ("tensor", "role", "shape", "device_size", "stride_map", "format", "padding", "address")
    lines = aligned([heads, *(_row(item) for item in named)])
    return "\n".join([lines, *(str(answer) for answer in questions.answers(named))])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines with columns one below the other."""
    return "\n".join(table_lines(rows))


def _row(item: NamedLayout) -> tuple[str, ...]:
    layout = item.layout
    return (
        item.name,
        item.role or "",
        str(list(layout.host_shape)),
        str(list(layout.device_size)),
        str(list(layout.stride_map)),
        layout.device_dtype.name,
        f"{100 * layout.padding_fraction:.1f} %",
        hex(item.address),
    )


def to_json(named: Sequence[NamedLayout], questions: Questions) -> dict[str, object]:
    """Return the same facts for programs (``spyrec.layouts/1``)."""
    return {
        "format": "spyrec.layouts/1",
        "tensors": [_tensor_json(item) for item in named],
        "at": [answer.to_json() for answer in questions.answers(named)],
    }


def _tensor_json(item: NamedLayout) -> dict[str, object]:
    layout = item.layout
    return {
        "name": item.name,
        "role": item.role,
        "shape": list(layout.host_shape),
        "host_strides": list(layout.host_strides),
        **layout_json(layout, 100 * layout.padding_fraction),
        "address": item.address,
        "dci": dci_json(layout),
    }


def layout_json(layout: DeviceLayout, padding_percent: float) -> dict[str, object]:
    """Return what is true of a layout on the device alone."""
    return {
        "device_size": list(layout.device_size),
        "stride_map": list(layout.stride_map),
        "device_dtype": layout.device_dtype.name,
        "elements_per_stick": layout.elements_per_stick,
        "size_bytes": layout.nbytes,
        "padding_percent": round(padding_percent, 3),
    }


def dci_json(layout: DeviceLayout) -> dict[str, object]:
    """Return the tables of the host copies in both directions."""
    return {direction.value: layout.dci(direction).to_json() for direction in Direction}
