"""Constants of an operation as the bits the file holds, and the mask of ragged stick reductions."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from spyrec.bundle.superdsc import ConstantEntry
from spyrec.codegen.iteration import IterationSpace
from spyrec.device_ops import device_operation
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat

MASK_CONSTANT = "samv-maskvalue"
"""Name by which the device finds the value that replaces masked elements."""


def encode_constant(value: float, data_format: DeviceFormat) -> int:
    """Return the raw unsigned integer of a constant: IEEE bits for fp32, DLFloat16 for every other format."""
    if data_format is DeviceFormat.IEEE_FP32:
        return _ieee_bits(float(value))
    return _dlfloat_bits(float(value))


@lru_cache(maxsize=1024)
def _dlfloat_bits(value: float) -> int:
    return int(dlfloat.encode(np.array([value], dtype=np.float64))[0])


def _ieee_bits(value: float) -> int:
    (bits,) = struct.unpack("<I", np.array([value], dtype=np.float64).astype(np.float32).tobytes())
    return int(bits)


def mask_ranges(iteration: IterationSpace, output_scales: Mapping[str, int]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return (start, count) of the padding along each dim that is reduced within sticks."""
    return {
        dim: ((iteration.sizes[dim] - padding, padding),)
        for dim, padding in iteration.padding.items()
        if output_scales.get(dim) == -2
    }


def constant_entries(
    op: str, constants: Mapping[str, float], data_format: DeviceFormat, *, is_masked: bool
) -> tuple[ConstantEntry, ...]:
    """Return the constants in order, and last the mask value of a masked operation: the one that changes nothing."""
    values = dict(constants)
    if is_masked:
        fold = device_operation(op).fold
        assert fold is not None, f"{op} is masked and folds nothing"
        values[MASK_CONSTANT] = fold.mask
    return tuple(
        ConstantEntry(name, data_format, encode_constant(value, data_format)) for name, value in values.items()
    )
