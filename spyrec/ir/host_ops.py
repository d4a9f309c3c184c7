"""Which nodes the host computes, and how: the device has no integer arithmetic, and an empty tensor has no place there.

A node is computed by the host where no operation of the device takes its operands' formats: integers, float32 where a
device operation is of 16 bits alone, and ops without a device form.  The host computes with the reference of the op's
declaration, in float64 or int64, and rounds once into the dtype of the result (D181).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.ir.evaluate import apply_reference, node_operands
from spyrec.ir.graph import Graph, Node
from spyrec.ir.inference import operand_types
from spyrec.ir.numbers import as_computed, decode, encode, short
from spyrec.ir.opdef import Array, Attributes, OpDef, OpKind, catalogue
from spyrec.ir.types import TensorType

HostArray = npt.NDArray[np.generic]

_WHOLE = (DType.INT32, DType.INT64)

_STAND_INS = (-(2**30), 2**30 - 1)
"""What a number that no integer stands for is, once each: sums with positions fit 32 bits, and no sign is theirs."""

_MOVERS = frozenset({OpKind.VIEW, OpKind.MOVEMENT, OpKind.CREATION})
"""Kinds of ops that move any format as it is."""

_INTEGERS = frozenset({DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8})

_CAST_DTYPES = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.BOOL)

_DEVICE_CASTS = frozenset(itertools.product(_CAST_DTYPES, _CAST_DTYPES)) - {(DType.FLOAT32, DType.BOOL)}
"""A float32 below the smallest 16-bit float is true, and programs of graphs compare no float32."""


def host_reason(
    definition: OpDef,
    operands: Sequence[TensorType | None],
    results: Sequence[TensorType],
    attributes: Attributes,
) -> str | None:
    """Return why the host computes a node with these operands, ``None`` where the device can.

    The reason is lower case and ends a sentence: ``the device has no arithmetic of int64``.
    """
    types = [operand for operand in operands if operand is not None]
    if any(0 in item.shape for item in (*types, *results)):
        return "a tensor without elements has no place on the device"
    if definition.kind is OpKind.HOST:
        return "the device has no form of it"
    if definition.kind in _MOVERS:
        return None if definition.host_when is None else definition.host_when(operands, attributes)
    if definition.kind is OpKind.CAST:
        (source,), (target,) = types, results
        is_known = source.dtype is target.dtype or (source.dtype, target.dtype) in _DEVICE_CASTS
        return None if is_known else f"the device does not convert {source.dtype.value} to {target.dtype.value}"
    integers = [item.dtype for item in (*types, *results) if item.dtype in _INTEGERS]
    if integers:
        return f"the device has no arithmetic of {integers[0].value}"
    if types and all(item.dtype is DType.BOOL for item in types) and any(item.dtype.is_float for item in results):
        return f"the device holds bools in 16 bits, and the result is {results[0].dtype.value}"
    formats = {item.dtype.device_format for item in types}
    unknown = sorted(item.name for item in formats - definition.formats)
    if unknown:
        return f"{definition.name} takes {_named(definition.formats)} on the device, not {unknown[0]}"
    if len(formats) > 1:
        return f"operands of {_named(formats)} meet"
    return None if definition.host_when is None else definition.host_when(operands, attributes)


def _named(formats: Collection[DeviceFormat]) -> str:
    return " and ".join(sorted(item.name for item in formats))


def node_reason(graph: Graph, node: Node) -> str | None:
    """Return :func:`host_reason` of a node of a graph; what stands in its prologue is the host's in any case.

    A number among the operands counts with the dtype that it takes: beside a bool it is an int64 or a float32.
    """
    if node.on_host:
        return "it stands in the prologue"
    definition = catalogue()[node.op]
    operands = operand_types(definition, node.inputs, graph.values)
    return host_reason(definition, operands, [graph.type_of(name) for name in node.outputs], node.attributes)


def compute_on_host(
    graph: Graph, nodes: Sequence[Node], values: Mapping[str, HostArray], load: Callable[[str], HostArray]
) -> dict[str, HostArray]:
    """Return the results of ``nodes`` by name, in the host carriers of their dtypes.

    ``values``: their operands by name, floats of any width; ``load`` gives a constant.  Errors: SPY0318 a number of an
    int64 input or result, or of a conversion to int32, that does not fit into 32 bits; those of
    :func:`apply_reference`.
    """
    run = _HostRun(graph, dict(values), load)
    for node in nodes:
        run.compute(node)
    run.refuse_what_is_needed({node.name for node in nodes})
    return run.results


class _HostRun:
    """Nodes that the host computes one after the other: ``results`` by name.

    A conversion of NaN or of an infinity to an integer has no right result, and often none that anything depends on:
    buckets of relative positions take the logarithm of 0, and a ``where`` leaves it out.  Such a number is one
    of two others, and what hangs on it is computed with both: where a result that is needed differs, it is refused.
    """

    def __init__(self, graph: Graph, held: dict[str, HostArray], load: Callable[[str], HostArray]) -> None:
        self.results: dict[str, HostArray] = {}
        self._graph = graph
        self._load = load
        self._held = held
        self._alive: dict[str, Array] = {}
        self._otherwise: dict[str, HostArray] = {}
        self._refusals: dict[str, SpyrecError] = {}

    def compute(self, node: Node) -> None:
        """Compute a node, and once more where it hangs on a stand-in.  Errors: as :func:`compute_on_host`."""
        names = [name for name in node.inputs if isinstance(name, str)]
        for name in names:
            if name not in self._held:
                self._held[name] = self._load(name)
            is_given = name in self._graph.inputs and name not in self._alive
            if is_given and self._graph.type_of(name).dtype is DType.INT64:  # as where the device holds it
                refuse_wide(name, self._held[name])
        found = self._computed(node, self._held, self._alive, _STAND_INS[0])
        self._held.update(found)
        self.results.update(found)
        changed = {name: self._otherwise[name] for name in names if name in self._otherwise}
        if not changed and self._refusals.keys().isdisjoint(found):
            return
        second = self._computed(node, {**self._held, **changed}, {}, _STAND_INS[1])
        for name, array in found.items():
            if not np.array_equal(array, second[name], equal_nan=array.dtype.kind == "f"):
                self._otherwise[name] = second[name]

    def refuse_what_is_needed(self, own: Collection[str]) -> None:
        """Refuse stand-ins that hang on to what the graph returns, or others than its nodes ``own`` read: SPY0318."""
        if not self._otherwise:
            return
        needed = {name for node in self._graph.nodes if node.name not in own for name in node.inputs}
        if not self._otherwise.keys().isdisjoint(needed.union(self._graph.outputs)):
            raise next(iter(self._refusals.values()))

    def _computed(
        self, node: Node, held: Mapping[str, HostArray], alive: dict[str, Array], stand_in: int
    ) -> dict[str, HostArray]:
        names = [name for name in node.inputs if isinstance(name, str)]
        is_moved = catalogue()[node.op].moves and _have_one_carrier(self._graph, names, held)
        for name in names:
            if name not in alive and not (is_moved and self._graph.type_of(name).dtype.is_float):
                alive[name] = decode(held[name], self._graph.type_of(name).dtype)
        with np.errstate(all="ignore"):
            operands = node_operands(self._graph, node, {**held, **alive} if is_moved else alive)
            made = zip(node.outputs, apply_reference(node, operands), strict=False)  # who names none has the first
            return {name: self._result(node, name, array, is_moved, stand_in) for name, array in made}

    def _result(self, node: Node, name: str, array: Array, is_moved: bool, stand_in: int) -> HostArray:
        wanted = self._graph.type_of(name)
        if is_moved and wanted.dtype.is_float:
            return np.ascontiguousarray(array).reshape(wanted.shape)
        is_cast = wanted.dtype in _WHOLE and catalogue()[node.op].kind is OpKind.CAST
        if is_cast:
            array = self._with_stand_ins(name, array, stand_in)
        if is_cast or wanted.dtype is DType.INT64:
            refuse_wide(name, array)
        return _stored(name, as_computed(array, wanted.dtype), wanted)

    def _with_stand_ins(self, name: str, array: Array, stand_in: int) -> Array:
        """Return the numbers of a conversion with a stand-in for each that is none, whose refusal waits."""
        if array.dtype.kind != "f" or np.isfinite(array).all():
            return array
        try:
            refuse_wide(name, array)
        except SpyrecError as error:
            self._refusals[name] = error
        return np.where(np.isfinite(array), array, stand_in)


def refuse_wide_cast(node: Node, name: str, array: HostArray, wanted: DType) -> None:
    """Refuse a conversion to int32 or int64 of what does not fit: NaN, an infinity, a number beyond (SPY0318).

    PyTorch promises nothing of it; what arithmetic of int32 makes wraps around.  ``array``: the numbers, cut off.
    """
    if wanted in _WHOLE and catalogue()[node.op].kind is OpKind.CAST:
        refuse_wide(name, array, wanted)


def _have_one_carrier(graph: Graph, names: Sequence[str], held: Mapping[str, HostArray]) -> bool:
    """Whether all floats among these values lie in the carrier of their dtype: their elements can be moved as bits."""
    floats = [name for name in names if graph.type_of(name).dtype.is_float]
    return all(held[name].dtype == np.dtype(graph.type_of(name).dtype.carrier) for name in floats)


def _stored(name: str, array: Array, wanted: TensorType) -> HostArray:
    """Return a result in its carrier, rounded once."""
    assert array.shape == wanted.shape, (name, array.shape, wanted)
    return np.ascontiguousarray(encode(array, wanted.dtype)).reshape(wanted.shape)


def refuse_wide(name: str, array: HostArray, dtype: DType = DType.INT32, where: Location | None = None) -> None:
    """Refuse integers, or floats cut off to them, that ``dtype`` does not hold: by default the device's 32 bits.

    NaN and infinities are none.  ``where``: what the message points at.  Errors: SPY0318, with the first such number
    and its place.
    """
    bits = 8 * np.dtype(dtype.carrier).itemsize
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    is_bool = array.dtype.kind == "b"  # NumPy compares none with numbers of more than 64 bits
    if array.size and not is_bool and not (array.min() >= low and array.max() < high):  # of NaN both are False
        flat = array.reshape(-1)
        place = int(np.argmin((flat >= low) & (flat < high)))
        index = [int(item) for item in np.unravel_index(place, array.shape)]
        fact = f'"{name}" holds {short(flat[place].item())} at {index}, which {bits} bits do not hold'
        raise refuse("SPY0318", fact, where)
