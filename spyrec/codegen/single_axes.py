"""Axes that an output has one element of: front ends do not iterate them, and the input has them all the same.

``x[.., rows, ..]`` under a window of rows --> ``x[.., 1, rows, ..]``, with a symbol of extent 1 for the output's row.
The file then lists the axis, so that where its elements lie is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spyrec.codegen.expression import CoordinateExpression, Symbol
from spyrec.codegen.opspec import IterationDim, OpSpec, TensorArgument
from spyrec.codegen.windows import SUFFIX_OF_AXIS
from spyrec.device_ops.record import WindowForm

_RANGES = {"i": 2, "j": 3}
"""Where ``node_output_ranges`` has an axis."""


def with_single_axes(spec: OpSpec, form: WindowForm) -> OpSpec:
    """Return a pool whose output's rows and columns are iterated, those of extent 1 too; others as they are."""
    ranges = spec.node_output_ranges
    if form is not WindowForm.POOL or ranges is None or len(ranges) != len(_RANGES) + 2:
        return spec
    absent = [axis for axis, place in _RANGES.items() if ranges[place] == 1]
    names = [dim.symbol for dim in spec.iteration_space]
    if not absent or len(names) != 2 + sum(extent != 1 for extent in ranges):
        return spec
    taps = dict(zip(_RANGES, names[-2:], strict=True))
    outer = [axis for axis in _RANGES if axis not in absent]
    channels = 1 if ranges[1] != 1 else 0
    first = len(names) - 2 - channels - len(outer)
    for axis in absent:
        at = _dim_of(spec.args[0], taps[axis])
        if at is None:
            return spec
        symbol = next(name for name in _fresh_names(axis) if name not in {dim.symbol for dim in spec.iteration_space})
        place = first if axis == "i" else first + 1
        space = spec.iteration_space
        space = (*space[:place], IterationDim(symbol, 1), *space[place:])
        source = _with_dim(spec.args[0], at, symbol)
        output = _with_dim(spec.args[-1], 0, symbol)
        key, rows = f"stride_{SUFFIX_OF_AXIS[axis]}", spec.args[0].device_size[at]
        # one output steps nowhere: a step is then the whole axis
        info = replace(spec.op_info, constants={**spec.op_info.constants, key: rows})
        spec = replace(spec, iteration_space=space, args=(source, *spec.args[1:-1], output), op_info=info)
    return spec


def _fresh_names(axis: str) -> Iterator[str]:
    yield axis
    number = 0
    while True:
        yield f"{axis}{number}"
        number += 1


def _dim_of(argument: TensorArgument, symbol: str) -> int | None:
    """Return the device dim that counts a symbol by itself."""
    for place, coordinate in enumerate(argument.device_coordinates):
        terms = coordinate.terms
        if len(terms) == 1 and terms[0].atom == Symbol(symbol) and terms[0].coefficient == 1 and not coordinate.offset:
            return place
    return None


def _with_dim(argument: TensorArgument, place: int, symbol: str) -> TensorArgument:
    size, coordinates = argument.device_size, argument.device_coordinates
    return replace(
        argument,
        device_size=(*size[:place], 1, *size[place:]),
        device_coordinates=(*coordinates[:place], CoordinateExpression.symbol(symbol), *coordinates[place:]),
    )
