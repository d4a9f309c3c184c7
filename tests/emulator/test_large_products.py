"""Products larger than every block of the kernel: groups of 512 rows, chunks of 128 columns, passes of 256 k."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware import dlfloat
from tests.emulator.builders import Operation, Tensor, program_of, superdsc_of, table_of
from tests.emulator.test_weight_cache import tiled

ROWS, DEPTH, COLUMNS = 1040, 320, 192
Words = npt.NDArray[np.uint16]


def operands() -> tuple[Words, Words]:
    generator = np.random.Generator(np.random.PCG64(3))
    shapes = ((ROWS, DEPTH), (DEPTH, COLUMNS))
    left, right = (dlfloat.encode(generator.standard_normal(shape).astype(np.float32)) for shape in shapes)
    return left, right


def product(slices: tuple[int, int, int], launches: int = 1) -> Words:
    """Return the result, rows by columns, of the latest of some launches; ``slices`` of rows, columns, k."""
    rows, columns, depth = slices
    dims = {"mb": (ROWS, rows), "out": (COLUMNS, columns), "in": (DEPTH, depth)}
    tensors = (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), Tensor(("mb", "out"), "out"))
    operation = Operation("matmul", dims, tensors, unit="pt")
    device, table = EmulatedDevice(), table_of(operation)
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table)
    addresses = [device.allocate(entry.size_bytes) for entry in table.entries]
    for address, values in zip(addresses, operands()):
        device.memory(address, 2 * values.size)[:] = tiled(values).reshape(-1).view(np.uint8)
    for _ in range(launches):
        device.launch(loaded, addresses, None)
    result = device.memory(addresses[2], 2 * ROWS * COLUMNS).view(np.uint16)
    return result.reshape(COLUMNS // 64, ROWS, 64).transpose(1, 0, 2).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize("slices", [(1, 1, 1), (1, 1, 5), (5, 3, 1)])
def test_large_products_are_those_of_float64_rounded_once(slices: tuple[int, int, int]) -> None:
    left, right = (dlfloat.decode(words).astype(np.float64) for words in operands())
    found = dlfloat.decode(product(slices)).astype(np.float64)
    exact, size = left @ right, np.abs(left) @ np.abs(right)
    assert (np.abs(found - exact) <= 2**-10 * np.abs(exact) + 2**-20 * size).all()


def test_large_products_have_the_same_bits_however_rows_and_columns_are_divided() -> None:
    results = [product((*slices, 1)) for slices in ((1, 1), (1, 3), (2, 1), (10, 3))]
    for one, other in pairwise(results):
        np.testing.assert_array_equal(one, other)


def test_large_products_have_the_same_bits_with_a_kept_operand() -> None:
    np.testing.assert_array_equal(product((1, 1, 1), launches=3), product((1, 1, 1)))
