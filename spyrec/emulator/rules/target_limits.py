"""What a program may not exceed on its target: limits of hardware and back end beyond what executing it needs.

The emulated device runs a program that breaks one: the rules V1 to V14 are about meaning.  A card does not, or its back
end puts data of its own where the program has a tensor.  The figures are the target's (``hardware/target.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.manifest import Argument, PlanStep
from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.device_ops import TOPKS
from spyrec.diagnostics import Diagnostic, Location
from spyrec.emulator.geometry import describe, extending_dims
from spyrec.emulator.moved_pieces import geometry_of, pieces_of, sides_of
from spyrec.emulator.rules.superdsc import name_of
from spyrec.hardware.target import STICK_BYTES, Target
from spyrec.layout.rules import sparse_entries
from spyrec.runtime.findings import FaultPlace, RuleDiagnostic

EXCEEDED = "SPY0627"
"""Code of a program that exceeds a limit of its target."""

_ARGUMENT = re.compile(r"arg_[0-9]{1,6}_base_addr")


@dataclass(frozen=True, slots=True)
class OperandMeasure:
    """Bytes of operands on one core, as the rules of ``bundle.preflight`` ask for them."""

    def buffer_bytes(self, superdsc: SuperDsc, operand: Operand) -> int:
        """Return the bytes of an operand in LX, gaps and padding included."""
        return describe(superdsc, operand, None).buffer_bytes

    def span_bytes(self, superdsc: SuperDsc, operand: Operand) -> int:
        """Return the bytes from the first to the last that one core touches, in whole sticks."""
        geometry = describe(superdsc, operand, None)
        last = sum(geometry.offset(dim, superdsc.core_extent[dim] - 1) for dim in extending_dims(operand))
        return last // STICK_BYTES * STICK_BYTES + STICK_BYTES


def exceeded_limits(file: str, superdsc: SuperDsc, target: Target) -> Iterator[Diagnostic]:
    """Yield what one SuperDSC, which keeps the rules V1 to V14, exceeds: scratchpad, span, values of a topk."""
    found = (*_scratchpads(superdsc, target), *_spans(superdsc, target), *_values(superdsc, target))
    place = FaultPlace(op=superdsc.op_func_name, provenance=superdsc.provenance)
    for message in found:
        yield RuleDiagnostic.of(Diagnostic(EXCEEDED, message, Location(file)), place)


def exceeded_by_pieces(file: str, data_dsc: DataDsc, target: Target) -> Iterator[Diagnostic]:
    """Yield the pieces of a data DSC that end behind the first byte of LX that is the back end's."""
    for side, (piece, place) in zip(sides_of(data_dsc), pieces_of(data_dsc), strict=True):
        past = place.start + geometry_of(side, piece).buffer_bytes
        if place.core is not None and past > target.lx_usable_bytes:
            message = (
                f'piece "{piece.key[:80]}" of "{data_dsc.name}" ends at byte {past} of LX, target "{target.name}" has'
            )
            message += f" tensors below {target.lx_usable_bytes} (lx_tensor_bytes)"
            yield RuleDiagnostic.of(Diagnostic(EXCEEDED, message, Location(file)), FaultPlace(op=data_dsc.op))


def exceeded_arguments(step: PlanStep, program: DeviceProgram, target: Target, file: str) -> Iterator[Diagnostic]:
    """Yield the finding of a step that gives its program more arguments than the target lets it have."""
    symbolic = any(_ARGUMENT.fullmatch(item.name) for item in program.program.parameters)
    most = target.most_arguments(symbolic=symbolic, has_pool=step.pool_bytes > 0)
    if len(step.arguments) > most:
        kind = "symbolic" if symbolic else "baked"
        pool = " and a pool" if step.pool_bytes else ""
        message = f'{len(step.arguments)} arguments{pool} with {kind} addresses, target "{target.name}" has'
        yield Diagnostic(EXCEEDED, f"{message} {most} (limits_symbolic_arguments)", Location(file))


def exceeded_layouts(arguments: Iterable[Argument], target: Target, file: str) -> Iterator[Diagnostic]:
    """Yield the finding of each sparse layout of more dims than the target knows."""
    for item in arguments:
        if item.shape is None or item.stride_map is None:
            continue
        entries = sparse_entries(len(item.shape), item.device_size, item.stride_map)
        if entries > target.sparse_layout_entries:
            message = f'the sparse layout of "{item.name}" has {entries} entries, target "{target.name}" has'
            yield Diagnostic(
                EXCEEDED, f"{message} at most {target.sparse_layout_entries} (sparse_layout_entries)", Location(file)
            )


def _scratchpads(superdsc: SuperDsc, target: Target) -> Iterator[str]:
    """What lies behind the first byte that is the back end's."""
    for position, operand in enumerate(superdsc.operands):
        if operand.component is not Component.LX:
            continue
        past = max(operand.start_addresses) + OperandMeasure().buffer_bytes(superdsc, operand)
        if past > target.lx_usable_bytes:
            message = f'{name_of(superdsc, position)} ends at byte {past} of LX, target "{target.name}" has tensors'
            yield f"{message} below {target.lx_usable_bytes} (lx_tensor_bytes)"


def _spans(superdsc: SuperDsc, target: Target) -> Iterator[str]:
    """What one core touches, from the first byte to the last; rows of a gather's table lie anywhere in it."""
    for position, operand in enumerate(superdsc.operands):
        if operand.component is Component.LX or operand.indirection is Indirection.VALUE:
            continue
        span = OperandMeasure().span_bytes(superdsc, operand)
        if span > target.span_limit_bytes:
            message = f'{name_of(superdsc, position)}: one core spans {span} bytes, target "{target.name}" has'
            yield f"{message} at most {target.span_limit_bytes} (span_limit_bytes)"


def _values(superdsc: SuperDsc, target: Target) -> Iterator[str]:
    """How many values a topk gives: along the dim that its output has and its input has not."""
    if superdsc.op_func_name not in TOPKS:
        return
    output = superdsc.operands[superdsc.compute.outputs[0]]
    searched = extending_dims(superdsc.operands[superdsc.compute.inputs[0]])
    for dim in extending_dims(output):
        if dim in searched:
            continue
        facts = (
            (superdsc.iteration[dim], "gives", target.topk_limit, "topk_limit"),
            (superdsc.core_extent[dim], "gives on one core", target.topk_core_limit, "topk_core_limit"),
        )
        for count, what, most, figure in facts:
            if count > most:
                yield f'topk {what} {count} values, target "{target.name}" has at most {most} ({figure})'
