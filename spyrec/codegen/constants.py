"""Constants of an operation as the bits the file holds, and the mask of ragged stick reductions."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from spyrec.bundle.dialects import Dialect
from spyrec.bundle.superdsc import ConstantEntry
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import ONE_LANE_PER_STICK
from spyrec.codegen.opspec import OpSpec
from spyrec.device_ops import device_operation
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat

MASK_CONSTANT = "samv-maskvalue"
"""Name by which the device finds the value that replaces masked elements."""


def encode_constant(value: float, data_format: DeviceFormat) -> int:
    """Return the raw unsigned integer of a constant: IEEE bits for fp32, DLFloat16 for every other format.

    A finite number beyond DLFloat16 is the largest that there is.
    """
    if data_format is DeviceFormat.IEEE_FP32:
        return _ieee_bits(float(value))
    return _dlfloat_bits(float(value))


@lru_cache(maxsize=1024)
def _dlfloat_bits(value: float) -> int:
    return int(dlfloat.encode(dlfloat.saturated(np.array([value], dtype=np.float64)))[0])


def _ieee_bits(value: float) -> int:
    (bits,) = struct.unpack("<I", np.array([value], dtype=np.float64).astype(np.float32).tobytes())
    return int(bits)


def mask_ranges(
    spec: OpSpec, iteration: IterationSpace, output_scales: Mapping[str, int], dialect: Dialect
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return (start, count) of the padding along each masked dim.

    A reduction masks the dims that it folds within sticks; in dialects that mask other operations too, one whose record
    has a mask masks whatever its output has.
    """
    masks_all = dialect.masks_pointwise and device_operation(spec.op).padding_mask is not None
    return {
        dim: ((iteration.sizes[dim] - padding, padding),)
        for dim, padding in iteration.padding.items()
        if output_scales.get(dim) == ONE_LANE_PER_STICK or (masks_all and dim in output_scales)
    }


def constant_entries(
    op: str, constants: Mapping[str, float], data_format: DeviceFormat, *, is_masked: bool
) -> tuple[ConstantEntry, ...]:
    """Return the constants in order, and last the mask value of a masked operation, as its record has it."""
    values = dict(constants)
    if is_masked:
        record = device_operation(op)
        mask = record.padding_mask if record.fold is None else record.fold.mask
        assert mask is not None, f"{op} has no mask"
        values[MASK_CONSTANT] = mask
    return tuple(
        ConstantEntry(name, data_format, encode_constant(value, data_format)) for name, value in values.items()
    )
