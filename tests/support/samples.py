"""Every sample of the catalogue as a graph of one node, with numbers on which the op is defined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph, Node, Operand, Value
from spyrec.ir.host_ops import node_reason
from spyrec.ir.numbers import encode
from spyrec.ir.opdef import OpDef, Sample, catalogue
from spyrec.ir.types import TensorType

_POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "pow", "log1p", "reciprocal")
_GROWING = ("pow", "bitwise_left_shift")
"""Ops of integers whose results of two digits each would not fit into 32 bits."""

_INDEXED = (
    *("embedding", "embedding_bag", "index_select", "gather", "take_along_dim", "index_copy", "index_add"),
    *("scatter", "scatter_add", "scatter_reduce", "one_hot"),
)
"""Ops whose integers name elements, of dims of extent 100 in the samples; others count negative ones from the end."""

_FLOAT8 = (DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2FNUZ)


@dataclass(frozen=True, slots=True)
class SampleCase:
    """One op on one sample: the graph with inputs ``x0``.. and outputs ``y``, ``y1``.."""

    title: str
    op: str
    graph: Graph

    @property
    def result(self) -> TensorType:
        """The type of the first output."""
        return self.graph.type_of("y")

    def arrays(self, *, with_infinities: bool = False) -> dict[str, npt.NDArray[np.generic]]:
        """Return numbers for the inputs, the same in every run."""
        generator = np.random.default_rng(11)
        types = {name: self.graph.type_of(name) for name in self.graph.inputs}
        return {name: self._numbers(generator, found, with_infinities) for name, found in types.items()}

    def _numbers(
        self, generator: np.random.Generator, tensor_type: TensorType, with_infinities: bool
    ) -> npt.NDArray[np.generic]:
        dtype, shape = tensor_type.dtype, tensor_type.shape
        if dtype is DType.BOOL:
            return np.asarray(generator.random(shape) < 0.5)
        if dtype in _FLOAT8 or not dtype.is_float:
            if self.op in _GROWING:
                return np.asarray(generator.integers(0, 5, shape)).astype(dtype.carrier)
            low = 0 if dtype in (DType.UINT8, *_FLOAT8) or self.op in _INDEXED else -100
            return np.asarray(generator.integers(low, 100, shape)).astype(dtype.carrier)
        numbers = np.asarray(np.round(generator.standard_normal(shape) * 16) / 16)
        if self.op in _POSITIVE:
            numbers = np.abs(numbers) + 0.125
        if with_infinities:
            numbers = np.where(generator.random(shape) < 0.2, np.copysign(np.inf, numbers), numbers)
        return encode(numbers, dtype)


def sample_cases(*, public_only: bool = True, on_device: bool = False) -> list[SampleCase]:
    """Return the samples of the catalogue in its order; ``on_device``: those that the host does not compute."""
    cases = [
        SampleCase(f"{definition.name}-{number}", definition.name, _graph(definition, sample))
        for definition in catalogue().values()
        if definition.is_public or not public_only
        for number, sample in enumerate(definition.samples)
    ]
    return [case for case in cases if not on_device or node_reason(case.graph, case.graph.nodes[0]) is None]


def _graph(definition: OpDef, sample: Sample) -> Graph:
    types, attributes = sample
    here = Location()
    values: dict[str, Value] = {}
    operands: list[Operand] = []
    for number, found in enumerate(types):
        operands.append(None if found is None else f"x{number}")
        if found is not None:
            values[f"x{number}"] = Value(f"x{number}", found, (None,) * found.rank, here)
    absent = 0 if definition.is_variadic else len(definition.operands) - len(types)
    inputs = tuple(values)
    results = definition.infer([*types, *(None,) * absent], attributes)
    names = tuple("y" if number == 0 else f"y{number}" for number in range(len(results)))
    for name, result in zip(names, results, strict=True):
        values[name] = Value(name, result, (None,) * result.rank, here)
    node = Node("y", definition.name, tuple(operands), names, attributes, here)
    return Graph(definition.name, {}, inputs, {}, (node,), values, names)
