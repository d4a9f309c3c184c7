"""Device coordinates of an index expression: which stick and lane a loop nest reads (torch-spyre's rule), proven.

Each variable's term goes to the dim with the largest stride not above its step, and to the coarser dims it reaches.
torch-spyre stops there; here the result is checked: the coordinates must give back the index, stay inside, and mean
an element of the host tensor, not padding.  The host tensor also says which of its dims a constant offset moves along.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import sympy

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, answered, refuse
from spyrec.layout.index_expression import (
    Expression,
    Integers,
    evaluate,
    expanded,
    magnitude,
    modulo,
    parse_index,
    variables,
)
from spyrec.layout.rules import inferred_host
from spyrec.layout.tiling import HostTensor, Run, analyse

_MAX_NUMBER = 1 << 62
_MAX_MIXED = 8  # variables in one term: their corners are looked at one by one
_MAX_POINTS = 1 << 20
_SAMPLES = 1 << 14


@dataclass(frozen=True, slots=True)
class _Term:
    """One part of the index: ``unit`` (an integer expression below ``limit / step``) times ``step`` elements."""

    unit: Expression
    step: int
    limit: float


@dataclass(frozen=True, slots=True)
class _Host:
    """The host tensor behind a layout, and how the device dims cut it."""

    tensor: HostTensor
    runs: tuple[Run, ...]


def checked_coordinates(
    sizes: Sequence[int],
    strides: Sequence[int],
    index: str,
    ranges: Mapping[str, int],
    host: HostTensor | None = None,
) -> tuple[str, ...]:
    """Return the coordinates as text; errors SPY0311, SPY0312 and SPY0313 as ``DeviceLayout.coordinates``.

    Without ``host``, the largest tensor that the layout can hold is meant, where there is one.
    """
    expression = parse_index(index)
    extents = _extents(ranges)
    unknown = sorted(variables(expression) - extents.keys())
    if unknown:
        raise refuse("SPY0311", f'index "{index}" uses {", ".join(unknown)}, whose range is not given')
    _require_small(expression, extents)
    known = _host(sizes, strides, host)
    coordinates = _coordinates(sizes, strides, expression, extents, known)
    proof = _Proof(sizes, strides, expression, extents)
    proof.check(coordinates)
    if known is not None:
        proof.check_elements(coordinates, known.runs)
    return tuple(str(coordinate) for coordinate in coordinates)


def _extents(ranges: Mapping[str, int]) -> dict[str, int]:
    given = cast("object", ranges)
    if not isinstance(given, Mapping):
        raise refuse("SPY0311", f"the ranges {ranges!r} are no mapping of variables to extents")
    try:
        extents = {name: operator.index(extent) for name, extent in ranges.items()}
    except TypeError:
        raise refuse("SPY0311", f"a range of {dict(ranges)} is no integer") from None
    if not all(isinstance(cast("object", name), str) for name in extents):
        raise refuse("SPY0311", f"a variable of {extents} has no text as its name")
    if any(extent < 1 for extent in extents.values()):
        raise refuse("SPY0311", f"a range of {extents} is not positive")
    if any(extent > _MAX_NUMBER for extent in extents.values()):
        raise refuse("SPY0311", f"a range of {extents} is more than {_MAX_NUMBER}")
    return extents


def _require_small(expression: Expression, ranges: Mapping[str, int]) -> None:
    if magnitude(expression, ranges) > _MAX_NUMBER:
        raise refuse("SPY0312", f"index {str(expression)[:80]} may reach beyond {_MAX_NUMBER}")


def _host(sizes: Sequence[int], strides: Sequence[int], given: HostTensor | None) -> _Host | None:
    device_size, stride_map = tuple(sizes), tuple(strides)
    if given is not None:
        return _Host(given, answered(analyse(given, device_size, stride_map)))
    tensor = inferred_host(device_size, stride_map)
    runs = tensor if isinstance(tensor, Diagnostic) else analyse(tensor, device_size, stride_map)
    if isinstance(tensor, Diagnostic) or isinstance(runs, Diagnostic):
        return None  # no row-major tensor fits: nothing is known of padding
    return _Host(tensor, runs)


def compute_coordinates(
    sizes: Sequence[int], strides: Sequence[int], index: Expression, ranges: Mapping[str, int]
) -> list[Expression]:
    """Return the coordinate per dim, unproven: the rule alone (``coordinates`` of torch-spyre)."""
    return _coordinates(sizes, strides, index, ranges, None)


def _coordinates(
    sizes: Sequence[int],
    strides: Sequence[int],
    index: Expression,
    ranges: Mapping[str, int],
    host: _Host | None,
) -> list[Expression]:
    result: list[Expression] = [sympy.Integer(0)] * len(sizes)
    offset = max(int(index.subs(dict.fromkeys(index.free_symbols, 0))), 0)
    if host is not None:
        for dim, steps in _offset_steps(host, offset, index - offset, ranges):
            result[dim] += steps
    elif offset > 0:
        _distribute(_Term(sympy.Integer(offset), 1, math.inf), sizes, strides, result)
    for term in _terms(index - offset, ranges):
        _distribute(term, sizes, strides, result)
    return result


def _offset_steps(host: _Host, offset: int, moving: Expression, ranges: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield (device dim, steps) of a constant: first along the host dims, coarsest first, where ``moving`` leaves room.

    A constant of one row of 100 elements is one row, not 100 lanes: sticks of 64 do not divide it.
    """
    if offset == 0:
        return
    shape, strides = host.tensor.shape, host.tensor.strides
    taken = compute_coordinates(shape, strides, moving, ranges)
    proof = _Proof(shape, strides, moving, ranges)
    along = [0] * len(shape)
    dims = sorted((dim for dim, size in enumerate(shape) if size > 1 and strides[dim] > 0), key=lambda d: -strides[d])
    for dim in dims:
        steps = offset // strides[dim]
        if dim != dims[-1]:  # what the finest dim cannot hold is its proof's to refuse
            steps = min(steps, max(shape[dim] - 1 - proof.range_of(expanded(taken[dim]))[1], 0))
        along[dim] = steps * strides[dim]
        offset -= along[dim]
    for run in host.runs:
        elements = sum(along[run.first : run.last + 1])
        rest = elements // max(host.tensor.strides[run.last], 1)
        for tile in run.tiles:
            steps, rest = divmod(rest, tile.step)
            yield tile.device_dim, steps


def _terms(index: Expression, ranges: Mapping[str, int]) -> list[_Term]:
    terms: list[_Term] = []
    for variable in sorted(index.free_symbols, key=lambda item: list(ranges).index(item.name)):
        extent = ranges[variable.name]
        if extent <= 1:
            continue
        isolated = index.subs({other: 0 for other in index.free_symbols if other != variable})
        repeated = _repeat(isolated, variable, extent)
        if repeated is not None:
            terms.append(repeated)
            continue
        step = int(isolated.subs(variable, 1))
        terms.append(_Term(variable, step, float(isolated.subs(variable, extent))))
    return terms


def _repeat(isolated: Expression, variable: Expression, extent: int) -> _Term | None:
    """Return the term of a variable that wraps around: a coefficient times Mod of it, the modulus below its range."""
    nodes = [node for node in isolated.atoms(sympy.Mod) if variable in node.free_symbols]
    if len(nodes) != 1 or not nodes[0].args[1].is_Integer or int(nodes[0].args[1]) >= extent:
        return None
    coefficient = isolated.coeff(nodes[0]) if isolated != nodes[0] else sympy.Integer(1)
    if not coefficient.is_Integer or isolated != coefficient * nodes[0]:
        return None
    return _Term(nodes[0], int(coefficient), float(int(coefficient) * int(nodes[0].args[1])))


def _distribute(term: _Term, sizes: Sequence[int], strides: Sequence[int], result: list[Expression]) -> None:
    dims = [dim for dim, size in enumerate(sizes) if size > 1 and strides[dim] > 0]
    below = [strides[dim] for dim in dims if strides[dim] <= term.step]
    primary = next((dim for dim in dims if below and strides[dim] == max(below)), None)
    for dim in dims:
        if dim != primary and not term.step < strides[dim] < term.limit:
            continue
        coarser = min((strides[other] for other in dims if strides[other] > strides[dim]), default=math.inf)
        value = term.unit * term.step
        if coarser < term.limit:
            value = modulo(value, int(coarser))
        result[dim] += sympy.floor(value / strides[dim])


class _Proof:
    """Checks coordinates against the index they were made from."""

    def __init__(
        self, sizes: Sequence[int], strides: Sequence[int], index: Expression, ranges: Mapping[str, int]
    ) -> None:
        self.sizes = sizes
        self.strides = strides
        self.index = index
        self.ranges = ranges

    def check(self, coordinates: Sequence[Expression]) -> None:
        walked = sum(
            (coordinate * max(stride, 0) for coordinate, stride in zip(coordinates, self.strides, strict=True)),
            start=sympy.Integer(0),
        )
        low, high = self.range_of(expanded(walked - self.index))
        if low != 0 or high != 0:
            fact = f"the layout cannot follow index {self.index}: coordinates {[str(item) for item in coordinates]}"
            raise refuse("SPY0312", f"{fact} miss it by {low} to {high} elements", hint="copy the tensor first")
        for dim, coordinate in enumerate(coordinates):
            low, high = self.range_of(expanded(coordinate))
            if low < 0 or high >= self.sizes[dim]:
                fact = f"coordinate {coordinate} of device dim {dim} runs from {low} to {high}"
                hint = (
                    "an offset inside a stick needs a copy" if dim == len(self.sizes) - 1 else "copy the tensor first"
                )
                raise refuse("SPY0313", f"{fact}, the dim has {self.sizes[dim]} elements", hint=hint)

    def check_elements(self, coordinates: Sequence[Expression], runs: Sequence[Run]) -> None:
        """Refuse coordinates that may mean padding: beyond the last element of a host dim, or on no host dim."""
        held = {tile.device_dim for run in runs for tile in run.tiles}
        for run in runs:
            position: Expression = sympy.Integer(0)
            limits = [*(tile.step for tile in run.tiles[-2::-1]), run.length]
            # Finest first: what the finer tiles add up to may not reach one step of the next coarser one.
            for tile, limit in zip(run.tiles[::-1], limits, strict=True):
                position = position + coordinates[tile.device_dim] * tile.step
                self.require_element(position, limit, coordinates)
        for dim, stride in enumerate(self.strides):
            if dim not in held and stride != 0:
                self.require_element(coordinates[dim], 1, coordinates)

    def require_element(self, position: Expression, limit: int, coordinates: Sequence[Expression]) -> None:
        high = self.range_of(expanded(position))[1]
        if high >= limit:
            fact = f"coordinates {[str(item) for item in coordinates]} reach element {high} of {limit}: padding"
            raise refuse("SPY0313", fact, hint="the index leaves the host tensor or one of its rows")

    def range_of(self, expression: Expression) -> tuple[int, int]:
        """Return the least and greatest value: exact where no term mixes variables and ranges are moderate."""
        groups: dict[frozenset[str], Expression] = {}
        for term in sympy.Add.make_args(expression):
            names = variables(term)
            groups[names] = groups.get(names, sympy.Integer(0)) + term
        if any(len(names) > 1 for names in groups):  # a term mixes variables: look at all of them together
            groups = {variables(expression): expression}
        low = high = 0
        for names, group in groups.items():
            _require_small(group, self.ranges)
            if len(names) > _MAX_MIXED:
                raise refuse("SPY0312", f"a part of index {self.index} mixes {len(names)} variables")
            values = evaluate(group, self.points(sorted(names)))
            low += int(values.min())
            high += int(values.max())
        return low, high

    def points(self, names: Sequence[str]) -> dict[str, Integers]:
        """Return all points of the variables' ranges, or the corners and a fixed sample where they are too many."""
        extents = [self.ranges[name] for name in names]
        if math.prod(extents) <= _MAX_POINTS:
            grids = np.meshgrid(*(np.arange(extent, dtype=np.int64) for extent in extents), indexing="ij")
            return {name: grid.reshape(-1) for name, grid in zip(names, grids, strict=True)}
        generator = np.random.default_rng(0)
        edges = [np.unique(np.clip([0, 1, extent // 2, extent - 2, extent - 1], 0, extent - 1)) for extent in extents]
        corners = [grid.reshape(-1) for grid in np.meshgrid(*edges, indexing="ij")]
        return {
            name: np.concatenate([corner, generator.integers(0, extent, _SAMPLES)])
            for name, extent, corner in zip(names, extents, corners, strict=True)
        }
