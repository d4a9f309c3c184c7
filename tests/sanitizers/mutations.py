"""Random bugs in compiled bundles: one statement or one SuperDSC changed, as a wrong compiler might have written it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.program import Constant, For, SdscExecute, Statement
from spyrec.bundle.superdsc import Component, SuperDsc
from tests.sanitizers.planting import with_operand

Mutation = Callable[[random.Random, DeviceProgram], DeviceProgram]


def mutated(bundle: Bundle, rng: random.Random) -> Bundle:
    """Return a bundle with one random bug in one of its programs; it may be none that anyone can tell."""
    programs = list(bundle.programs)
    chosen = rng.randrange(len(programs))
    programs[chosen] = rng.choice(_MUTATIONS)(rng, programs[chosen])
    return replace(bundle, programs=tuple(programs))


def _with_body(program: DeviceProgram, body: tuple[Statement, ...]) -> DeviceProgram:
    return replace(program, program=replace(program.program, body=body))


def _fewer_rounds(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """One constant is smaller: most often the end of a loop."""
    ends = {item.upper for item in _loops(program.program.body)}
    constants = [item for item in program.program.body if isinstance(item, Constant) and item.result in ends]
    if not constants:
        return program
    chosen = rng.choice(constants)
    smaller = replace(chosen, value=max(1, chosen.value - rng.randint(1, 3)))
    return _with_body(program, tuple(smaller if item is chosen else item for item in program.program.body))


def _no_call(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """One SuperDSC is never executed."""
    chosen = rng.choice(list(program.superdscs))
    kept = {name: item for name, item in program.superdscs.items() if name != chosen}
    return replace(_with_body(program, _without(program.program.body, chosen)), superdscs=kept)


def _swapped_calls(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """Two calls of one body change places, and with them the files."""
    names = list(program.superdscs)
    one, other = rng.choice(names), rng.choice(names)
    body = _renamed(program.program.body, {one: other, other: one})
    try:
        return _with_body(program, body)
    except AssertionError:
        return program


def _other_step(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """A loop advances an address by sticks more or less."""
    maps = list(program.program.maps)
    if not maps:
        return program
    chosen = rng.randrange(len(maps))
    coefficients = list(maps[chosen].coefficients)
    coefficients[rng.randrange(len(coefficients))] += 128 * rng.choice((-2, -1, 1, 2, 64))
    maps[chosen] = replace(maps[chosen], coefficients=tuple(coefficients))
    return replace(program, program=replace(program.program, maps=tuple(maps)))


def _other_start(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """An address is some sticks off: a constant that is no loop's bound."""
    bounds = {name for item in _loops(program.program.body) for name in (item.lower, item.upper, item.step)}
    constants = [item for item in program.program.body if isinstance(item, Constant) and item.result not in bounds]
    if not constants:
        return _other_scratchpad_start(rng, program)
    chosen = rng.choice(constants)
    moved = replace(chosen, value=max(0, chosen.value + 128 * rng.choice((-4, -1, 1, 2, 16))))
    return _with_body(program, tuple(moved if item is chosen else item for item in program.program.body))


def _other_scratchpad_start(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """An operand in LX is some sticks off on every core."""
    places = [
        (name, position)
        for name, superdsc in program.superdscs.items()
        for position, operand in enumerate(superdsc.operands)
        if operand.component is Component.LX
    ]
    if not places:
        return program
    name, position = rng.choice(places)
    by = 128 * rng.choice((-1, 1, 2, 8))
    starts = tuple(max(0, start + by) for start in program.superdscs[name].operands[position].start_addresses)
    changed = with_operand(program.superdscs[name], position, start_addresses=starts)
    return replace(program, superdscs={**program.superdscs, name: changed})


def _no_mask(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """A reduction over a ragged dim counts its padding lanes."""
    names = [name for name, superdsc in program.superdscs.items() if superdsc.coordinate_masking]
    return _changed(rng, program, names, lambda superdsc: replace(superdsc, coordinate_masking={}))


def _smaller_gap(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """A window takes its buffer for smaller than it is."""
    names = [n for n, item in program.superdscs.items() if any(any(o.back_gap.values()) for o in item.operands)]

    def change(superdsc: SuperDsc) -> SuperDsc:
        windows = [t for t, operand in enumerate(superdsc.operands) if any(operand.back_gap.values())]
        position = rng.choice(windows)
        gaps = dict(superdsc.operands[position].back_gap)
        dim = rng.choice([dim for dim, gap in gaps.items() if gap])
        gaps[dim] = rng.choice((0, max(0, gaps[dim] - 1), gaps[dim] + 1))
        return with_operand(superdsc, position, back_gap=gaps)

    return _changed(rng, program, names, change)


def _fewer_rows(rng: random.Random, program: DeviceProgram) -> DeviceProgram:
    """An operation leaves out the end of a dim that no cores share."""

    def change(superdsc: SuperDsc) -> SuperDsc:
        dims = [dim for dim, size in superdsc.iteration.items() if size > 1 and superdsc.work_slices[dim] == 1]
        if not dims:
            return superdsc
        dim = rng.choice(dims)
        extent = superdsc.iteration[dim] - rng.randint(1, superdsc.iteration[dim] - 1)
        return replace(
            superdsc,
            iteration={**superdsc.iteration, dim: extent},
            core_extent={**superdsc.core_extent, dim: extent},
        )

    return _changed(rng, program, list(program.superdscs), change)


def _changed(
    rng: random.Random, program: DeviceProgram, names: list[str], change: Callable[[SuperDsc], SuperDsc]
) -> DeviceProgram:
    if not names:
        return program
    chosen = rng.choice(names)
    return replace(program, superdscs={**program.superdscs, chosen: change(program.superdscs[chosen])})


def _loops(body: tuple[Statement, ...]) -> Iterator[For]:
    for item in body:
        if isinstance(item, For):
            yield item
            yield from _loops(item.body)


def _without(body: tuple[Statement, ...], file: str) -> tuple[Statement, ...]:
    kept = (item for item in body if not (isinstance(item, SdscExecute) and item.sdsc_filename == file))
    return tuple(replace(item, body=_without(item.body, file)) if isinstance(item, For) else item for item in kept)


def _renamed(body: tuple[Statement, ...], names: dict[str, str]) -> tuple[Statement, ...]:
    """Return the statements with files called in each other's places, each with its own operands, where it can be."""
    calls = {item.sdsc_filename: item for item in body if isinstance(item, SdscExecute)}
    found: list[Statement] = []
    for item in body:
        if isinstance(item, For):
            found.append(replace(item, body=_renamed(item.body, names)))
        elif isinstance(item, SdscExecute):
            found.append(calls.get(names.get(item.sdsc_filename, item.sdsc_filename), item))
        else:
            found.append(item)
    # what calls take has to be computed before the first of them
    return tuple(sorted(found, key=lambda item: isinstance(item, SdscExecute | For)))


_MUTATIONS: tuple[Mutation, ...] = (
    _fewer_rounds, _no_call, _swapped_calls, _other_step, _other_start, _other_scratchpad_start, _no_mask, _smaller_gap,
    _fewer_rows,
)  # fmt: skip
