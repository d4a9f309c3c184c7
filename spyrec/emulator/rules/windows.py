"""Rules on how a window slides: V8 a window is whole, V11 it stays on its axis, V14 what memory holds is known."""

from __future__ import annotations

from collections.abc import Iterator

from spyrec.bundle.superdsc import Component, Operand, PaddingKind, PaddingSizes, SuperDsc
from spyrec.bundle.superdsc_windows import WINDOW_DIMS, padding_of, source_of
from spyrec.device_ops import window_of
from spyrec.diagnostics import Diagnostic, Location

_CONTRADICTORY = "SPY0721"
_NOT_UNDERSTOOD = "SPY0724"

_KNOWN_PADDING = frozenset({PaddingKind.NO_ZEROS, PaddingKind.WITH_ZEROS})
"""Kinds that say of padding whether memory holds it.  Where there is none, all but ``LOWERED`` mean the same (D160)."""


def check_windows(superdsc: SuperDsc, where: Location) -> Iterator[Diagnostic]:
    """Check an operation that slides a window.

    Errors: SPY0721 numbers that contradict each other, SPY0724 what the file leaves open or nobody has seen.
    """
    if window_of(superdsc.op_func_name) is None:
        return
    windows = {sizes.window_dim for sizes in superdsc.padding_sizes.values()}
    for dim in WINDOW_DIMS.values():
        if superdsc.iteration.get(dim, 1) > 1 and dim not in windows:
            fact = f'window dim "{dim}" of extent {superdsc.iteration[dim]} belongs to no axis of paddingSizes_'
            yield Diagnostic(_NOT_UNDERSTOOD, fact, where)
    for axis, sizes in superdsc.padding_sizes.items():
        yield from _axis(superdsc, axis, sizes, where)


def _source(superdsc: SuperDsc) -> Operand:
    position = source_of(superdsc)
    assert position is not None, "the number of inputs was checked"
    return superdsc.operands[position]


def _axis(superdsc: SuperDsc, axis: str, sizes: PaddingSizes, where: Location) -> Iterator[Diagnostic]:
    source = _source(superdsc)
    window, taps = sizes.window_dim, superdsc.iteration[sizes.window_dim]
    named = f'axis "{axis}" of "{superdsc.op_func_name}"'
    if source.scales.get(axis) != 1:
        if sizes.total_size != 1:
            hint = "iterate the axis, with extent 1 if it is the output's"
            fact = f"{named}: the input does not list it, so that where its elements lie is open"
            yield Diagnostic(_NOT_UNDERSTOOD, fact, where, hint=hint)
        return
    if superdsc.labels[source.label].stick_dim == axis or window in source.scales:
        yield Diagnostic(_NOT_UNDERSTOOD, f"{named}: the input lists it as sticks, or its window dim beside it", where)
    if superdsc.work_slices[window] != 1:
        fact = f'{named}: window dim "{window}" is divided into {superdsc.work_slices[window]} slices'
        yield Diagnostic(_NOT_UNDERSTOOD, f"{fact}, the parts of a window are not joined", where)
    if min(sizes.pad_front, sizes.pad_back) < 0:
        yield Diagnostic(_NOT_UNDERSTOOD, f"{named}: N_ does not say its padding", where)
        return
    reach = (superdsc.iteration[axis] - 1) * sizes.stride + (taps - 1) * sizes.dilation + 1
    if reach > sizes.total_size or padding_of(sizes) >= sizes.total_size:
        fact = f"{named}: windows reach over {reach} elements, there are {sizes.total_size}"
        yield Diagnostic(_CONTRADICTORY, f"{fact}, of which {padding_of(sizes)} are padding", where)
    yield from _padding(superdsc, axis, padding_of(sizes), where)


def _padding(superdsc: SuperDsc, axis: str, padding: int, where: Location) -> Iterator[Diagnostic]:
    source = _source(superdsc)
    named, kind = f'axis "{axis}" of "{superdsc.op_func_name}"', source.padding.get(axis, PaddingKind.NONE)
    if kind is PaddingKind.LOWERED:
        fact = f'{named} is of kind "{kind.value}": what memory holds of a lowered axis is not published'
        yield Diagnostic(_NOT_UNDERSTOOD, fact, where)
    elif padding and kind not in _KNOWN_PADDING:
        fact = f'{named} has {padding} elements of padding of kind "{kind.value}"'
        hint = f'"{PaddingKind.NO_ZEROS.value}" says that it does not, "{PaddingKind.WITH_ZEROS.value}" that it does'
        yield Diagnostic(_NOT_UNDERSTOOD, f"{fact}: whether memory holds them is not known", where, hint=hint)
    if superdsc.work_slices[axis] > 1 and source.component is Component.LX:
        fact = f"{named} is divided and lies in LX, where what a core holds is open"
        yield Diagnostic(_NOT_UNDERSTOOD, fact, where)
