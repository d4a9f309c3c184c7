"""Workflow 3: a launch of exactly the shape that the program was compiled for, in detail."""

from __future__ import annotations

import spyrec
from examples.workflows.matmul import counts, matmul, operands, require_product, result_tensor
from spyrec.runtime import ExecutionPlan, SpyreDevice, SpyreTensor, launch_kernel


def show(device: SpyreDevice) -> None:
    """HostOperation, DMA, DeviceCompute: the correction is made on the host, copied, and read by the program."""
    a, b = operands()
    plan, stream = ExecutionPlan(matmul()), device.stream()
    with stream:
        tensors = [SpyreTensor.to_device(device, array) for array in (a, b)] + [result_tensor(device)]
    plan.load(stream)
    blocks = launch_kernel(stream, plan, tensors)  # returns at once
    for block in blocks:
        print(f"  {block.kind.text:<15}{block.origin}")
    assert counts(blocks) == {"iterations": 1, "HostOperations": 1, "control blocks": 2, "staging copies": 0}
    stream.synchronize()
    print(require_product(a, b, tensors[-1].to_host()))


def main() -> None:
    """Open a device, and close it when nothing of the workflow is left on it."""
    with spyrec.open_device() as device:
        show(device)


if __name__ == "__main__":
    main()
