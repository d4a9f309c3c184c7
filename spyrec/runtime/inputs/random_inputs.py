"""Random run inputs from a seed: the same numbers on every machine."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import refuse
from spyrec.runtime.inputs.binding import ExpectedInput

HostArray = npt.NDArray[np.generic]


def random_inputs(expected: Iterable[ExpectedInput], seed: int) -> dict[str, HostArray]:
    """Draw every input, in graph order, from one ``PCG64(seed)``.

    Floats are standard normal float32 rounded to the dtype (to nearest, ties to even), bools are true with p = 0.5,
    integers uniform over the values that the device can hold, row numbers over the rows of their table.  Symbolic dims
    have their largest extents.
    Errors: SPY0772 for a dtype without such a rule.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    return {item.name: np.asarray(_draw(item, generator)) for item in expected}


def _draw(item: ExpectedInput, generator: np.random.Generator) -> HostArray:
    if item.row_count is not None:
        return _draw_rows(item, item.row_count, generator)
    shape = item.largest_shape
    match item.dtype:
        case "float16" | "float32":
            return np.asarray(generator.standard_normal(shape, dtype=np.float32)).astype(item.carrier)
        case "bfloat16":
            return _bfloat16_bits(np.asarray(generator.standard_normal(shape, dtype=np.float32)))
        case "bool":
            return np.asarray(generator.random(shape) < 0.5)
        case "int8" | "int16" | "int32" | "uint8":
            limits = np.iinfo(item.dtype)
            return generator.integers(limits.min, limits.max, shape, dtype=item.carrier.type, endpoint=True)
        case "int64":
            limits = np.iinfo(np.int32)  # device integers are 32 bits wide
            return generator.integers(limits.min, limits.max, shape, dtype=np.int64, endpoint=True)
        case _:
            raise refuse(
                "SPY0772",
                f'no random values are defined for input "{item.name}" of dtype {item.dtype}',
                hint="give the inputs with --inputs",
            )


def _draw_rows(item: ExpectedInput, row_count: int, generator: np.random.Generator) -> HostArray:
    past = min(row_count, _EXACT_INTEGERS.get(item.dtype, row_count))
    return generator.integers(0, past, item.largest_shape, dtype=np.int64).astype(item.carrier)


_EXACT_INTEGERS = {
    "bool": 2, "float16": 1 << 11, "float32": 1 << 24, "int8": 1 << 7, "uint8": 1 << 8, "int16": 1 << 15,
}  # fmt: skip
"""Below these bounds every integer is a number of the dtype: no row number is rounded to another one."""


def _bfloat16_bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    bits = np.atleast_1d(values).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype(np.uint16).reshape(values.shape)
