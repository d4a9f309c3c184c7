"""What two manifests, or argument tables, say differently: options, arguments, how launches may repeat, predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from enum import Enum
from typing import cast

from spyrec.bundle.manifest import Argument, Manifest
from spyrec.bundle.tile_contract import TileArgument, TileContract, TileLoop
from spyrec.compare.changes import Fact, Topic
from spyrec.hardware.plan_record import PlanFigures, PlannedLoop, PlannedOperation, PlannedTensor, ResidentTensor

_SAID_ELSEWHERE = {
    "target", "arguments", "plan", "graph_sha256", "planned_with", "figures", "tile_steps", "tile_contracts",
    "pool_bytes",
}  # fmt: skip


def _follows_target(one: Manifest, other: Manifest) -> set[str]:
    """Return the options that differ as the targets do, which say it."""
    return {"has_windows"} if one.target.has_windows != other.target.has_windows else set()


def manifest_facts(one: Manifest | None, other: Manifest | None) -> Iterator[Fact]:
    """Yield what changed of what manifests say, but for what follows from the programs."""
    if one is None or other is None:
        if one is not other:
            yield Fact(Topic.PLAN, "", f"only the {'left' if other is None else 'right'} side has a manifest")
        return
    yield from _records(Topic.OPTIONS, "target", one.target, other.target)
    yield from _records(Topic.OPTIONS, "", one.planned_with, other.planned_with, except_for=_follows_target(one, other))
    yield from argument_facts(one.arguments, other.arguments)
    for item in fields(one):
        values = getattr(one, item.name), getattr(other, item.name)
        if item.name not in _SAID_ELSEWHERE and values[0] != values[1]:
            yield Fact(Topic.PLAN, "", _instead(item.name, *values))
    pools = [[step.pool_bytes for step in side.steps] for side in (one, other)]
    if one.pool_bytes != other.pool_bytes and pools[0] == pools[1]:  # else it is told of the programs
        yield Fact(Topic.PLAN, "", _instead("pool_bytes", one.pool_bytes, other.pool_bytes))
    yield from _contracts(one.tile_contracts, other.tile_contracts)
    for name in ("plan", "tile_steps"):
        steps = [getattr(side, name) for side in (one, other)]
        if len(steps[0]) != len(steps[1]):
            yield Fact(Topic.PLAN, "", _instead(f"{name} steps", len(steps[0]), len(steps[1])))
    if one.figures != other.figures:
        yield from _predictions(one.figures, other.figures)


def _contracts(one: Mapping[str, TileContract], other: Mapping[str, TileContract]) -> Iterator[Fact]:
    """Compare how launches may repeat programs: their loops, what of each argument they cut, and what follows."""
    for program in dict.fromkeys((*one, *other)):
        about = f"the tile contract of {program_name(program)}"
        mine, theirs = one.get(program), other.get(program)
        if mine is None or theirs is None:
            yield from _records(Topic.PLAN, about, mine, theirs)
            continue
        yield from _records(Topic.PLAN, about, mine, theirs, except_for={"arguments", "loops"})
        yield from _named_records(about, mine.loops, theirs.loops)
        yield from _named_records(about, mine.arguments, theirs.arguments)


def _named_records(
    about: str, one: Sequence[TileLoop | TileArgument], other: Sequence[TileLoop | TileArgument]
) -> Iterator[Fact]:
    sides = [{item.name: item for item in side} for side in (one, other)]
    if list(sides[0]) != list(sides[1]):
        yield Fact(Topic.PLAN, about, f"names {shown(tuple(sides[1]))} instead of {shown(tuple(sides[0]))}")
    for name in sides[0]:
        if name in sides[1]:
            found = _records(Topic.PLAN, name, sides[0][name], sides[1][name])
            yield from (Fact(Topic.PLAN, name, f"{fact.text}, in {about}") for fact in found)


def _instead(name: str, one: object, other: object) -> str:
    return f"{name.removeprefix('is_').replace('_', ' ')} {shown(other)} instead of {shown(one)}"


def shown(value: object) -> str:
    """Return a value as people read it, cut where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    items = _items(value)
    if any(isinstance(item, str | tuple) for item in items):
        return _cut(", ".join(map(_of_pair, items)))
    return _cut(str(value))


def _items(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."


def _of_pair(item: object) -> str:
    """Return one of a list's items; a result that an argument of another name holds is "z as z1"."""
    if isinstance(item, tuple):
        return " as ".join(dict.fromkeys(map(shown, cast(tuple[object, ...], item))))
    return shown(item)


def _records(
    topic: Topic, about: str, one: object, other: object, *, except_for: AbstractSet[str] = frozenset()
) -> Iterator[Fact]:
    """Compare two records field by field, some excepted; they are dataclasses, or absent."""
    if one is None or other is None:
        if one is not other:
            yield Fact(topic, about, f"is said by the {'left' if other is None else 'right'} side only")
        return
    for name in getattr(type(one), "__dataclass_fields__", {}):
        values = getattr(one, name), getattr(other, name)
        if name not in except_for and values[0] != values[1]:
            yield Fact(topic, about, _instead(name, *values))


def argument_facts(one: Sequence[Argument], other: Sequence[Argument], *, is_all_said: bool = True) -> Iterator[Fact]:
    """Compare arguments by name; unless ``is_all_said``, what one side does not say is no difference."""
    sides = [{item.name: item for item in arguments} for arguments in (one, other)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        mine, theirs = sides[0].get(name), sides[1].get(name)
        if mine is None or theirs is None:
            side = "left" if theirs is None else "right"
            yield Fact(Topic.ARGUMENTS, name, f"is an argument of the {side} side only")
            continue
        for item in ("role", "dtype", "shape", "host_strides", "symbolic_axes"):
            yield from _argument_field(Topic.ARGUMENTS, item, mine, theirs, is_all_said=is_all_said)
        for item in ("device_size", "stride_map", "device_dtype"):
            yield from _argument_field(Topic.LAYOUTS, item, mine, theirs, is_all_said=is_all_said)


def _argument_field(topic: Topic, field: str, one: Argument, other: Argument, *, is_all_said: bool) -> Iterator[Fact]:
    values = [getattr(item, field) for item in (one, other)]
    if values[0] != values[1] and (is_all_said or all(values)):
        yield Fact(topic, one.name, f"has {_instead(field, *values)}")


def _predictions(one: PlanFigures | None, other: PlanFigures | None) -> Iterator[Fact]:
    if one is None or other is None:
        yield Fact(Topic.PREDICTIONS, "", f"only the {'left' if other is None else 'right'} side predicts anything")
        return
    for name, unit in (
        ("simulated_us", "us"),
        ("hbm_read_bytes", "bytes"),
        ("hbm_write_bytes", "bytes"),
        ("flops", ""),
    ):
        values = getattr(one, name), getattr(other, name)
        if values[0] != values[1]:
            words = name.removesuffix("_bytes").replace("_us", "").replace("_", " ")
            text = f"{shown(values[1])} {unit}".strip() + f" instead of {shown(values[0])}"
            yield Fact(Topic.PREDICTIONS, words, text)
    for name, words in (("peak_bytes", "bytes at most"), ("usable_bytes", "usable bytes")):
        values = getattr(one.lx, name), getattr(other.lx, name)
        if values[0] != values[1]:
            yield Fact(Topic.PREDICTIONS, "LX", f"{values[1]:,} {words} instead of {values[0]:,}")


def prediction_facts(one: Manifest | None, other: Manifest | None) -> Iterator[Fact]:
    """Compare what is predicted piece by piece, of programs that are the same: else it follows from what is told.

    Names and the planner's reasons are no predictions.
    """
    if one is None or other is None or one.figures is None or other.figures is None:
        return
    mine, theirs = one.figures, other.figures
    planners = [None if item.lx.planner is None else item.lx.planner.version for item in (mine, theirs)]
    if planners[0] != planners[1] and one.planned_with == other.planned_with:
        yield Fact(Topic.OPTIONS, "", _instead("version of the lx planner", *planners))
    if mine.profile != theirs.profile and one.planned_with == other.planned_with:
        yield Fact(Topic.PREDICTIONS, "", _instead("profile", mine.profile, theirs.profile))
    for name in ("simulated_us_uncertainty", "lower_bound_bytes"):
        values = getattr(mine, name), getattr(theirs, name)
        if values[0] != values[1]:
            yield Fact(Topic.PREDICTIONS, "", _instead(name, *values))
    for what, *sides in (
        ("operation", mine.operations, theirs.operations),
        ("tensor", mine.tensors, theirs.tensors),
        ("loop", mine.loops, theirs.loops),
        ("tensor in LX", mine.lx.residents, theirs.lx.residents),
    ):
        yield from _pieces(what, *sides)


_Piece = PlannedOperation | PlannedTensor | PlannedLoop | ResidentTensor


def _pieces(what: str, one: Sequence[_Piece], other: Sequence[_Piece]) -> Iterator[Fact]:
    if len(one) != len(other):
        yield Fact(Topic.PREDICTIONS, what, f"is predicted of {len(other):,} instead of {len(one):,}")
        return
    for mine, theirs in zip(one, other, strict=True):
        if mine == theirs:
            continue
        for item in fields(mine):
            values = getattr(mine, item.name), getattr(theirs, item.name)
            if item.name not in _NAMES_OF_PIECES and values[0] != values[1]:
                about = str(getattr(mine, "output", None) or getattr(mine, "name", None) or getattr(mine, "dim", ""))
                yield Fact(Topic.PREDICTIONS, f"{what} {about}", f"has {_instead(item.name, *values)}")


_NAMES_OF_PIECES = {"name", "output", "dim"}


def program_name(folder: str) -> str:
    """Return what a program is called, by its directory in the bundle."""
    return "the program" if folder == "." else folder
