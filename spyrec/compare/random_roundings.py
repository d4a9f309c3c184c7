"""How far roundings alone carry a graph's outputs: its float64 evaluation with every number rounded at random.

Where another program computes the same model, an output may differ by what roundings do and by no more; the largest of
a few such runs says how much that is.  What lies below the smallest number of a format may vanish, which is a rounding,
too: an error of 1 says that nothing is left of an output.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.compare.storage import DLFLOAT16, HALF, SINGLE
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import apply_reference, node_operands
from spyrec.ir.graph import Graph
from spyrec.ir.numbers import LARGEST, as_computed, decode

Array = npt.NDArray[np.generic]

RUNS = 8
_UNITS = 2.0
"""Most roundoffs that a rounded number is moved by: an operation of several device operations rounds more than once."""

_ROUNDOFFS: Mapping[DType, float] = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-8, DType.FLOAT32: 2.0**-24}
"""Half a unit in the last place of what holds a dtype; DLFloat16, which holds float16, has nine fraction bits."""

_HELD: Mapping[DType, float] = {
    DType.FLOAT16: HALF.maximum, DType.BFLOAT16: DLFLOAT16.maximum, DType.FLOAT32: SINGLE.maximum,
}  # fmt: skip
"""The largest number of each dtype that comes back from the device, which holds bfloat16 as DLFloat16."""

_OF_MASKS = 2.0**-7
"""How far from the largest number of its dtype a mask may be: it has been added to, and rounded."""

SAYS_NOTHING = 1.0
"""A tolerance from which on roundings alone may change an output altogether: nearly every number is within it."""


@dataclass(frozen=True, slots=True)
class RoundedRuns:
    """Outputs by name: of a run that rounds nothing, and of eight runs with random roundings."""

    exact: Mapping[str, Array]
    rounded: tuple[Mapping[str, Array], ...]

    def errors(self, graph: Graph) -> dict[str, float]:
        """Return by output of the graph that was run the largest :func:`relative_error` of the eight runs."""
        return {
            name: max(relative_error(run[name], want, graph.type_of(name).dtype) for run in self.rounded)
            for name, want in self.exact.items()
        }


def rounding_errors(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, float]:
    """Return the errors of :func:`rounded_runs`."""
    return rounded_runs(graph, inputs).errors(graph)


def rounded_runs(graph: Graph, inputs: Mapping[str, Array], state: RoundedRuns | None = None) -> RoundedRuns:
    """Run a graph once exactly and eight times with random roundings.

    ``inputs``: host arrays in the carriers of their dtypes.  ``state``: of some inputs, by their names, what earlier
    runs left, each run its own.  Inputs and constants are rounded, too; of what the host computes, what the device
    reads and outputs.  The same graph and inputs give the same numbers.
    """
    exact = _evaluated(graph, {**inputs, **(state.exact if state else {})}, None)
    rounded = [
        _evaluated(graph, {**inputs, **(state.rounded[seed] if state else {})}, np.random.default_rng(seed))
        for seed in range(RUNS)
    ]
    return RoundedRuns(exact, tuple(rounded))


def relative_error(got: Array, want: Array, dtype: DType | None = None) -> float:
    """Return the largest difference over the largest finite magnitude of ``want``.

    Infinities and NaN have to stand where ``want`` has them, and where it has the largest number of ``dtype``, as masks
    have, the largest that the device holds of it; the error is infinite otherwise, and such numbers count no further.
    """
    left, right = got.astype(np.float64), want.astype(np.float64)
    if left.shape != right.shape:
        return np.inf
    is_finite = np.isfinite(right)
    if not np.array_equal(left[~is_finite], right[~is_finite], equal_nan=True):
        return np.inf
    if dtype is not None and dtype in _HELD:
        is_mask = is_finite & (np.abs(right) >= LARGEST[dtype] * (1 - _OF_MASKS))
        if not _are_masks(left[is_mask], right[is_mask], _HELD[dtype]):
            return np.inf
        is_finite &= ~is_mask
    if not is_finite.any():
        return 0.0
    left, right = left[is_finite], right[is_finite]
    if not np.isfinite(left).all():
        return np.inf
    largest = float(np.abs(right).max())
    difference = float(np.abs(left - right).max())
    return difference / largest if largest else difference


def _are_masks(left: Array, right: Array, held: float) -> bool:
    """Whether finite numbers are as large as what is held, with the same signs."""
    is_large = np.abs(left) >= held * (1 - 2 * _OF_MASKS)
    return bool((np.isfinite(left) & is_large & (np.sign(left) == np.sign(right))).all())


def every_value(
    graph: Graph, inputs: Mapping[str, Array], random: np.random.Generator | None = None
) -> dict[str, Array]:
    """Return all values of a graph, floats in float64; ``random`` moves every one that the device holds."""
    read = {name for node in graph.nodes if not node.on_host for name in node.inputs} | set(graph.outputs)
    values: dict[str, Array] = {}
    for name in (*graph.inputs, *graph.constants):
        array = inputs.get(name) if name in graph.inputs else graph.constants[name].array
        assert array is not None, name
        held = np.asarray(array)
        found = held if held.dtype == np.float64 else decode(held, graph.type_of(name).dtype)
        values[name] = _rounded(found, graph.type_of(name).dtype, random) if name in read else found
    for node in graph.nodes:
        with np.errstate(all="ignore"):
            results = apply_reference(node, node_operands(graph, node, values))
        for name, result in zip(node.outputs, results, strict=False):
            dtype = graph.type_of(name).dtype
            made = as_computed(result, dtype)
            is_held = not node.on_host or name in read
            values[name] = _rounded(made, dtype, random) if is_held else made
    return values


def _evaluated(graph: Graph, inputs: Mapping[str, Array], random: np.random.Generator | None) -> dict[str, Array]:
    values = every_value(graph, inputs, random)
    return {name: _returned(values[name], graph.type_of(name).dtype, random) for name in graph.outputs}


def _returned(array: Array, dtype: DType, random: np.random.Generator | None) -> Array:
    """Return an output as the host has it: halves below the normal ones are multiples of one number."""
    if random is None or dtype is not DType.FLOAT16:
        return array
    numbers = array.astype(np.float64)
    moved = numbers + HALF.flush * random.uniform(-_UNITS, _UNITS, array.shape)
    return np.where((np.abs(numbers) < HALF.smallest_normal) & (numbers != 0), moved, numbers)


def _rounded(array: Array, dtype: DType, random: np.random.Generator | None) -> Array:
    if random is None or dtype not in _ROUNDOFFS:
        return array
    numbers = array.astype(np.float64)
    moves = random.uniform(-_UNITS, _UNITS, array.shape)
    moved = numbers * (1 + _ROUNDOFFS[dtype] * moves)
    if dtype is DType.FLOAT32:
        return moved
    is_lost = np.abs(numbers) < DLFLOAT16.smallest_normal
    return np.where(is_lost, numbers * (0.5 + moves / (2 * _UNITS)), moved)
