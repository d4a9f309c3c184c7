"""Device coordinates of an index expression: which stick and lane a loop nest reads (torch-spyre's rule), proven.

Each variable's term goes to the dim with the largest stride not above its step, and to the coarser dims it reaches.
torch-spyre stops there; here the result is checked: the coordinates must give back the index, and stay inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from spyrec.diagnostics import refuse
from spyrec.index_expression import Expression, Integers, evaluate, expanded, parse_index, variables

_MAX_POINTS = 1 << 20
_SAMPLES = 1 << 14


@dataclass(frozen=True, slots=True)
class _Term:
    """One part of the index: ``unit`` (an integer expression below ``limit / step``) times ``step`` elements."""

    unit: Expression
    step: int
    limit: float


def checked_coordinates(
    sizes: Sequence[int], strides: Sequence[int], index: str, ranges: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the coordinates as text; errors SPY0311, SPY0312 and SPY0313 as ``DeviceLayout.coordinates``."""
    expression = parse_index(index)
    unknown = sorted(variables(expression) - ranges.keys())
    if unknown:
        raise refuse("SPY0311", f'index "{index}" uses {", ".join(unknown)}, whose range is not given')
    if any(extent < 1 for extent in ranges.values()):
        raise refuse("SPY0311", f"a range of {dict(ranges)} is not positive")
    coordinates = compute_coordinates(sizes, strides, expression, ranges)
    _Proof(sizes, strides, expression, ranges).check(coordinates)
    return tuple(str(coordinate) for coordinate in coordinates)


def compute_coordinates(
    sizes: Sequence[int], strides: Sequence[int], index: Expression, ranges: Mapping[str, int]
) -> list[Expression]:
    """Return the coordinate per dim, unproven: the rule alone (``coordinates`` of torch-spyre)."""
    result: list[Expression] = [sympy.Integer(0)] * len(sizes)
    for term in _terms(index, ranges):
        _distribute(term, sizes, strides, result)
    return result


def _terms(index: Expression, ranges: Mapping[str, int]) -> list[_Term]:
    zero = dict.fromkeys(index.free_symbols, 0)
    offset = int(index.subs(zero))
    terms = [_Term(sympy.Integer(offset), 1, math.inf)] if offset > 0 else []
    index = index - max(offset, 0)
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
            value = sympy.Mod(value, int(coarser))
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
