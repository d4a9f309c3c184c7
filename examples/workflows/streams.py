"""Workflow 6: plans on two streams.

What they share is ordered by an event; the race detector says where it is not.
"""

from __future__ import annotations

import spyrec
from examples.workflows.matmul import matmul, operands, require_product, result_tensor
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel
from spyrec.runtime.errors import RuntimeFault

SCHEDULE = "random:1"


def independent(device: SpyreDevice) -> None:
    """Two launches of two plans that share no tensor: neither waits for the other."""
    streams = [device.stream(), device.stream(priority=-1)]
    arrays = [operands(seed=seed) for seed in range(2)]
    results: list[SpyreTensor] = []
    for stream, (a, b), name in zip(streams, arrays, ("first", "second"), strict=True):
        with stream:
            tensors = [SpyreTensor.to_device(device, array) for array in (a, b)]
        results.append(result_tensor(device))
        launch_kernel(stream, ExecutionPlan(matmul(name=name)), [*tensors, results[-1]])
    for stream, (a, b), result in zip(streams, arrays, results, strict=True):
        print(f"{stream}: {require_product(a, b, result.to_host(stream))}")
    assert device.findings == ()


def chained(device: SpyreDevice, *, is_ordered: bool) -> tuple[RuntimeFault, ...]:
    """``(a @ b) @ b`` over two streams, with an event between them or without; return what the detector finds.

    Launches of one plan share its correction slots: these alone would bring the second behind the first.
    """
    first, second = device.stream(), device.stream()
    a, b = operands()
    plans = [ExecutionPlan(matmul(name=name)) for name in ("product", "result")]
    with first:
        spyre_a, spyre_b = (SpyreTensor.to_device(device, array) for array in (a, b))
    product, result = result_tensor(device), result_tensor(device)
    launch_kernel(first, plans[0], [spyre_a, spyre_b, product])
    if is_ordered:
        second.wait_event(first.record_event())
    launch_kernel(second, plans[1], [product, spyre_b, result])
    second.synchronize()
    device.synchronize()
    return device.findings


def main() -> None:
    """Independent work needs no order; shared tensors do."""
    with spyrec.open_device(schedule=SCHEDULE, sanitize="sync") as device:
        independent(device)
    for is_ordered in (True, False):
        with spyrec.open_device(schedule=SCHEDULE, sanitize="sync") as device:
            found = chained(device, is_ordered=is_ordered)
            assert bool(found) is not is_ordered
            print(f"{'with' if is_ordered else 'without'} an event: {len(found)} races")
            if found:
                print(found[0])


if __name__ == "__main__":
    main()
