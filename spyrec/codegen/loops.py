"""Counted loops over OpSpecs: which operand moves along which loop, by how much, and unrolling.

A tile step is taken from the device layout: the change of each device coordinate over one tile, times the distance of
neighbours on that device axis (``docs/compatibility.md``: torch-spyre's two ways of computing it are not reproduced).
Newer OpSpecs say it themselves, operand by operand (``tile_advance``).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from spyrec.codegen.opspec import LoopSpec, OpSpec, TensorArgument
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.hardware.target import STICK_BYTES

MAX_UNROLLED = 100_000
"""SuperDSCs that unrolling may produce before it is refused: each is a file."""


@dataclass(frozen=True, slots=True)
class EnclosingLoop:
    """One loop around an operation: its number in the program, trip count, and the symbols it tiles."""

    number: int
    count: int
    tiled_symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlacedOp:
    """An operation with the loops around it, outermost first, and its place in the input."""

    spec: OpSpec
    loops: tuple[EnclosingLoop, ...]
    location: Location | None


def tiled_by(op: PlacedOp) -> tuple[tuple[str, ...], ...]:
    """Return the symbols of the operation that each enclosing loop tiles, outermost first.

    A loop that names no symbols takes its share of the operation's ``tiled_symbols`` in order.  Errors: SPY0523 where
    that leaves a choice, or a tiled symbol without a loop.
    """
    space = {dim.symbol for dim in op.spec.iteration_space}
    wanted = op.spec.tiled_symbols or tuple(symbol for loop in op.loops for symbol in loop.tiled_symbols)
    named = {symbol for loop in op.loops for symbol in loop.tiled_symbols}
    free = [symbol for symbol in wanted if symbol not in named and symbol in space]
    silent = sum(not loop.tiled_symbols for loop in op.loops)
    if free and len(free) != silent and silent != 1:
        raise refuse(
            "SPY0523",
            f"{', '.join(free)} are tiled, but {silent} enclosing loops without symbols leave open by which",
            None if op.location is None else op.location.child("tiled_symbols"),
            hint='name the symbols in "tiled_symbols" of each loop',
        )
    shares = iter([tuple(free)] if silent == 1 else [(symbol,) for symbol in free])
    return tuple(
        tuple(symbol for symbol in loop.tiled_symbols if symbol in space and symbol in wanted)
        if loop.tiled_symbols
        else next(shares, ())
        for loop in op.loops
    )


def coordinate_steps(op: PlacedOp, position: int) -> tuple[tuple[int, ...], ...]:
    """Return how far operand ``position`` moves per iteration of each loop, per device axis.

    A symbol that several loops tile moves by one tile in the innermost of them, and by all tiles inside it in the
    others.  Errors: SPY0523 a tile that is no whole number of sticks, or tiles that leave the buffer.
    """
    argument = op.spec.args[position]
    axes = len(argument.device_size)
    if argument.per_tile_fixed:
        return tuple((0,) * axes for _ in op.loops)
    if argument.moves is not None:
        _check_inside(op, position, argument.moves)
        return argument.moves
    tiles = {dim.symbol: dim.size for dim in op.spec.iteration_space}
    steps: list[tuple[int, ...]] = []
    for loop, symbols in reversed(list(zip(op.loops, tiled_by(op), strict=True))):
        advance = {symbol: tiles[symbol] for symbol in symbols}
        steps.append(_moves(argument, advance, _at(op, position)))
        tiles.update({symbol: tiles[symbol] * loop.count for symbol in symbols})
    result = tuple(reversed(steps))
    _check_inside(op, position, result)
    return result


def _at(op: PlacedOp, position: int) -> Location | None:
    return None if op.location is None else op.location.child("args", position)


def _moves(argument: TensorArgument, advance: dict[str, int], location: Location | None) -> tuple[int, ...]:
    if not advance:
        return (0,) * len(argument.device_size)
    rows = {name: 0 for coordinate in argument.device_coordinates for name in coordinate.indirect_names}
    moves = tuple(
        coordinate.evaluate(advance, rows) - coordinate.evaluate({}, rows) for coordinate in argument.device_coordinates
    )
    last = argument.device_coordinates[-1]
    if moves[-1] or any(advance.get(symbol, 0) % argument.device_size[-1] for symbol in last.symbols):
        raise refuse(
            "SPY0523",
            f"tiles of {', '.join(f'{size} along {symbol}' for symbol, size in advance.items())} are no whole sticks "
            f"of {argument.device_size[-1]} elements",
            location,
            hint="tile the stick dim by whole sticks",
        )
    return moves


def _check_inside(op: PlacedOp, position: int, steps: tuple[tuple[int, ...], ...]) -> None:
    argument = op.spec.args[position]
    for axis, size in enumerate(argument.device_size[:-1]):
        coordinate = argument.device_coordinates[axis]
        if coordinate.indirect_names:
            continue
        last_tile = sum((max(loop.count, 1) - 1) * step[axis] for loop, step in zip(op.loops, steps, strict=True))
        extent = coordinate.evaluate({dim.symbol: dim.size - 1 for dim in op.spec.iteration_space}) + 1
        if last_tile and last_tile + extent > size:
            raise refuse(
                "SPY0523",
                f"the last tile ends at {last_tile + extent} of device dim {axis}, which has size {size}",
                _at(op, position),
                hint='give the full device_size, or mark a buffer that every tile reuses "per_tile_fixed"',
            )


def tile_steps(op: PlacedOp, position: int) -> tuple[int, ...]:
    """Return how many bytes operand ``position`` moves per iteration of each loop, outermost first.

    An operation with ``tiled_levels`` says it by the operands' ``tile_advance``.  Errors: SPY0523.
    """
    argument = op.spec.args[position]
    if op.spec.tiled_levels is not None and argument.moves is None:
        return _advances(op, position, op.spec.tiled_levels)
    return tuple(_step_bytes(argument, moves) for moves in coordinate_steps(op, position))


def _advances(op: PlacedOp, position: int, levels: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    argument, at = op.spec.args[position], _at(op, position)
    if len(levels) != len(op.loops):
        fact = f"tiled_levels names {len(levels)} loops, {len(op.loops)} are around the operation"
        raise refuse("SPY0523", fact, None if op.location is None else op.location.child("tiled_levels"))
    advance = argument.tile_advance
    if advance is None:
        return (0,) * len(levels)
    known = {symbol for level in levels for symbol in level}
    if advance.indirect_names or not set(advance.symbols) <= known:
        names = ", ".join(sorted(known)) or "none"
        fact = f'tile_advance "{advance}" is in other symbols than those of the loops, {names}'
        raise refuse("SPY0523", fact, None if at is None else at.child("tile_advance"))
    still = dict.fromkeys(known, 0)
    elements = tuple(
        advance.evaluate(still | dict.fromkeys(level, 1)) - advance.evaluate(still) if level else 0 for level in levels
    )
    lanes = argument.device_dtype.elements_per_stick
    assert lanes is not None, "formats without sticks hold no tensor"
    if any(step % lanes for step in elements):
        fact = f'tile_advance "{advance}" is no whole number of sticks of {lanes} elements'
        raise refuse("SPY0523", fact, None if at is None else at.child("tile_advance"))
    steps = tuple(step // lanes * STICK_BYTES for step in elements)
    _check_advance(op, position, steps)
    return steps


def _check_advance(op: PlacedOp, position: int, steps: tuple[int, ...]) -> None:
    """Check that no tile leaves the buffer; the extents of gathered dims are not known here."""
    argument = op.spec.args[position]
    if any(coordinate.indirect_names for coordinate in argument.device_coordinates):
        return
    last = {dim.symbol: dim.size - 1 for dim in op.spec.iteration_space}
    moves = [step * (max(loop.count, 1) - 1) for loop, step in zip(op.loops, steps, strict=True)]
    sizes = argument.device_size
    begin = sum(
        coordinate.evaluate(last) * prod(sizes[axis + 1 : -1])
        for axis, coordinate in enumerate(argument.device_coordinates[:-1])
    )
    past = (begin + 1) * STICK_BYTES + sum(move for move in moves if move > 0)
    size_bytes = prod(sizes[:-1]) * STICK_BYTES
    if sum(move for move in moves if move < 0) < 0 or past > size_bytes:
        at = _at(op, position)
        fact = f"the last tile ends at byte {past} of a buffer of {size_bytes} bytes"
        hint = "give the full device_size, or leave tile_advance out for a buffer that every tile reuses"
        raise refuse("SPY0523", fact, None if at is None else at.child("tile_advance"), hint=hint)


def _step_bytes(argument: TensorArgument, moves: tuple[int, ...]) -> int:
    sizes = argument.device_size
    sticks = sum(move * prod(sizes[axis + 1 : -1]) for axis, move in enumerate(moves[:-1]))
    return sticks * STICK_BYTES


def without_tiled_symbols(specs: tuple[OpSpec | LoopSpec, ...]) -> tuple[OpSpec | LoopSpec, ...]:
    """Return the specs as a writer reads them that knows ``tiled_levels`` only."""
    return tuple(
        replace(spec, tiled_symbols=(), body=without_tiled_symbols(spec.body))
        if isinstance(spec, LoopSpec)
        else replace(spec, tiled_symbols=())
        for spec in specs
    )


def unrolled(op: PlacedOp, iterations: tuple[int, ...]) -> OpSpec:
    """Return the operation as it is in one iteration of each enclosing loop: its windows moved, no loops left."""
    arguments = tuple(
        _advanced(argument, tile_steps(op, position), iterations)
        if op.spec.tiled_levels is not None and argument.moves is None
        else _moved(argument, coordinate_steps(op, position), iterations)
        for position, argument in enumerate(op.spec.args)
    )
    return replace(op.spec, args=arguments, tiled_symbols=(), tiled_levels=None)


def _advanced(argument: TensorArgument, steps: tuple[int, ...], iterations: tuple[int, ...]) -> TensorArgument:
    total = sum(step * iteration for step, iteration in zip(steps, iterations, strict=True))
    own = argument.allocation
    return replace(argument, allocation=replace(own, start_bytes=own.start_bytes + total), tile_advance=None)


def _moved(argument: TensorArgument, steps: tuple[tuple[int, ...], ...], iterations: tuple[int, ...]) -> TensorArgument:
    totals = [
        sum(step[axis] * iteration for step, iteration in zip(steps, iterations, strict=True))
        for axis in range(len(argument.device_size))
    ]
    if not any(totals):
        return replace(argument, moves=None)
    coordinates = tuple(
        coordinate + total if total else coordinate
        for coordinate, total in zip(argument.device_coordinates, totals, strict=True)
    )
    return replace(argument, device_coordinates=coordinates, moves=None)


def count_unrolled(specs: tuple[OpSpec | LoopSpec, ...]) -> int:
    """Return how many SuperDSCs the specs unroll to."""
    return sum(spec.count * count_unrolled(spec.body) if isinstance(spec, LoopSpec) else 1 for spec in specs)
