"""A bundle as text for people: arguments, loops as indentation, and of each operation what is divided and where it is.

Lines are wrapped at the width of the terminal; a name or number that is longer than a line stays whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

import numpy as np

from spyrec.bundle.manifest import Argument
from spyrec.bundle.superdsc import ConstantEntry, Indirection
from spyrec.compare.bundle_reading import (
    Body,
    BundleReading,
    LoopReading,
    OperandReading,
    OperationReading,
    ProgramReading,
    loops_of,
)
from spyrec.compare.core_shares import HostBox, OperandShare, core_share
from spyrec.dataclass import dataclass
from spyrec.emulator.geometry import short_gap_dims
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES
from spyrec.notebook import time_text

LEAST_COLUMNS, MOST_COLUMNS = 60, 100


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown: the operations by number, ``None`` for all; one core's part, ``None`` for none; the width."""

    numbers: frozenset[int] | None
    core: int | None
    columns: int


def inspect_lines(reading: BundleReading, shown: Shown) -> Iterator[str]:
    """Yield the lines of a report."""
    if shown.numbers is None:
        yield from _head(reading, shown)
    for number, program in enumerate(reading.programs):
        if shown.numbers is not None and not any(item.number in shown.numbers for item in program.operations):
            continue
        if reading.path.is_dir():
            yield from _program(reading, number, program, shown)
        yield from _body(program, program.body, 0, shown)


def _text(indent: int, text: str, columns: int) -> list[str]:
    """Return a text as lines of at most so many columns; what follows the first hangs by four."""
    first = " " * min(indent, columns // 2)
    if len(first) + len(text) <= columns:
        return [first + text]
    return wrap(
        text, columns, initial_indent=first, subsequent_indent=first + "    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def counted(count: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _head(reading: BundleReading, shown: Shown) -> Iterator[str]:
    manifest = reading.manifest
    operations = reading.operations
    name = reading.path.name if manifest is None else manifest.name
    parts = [f"{name}: {counted(len(reading.programs), 'program')}", counted(len(operations), "operation")]
    figures = None if manifest is None else manifest.figures
    if figures is not None:
        time = time_text(figures.simulated_us, figures.simulated_us_uncertainty)
        parts.append(f"predicted {time} ({figures.profile})")
    if not reading.path.is_dir():
        parts = [f"{name}: a SuperDSC by itself, symbols are bound by the bundle.mlir that executes it"]
    elif manifest is None:
        parts.append("no manifest, so nobody says what its arguments are (--args)")
    yield from _text(0, ", ".join(parts), shown.columns)
    if manifest is None or not manifest.arguments:
        return
    yield ""
    yield "arguments"
    for argument in manifest.arguments:
        yield from _argument(argument, shown.columns)


def _argument(item: Argument, columns: int) -> Iterator[str]:
    host = "" if item.dtype is None or item.shape is None else f" {item.dtype.value} {list(item.shape)}"
    yield from _text(2, f"{item.name}: {item.role.value}{host}", columns)
    size_bytes = STICK_BYTES * int(np.prod(item.device_size[:-1], dtype=np.int64))
    place = "read by no program" if item.address is None else _segment(item.address)
    device = f"device {list(item.device_size)} {item.device_dtype.name}, {size_bytes:,} bytes, {place}"
    yield from _text(4, device, columns)


def _segment(address: int) -> str:
    segment, offset = divmod(address, SEGMENT_BYTES)
    return f"segment {segment}" + (f" at byte {offset:,}" if offset else "") + f" (address {address:#x})"


def _program(reading: BundleReading, number: int, program: ProgramReading, shown: Shown) -> Iterator[str]:
    if shown.numbers is None:
        yield ""
    parts = [f"program {number}" + (f" ({program.directory})" if program.directory != "." else "")]
    parts.append(counted(len(program.operations), "operation"))
    if program.pool_bytes:
        parts.append(f"pool of {program.pool_bytes:,} bytes")
    if program.arguments:
        parts.append(f"arguments {', '.join(program.arguments)}")
    plan = () if reading.manifest is None else reading.manifest.plan
    if reading.manifest is not None and number >= len(plan):
        parts.append("run by launches of many tiles only")
    yield from _text(0, ", ".join(parts), shown.columns)


def _body(program: ProgramReading, body: Body, depth: int, shown: Shown) -> Iterator[str]:
    for item in body:
        if isinstance(item, OperationReading):
            if shown.numbers is None or item.number in shown.numbers:
                yield from operation_lines(program, item, depth, shown)
        elif shown.numbers is None or any(inner.number in shown.numbers for inner in _inside(item)):
            yield from _text(2 * depth, _loop(item), shown.columns)
            yield from _body(program, item.body, depth + 1, shown)


def _inside(loop: LoopReading) -> Iterator[OperationReading]:
    for item in loop.body:
        if isinstance(item, LoopReading):
            yield from _inside(item)
        else:
            yield item


def _loop(item: LoopReading) -> str:
    if item.loop.parameter is not None:
        return f"loop {item.name}, as many rounds as %{item.loop.parameter} says"
    values = item.loop.values
    counts = "" if values.start == 0 and values.step == 1 else f" ({values.start} to {values.stop} by {values.step})"
    return f"loop {item.name}, {counted(len(values), 'round')}{counts}"


def operation_lines(program: ProgramReading, item: OperationReading, depth: int, shown: Shown) -> Iterator[str]:
    """Yield the lines of one operation: what it is, how it is divided, its operands and their places."""
    dsc, indent, columns = item.superdsc, 2 * depth, shown.columns
    moved = item.call.data_dsc
    cores = moved.core_ids if moved is not None else dsc.core_ids
    part = f" ({item.call.subject})" if item.call.subject else ""
    parts = [f"{item.number} {dsc.op_func_name}{part}", item.call.file, counted(len(cores), "core")]
    if moved is None:
        parts.append(dsc.compute.execution_unit)
    if item.figures is not None:
        each = item.figures.simulated_us / max(1, item.figures.executions)
        times = f", {item.figures.executions:,} times" if item.figures.executions != 1 else ""
        parts.append(f"predicted {time_text(each, item.figures.simulated_us_uncertainty)}{times}")
    yield from _text(indent, ", ".join(parts), columns)
    if dsc.provenance is not None:
        yield from _text(indent + 4, f"from {dsc.provenance}", columns)
    for line in dims_in_words(item):
        yield from _text(indent + 4, line, columns)
    for name, text in _details(item):
        yield from _text(indent + 4, f"{name} {text}", columns)
    if moved is not None:
        yield from _pieces(item, indent + 4, columns)
        return
    for position in range(len(item.operands)):
        yield from _operand(program, item, position, indent + 4, columns)
    if shown.core is not None:
        yield from _core(item, shown.core, indent + 4, columns)


def dims_in_words(item: OperationReading) -> Iterator[str]:
    """Yield a line per dim of the iteration: its extent, and how it is divided."""
    dsc = item.superdsc
    divided = [dim for dim, count in dsc.work_slices.items() if count > 1]
    for dim, extent in dsc.iteration.items():
        count = dsc.work_slices[dim]
        word = "cores" if len(divided) == 1 and count == len(dsc.core_ids) else "parts"
        split = f" = {count} {word} x {dsc.core_extent[dim]}" if count > 1 else ""
        dynamic = dsc.dynamic_dims.get(dim)
        sized = "" if dynamic is None else f", at most; each launch gives it ({dynamic.name})"
        yield f"{dim} {extent}{split}{sized}"


def _details(item: OperationReading) -> Iterator[tuple[str, str]]:
    dsc = item.superdsc
    if dsc.constants:
        yield "constants", ", ".join(f"{entry.name} = {constant_value(entry):.6g}" for entry in dsc.constants)
    for dim, ranges in dsc.coordinate_masking.items():
        yield "masked", ", ".join(f"{dim} {first}:{first + count}" for first, count in ranges)
    for axis, sizes in dsc.padding_sizes.items():
        dilated = f", dilation {sizes.dilation}" if sizes.dilation != 1 else ""
        padded = f"padding {sizes.pad_front} and {sizes.pad_back}"
        taps = dsc.iteration[sizes.window_dim]
        yield "window", f"of {taps} ({sizes.window_dim}) along {axis}, stride {sizes.stride}{dilated}, {padded}"


def constant_value(entry: ConstantEntry) -> float:
    """Return the number that a constant's bits are: of IEEE_FP32 or, in every other format, of DLFloat16."""
    if entry.data_format is DeviceFormat.IEEE_FP32:
        return float(struct.unpack("<f", struct.pack("<I", entry.bits & 0xFFFFFFFF))[0])
    return float(dlfloat.decode(np.array([entry.bits & 0xFFFF], np.uint16))[0])


def _pieces(item: OperationReading, indent: int, columns: int) -> Iterator[str]:
    moved = item.call.data_dsc
    assert moved is not None
    for side, word in ((moved.source, "reads"), (moved.destination, "writes")):
        placed = list(side.placed)
        yield from _text(
            indent, f"{word} {side.name}: {counted(len(placed), 'piece')} of {dict(side.extents)}", columns
        )
        for piece, place in placed[:_MOST_PIECES]:
            box = ", ".join(f"{dim} {at}:{at + piece.extents[dim]}" for dim, at in piece.first.items())
            where = f"LX {place.start:,} of core {place.core}"
            if place.core is None:
                where = f"address {place.start_bytes:#x}"
            yield from _text(indent + 2, f"{box} at {where}", columns)
        if len(placed) > _MOST_PIECES:
            yield from _text(indent + 2, f"and {len(placed) - _MOST_PIECES} more", columns)


_MOST_PIECES = 8


def _operand(
    program: ProgramReading, item: OperationReading, position: int, indent: int, columns: int
) -> Iterator[str]:
    operand = item.operands[position]
    word = "writes" if operand.is_written else "reads" if operand.is_read else "has"
    gathered = {Indirection.INDEX: " as an index", Indirection.VALUE: " by index"}.get(operand.operand.indirection, "")
    yield from _text(indent, f"{word} {operand.name}{gathered}: {where_in_words(program, item, position)}", columns)
    layout = layout_in_words(item, position)
    yield from _text(indent + 2, ", ".join([layout, *scales_in_words(item, position)]), columns)


def where_in_words(program: ProgramReading, item: OperationReading, position: int) -> str:
    """Return in which memory an operand lies, where it begins, and how that moves with cores and loops."""
    operand = item.operands[position]
    first = operand.places[0]
    if operand.memory == "lx":
        past = first.offset + operand.geometry.buffer_bytes
        return f"LX {first.offset:,} to {past:,} of each core{_moves(item, operand)}"
    if operand.memory == "symbol":
        return f"device memory at {first.parameter or first.offset}"
    named = {
        "argument": f"argument {first.base}",
        "pool": "pool",
        "program": "memory that the program allocates",
        "segment": "device memory",
    }[operand.memory]
    steps = "".join(_rounds(program, first.steps))
    return f"{named}, from byte {first.offset:,}{_moves(item, operand)}{steps}"


def _rounds(program: ProgramReading, steps: Mapping[int, int]) -> Iterator[str]:
    if not steps:
        return
    names = {loop.loop.number: loop.name for loop in loops_of(program.body)}
    for number, step in steps.items():
        if step:
            yield f", {step:+,} each round of {names[number]}"


def _moves(item: OperationReading, operand: OperandReading) -> str:
    """Return how the starts of cores differ: by dim of the division where that explains them all."""
    places = operand.places
    if operand.memory == "lx" and len({place.offset for place in places}) == 1:
        return ""
    if len(places) == 1:
        return ""
    if len({place.offset for place in places}) == 1 and len({place.base for place in places}) == 1:
        return ", the same for all cores"
    steps = core_steps(item, operand)
    if steps is None:
        return ", each core at its own place"
    return "".join(f", {step:+,} each part of {dim}" for dim, step in steps.items() if step)


def core_steps(item: OperationReading, operand: OperandReading) -> dict[str, int] | None:
    """Return by divided dim how many bytes further the next part begins; ``None`` where no such numbers fit."""
    dsc, places = item.superdsc, operand.places
    if len(places) != len(dsc.core_work_slices) or len({place.base for place in places}) != 1:
        return None
    divided = [dim for dim, count in dsc.work_slices.items() if count > 1]
    rows = [tuple(map(slices.__getitem__, divided)) for slices in dsc.core_work_slices]
    by_slices = dict(zip(rows, (place.offset for place in places), strict=True))
    zero = by_slices.get((0,) * len(divided))
    units = [by_slices.get(tuple(int(other == dim) for other in divided)) for dim in divided]
    if zero is None or any(unit is None for unit in units):
        return None
    steps = {dim: unit - zero for dim, unit in zip(divided, units, strict=True) if unit is not None}
    fits = all(
        offset == zero + sum(number * steps[dim] for number, dim in zip(slices, divided, strict=True))
        for slices, offset in by_slices.items()
    )
    return steps if fits else None


def layout_in_words(item: OperationReading, position: int) -> str:
    """Return the device dims of an operand's buffer, outermost first, and its format."""
    operand, geometry = item.operands[position].operand, item.operands[position].geometry
    dims: list[str] = []
    for dim in reversed(operand.layout_dim_order):
        if dim not in geometry.extents:
            continue
        per = f"/{geometry.stick_size}" if dim == geometry.stick_dim else ""
        dims.append(f"{dim}{per}: {geometry.extents[dim]}")
    stick = "1" if geometry.stick_dim is None else geometry.stick_dim
    if geometry.pair_dim is not None:
        stick = f"{geometry.pair_dim} x {stick}"
    dims.append(f"stick of {geometry.stick_size} {stick}" if geometry.stick_dim is not None else "one lane of a stick")
    interleaved = ", halves of a stick interleaved" if operand.is_interleaved else ""
    return f"[{', '.join(dims)}] {operand.data_format.name} ({operand.label}){interleaved}"


def scales_in_words(item: OperationReading, position: int) -> list[str]:
    """Return what an operand has along dims that it does not extend along, and of a larger buffer."""
    operand = item.operands[position].operand
    said: list[str] = []
    one = [dim for dim in operand.layout_dim_order if operand.scales[dim] == -1]
    lane = [dim for dim in operand.layout_dim_order if operand.scales[dim] == -2]
    if one:
        said.append(f"one entry for all of {' and '.join(one)}")
    if lane:
        said.append(f"lane 0 of a stick for all of {' and '.join(lane)}")
    short = short_gap_dims(item.superdsc, operand)
    for dim, gap in operand.back_gap.items():
        if gap and dim in short:
            said.append(f"{gap} fewer along {dim} than the iteration")
        elif gap:
            own = item.superdsc.iteration[dim]
            said.append(f"window of {own} in {own + gap} along {dim}")
    return said


def _core(item: OperationReading, core: int, indent: int, columns: int) -> Iterator[str]:
    share = core_share(item, core)
    if share is None:
        yield from _text(indent, f"core {core} takes no part", columns)
        return
    ranges = ", ".join(f"{dim} {own}" for dim, own in share.iteration.items())
    yield from _text(indent, f"core {core}: {ranges}", columns)
    for operand, own in zip(item.operands, share.operands, strict=True):
        word = "writes" if operand.is_written else "reads"
        yield from _text(indent + 2, f"{word} {operand.name}{_elements(own)}{_bytes(operand, own)}", columns)


def _elements(own: OperandShare) -> str:
    if own.rows_of is not None:
        return f", rows that operand {own.rows_of} names"
    return "" if own.host is None else box_in_words(own.host)


def box_in_words(box: HostBox) -> str:
    """Return host indices as Python writes slices."""
    text = f"[{', '.join(map(str, box.ranges))}]"
    return text if box.is_full else f", some of {text}"


def _bytes(operand: OperandReading, own: OperandShare) -> str:
    if own.first_bytes is None or own.past_bytes is None:
        return " at nothing" if not own.elements else f" at {own.place.parameter}"
    first, past = own.first_bytes, own.past_bytes
    if operand.memory == "lx":
        return f" at LX {first:,} to {past:,}"
    address = device_address(operand, first)
    shown = "" if address is None else f", address {address:#x}"
    return f" at bytes {first:,} to {past:,}{shown}"


def device_address(operand: OperandReading, offset: int) -> int | None:
    """Return the address of a byte of an argument as compiled; ``None`` where only a launch knows it."""
    return None if operand.base_address is None else operand.base_address + offset


def names_of(operations: Sequence[OperationReading]) -> list[str]:
    """Return what operations are called by: numbers, files, functions, tensors that they write."""
    found: dict[str, None] = {}
    for item in operations:
        found.update(dict.fromkeys((str(item.number), item.call.file, item.superdsc.op_func_name, *item.results)))
    return list(found)
