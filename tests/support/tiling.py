"""A compiled bundle rewritten by hand: operations looped over tiles of a dim, tensors of the pool moved to LX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.device_program import DeviceProgram, executes
from spyrec.bundle.program import AffineApply, AffineMap, Constant, For, SdscExecute, Statement
from spyrec.bundle.superdsc import Component, Operand, SuperDsc
from spyrec.hardware.target import STICK_BYTES


def looped(
    bundle: Bundle, dim: str, count: int, files: Sequence[str] | None = None, rounds: int | None = None
) -> Bundle:
    """Return a bundle of one program that executes consecutive files in ``count`` tiles of a dim, one after the other.

    ``rounds``: stop after so many of the tiles.

    Its addresses have to be symbolic, and no operation divides the dim among cores.
    """
    (program,) = bundle.programs
    names = list(program.superdscs) if files is None else list(files)
    tiles = {name: tiled(program.superdscs[name], dim, count) for name in names}
    calls = list(executes(program.program.body))
    before = [item for item in program.program.body if not isinstance(item, SdscExecute | For)]
    others = [item for item in program.program.body if isinstance(item, SdscExecute | For)]
    variable = f"i{len(before)}"
    maps = {item.coefficients[0]: item for item in program.program.maps}
    body: list[Statement] = []
    for call in calls:
        if call.sdsc_filename in names:
            steps = tile_steps(program.superdscs[call.sdsc_filename], dim, count)
            body += _moved(call, variable, steps, maps)
    bounds = [Constant(f"{variable}_{name}", value) for name, value in zip(_BOUNDS, (0, rounds or count, 1))]
    first, past, step = (bound.result for bound in bounds)
    loop = For(variable, first, past, step, tuple(body))
    place = next(number for number, item in enumerate(others) if getattr(item, "sdsc_filename", None) in names)
    kept = [item for item in others if getattr(item, "sdsc_filename", None) not in names]
    changed = replace(
        program.program,
        maps=tuple(maps.values()),
        body=(*before, *bounds, *kept[:place], loop, *kept[place:]),
    )
    return replace(bundle, programs=(replace(program, program=changed, superdscs={**program.superdscs, **tiles}),))


_BOUNDS = ("first", "past", "step")


def _moved(call: SdscExecute, variable: str, steps: Mapping[int, int], maps: dict[int, AffineMap]) -> list[Statement]:
    """Return a call whose addresses are moved by the loop variable; ``steps``: bytes by symbol id."""
    body: list[Statement] = []
    operands: list[str] = []
    for name, identity in zip(call.operands, call.symbol_ids or (), strict=True):
        step = steps[identity]
        own = maps.setdefault(step, AffineMap(f"step_{step}", (step,)))
        result = f"{name}_{call.sdsc_filename.removesuffix('.json')}_{-identity}"
        body.append(AffineApply(result, own.name, (variable,), name))
        operands.append(result)
    return [*body, replace(call, operands=tuple(operands))]


def tiled(superdsc: SuperDsc, dim: str, count: int) -> SuperDsc:
    """Return one tile of an operation; what lies in device memory becomes a window in its buffer."""
    whole = superdsc.iteration[dim]
    assert superdsc.work_slices[dim] == 1
    assert whole % count == 0
    extents = {**superdsc.iteration, dim: whole // count}
    gap = {dim: whole - whole // count}
    operands = tuple(
        replace(item, back_gap={**item.back_gap, **gap})
        if item.component is Component.HBM and item.scales.get(dim) == 1
        else item
        for item in superdsc.operands
    )
    cores = {**superdsc.core_extent, dim: whole // count}
    return replace(superdsc, iteration=extents, core_extent=cores, operands=operands)


def tile_steps(superdsc: SuperDsc, dim: str, count: int) -> dict[int, int]:
    """Return the bytes from one tile to the next by symbol id."""
    steps: dict[int, int] = {}
    for operand in superdsc.operands:
        step = _stride(superdsc, operand, dim) * superdsc.iteration[dim] // count
        steps.update(dict.fromkeys(operand.start_addresses, step))
    return steps


def _stride(superdsc: SuperDsc, operand: Operand, dim: str) -> int:
    label = superdsc.labels[operand.label]
    extents: list[int] = []
    for other in operand.layout_dim_order:
        if other == dim:
            break
        if operand.scales[other] == 1:
            extent = superdsc.iteration[other] + operand.back_gap.get(other, 0)
            extents.append(-(-extent // label.stick_size) if other == label.stick_dim else extent)
    if operand.scales[dim] != 1:
        return 0
    assert dim != label.stick_dim
    return STICK_BYTES * prod(extents)


def in_scratchpad(bundle: Bundle, operands: Sequence[tuple[str, int]], start: int) -> Bundle:
    """Return a bundle of one program in which operands (file, position) lie at ``start`` in every core's LX."""
    (program,) = bundle.programs
    for file, position in operands:
        program = _in_scratchpad(program, file, position, start)
    return replace(bundle, programs=(program,))


def _in_scratchpad(program: DeviceProgram, file: str, position: int, start: int) -> DeviceProgram:
    superdsc = program.superdscs[file]
    operand = superdsc.operands[position]
    gone = frozenset(operand.start_addresses)
    starts = (start,) * len(superdsc.core_ids)
    moved = replace(operand, component=Component.LX, start_addresses=starts, is_symbolic=False, back_gap={})
    changed = replace(
        superdsc, operands=tuple(moved if place == position else item for place, item in enumerate(superdsc.operands))
    )
    body = tuple(_unbound(item, file, gone) for item in program.program.body)
    return replace(
        program,
        program=replace(program.program, body=body),
        superdscs={**program.superdscs, file: changed},
    )


def _unbound(statement: Statement, file: str, gone: frozenset[int]) -> Statement:
    if isinstance(statement, For):
        return replace(statement, body=tuple(_unbound(item, file, gone) for item in statement.body))
    if not isinstance(statement, SdscExecute) or statement.sdsc_filename != file:
        return statement
    pairs = zip(statement.operands, statement.symbol_ids or (), strict=True)
    kept = [(name, identity) for name, identity in pairs if identity not in gone]
    return replace(statement, operands=tuple(n for n, _ in kept), symbol_ids=tuple(i for _, i in kept))
