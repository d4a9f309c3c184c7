"""Workflow 1: a tensor is allocated and transferred."""

from __future__ import annotations

import numpy as np

import spyrec
from spyrec.runtime import SpyreDevice, SpyreTensor


def show(device: SpyreDevice) -> None:
    """Copy an array to the device and back: one DMA each way."""
    array = (np.arange(4096 * 1024).reshape(4096, 1024) % 64).astype(np.float16)
    tensor = SpyreTensor.to_device(device, array)  # a job of one DMA step, on the current stream; returns at once
    print(f"{tensor}: {tensor.size_bytes} bytes, allocation {tensor.allocation_index:#x}")
    assert device.default_stream.flex.pending == 1
    device.default_stream.synchronize()
    assert device.scheduler.control_blocks == 1
    assert (tensor.to_host() == array).all()
    assert device.scheduler.control_blocks == 2
    print("1 control block there, 1 back, equal")


def main() -> None:
    """Open a device, and close it when nothing of the workflow is left on it."""
    with spyrec.open_device() as device:
        show(device)


if __name__ == "__main__":
    main()
