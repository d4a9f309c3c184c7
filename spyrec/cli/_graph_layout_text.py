"""The layouts of a graph as text and JSON: a table of all values, the copies with their reasons, the total."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.cli._graph_layouts import CopyPoint, GraphLayouts, GraphValue, TensorMemory
from spyrec.cli._layout_text import (
    Answer,
    NamedLayout,
    Questions,
    aligned,
    dci_json,
    describe,
    dims_table,
    layout_json,
    memory_line,
)
from spyrec.codegen.emit import host_layout
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.target import STICK_BYTES
from spyrec.ir.kernel import BufferRole, KernelBuffer
from spyrec.ir.text.print_kernels import use_text
from spyrec.passes.planning.shares import Share

_HEADS = ("value", "role", "shape", "dtype", "device_size", "stride_map", "padding", "where")


def table(layouts: GraphLayouts, questions: Questions) -> str:
    """Return one line per value, one per copy, the total, and the elements asked for; errors SPY0310."""
    parts = [
        f"layouts of {layouts.name}",
        aligned([_HEADS, *(_row(value) for value in layouts.values)]),
        _copies(layouts),
        "\n".join(str(answer) for answer in answers(layouts.values, questions)),
    ]
    return "\n\n".join(part for part in parts if part)


def _row(value: GraphValue) -> tuple[str, ...]:
    owned = value.owned
    head = (value.name, value.role, str(list(value.type.shape)), value.type.dtype.value)
    if owned is None:
        return (*head, "-", "-", "-", sharing(value))
    device = owned.placed.device
    return (
        *head,
        str(list(device.device_size)),
        str(list(device.stride_map)),
        f"{value.padding_percent:.1f} %",
        "not used" if value.place is None else str(value.place),
    )


def sharing(value: GraphValue) -> str:
    """Return in words where a value without memory of its own is found."""
    if value.use is None:
        return "no memory: taken apart or dropped by the compiler"
    indices = ", ".join(f"i{dim}" for dim in range(value.type.rank))
    return f"no memory: {value.name}[{indices}] = {use_text(value.use)}"


def _copies(layouts: GraphLayouts) -> str:
    count = len(layouts.copies)
    lines = [f"{count} {'copy moves' if count == 1 else 'copies move'} {layouts.copied_bytes} bytes"]
    lines += [f"  {line}" for copy in layouts.copies for line in _copy_lines(copy)]
    return "\n".join([*lines, f"layouts: {layouts.cost}"])


def _copy_lines(copy: CopyPoint) -> list[str]:
    kind = "restickify" if copy.is_restickify else "copy"
    readers = f" for {', '.join(copy.readers)}" if copy.readers else ""
    fact = f"{kind} {copy.source} -> {copy.target}: {copy.size_bytes} bytes{readers}"
    return [fact, f"  because {copy.kernel.reason}"]


def describe_value(value: GraphValue, questions: Questions) -> str:
    """Return everything about one value; errors SPY0310."""
    found = [str(answer) for answer in answers([value], questions)]
    owned = value.owned
    if owned is None:
        return "\n\n".join([f"{value.name}  {value.role}, {value.type}, {sharing(value)}", *found])
    head = f"{value.name}  {value.role}, {'not used' if value.place is None else value.place}"
    named = as_named(value)
    if named is None:
        device = owned.placed.device
        body = "\n\n".join([f"{device}\n{memory_line(device, value.padding_percent)}", dims_table(device)])
    else:
        body = describe(named, Questions(None, None), with_copies=owned.role is not BufferRole.INTERMEDIATE)
    return "\n\n".join([head, body, *found])


def as_named(value: GraphValue) -> NamedLayout | None:
    """Return a value's layout with its host side; ``None`` where it has no memory or a host tensor cannot lie so."""
    if value.owned is None:
        return None
    address = 0 if value.place is None else value.place.address
    try:
        return NamedLayout(value.name, host_layout(value.owned), address, value.role)
    except SpyrecError:
        # float32 beside 16-bit data may be padded by whole sticks, which no conversion table can leave out
        return None


def answers(values: Sequence[GraphValue], questions: Questions) -> list[Answer]:
    """Return where elements lie and what lies at addresses; errors SPY0310 where no value has any."""
    found: list[Answer] = []
    if questions.index is not None:
        found += [_at_index(value, questions.index) for value in values if _has(value, questions.index)]
        if not found:
            shapes = f", its shape is {list(values[0].type.shape)}" if len(values) == 1 else ""
            raise refuse("SPY0310", f"no value has an element {list(questions.index)}{shapes}")
    if questions.address is not None:
        covering = [_at_address(value, questions.address) for value in values if _covers(value, questions.address)]
        if not covering:
            raise refuse("SPY0310", f"no value covers byte address {questions.address}")
        found += covering
    return found


def _has(value: GraphValue, index: tuple[int, ...]) -> bool:
    shape = value.type.shape
    is_inside = len(shape) == len(index) and all(0 <= at < size for at, size in zip(index, shape, strict=True))
    return is_inside and value.use is not None


def _is_in_lx(value: GraphValue) -> bool:
    """Whether each core holds its slice of a value at an address of its own: no single address is an element's."""
    return value.place is not None and value.place.memory is TensorMemory.LX


def _base(value: GraphValue) -> int:
    return 0 if value.place is None else value.place.address


def _at_index(value: GraphValue, index: tuple[int, ...]) -> Answer:
    assert value.use is not None
    assert value.buffer is not None
    coordinate = value.buffer.placed.device_coordinate(value.use.access.coordinate(index))
    if value.place is not None and value.place.share is not None:
        return _in_scratchpad(value, value.place.share, index, coordinate)
    return Answer(value.name, index, coordinate, _base(value) + _distance_bytes(value.buffer, coordinate))


def _in_scratchpad(value: GraphValue, share: Share, index: tuple[int, ...], coordinate: tuple[int, ...]) -> Answer:
    """Return the first core that holds an element, and where in its scratchpad: shares are dense."""
    assert value.buffer is not None
    device = value.buffer.placed.device
    walked = [at for at, size in zip(coordinate[:-1], device.device_size[:-1], strict=True) if size > 1]
    slices = tuple(at // extent for at, extent in zip(walked, share.extents, strict=True))
    sticks = 0
    for at, extent in zip(walked, share.extents, strict=True):
        sticks = sticks * extent + at % extent
    lane_bytes = coordinate[-1] * STICK_BYTES // device.elements_per_stick
    address = _base(value) + sticks * STICK_BYTES + lane_bytes
    return Answer(value.name, index, coordinate, address, share.slices.index(slices))


def _distance_bytes(buffer: KernelBuffer, coordinate: tuple[int, ...]) -> int:
    device = buffer.placed.device
    return device.element_offset(coordinate) * STICK_BYTES // device.elements_per_stick


def _covers(value: GraphValue, address: int) -> bool:
    owned = value.owned
    if owned is None or value.place is None or _is_in_lx(value):
        return False
    return value.place.address <= address < value.place.address + owned.placed.size_bytes


def _at_address(value: GraphValue, address: int) -> Answer:
    assert value.buffer is not None
    coordinate = value.buffer.placed.device.at_byte_address(address - _base(value))
    inner = value.buffer.placed.index_at(coordinate, value.buffer.type.shape)
    return Answer(value.name, None if inner is None else _host_index(value, inner), coordinate, address)


def _host_index(value: GraphValue, inner: tuple[int, ...]) -> tuple[int, ...]:
    """Return the value's index from that of its buffer, which may be folded."""
    assert value.buffer is not None
    position = 0
    for at, size in zip(inner, value.buffer.type.shape, strict=True):
        position = position * size + at
    index: list[int] = []
    for size in reversed(value.type.shape):
        position, at = divmod(position, size)
        index.append(at)
    return tuple(index[::-1])


def to_json(layouts: GraphLayouts, values: Sequence[GraphValue], questions: Questions) -> dict[str, object]:
    """Return the same facts for programs (``spyrec.layouts/1``); errors SPY0310."""
    names = {value.name for value in values}
    copies = [copy for copy in layouts.copies if len(values) == len(layouts.values) or copy.target in names]
    return {
        "format": "spyrec.layouts/1",
        "tensors": [_value_json(value) for value in values],
        "copies": [_copy_json(copy) for copy in copies],
        "copied_bytes": layouts.copied_bytes,
        "layout_cost_bytes": layouts.cost.cost_bytes,
        "layout_cost_lower_bound_bytes": layouts.cost.lower_bound_bytes,
        "at": [answer.to_json() for answer in answers(values, questions)],
    }


def _value_json(value: GraphValue) -> dict[str, object]:
    head: dict[str, object] = {
        "name": value.name,
        "role": value.role,
        "shape": list(value.type.shape),
        "dtype": value.type.dtype.value,
    }
    owned = value.owned
    if owned is None:
        view = None if value.use is None else {"of": value.owner, "index": use_text(value.use)}
        return {**head, "view": view}
    place = value.place
    where: dict[str, object] | None = None
    if place is not None:
        number = "argument" if place.memory is TensorMemory.ARGUMENT else f"{place.memory.value}_offset"
        where = {"program": place.program, number: place.number}
    named = as_named(value)
    with_copies = named is not None and owned.role is not BufferRole.INTERMEDIATE
    return {
        **head,
        **layout_json(owned.placed.device, value.padding_percent),
        "address": None if place is None else place.address,
        "place": where,
        **({"dci": dci_json(named.layout)} if named is not None and with_copies else {}),
    }


def _copy_json(copy: CopyPoint) -> dict[str, object]:
    return {
        "kernel": copy.kernel.name,
        "restickify": copy.is_restickify,
        "source": copy.source,
        "target": copy.target,
        "size_bytes": copy.size_bytes,
        "readers": list(copy.readers),
        "reason": copy.kernel.reason,
    }
