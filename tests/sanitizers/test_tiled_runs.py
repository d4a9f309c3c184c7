"""Sanitizers of programs in runs on larger inputs: staging carries what is defined, and bugs are found in any tile."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.emulator.backend import EmulatorOptions, emulated_device, emulator_of
from spyrec.emulator.choices import Numerics
from spyrec.runtime.findings import Sanitizer
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.streams.blocks import device_to_device, host_to_device
from spyrec.runtime.streams.control_block import Origin, StridedBytes
from tests.sanitizers.planting import reordered, without
from tests.support.examples import examples

Arrays = dict[str, npt.NDArray[np.generic]]


def chain(options: CompileOptions) -> spyrec.Bundle:
    """Return a bundle of several SuperDSCs whose rows and columns tiles may cut; its sticks are not full."""
    builder = spyrec.GraphBuilder("chain")
    x, y = (builder.input(name, (32, 64), "float16") for name in "xy")
    builder.output(builder.transpose(builder.exp(x * 0.25) + y, dim0=0, dim1=1, name="z"))
    return spyrec.compile(builder, options)


def arrays(rows: int, columns: int) -> Arrays:
    generator = np.random.default_rng(1)
    return {name: generator.standard_normal((rows, columns)).astype(np.float16) for name in "xy"}


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("shape", [(96, 64), (32, 192), (96, 128)])
@pytest.mark.parametrize("numerics", ["dl16", "f32"])
def test_right_programs_are_silent_in_tiles(strided: bool, shape: tuple[int, int], numerics: str) -> None:
    bundle = chain(CompileOptions(symbolic_strides=strided))
    inputs = arrays(*shape)
    result = spyrec.run(bundle, inputs, RunOptions(sanitize="all", check=True, numerics=numerics))
    assert result.tiles
    assert result.sanitizer == ()
    assert result.is_ok
    plain = spyrec.run(bundle, inputs, RunOptions(numerics=numerics))
    assert result.outputs["z"].tobytes() == plain.outputs["z"].tobytes()


def test_a_dropped_operation_is_found_in_tiles_as_in_a_run_of_the_compiled_shapes() -> None:
    bundle = chain(CompileOptions(lx_planner="none"))
    (program,) = bundle.programs
    file = next(iter(program.superdscs))
    wrong = reordered(bundle, without(file))
    for shape in ((32, 64), (96, 64), (32, 192)):
        found = spyrec.run(wrong, arrays(*shape), RunOptions(sanitize="init")).sanitizer
        assert {item.sanitizer for item in found} == {Sanitizer.INIT}, (file, shape)


@examples(40)
@given(data=st.data())
def test_a_copy_on_the_device_moves_what_is_defined_with_the_bytes(data: st.DataObject) -> None:
    numerics = data.draw(st.sampled_from(["dl16", "ieee"]))
    made = emulated_device(EmulatorOptions(numerics=Numerics(numerics), sanitizers=frozenset({Sanitizer.INIT})))
    monitor = emulator_of(made).device.monitor
    assert monitor is not None
    sizes = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    chunk = 128 * data.draw(st.integers(1, 2))
    strides = [tuple(128 * data.draw(st.integers(2, 7)) for _ in sizes) for _ in range(2)]
    walk = StridedBytes(chunk, sizes, *strides)
    firsts = [sum(i * s for i, s in zip(index, strides[1], strict=True)) for index in np.ndindex(*sizes)]
    assume(all(second - first >= chunk for first, second in pairwise(sorted(firsts))))  # else the order would count
    with made as device:
        source, target = (device.spyre_allocator.allocate(128 * 64) for _ in range(2))
        places = [device.allocator.part(owner.index) for owner in (source, target)]
        defined = sorted(data.draw(st.sets(st.integers(0, 63))))
        for stick in defined:
            part = DeviceBytes(places[0].allocation, places[0].range.part(128 * stick, 128))
            device.default_stream.flex.enqueue([host_to_device(np.ones(128, np.uint8), part, Origin(1, "sticks"))])
        device.default_stream.flex.enqueue([device_to_device(places[0], places[1], Origin(1, "copy"), walk)])
        device.synchronize()
        addresses = [device.allocator.regions.device_address(place.range.address) for place in places]
        found = monitor.states_of(addresses[1], 128 * 64).reshape(64, -1)
        want = np.zeros(64, bool)
        for index in np.ndindex(*sizes):
            first, second = (sum(i * s for i, s in zip(index, steps, strict=True)) // 128 for steps in strides)
            for stick in range(chunk // 128):
                want[second + stick] = first + stick in defined
        assert np.array_equal((found == 255).all(axis=1), want)
        assert np.array_equal((found == 0).all(axis=1), ~want)
        source.free()
        target.free()
