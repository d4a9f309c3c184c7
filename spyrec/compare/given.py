"""``--compare``: what a run computed beside numbers that somebody gives: another tool's, or those of an earlier run.

No reference is evaluated, so the bundle needs no graph.  The caller says how far numbers may lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from spyrec.bundle.bundle_content import BundleContent
from spyrec.compare.bundle_graph import graph_of_bundle
from spyrec.compare.check import located_report
from spyrec.compare.storage import Array, Floats, absolute_difference, storage_of
from spyrec.compare.verdict import CheckReport, same_class, verdict_of
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError, refuse
from spyrec.hardware.dtypes import DType
from spyrec.ir.near_names import did_you_mean
from spyrec.ir.numbers import decode, encode
from spyrec.runtime.inputs.binding import actual_shape, chosen_extents, expected_inputs, has_host_form
from spyrec.runtime.inputs.tensor_files import read_tensors

TOLERANCES: dict[DType, tuple[float, float]] = {
    DType.FLOAT32: (1e-4, 1e-5),
    DType.FLOAT16: (1e-2, 1e-3),
    DType.BFLOAT16: (2e-2, 1e-3),
    DType.FLOAT8_E4M3FN: (0.125, 2.0**-9),
    DType.FLOAT8_E5M2FNUZ: (0.25, 2.0**-17),
}
"""Relative and absolute tolerance where none is given: some ten roundings of a result of that dtype, of 8 bits one.

Integers and bools have to be the same.
"""

_OF_NUMPY = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"})


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far numbers may lie from the given ones: ``atol + rtol * |given|``; ``None``: as :data:`TOLERANCES`."""

    rtol: float | None = None
    atol: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if value is not None and not (0 <= value < math.inf):
                raise refuse("SPY0771", f"{name} is {value}", hint="give a number from 0 on: 0.01 for one percent")

    def allowed(self, given: Floats, dtype: DType) -> Floats:
        """Return the largest allowed error of each element."""
        rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
        rtol, atol = (known if value is None else value for value, known in ((self.rtol, rtol), (self.atol, atol)))
        return np.asarray(atol + rtol * np.abs(given))


@dataclass(frozen=True, slots=True)
class GivenTensor:
    """A tensor of a run that numbers may be given for: its name, shape and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'"{self.name}" to compare with'

    def carrier_named(self, dtype: str, place: Location) -> np.dtype[np.generic]:
        """Return the carrier of a file's tensor of that dtype; errors SPY0763 one that holds no numbers."""
        if dtype in _OF_NUMPY:
            return np.dtype(dtype)
        if dtype == self.dtype.value:
            return np.dtype(self.dtype.carrier)
        hint = f"write it as float32, or as {self.dtype.value}"
        raise refuse("SPY0763", f"{self.title} has dtype {dtype} in the file", place, hint=hint)

    def refuse_wrong(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], place: Location | None = None
    ) -> SpyrecError | None:
        """Return the error for an array of that shape and dtype; SPY0762 shape, SPY0763 no numbers."""
        if shape != self.shape:
            fact = f"{self.title} has shape {list(shape)}, the run computes {list(self.shape)}"
            return refuse("SPY0762", fact, place, hint="numbers are compared element by element")
        if dtype.kind not in "fiub":
            return refuse("SPY0763", f"{self.title} has dtype {dtype.name}", place, hint="give real numbers")
        return None

    def numbers(self, array: Array) -> Floats:
        """Return the numbers of an array: of a dtype that NumPy has not, its carrier holds the bits."""
        bits = np.dtype(self.dtype.carrier)
        if self.dtype.is_float and bits.kind != "f" and array.dtype == bits:
            return decode(array, self.dtype).astype(np.float64)
        return array.astype(np.float64)


def given_tensors(
    bundle: BundleContent, inputs: Mapping[str, Array], *, with_values: bool = False
) -> tuple[GivenTensor, ...]:
    """Return what numbers may be given for in a run on ``inputs``: the outputs, in order.

    ``with_values``: the values of the bundle's graph, too, which a bisection comes by.
    """
    manifest = bundle.manifest
    extents = chosen_extents(inputs, expected_inputs(manifest), manifest.symbolic_dims)
    arguments = {item.name: item for item in manifest.arguments}
    found: dict[str, GivenTensor] = {}
    for result, name in manifest.outputs:
        argument = arguments[name]
        dtype = argument.dtype if argument.dtype is not None and has_host_form(argument) else DType.FLOAT32
        found[result] = GivenTensor(result, actual_shape(argument, extents), dtype)
    if with_values:
        graph, _ = graph_of_bundle(bundle, extents)
        produced = (name for node in graph.live_nodes() for name in node.outputs)
        found |= {name: GivenTensor(name, (kind := graph.type_of(name)).shape, kind.dtype) for name in produced}
    return tuple(found.values())


def read_given(path: Path, tensors: Sequence[GivenTensor]) -> dict[str, Floats]:
    """Read the numbers to compare with from an .npz or .safetensors file; it may hold some of the tensors alone.

    Errors: SPY0804 a name that the run does not compute, or none that it does; SPY0762 to SPY0765.
    """
    arrays = read_tensors(path, tensors, lambda names: _refuse_names(names, tensors))
    return {item.name: item.numbers(arrays[item.name]) for item in tensors if item.name in arrays}


def taken_numbers(given: Mapping[str, Array], tensors: Sequence[GivenTensor]) -> dict[str, Floats]:
    """Return the numbers of arrays in memory; errors as :func:`read_given`, all of them at once."""
    _refuse_names(given, tensors)
    sink = DiagnosticSink()
    for item in tensors:
        if item.name in given:
            array = np.asarray(given[item.name])
            wrong = item.refuse_wrong(array.shape, array.dtype)
            sink.diagnostics.extend(() if wrong is None else wrong.diagnostics)
    sink.raise_if_errors()
    return {item.name: item.numbers(np.asarray(given[item.name])) for item in tensors if item.name in given}


def _refuse_names(names: Iterable[str], tensors: Sequence[GivenTensor]) -> None:
    known, given = [item.name for item in tensors], sorted(names)
    listed = f"it computes {', '.join(known[:8])}{' and others' if len(known) > 8 else ''}"
    sink = DiagnosticSink()
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, sink) or listed
            sink.error("SPY0804", f'the run computes no "{name[:80]}" to compare with', hint=hint)
    if not given:
        sink.error("SPY0804", "there are no numbers to compare with", hint=listed)
    sink.raise_if_errors()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers that were given for tensors of a run, by name, and how far it may lie from them."""

    bundle: BundleContent
    tensors: Sequence[GivenTensor]
    numbers: Mapping[str, Floats]
    tolerance: Tolerance
    numerics: str

    def of_outputs(self, outputs: Mapping[str, Array]) -> dict[str, CheckReport]:
        """Return the verdict on each output that has given numbers, its worst element located on the device."""
        reports = {
            item.name: self._verdict(item, item.numbers(outputs[item.name]))
            for item in self.tensors
            if item.name in self.numbers and item.name in outputs
        }
        return {name: located_report(self.bundle, name, report) for name, report in reports.items()}

    def tensor_of(self, name: str) -> GivenTensor | None:
        """Return the tensor of a name, ``None`` where no numbers were given for it."""
        return next((item for item in self.tensors if item.name == name), None) if name in self.numbers else None

    def of_value(self, tensor: GivenTensor, got: Floats) -> CheckReport:
        """Return the verdict on a value as it stands in device memory."""
        return self._verdict(tensor, got)

    def allowed(self, tensor: GivenTensor, given: float) -> float:
        """Return how far an element of a tensor may lie from a given number."""
        return float(self.tolerance.allowed(np.asarray(given), tensor.dtype))

    def _verdict(self, tensor: GivenTensor, got: Floats) -> CheckReport:
        """Return the verdict on a tensor; its bound is the tolerance, and one more than that fails.

        A given number that the tensor's dtype has no room for may be an infinity; NaN and the infinities are one class
        where the device holds them as one.
        """
        want, merges_nan = self.numbers[tensor.name], storage_of(tensor.dtype, self.numerics).merges_nan
        with np.errstate(all="ignore"):
            allowed, error = self.tolerance.allowed(want, tensor.dtype), absolute_difference(want, got)
            is_finite = np.isfinite(want)
            error[~is_finite] = np.where(same_class(want, got, merges_nan=merges_nan), 0.0, np.inf)[~is_finite]
            if tensor.dtype.is_float:
                stored = decode(encode(want, tensor.dtype), tensor.dtype).astype(np.float64)
                error[is_finite & ~np.isfinite(stored) & same_class(stored, got, merges_nan=merges_nan)] = 0.0
            return verdict_of(want, got, error, np.where(is_finite, allowed, 0.0), failing_ratio=1.0)
