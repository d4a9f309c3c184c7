"""Faults planted in bundles: one SuperDSC is not what the compiler wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from spyrec.bundle.bundle import Bundle, DeviceProgram
from spyrec.bundle.superdsc import ConstantEntry, SuperDsc

Change = Callable[[SuperDsc], SuperDsc]


def files_of(bundle: Bundle) -> dict[str, SuperDsc]:
    """Return every SuperDSC by its path in the bundle, in order of execution."""
    return {program.path(name): dsc for program in bundle.programs for name, dsc in program.superdscs.items()}


def planted(bundle: Bundle, file: str, change: Change) -> Bundle:
    """Return the bundle with one SuperDSC changed."""

    def programs() -> Iterator[DeviceProgram]:
        for program in bundle.programs:
            superdscs = {n: change(d) if program.path(n) == file else d for n, d in program.superdscs.items()}
            yield replace(program, superdscs=superdscs)

    return replace(bundle, programs=tuple(programs()))


def other_op(superdsc: SuperDsc, op: str) -> SuperDsc:
    """Say that the file computes something else."""
    return replace(superdsc, op_func_name=op, compute=replace(superdsc.compute, op_func_name=op))


def swapped_operands(superdsc: SuperDsc) -> SuperDsc:
    """Exchange the first two inputs."""
    first, second, *rest = superdsc.compute.inputs
    return replace(superdsc, compute=replace(superdsc.compute, inputs=(second, first, *rest)))


def other_constant(superdsc: SuperDsc, name: str, bits: int) -> SuperDsc:
    """Give a constant other bits."""
    entries = [ConstantEntry(e.name, e.data_format, bits if e.name == name else e.bits) for e in superdsc.constants]
    return replace(superdsc, constants=tuple(entries))


def other_mask(superdsc: SuperDsc, masks: Mapping[str, tuple[tuple[int, int], ...]]) -> SuperDsc:
    """Mask other lanes."""
    return replace(superdsc, coordinate_masking=masks)


def moved_start(superdsc: SuperDsc, position: int, core: int, distance_bytes: int) -> SuperDsc:
    """Let one core begin elsewhere in an operand; for programs with baked addresses."""
    operand = superdsc.operands[position]
    starts = list(operand.start_addresses)
    starts[core] += distance_bytes
    operands = list(superdsc.operands)
    operands[position] = replace(operand, start_addresses=tuple(starts))
    return replace(superdsc, operands=tuple(operands))


def taller(superdsc: SuperDsc, dim: str, factor: int) -> SuperDsc:
    """Iterate further along a dim than the tensors reach; for a SuperDSC on one core."""
    grown = {name: extent * factor if name == dim else extent for name, extent in superdsc.iteration.items()}
    return replace(superdsc, iteration=grown, core_extent=grown)


# What stands for an operation in a random graph: a name of the same arity that computes something else.
OTHER_OPS = {
    "add": "mul",
    "sub": "add",
    "mul": "sub",
    "maximum": "minimum",
    "minimum": "maximum",
    "exp": "neg",
    "abs": "neg",
    "neg": "floor",
    "relufwd": "neg",
    "sigmoid": "exp",
    "tanh": "exp",
    "silu": "exp",
    "gelufwd": "exp",
    "floor": "exp",
    "realdiv": "add",
    "equal": "notequal",
    "notequal": "equal",
    "greaterthan": "lesserequal",
    "lesserthan": "greaterequal",
    "greaterequal": "lesserthan",
    "lesserequal": "greaterthan",
    "max": "min",
    "min": "max",
    "maxnonstick": "minnonstick",
    "minnonstick": "maxnonstick",
}
