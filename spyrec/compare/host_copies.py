"""What the host has copied to the device: held against the graph's numbers, and read back for the references."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spyrec.bundle.bundle_content import BundleContent
from spyrec.compare.check import constant_loader
from spyrec.compare.device_values import buffer_values
from spyrec.compare.one_op import Expectation, OpVerdict, judge, stored
from spyrec.compare.provenance import Provenance
from spyrec.compare.storage import HALF, Array, Floats, Storage, storage_of
from spyrec.hardware.dtypes import DType
from spyrec.ir.kernel import BufferRole, KernelBuffer
from spyrec.ir.numbers import decode
from spyrec.runtime.bundle_run import BundleRun

_PADDED = ".padded"
"""Stands in the name of a constant's copy with zero rows, after the constant's own."""


class HostCopies:
    """The inputs and constants of a run; ``numerics`` as in :class:`spyrec.compare.bisect.Bisection`."""

    def __init__(self, bundle: BundleContent, known: Provenance, run: BundleRun, numerics: str) -> None:
        self._bundle = bundle
        self._known = known
        self._run = run
        self._numerics = numerics
        buffers = known.kernels.buffers.values()
        self.merges_nan = any(storage_of(item.type.dtype, numerics).merges_nan for item in buffers)

    def first_wrong(self, inputs: Mapping[str, Array]) -> tuple[KernelBuffer, OpVerdict] | None:
        """Return the first argument that does not hold the numbers of the graph, ``None`` where all do."""
        load = constant_loader(self._bundle, self._known.source, self._known.stored)
        arguments = dict.fromkeys(name for item in self._known.kernels.programs for name in item.arguments)
        for buffer in (self._known.kernels.buffers[name] for name in arguments):
            is_input, is_named = buffer.role is BufferRole.INPUT, base_name(buffer) in self._known.stored
            is_known = buffer.constant is not None and buffer.constant.data.array is not None
            if not (is_input or is_known or (buffer.role is BufferRole.CONSTANT and is_named)):
                continue
            got = buffer_values(buffer, self._run.argument_memory(buffer.name), self._numerics)
            if is_input:
                numbers = _filled_up(inputs[buffer.name], buffer, got)
            elif buffer.role is BufferRole.CONSTANT and is_named:
                numbers = load(base_name(buffer))
            else:
                assert buffer.constant is not None
                assert buffer.constant.data.array is not None
                numbers = buffer.constant.data.array
            storage = storage_of(buffer.type.dtype, self._numerics)
            if _is_rounded_copy(numbers, buffer, got, storage):
                continue
            verdict = judge(got, stored(_padded(numbers, buffer), storage), merges_nan=self.merges_nan)
            if not verdict.ok:
                return buffer, verdict
        return None

    def first_wrong_result(self, outputs: Mapping[str, Array]) -> tuple[KernelBuffer, OpVerdict] | None:
        """Return the first output whose host array is not what its buffer holds, ``None`` where all are."""
        for result, name in self._known.kernels.outputs:
            buffer = self._known.kernels.buffers[name]
            held = buffer_values(buffer, self._run.argument_memory(name), self._numerics)
            dtype = buffer.type.dtype
            got = _filled_up(outputs[result], buffer, held) if result in outputs else np.full(held.shape, np.nan)
            got = decode(got, dtype).astype(np.float64).reshape(held.shape)
            verdict = judge(got, Expectation(held, _conversion_error(held, dtype)), merges_nan=self.merges_nan)
            if not verdict.ok:
                return buffer, verdict
        return None


def _conversion_error(held: Floats, dtype: DType) -> Floats:
    """Return the largest error of a host's copy out of device memory: one rounding into the host's format."""
    if dtype is DType.FLOAT16:
        return HALF.rounding_error(np.abs(held))
    return np.where(np.isfinite(held), np.abs(held), 0.0) * _HOST_ROUNDOFF.get(dtype, 0.0)


_HOST_ROUNDOFF = {
    DType.FLOAT32: 2.0**-24,
    DType.BFLOAT16: 2.0**-8,
    DType.FLOAT8_E4M3FN: 2.0**-4,
    DType.FLOAT8_E5M2FNUZ: 2.0**-3,
}


def base_name(buffer: KernelBuffer) -> str:
    """Return the name of the graph's value that an argument holds: of a padded constant, the constant's."""
    is_padded = buffer.constant is not None and buffer.constant.shape != buffer.type.shape
    return (buffer.name.rpartition(_PADDED)[0] or buffer.name) if is_padded else buffer.name


def _filled_up(numbers: Array, buffer: KernelBuffer, got: Floats) -> Array:
    """Return a host array in its largest shape: what lies behind the extents of a run is not copied, and stays."""
    shape = buffer.host_type.shape
    if numbers.shape == shape:
        return numbers
    whole = got.reshape(shape).copy()
    whole[tuple(map(slice, numbers.shape))] = decode(numbers, buffer.type.dtype)
    return whole


def _is_rounded_copy(numbers: Array, buffer: KernelBuffer, got: Floats, storage: Storage) -> bool:
    """Whether a buffer holds exactly the rounded numbers: the usual case, told without temporaries of its size."""
    if buffer.constant is not None and buffer.constant.shape != buffer.type.shape:
        return False
    values = numbers if numbers.dtype.kind == "f" else decode(numbers, buffer.type.dtype)
    return np.array_equal(storage.rounded(values).reshape(got.shape), got)


def _padded(numbers: Array, buffer: KernelBuffer) -> Array:
    """Return host numbers in the shape of their buffer, zeros behind those of a padded constant."""
    values = decode(numbers, buffer.type.dtype).astype(np.float64)
    if buffer.constant is None or buffer.constant.shape == buffer.type.shape:
        return values.reshape(buffer.type.shape)
    result = np.zeros(buffer.type.shape)
    result[tuple(slice(extent) for extent in buffer.constant.shape)] = values
    return result
