"""Every reference example against the slow oracle, byte by byte up to the last place of a sum."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.program import Add, AffineApply, ArgumentExtract, Constant, SdscExecute
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware.dtypes import DeviceFormat
from tests.emulator import oracle
from tests.emulator.example_cases import Kernel, right_kernels

KERNELS = {kernel.name: kernel for kernel in right_kernels()}


def random_argument(kernel: Kernel, index: int, generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    entry = next(item for item in kernel.table.entries if item.arg_index == index)
    count = entry.size_bytes // 128 * entry.device_size[-1]
    values = generator.standard_normal(count)
    if entry.device_dtype in {DeviceFormat.IEEE_INT32, DeviceFormat.SENUINT32}:
        return generator.integers(0, 100, count).astype(np.uint32).view(np.uint8)
    return np.ascontiguousarray(oracle.encode(entry.device_dtype.name, values)).view(np.uint8)


def run_emulated(kernel: Kernel, data: dict[int, npt.NDArray[np.uint8]], cores: int = 32) -> dict[object, bytes]:
    device = EmulatedDevice(cores)
    loaded = device.load(kernel.program, kernel.superdscs, kernel.table)
    # An allocation between the arguments, so that no base is where the file would have it.
    device.allocate(1000)
    addresses = {entry.arg_index: device.allocate(entry.size_bytes) for entry in kernel.table.entries}
    for index, values in data.items():
        device.memory(addresses[index], len(values))[:] = values
    pool = device.allocate(kernel.table.pool_bytes) if kernel.table.pool_bytes else None
    device.launch(loaded, [addresses.get(i, 0) for i in range(max(addresses) + 1)], pool)
    return {
        entry.arg_index: device.memory(addresses[entry.arg_index], entry.size_bytes).copy()
        for entry in kernel.table.entries
    }  # type: ignore[misc]


def run_oracle(kernel: Kernel, data: dict[int, npt.NDArray[np.uint8]]) -> dict[object, npt.NDArray[np.uint8]]:
    regions: dict[object, npt.NDArray[np.uint8]] = {index: values.copy() for index, values in data.items()}
    bases: dict[object, int] = {entry.arg_index: entry.baked_base for entry in kernel.table.entries}
    if kernel.table.pool_bytes:
        regions["pool"] = np.full(kernel.table.pool_bytes, 0x7F, np.uint8)
        bases["pool"] = 0
    machine = oracle.Machine(regions, bases)
    values: dict[str, int] = {}
    for statement in kernel.program.body:
        match statement:
            case Constant(result, value):
                values[result] = value
            case ArgumentExtract(result, argument):
                name: object = "pool" if argument.startswith("pool") else int(argument.split("_")[1])
                values[result] = bases[name]
            case Add(result, left, right):
                values[result] = values[left] + values[right]
            case SdscExecute(file, operands, ids):
                bound = dict(zip(ids or (), (values[name] for name in operands)))
                rows = kernel.table.entries[1].device_size[-2] if "gather" in kernel.name else None
                oracle.Execution(machine, dict(kernel.documents[file]), bound, rows).run()
            case AffineApply() | _:
                raise AssertionError(statement)
    return regions


def values_of(kernel: Kernel, index: int, raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    entry = next(item for item in kernel.table.entries if item.arg_index == index)
    width = {64: np.uint16, 32: np.uint32, 128: np.uint8}[entry.device_size[-1]]
    return oracle.decode(entry.device_dtype.name, raw.view(width))


@pytest.mark.parametrize("name", list(KERNELS))
def test_example_agrees_with_the_oracle_in_every_argument_byte(name: str) -> None:
    kernel = KERNELS[name]
    generator = np.random.default_rng(7)
    data = {entry.arg_index: random_argument(kernel, entry.arg_index, generator) for entry in kernel.table.entries}
    if name == "matmul_kpad":
        # The padded rows of B are zero (K is 200 of 256), the lanes of A beside them garbage.
        data[1].view(np.uint16).reshape(kernel.table.entries[1].device_size)[:, 200:, :] = 0
        data[0].view(np.uint16).reshape(kernel.table.entries[0].device_size)[-1, :, 8:] = 0x7FFF
    emulated, expected = run_emulated(kernel, data), run_oracle(kernel, data)
    for entry in kernel.table.entries:
        index = entry.arg_index
        got, want = values_of(kernel, index, emulated[index]), values_of(kernel, index, expected[index])  # type: ignore[arg-type]
        exact = "matmul" not in name and name != "bmm"
        chained = len(kernel.superdscs) > 1
        # One place of DLFloat16 where a float32 sum may round to the other side; a few in a chain of operations.
        tolerance = 0.0 if exact and not chained else 2.0**-9
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-3 if not exact else 0)


def test_fewer_cores_than_a_program_uses_are_refused() -> None:
    from spyrec.diagnostics import SpyrecError

    with pytest.raises(SpyrecError) as error:
        run_emulated(KERNELS["add"], {}, cores=16)
    assert {item.code for item in error.value.diagnostics} == {"SPY0705"}
