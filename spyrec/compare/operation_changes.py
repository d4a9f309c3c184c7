"""What changed in one operation: its function, division, loops, and of each operand tensor, layout and place.

Symbols, names and numbers are resolved before (``bundle_reading``).  What follows from another change is not told
again: where an operation is divided otherwise, its cores begin elsewhere, and only a core that does not begin where its
own slice says is a change of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import Enum

from spyrec.bundle.superdsc import ConstantEntry, Indirection, Operand, SuperDsc
from spyrec.compare.bundle_reading import OperandReading, OperationReading
from spyrec.compare.changes import Fact, Topic
from spyrec.dataclass import dataclass
from spyrec.emulator.resolve import AddressPlace

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class OperationPair:
    """An operation of either side that are the same one.

    ``partners``: by number of an operation of the right side the number of its partner on the left one.  ``loops``: by
    number of a loop of the right side that of the left one; ``names``: how the left side's loops are called.
    """

    left: OperationReading
    right: OperationReading
    partners: Mapping[int, int]
    loops: Mapping[int, int]
    names: Mapping[int, str]

    @property
    def label(self) -> str:
        """What it is called: its number on the left side and its function."""
        return label_of(self.left)

    def fact(self, topic: Topic, about: str, text: str) -> Fact:
        """Return a fact about this operation."""
        return Fact(topic, about, text, self.label)


def label_of(operation: OperationReading) -> str:
    """Return the number of an operation and its function."""
    return f"{operation.number} {operation.superdsc.op_func_name}"


def operation_facts(pair: OperationPair) -> Iterator[Fact]:
    """Yield what changed in an operation."""
    one, other = pair.left.superdsc, pair.right.superdsc
    is_same_text = one is other or replace(one, index=other.index) == other
    yield from _schedule(pair)
    if not is_same_text:
        yield from _function(pair, one, other)
        yield from _division(pair, one, other)
        yield from _numbers(pair, one, other)
    if len(one.operands) != len(other.operands):
        yield pair.fact(Topic.OPERATIONS, "", f"has {len(other.operands)} operands instead of {len(one.operands)}")
        return
    for position in range(len(one.operands)):
        yield from _operand(pair, position, is_same_text=is_same_text)


def _schedule(pair: OperationPair) -> Iterator[Fact]:
    places = [item.call.place for item in (pair.left, pair.right)]
    bare = [None if place is None else replace(place, group=0, part=None) for place in places]
    if bare[0] != bare[1]:
        yield pair.fact(Topic.OPERATIONS, "", "has another schedule or moves other pieces")


def _function(pair: OperationPair, one: SuperDsc, other: SuperDsc) -> Iterator[Fact]:
    if one.op_func_name != other.op_func_name:
        text = f"is {other.op_func_name} instead of {one.op_func_name}"
        yield pair.fact(Topic.OPERATIONS, "", text)
    for name in ("execution_unit", "data_format", "inputs", "outputs", "indirect_access_indices"):
        sides = [getattr(item.compute, name) for item in (one, other)]
        if sides[0] != sides[1]:
            words = name.replace("_", " ")
            yield pair.fact(Topic.OPERATIONS, "", f"has {words} {_shown(sides[1])} instead of {_shown(sides[0])}")
    if one.debug_handle != other.debug_handle:
        told = [item.provenance or "nothing" for item in (one, other)]
        text = "has another debug handle" if told[0] == told[1] else f"comes from {told[1]} instead of {told[0]}"
        yield pair.fact(Topic.ORIGINS, "", text)
    if one.dialect != other.dialect:
        yield pair.fact(Topic.OPTIONS, "", f"has the form of {other.dialect.name} instead of {one.dialect.name}")


def _division(pair: OperationPair, one: SuperDsc, other: SuperDsc) -> Iterator[Fact]:
    if list(one.iteration) != list(other.iteration):
        text = f"iterates over {', '.join(other.iteration)} instead of {', '.join(one.iteration)}"
        yield pair.fact(Topic.OPERATIONS, "", text)
    for dim in one.iteration:
        if dim in other.iteration and one.iteration[dim] != other.iteration[dim]:
            text = f"has extent {other.iteration[dim]} instead of {one.iteration[dim]}"
            yield pair.fact(Topic.OPERATIONS, dim, text)
        counts = one.work_slices[dim], other.work_slices.get(dim)
        if counts[1] is not None and counts[0] != counts[1]:
            yield pair.fact(Topic.DIVISIONS, dim, f"is in {_parts(counts[1])} instead of {counts[0]}")
    if len(one.core_ids) != len(other.core_ids):
        cores = f"runs on {_cores(len(other.core_ids))} instead of {len(one.core_ids)}"
        yield pair.fact(Topic.DIVISIONS, "", cores)
    elif one.core_ids != other.core_ids:
        yield pair.fact(
            Topic.DIVISIONS, "", f"runs on cores {_shown(other.core_ids)} instead of {_shown(one.core_ids)}"
        )
    elif dict(one.work_slices) == dict(other.work_slices) and one.core_work_slices != other.core_work_slices:
        moved = [
            core
            for core, *slices in zip(one.core_ids, one.core_work_slices, other.core_work_slices, strict=True)
            if slices[0] != slices[1]
        ]
        yield pair.fact(Topic.DIVISIONS, "", f"gives {_core_list(moved)} other slices")


def _parts(count: int) -> str:
    return f"{count} part{'s'[: count != 1]}"


def _cores(count: int) -> str:
    return f"{count} core{'s'[: count != 1]}"


def _core_list(cores: Sequence[int]) -> str:
    shown = ", ".join(map(str, cores[:4])) + (", ..." if len(cores) > 4 else "")
    return f"core{'s'[: len(cores) != 1]} {shown}"


def _shown(value: object) -> str:
    text = value.name if isinstance(value, Enum) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _numbers(pair: OperationPair, one: SuperDsc, other: SuperDsc) -> Iterator[Fact]:
    """Yield what changed of constants, masks, windows and dynamic sizes, and whatever else there may be."""
    sides: list[dict[str, ConstantEntry]] = [{item.name: item for item in dsc.constants} for dsc in (one, other)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        entries = [side.get(name) for side in sides]
        if entries[0] != entries[1]:
            yield pair.fact(Topic.CONSTANTS, name, f"is {_constant(entries[1])} instead of {_constant(entries[0])}")
    if one.constants != other.constants and sides[0] == sides[1]:
        yield pair.fact(Topic.CONSTANTS, "", "has its constants in another order")
    if dict(one.coordinate_masking) != dict(other.coordinate_masking):
        text = f"masks {_ranges(other)} instead of {_ranges(one)}"
        yield pair.fact(Topic.CONSTANTS, "", text)
    told = {
        "index", "op_func_name", "core_ids", "iteration", "work_slices", "core_work_slices", "operands", "constants",
        "coordinate_masking", "compute", "debug_handle", "dialect", "schedule", "core_extent",
    }  # fmt: skip
    for item in fields(one):
        values = getattr(one, item.name), getattr(other, item.name)
        if item.name not in told and values[0] != values[1]:
            yield pair.fact(Topic.LAYOUTS if item.name == "labels" else Topic.OPERATIONS, "", _other(item.name))
    is_divided_alike = one.iteration == other.iteration and one.work_slices == other.work_slices
    if is_divided_alike and dict(one.core_extent) != dict(other.core_extent):
        yield pair.fact(Topic.DIVISIONS, "", "has other extents of a core")


def _other(field: str) -> str:
    return f"has other {field.replace('_', ' ')}"


def _constant(entry: ConstantEntry | None) -> str:
    return "absent" if entry is None else f"{entry.bits:#x} ({entry.data_format.name})"


def _ranges(dsc: SuperDsc) -> str:
    ranges = [
        f"{dim} {first}:{first + count}" for dim, found in dsc.coordinate_masking.items() for first, count in found
    ]
    return " and ".join(ranges) or "nothing"


_TOLD_OF_OPERANDS = {"start_addresses", "is_symbolic", "component", "label", "distribution"}


def _operand(pair: OperationPair, position: int, *, is_same_text: bool) -> Iterator[Fact]:
    one, other = pair.left.operands[position], pair.right.operands[position]
    about = one.name
    if not _is_same_tensor(pair, one, other):
        verb = "writes" if one.is_written else "reads"
        yield pair.fact(Topic.OPERATIONS, "", f"{verb} {other.name} instead of {one.name} (operand {position})")
        return
    if not is_same_text:
        yield from _layout(pair, position, about)
    if one.memory != other.memory:
        topic = Topic.LX if "lx" in {one.memory, other.memory} else Topic.ADDRESSES
        yield pair.fact(topic, about, f"lies in {_memory(other)} instead of {_memory(one)}")
        return
    yield from _places(pair, position, about)


def _memory(item: OperandReading) -> str:
    return {"lx": "LX", "pool": "the pool", "argument": "an argument", "program": "the program's own memory"}.get(
        item.memory, item.memory
    )


def _is_same_tensor(pair: OperationPair, one: OperandReading, other: OperandReading) -> bool:
    is_argument = [item.memory in {"argument", "segment", "symbol"} for item in (one, other)]
    if all(is_argument):
        return one.name == other.name
    if any(is_argument):
        return one.is_written and other.is_written  # the result lies elsewhere now
    mapped = None if other.producer is None else pair.partners.get(other.producer)
    return one.producer == mapped


def _layout(pair: OperationPair, position: int, about: str) -> Iterator[Fact]:
    """Yield what changed of an operand's layout, formats and indirection."""
    dscs = pair.left.superdsc, pair.right.superdsc
    one, other = (dsc.operands[position] for dsc in dscs)
    labels = [dsc.labels[item.label] for dsc, item in zip(dscs, (one, other), strict=True)]
    if one.layout_dim_order != other.layout_dim_order:
        text = f"is laid out [{_order(other)}] instead of [{_order(one)}], outermost first"
        yield pair.fact(Topic.LAYOUTS, about, text)
    if (labels[0].stick_dims, labels[0].stick_sizes) != (labels[1].stick_dims, labels[1].stick_sizes):
        sticks = [f"{'x'.join(map(str, item.stick_sizes))} of {' x '.join(item.stick_dims)}" for item in labels]
        yield pair.fact(Topic.LAYOUTS, about, f"has sticks of {sticks[1]} instead of {sticks[0]}")
    for dim, scale in one.scales.items():
        if dim in other.scales and other.scales[dim] != scale:
            text = f"has scale {other.scales[dim]} instead of {scale} along {dim}"
            yield pair.fact(Topic.LAYOUTS, about, text)
    for dim in dict.fromkeys((*one.back_gap, *other.back_gap)):
        gaps = one.back_gap.get(dim, 0), other.back_gap.get(dim, 0)
        if gaps[0] != gaps[1]:
            yield pair.fact(Topic.LAYOUTS, about, f"has a gap of {gaps[1]} instead of {gaps[0]} along {dim}")
    if one.data_format is not other.data_format:
        text = f"has format {other.data_format.name} instead of {one.data_format.name}"
        yield pair.fact(Topic.LAYOUTS, about, text)
    known = _TOLD_OF_OPERANDS | {"layout_dim_order", "scales", "back_gap", "data_format"}
    for item in fields(one):
        values = getattr(one, item.name), getattr(other, item.name)
        if item.name not in known and values[0] != values[1]:
            text = f"has {item.name.replace('_', ' ')} {_shown(values[1])} instead of {_shown(values[0])}"
            yield pair.fact(Topic.LAYOUTS, about, text)
    if one.label != other.label:
        yield pair.fact(Topic.LAYOUTS, about, f"has label {other.label} instead of {one.label}")
    if one.distribution != other.distribution:
        yield pair.fact(Topic.DIVISIONS, about, "is owned by the cores otherwise")


def _order(operand: Operand) -> str:
    return ", ".join(reversed(operand.layout_dim_order))


def _places(pair: OperationPair, position: int, about: str) -> Iterator[Fact]:
    """Yield where an operand begins now, core by core, and how that moves in loops."""
    one, other = pair.left.operands[position], pair.right.operands[position]
    topic = Topic.LX if one.memory == "lx" else Topic.ADDRESSES
    if not one.places or not other.places:
        return
    steps = _steps(one.places[0], {}), _steps(other.places[0], pair.loops)
    if steps[0] != steps[1]:
        for loop in dict.fromkeys((*steps[0], *steps[1])):
            sides = [item.get(loop, 0) for item in steps]
            if sides[0] != sides[1]:
                name = pair.names.get(loop, f"loop {loop}")
                text = f"moves {sides[1]:,} bytes instead of {sides[0]:,} each round of {name}"
                yield pair.fact(topic, about, text)
    for which, item in (("left", one), ("right", other)):
        if any(place.steps for place in item.places) and any(
            _steps(place, {}) != _steps(item.places[0], {}) for place in item.places
        ):
            yield pair.fact(topic, about, f"moves otherwise on some cores than on others on the {which} side")
    rows = _rows(pair)
    if rows is None:
        yield from _origins(pair, position, about, topic)
        return
    shifts: dict[int, list[int]] = {}
    for core, mine, theirs in rows:
        shift = other.places[theirs].offset - one.places[mine].offset
        if (one.places[mine].parameter, one.places[mine].base is None) != (
            other.places[theirs].parameter, other.places[theirs].base is None,
        ):  # fmt: skip
            yield pair.fact(topic, about, f"is bound to another symbol on core {core}")
        elif shift:
            shifts.setdefault(shift, []).append(core)
    for shift, cores in shifts.items():
        where = "" if len(cores) == len(one.places) else f" on {_core_list(cores)}"
        yield pair.fact(topic, about, f"starts {_shift(shift)}{where}")


def _shift(shift: int) -> str:
    return f"{abs(shift):,} byte{'s'[: abs(shift) != 1]} {'later' if shift > 0 else 'earlier'}"


def _steps(place: AddressPlace, loops: Mapping[int, int]) -> dict[int, int]:
    return {loops.get(loop, loop): step for loop, step in place.steps.items() if step}


def _rows(pair: OperationPair) -> list[tuple[int, int, int]] | None:
    """Return core, and its place on either side, where all cores have the same slices on both; else ``None``."""
    one, other = pair.left.superdsc, pair.right.superdsc
    if pair.left.call.data_dsc is not None or one.core_ids != other.core_ids:
        is_same = len(pair.left.operands) == len(pair.right.operands)
        return [] if pair.left.call.data_dsc is not None and is_same else None
    if one.core_work_slices != other.core_work_slices or dict(one.core_extent) != dict(other.core_extent):
        return None
    return [(core, row, row) for row, core in enumerate(one.core_ids)]


def _origins(pair: OperationPair, position: int, about: str, topic: Topic) -> Iterator[Fact]:
    """Compare where the whole operand begins, and each core with where its own slice says, where division changed."""
    starts: list[int] = []
    for side, which in ((pair.left, "left"), (pair.right, "right")):
        item, dsc = side.operands[position], side.superdsc
        deviations = [place.offset - own for place, own in zip(item.places, expected_offsets(side, position))]
        starts.append(Counter(deviations).most_common(1)[0][0])
        astray = [core for core, own in zip(dsc.core_ids, deviations, strict=True) if own != starts[-1]]
        is_even = not dsc.padding_sizes and item.operand.indirection is Indirection.NONE
        if astray and is_even and item.operand.distribution is None:
            yield pair.fact(topic, about, f"starts astray on {_core_list(astray)} on the {which} side")
    if starts[0] != starts[1]:
        yield pair.fact(topic, about, f"starts {_shift(starts[1] - starts[0])}")


def expected_offsets(side: OperationReading, position: int) -> list[int]:
    """Return how far each core begins behind the whole operand: its slice's elements, by the operand's strides."""
    item, dsc = side.operands[position], side.superdsc
    if item.memory == "lx":
        return [0] * len(dsc.core_work_slices)
    offsets = [0] * len(dsc.core_work_slices)
    for dim in item.geometry.stride_sticks:
        numbers = [slices[dim] for slices in dsc.core_work_slices]
        table = {number: item.geometry.offset(dim, number * dsc.core_extent[dim]) for number in set(numbers)}
        offsets = [offset + table[number] for offset, number in zip(offsets, numbers)]
    return offsets
