"""A process that is killed while it copies from a device to a file leaves the file as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

READ_BACK = """
import sys, time
from pathlib import Path
import numpy as np
from spyrec.runtime import SpyreDevice, SpyreTensor, profile
from spyrec.runtime.streams.plain_backend import PlainBackend
from spyrec.files.file_kinds import OUTPUTS
from spyrec.files.whole_file import write_file

device = SpyreDevice(PlainBackend())
tensors = [SpyreTensor.to_device(device, np.full(4096, number, np.float32)) for number in range(4)]

def copy(file):
    for number, tensor in enumerate(tensors):
        file.write(tensor.to_host().tobytes())
        file.flush()
        if number == 1:
            print("writing", flush=True)
            time.sleep(60)

write_file(Path(sys.argv[1]), OUTPUTS, copy, force=True)
"""


@pytest.mark.parametrize("before", [None, b"an earlier result"])
def test_a_killed_copy_to_a_file_leaves_no_part_of_it_at_its_place(tmp_path: Path, before: bytes | None) -> None:
    place = tmp_path / "outputs.bin"
    if before is not None:
        place.write_bytes(before)
    command = [sys.executable, "-c", READ_BACK, str(place)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    parts = [item for item in tmp_path.iterdir() if item != place]
    assert [item.stat().st_size for item in parts] == [2 * 4096 * 4], "it was killed before it wrote anything"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (place.read_bytes() if place.exists() else None) == before
