"""The float32 kernels and casts that go from memory to memory give the bits of the pointwise kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.emulator.kernels.direct import direct_function
from spyrec.emulator.numerics import ElementStorage
from spyrec.emulator.operations.pointwise_steps import block_work, direct_work
from spyrec.hardware import dlfloat
from tests.emulator.nest_steps import run_step

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[np.generic]

DL16, SINGLE = ElementStorage.DL16.value, ElementStorage.SINGLE.value
PATTERNS = np.arange(1 << 16, dtype=np.uint16)
OPERATIONS = ["add", "sub", "mul", "realdiv", "maximum", "minimum", "equal", "lesserthan"]


def singles(seed: int) -> npt.NDArray[np.float32]:
    """Return 4096 float32: any bits, with zeros, infinities, NaN and halves between DLFloat16 numbers among them."""
    generator = np.random.Generator(np.random.PCG64(seed))
    bits = generator.integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32)
    special = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x3F800000], np.uint32)
    bits[generator.random(4096) < 0.3] = 0x3F802000
    places = generator.random(4096) < 0.3
    bits[places] = generator.choice(special, int(places.sum()))
    return bits.view(np.float32)


def both(operation: str, codes: list[int], nest: Integers, *operands: Array) -> list[Array]:
    """Return what the direct kernel and the pointwise one store from equal operands, the last one stored."""
    known = np.array(codes, np.int64)
    function = direct_function(operation, known, nest)
    assert function is not None
    found: list[Array] = []
    for work in (direct_work(function), block_work(operation, known)):
        own = [item.copy() for item in operands]
        run_step(work, np.array([[item.ctypes.data] for item in own], np.int64), nest)
        found.append(own[-1])
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("repeated", [None, 0, 1])
def test_float32_operands_combine_to_the_bits_of_the_pointwise_kernel(operation: str, repeated: int | None) -> None:
    steps = [0 if t == repeated else 4 for t in range(3)]
    nest = np.array([[64, *steps], [8, 256, 256, 512], [4, 2048, 2048, 4096]], np.int64)
    out = np.full(2 * 4096, 7, np.float32)
    direct, general = both(operation, [SINGLE] * 3, nest, singles(1), singles(2), out)
    assert direct.tobytes() == general.tobytes()
    assert (direct == 7).sum() >= 4096  # what lies between the rows is left alone


@pytest.mark.parametrize("operation", OPERATIONS)
def test_float32_operands_combine_in_place(operation: str) -> None:
    nest = np.array([[512, 4, 4, 4], [8, 2048, 2048, 2048]], np.int64)
    x, total = singles(3), singles(4)
    expected = total.copy()
    function = direct_function(operation, np.array([SINGLE] * 3), nest)
    assert function is not None
    run_step(direct_work(function), np.array([[total.ctypes.data], [x.ctypes.data], [expected.ctypes.data]]), nest)
    run_step(direct_work(function), np.array([[total.ctypes.data], [x.ctypes.data], [total.ctypes.data]]), nest)
    assert total.tobytes() == expected.tobytes()


def test_casts_between_float32_and_dlfloat16_give_the_bits_of_the_pointwise_kernel() -> None:
    up = np.array([[32, 2, 4], [1 << 11, 64, 128]], np.int64)
    direct, general = both("convert", [DL16, SINGLE], up, PATTERNS, np.zeros(1 << 16, np.float32))
    assert direct.tobytes() == general.tobytes() == dlfloat.decode(PATTERNS).tobytes()
    down = np.array([[64, 4, 2], [64, 256, 128]], np.int64)
    direct, general = both("convert", [SINGLE, DL16], down, singles(5), np.zeros(4096, np.uint16))
    assert direct.tobytes() == general.tobytes() == dlfloat.encode(singles(5)).tobytes()


@pytest.mark.parametrize(
    ("operation", "codes", "inner"),
    [
        ("add", [SINGLE] * 3, [48, 4, 4, 4]),
        ("add", [SINGLE] * 3, [64, 4, 8, 4]),
        ("add", [SINGLE, DL16, SINGLE], [64, 4, 2, 4]),
        ("convert", [DL16, SINGLE], [64, 0, 4]),
        ("convert", [SINGLE, SINGLE], [64, 4, 4]),
    ],
)
def test_what_is_no_run_of_groups_is_left_to_the_pointwise_kernel(
    operation: str, codes: list[int], inner: list[int]
) -> None:
    nest = np.array([inner, [1] + [0] * (len(inner) - 1)], np.int64)
    assert direct_function(operation, np.array(codes), nest) is None
