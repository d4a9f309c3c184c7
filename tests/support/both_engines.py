"""Programs and bundles executed by the fast path and by the definition, on memory that begins alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.options import RunOptions
from spyrec.runtime.device import ArgumentTable, LaunchStats
from tests.support.runs import kept_memory, ready

Bytes = npt.NDArray[np.uint8]
Arrays = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Launched:
    """One program and what its arguments hold before; others hold poison."""

    program: Program
    superdscs: Mapping[str, SuperDsc]
    table: ArgumentTable
    contents: Mapping[int, Bytes]
    values: Mapping[str, int] = field(default_factory=dict[str, int])

    def memory(self, engine: str, numerics: str = "dl16") -> tuple[dict[str, Bytes], LaunchStats]:
        """Return what every argument and the pool hold after a launch, and its counters."""
        device = EmulatedDevice(engine=engine, numerics=numerics)
        loaded = device.load(self.program, self.superdscs, self.table)
        places = {
            entry.arg_index: (device.allocate(entry.reach_bytes), entry.reach_bytes) for entry in self.table.entries
        }
        for index, found in self.contents.items():
            device.memory(*places[index])[: len(found)] = found
        pool = device.allocate(self.table.pool_bytes) if self.table.pool_bytes else None
        addresses = [places[index][0] if index in places else 0 for index in range(max(places) + 1)]
        stats = device.launch(loaded, addresses, pool, values=self.values)
        formats = {entry.arg_index: entry.device_dtype for entry in self.table.entries}
        held = {
            f"argument {index}": settled(device.memory(*place), formats[index], numerics)
            for index, place in places.items()
        }
        if pool is not None:
            held["pool"] = settled(device.memory(pool, self.table.pool_bytes), DeviceFormat.SEN169_FP16, numerics)
        return held, stats

    def assert_equal(self, numerics: str = "dl16") -> None:
        """Execute both and hold bytes and counters against each other."""
        fast, fast_stats = self.memory("fast", numerics)
        defined, stats = self.memory("reference", numerics)
        assert differing(fast, defined) == {}
        assert stats == fast_stats

    def is_refused(self) -> bool:
        """Whether the program breaks a rule at load or launch."""
        try:
            self.memory("fast")
        except SpyrecError:
            return True
        return False


def settled(memory: Bytes, data_format: DeviceFormat, numerics: str) -> Bytes:
    """Return a copy of memory in which all NaN of float32 are one: which one a result is is left open."""
    copy = memory.copy()
    if data_format is DeviceFormat.IEEE_FP32 or (data_format is DeviceFormat.SEN169_FP16 and numerics == "f32"):
        numbers = copy.view(np.float32)
        numbers[np.isnan(numbers)] = np.nan
    return copy


def differing(one: Mapping[str, Bytes], other: Mapping[str, Bytes]) -> dict[str, int]:
    """Return the number of different bytes of each memory that differs."""
    assert one.keys() == other.keys()
    counts = {name: int((one[name] != other[name]).sum()) for name in one}
    return {name: count for name, count in counts.items() if count}


def bundle_memory(bundle: Bundle, arrays: Arrays, options: RunOptions) -> tuple[dict[str, Bytes], object]:
    """Return what every argument of a bundle and the pool hold after a run, its outputs too, and its counters."""
    numerics = str(options.numerics)
    formats = {item.name: item.device_dtype for item in bundle.manifest.arguments}
    with ready(bundle, options) as run, kept_memory(run) as kept:
        record = run.prepared.run(arrays)
    held = {f"output {name}": np.frombuffer(values.tobytes(), np.uint8) for name, values in record.outputs.items()}
    for name, memory in kept.items():
        held[f"memory {name}"] = settled(memory, formats.get(name, DeviceFormat.SEN169_FP16), numerics)
    return held, (record.operations, record.lx_peak_bytes)


def assert_equal_runs(bundle: Bundle, arrays: Arrays, numerics: str = "dl16") -> None:
    """Run a bundle by both engines and hold bytes and counters against each other."""
    fast, fast_stats = bundle_memory(bundle, arrays, RunOptions(numerics=numerics))
    defined, stats = bundle_memory(bundle, arrays, RunOptions(numerics=numerics, engine="reference"))
    assert differing(fast, defined) == {}
    assert stats == fast_stats


def wide_numbers(generator: np.random.Generator, data_format: DeviceFormat, count: int) -> Bytes:
    """Return the bytes of elements of all magnitudes, with zeros of both signs and infinities, and without NaN.

    Of float32 NaN has more than one pattern, and which one a sum of two has is left open.
    """
    match data_format:
        case DeviceFormat.SEN169_FP16:
            patterns = generator.integers(0, 1 << 16, count)
            special = generator.choice([0, 0x8000, 0x7FFF, 0xFFFF], count)
            return np.where(generator.random(count) < 0.1, special, patterns).astype(np.uint16).view(np.uint8)
        case DeviceFormat.IEEE_FP32:
            numbers = generator.standard_normal(count) * np.exp2(generator.integers(-60, 40, count))
            special = generator.choice([0.0, -0.0, np.inf, -np.inf], count)
            return np.where(generator.random(count) < 0.1, special, numbers).astype(np.float32).view(np.uint8)
        case _:
            assert data_format.bits is not None
            return generator.integers(0, 256, count * data_format.bits // 8).astype(np.uint8)
