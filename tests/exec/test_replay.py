"""Replaying is launching, bit for bit, with nothing left of what launching does on the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from scripts.golden_bundles import GOLDEN
from spyrec.exec import Buffer, Context
from spyrec.exec.program import Program
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreStream, SpyreTensor, launch_kernel
from spyrec.runtime.jobs.iteration import CorrectionWork
from spyrec.runtime.jobs.job_argument import JobArgument
from spyrec.runtime.streams.control_block import Kind

Bytes = npt.NDArray[np.uint8]


def random_bytes(argument: JobArgument, generator: np.random.Generator) -> Bytes:
    assert argument.shape is not None
    assert argument.dtype is not None
    values = generator.standard_normal(argument.shape).astype(argument.dtype.carrier)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def filled(context: Context, program: Program, seed: int) -> list[Buffer]:
    """Buffers for all arguments, the inputs with random values."""
    generator = np.random.default_rng(seed)
    buffers = [context.buffer_alloc(item.name, item.size_bytes) for item in program.arguments]
    for number, (argument, buffer) in enumerate(zip(program.arguments, buffers, strict=True)):
        if argument.role.value == "input":
            program.write(number, buffer, random_bytes(argument, generator), 0)
    return buffers


@pytest.mark.parametrize("name", GOLDEN)
def test_replaying_an_example_gives_the_bits_that_launching_it_gives(name: str, tmp_path: Path) -> None:
    with Context() as context:
        program = Program(context, GOLDEN[name](tmp_path))
        outputs = [number for number, item in enumerate(program.arguments) if item.role.value == "output"]
        assert outputs
        buffers, stream = filled(context, program, 1), context.stream()
        graph = context.graph(name)
        context.runtime_stream(0).synchronize()
        graph.capture(0, lambda recording: program.launch(buffers, context.wrap_stream(recording)))
        program.launch(buffers, stream)
        launched = [program.read(number, buffers[number], stream) for number in outputs]
        for number in outputs:
            buffers[number].place()
            context.device.backend.view(buffers[number].place().range)[:] = 0
        for _ in range(2):
            graph.replay(0, stream)
            replayed = [program.read(number, buffers[number], stream) for number in outputs]
            assert all(np.array_equal(one, other) for one, other in zip(launched, replayed, strict=True))
        assert any(item.any() for item in launched)


def add_plan() -> ExecutionPlan:
    builder = spyrec.GraphBuilder("add")
    x, y = (builder.input(item, (4, 64), "float16") for item in "xy")
    builder.output(x + y)
    return ExecutionPlan(spyrec.compile(builder, spyrec.CompileOptions(cores=1)))


def tensors_of(device: SpyreDevice, rows: int, seed: int) -> list[SpyreTensor]:
    generator = np.random.default_rng(seed)
    arrays = [generator.standard_normal((rows, 64)).astype(np.float16) for _ in range(2)]
    return [*(SpyreTensor.to_device(device, item) for item in arrays), SpyreTensor.empty(device, (rows, 64), "float16")]


def test_replaying_a_tiled_launch_gives_its_bits_also_on_new_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    corrections: list[int] = []
    compute = CorrectionWork.__call__

    def counted(work: CorrectionWork) -> None:
        corrections.append(1)
        compute(work)

    monkeypatch.setattr(CorrectionWork, "__call__", counted)
    device, plan = spyrec.open_device(cores=1), add_plan()
    plan.load(device.default_stream)
    tensors, others = tensors_of(device, 64, 1), tensors_of(device, 64, 2)
    device.synchronize()
    with Context(device) as context:
        graph = context.graph("tiles")
        graph.capture(0, lambda stream: launch_kernel(stream, plan, tensors))
        executable = graph.ready(0)
        assert {block.kind for block in executable.blocks} == {Kind.H2D, Kind.COMPUTE}
        assert executable.control_blocks == len(executable.blocks) == 32
        assert len(corrections) == 16  # once each, by the capture
        del executable  # it would keep the memory that it uses
        for source in (None, others):
            if source is not None:
                for mine, other in zip(tensors[:2], source[:2], strict=True):
                    mine.copy_from(other)
            graph.replay(0, 0)
            replayed = tensors[2].to_host()
            assert len(corrections) == 16
            launch_kernel(device.default_stream, plan, [*tensors[:2], others[2]])
            assert np.array_equal(replayed, others[2].to_host())
            corrections.clear()
            corrections.extend([1] * 16)
    release(device, plan, [*tensors, *others])


def test_launches_and_replays_of_one_program_on_several_streams_do_not_disturb_each_other() -> None:
    device, plan = spyrec.open_device(cores=1, schedule="random:3", sanitize="sync"), add_plan()
    plan.load(device.default_stream)
    sets = [tensors_of(device, 16, seed) for seed in range(3)]
    device.synchronize()
    wanted: list[npt.NDArray[np.generic]] = []
    for tensors in sets:
        launch_kernel(device.default_stream, plan, tensors)
        wanted.append(tensors[2].to_host())
    with Context(device) as context:
        graph = context.graph("sets")
        for key in (0, 1):
            graph.capture(key, lambda stream, key=key: launch_kernel(stream, plan, sets[key]))
        streams = [context.stream() for _ in range(3)]
        for turn in range(6):
            graph.replay(turn % 2, streams[turn % 3])
            launch_kernel(context.runtime_stream(streams[(turn + 1) % 3]), plan, sets[2])
        device.synchronize()
        for tensors, expected in zip(sets, wanted, strict=True):
            assert np.array_equal(tensors[2].to_host(), expected)
        # of the outputs: the calls above leave several launches of one set without order; corrections never
        assert all("host" not in finding.message for finding in device.findings)
    release(device, plan, [tensor for tensors in sets for tensor in tensors])


def test_a_launch_on_a_port_goes_to_whatever_is_bound_there() -> None:
    device, plan = spyrec.open_device(cores=1), add_plan()
    plan.load(device.default_stream)
    tensors = tensors_of(device, 16, 5)
    device.synchronize()
    with Context(device) as context:
        graph = context.graph("ported")
        size = tensors[0].size_bytes
        outs = [context.buffer_alloc(name, size) for name in ("first", "second")]

        def record(stream: SpyreStream) -> None:
            out = graph.port("out", size).tensor((16, 64), "float16")
            launch_kernel(stream, plan, [*tensors[:2], out])

        graph.capture(0, record)
        launch_kernel(device.default_stream, plan, tensors)
        wanted = tensors[2].to_host()
        for out in outs:
            graph.bind("out", out)
            graph.replay(0, 0)
            assert np.array_equal(out.tensor((16, 64), "float16").to_host(), wanted)
    release(device, plan, tensors)


def test_a_port_bound_to_a_port_of_the_capture_around_it_goes_to_what_is_bound_there_at_last() -> None:
    device, plan = spyrec.open_device(cores=1), add_plan()
    plan.load(device.default_stream)
    tensors = tensors_of(device, 16, 5)
    device.synchronize()
    with Context(device) as context:
        inner, outer, size = context.graph("inner"), context.graph("outer"), tensors[0].size_bytes

        def record(stream: SpyreStream) -> None:
            launch_kernel(stream, plan, [*tensors[:2], inner.port("to", size).tensor((16, 64), "float16")])

        def around(stream: SpyreStream) -> None:
            for name in ("first", "second"):
                inner.bind("to", outer.port(name, size))
                inner.replay(0, context.wrap_stream(stream))

        inner.capture(0, record)
        outer.capture(0, around)
        launch_kernel(device.default_stream, plan, tensors)
        wanted = tensors[2].to_host()
        for turn in ("a", "b"):
            outs = [context.buffer_alloc(f"{name} {turn}", size) for name in ("first", "second")]
            for name, out in zip(("first", "second"), outs, strict=True):
                outer.bind(name, out)
            outer.replay(0, 0)
            for out in outs:
                assert np.array_equal(out.tensor((16, 64), "float16").to_host(), wanted)
    release(device, plan, tensors)


def test_a_program_that_is_not_uploaded_is_not_captured() -> None:
    device, plan = spyrec.open_device(cores=1), add_plan()
    tensors = tensors_of(device, 4, 1)
    device.synchronize()
    with Context(device) as context:
        graph = context.graph("early")
        with pytest.raises(spyrec.exec.ExecError) as failure:
            graph.capture(0, lambda stream: launch_kernel(stream, plan, tensors))
        assert failure.value.status is spyrec.exec.Status.CAPTURE
        plan.load(device.stream())
        with pytest.raises(spyrec.exec.ExecError, match="not done"):
            graph.capture(0, lambda stream: launch_kernel(stream, plan, tensors))
        device.synchronize()
        graph.capture(0, lambda stream: launch_kernel(stream, plan, tensors))
    release(device, plan, tensors)


def release(device: SpyreDevice, plan: ExecutionPlan, tensors: list[SpyreTensor]) -> None:
    """Give everything back, and see that nothing is left."""
    for tensor in tensors:
        tensor.free()
    plan.unload(device)
    assert device.allocator.statistics().allocations == 0
    device.close()
