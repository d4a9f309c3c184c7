"""Rules between tile contracts and the rest of a manifest: each is one of a program of the plan, with its arguments."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.bundle.tile_contract import TileArgument, TileContract, programs_beside
from spyrec.diagnostics import DiagnosticSink, Location

CONTRADICTION = "SPY0611"
"""Code of a manifest whose parts disagree."""

_HINT = "write the bundle again, or remove the contract: the value null is always right"

_ROLES: Mapping[Role, frozenset[Role]] = {
    Role.INPUT: frozenset({Role.INPUT}),
    Role.CONSTANT: frozenset({Role.CONSTANT}),
    Role.INOUT: frozenset({Role.INPUT, Role.OUTPUT, Role.INOUT}),
    Role.OUTPUT: frozenset({Role.INPUT, Role.OUTPUT, Role.INOUT}),
    Role.INTERMEDIATE: frozenset({Role.INPUT, Role.OUTPUT, Role.INOUT}),
}
"""What an argument of the manifest may be to one of the programs that use it."""


def check_contracts(manifest: Manifest, where: Location, sink: DiagnosticSink) -> None:
    """Check every tile contract against the plan step of its program; all problems go to ``sink``, SPY0611."""
    steps = {step.program: step for step in manifest.plan}
    arguments = {item.name: item for item in manifest.arguments}
    for name, contract in manifest.tile_contracts.items():
        place = where.child("tile_contract", "programs", name)
        if name not in steps:
            sink.error(CONTRADICTION, f'no step of the plan executes program "{name}"', place, hint=_HINT)
            continue
        outside = {step.program: step for step in manifest.tile_steps}
        facts = _contradictions(contract, name, steps[name].arguments, arguments)
        missing = [program for program in programs_beside(contract) if program not in outside]
        facts += [f'program "{program}" has no step outside of the plan' for program in missing]
        facts += [] if missing else _joining_contradictions(contract, outside)
        for fact in facts:
            sink.error(CONTRADICTION, fact, place, hint=_HINT)


def _joining_contradictions(contract: TileContract, steps: Mapping[str, PlanStep]) -> list[str]:
    """Return what keeps programs from joining parts: each takes an accumulator per result, then parts or results."""
    around = contract.reduction
    if around is None:
        return []
    written = sum(item.is_written for item in contract.arguments)
    needed = {around.init: written, around.combine: 2 * written, around.publish: 2 * written}
    return [
        f'program "{program}" takes {len(steps[program].arguments)} arguments, joining {written} results takes {count}'
        for program, count in needed.items()
        if len(steps[program].arguments) < count
    ]


def _contradictions(
    contract: TileContract, program: str, expected: tuple[str, ...], arguments: Mapping[str, Argument]
) -> list[str]:
    if contract.program != program:
        return [f'the tile contract of program "{program}" is one of "{contract.program}"']
    found = tuple(item.name for item in contract.arguments)
    if found != expected:
        return [f"the tile contract has arguments {list(found)[:16]}, the plan step {list(expected)[:16]}"]
    facts = [
        fact
        for item in contract.arguments
        if item.name in arguments
        for fact in (*_layout_contradictions(item, arguments[item.name]), *_role_contradictions(item, arguments))
    ]
    for item in () if contract.reduction is None else contract.reduction.accumulators:
        if item.name in arguments:
            facts += _layout_contradictions(item, arguments[item.name])
        else:
            facts.append(f'there is no argument "{item.name}" to accumulate in')
    return facts


def _role_contradictions(item: TileArgument, arguments: Mapping[str, Argument]) -> list[str]:
    role = arguments[item.name].role
    if item.role in _ROLES[role]:
        return []
    return [f'"{item.name}" is {role.value}, the tile contract calls it {item.role.value}']


def _layout_contradictions(item: TileArgument, argument: Argument) -> list[str]:
    layout = item.layout
    pairs = {
        "shape": (layout.host_shape, argument.shape),
        "host_strides": (layout.host_strides, argument.host_strides),
        "device_size": (layout.device_size, argument.device_size),
        "stride_map": (layout.stride_map, argument.stride_map),
        "dtype": (item.dtype.value, None if argument.dtype is None else argument.dtype.value),
        "device_dtype": (layout.device_dtype.name, argument.device_dtype.name),
    }
    return [
        f'{key} of "{item.name}" is {mine} in the tile contract and {theirs} among the arguments'
        for key, (mine, theirs) in pairs.items()
        if mine != theirs
    ]
