"""The memory of one process that runs the Granite block: ``python -m benchmarks.emulator_parts.granite_memory GRAPH``.

Prints JSON.  What Python, its libraries and compiled kernels take is measured first, on the narrow block.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from pathlib import Path

import spyrec
from examples.granite_block import make_graph
from spyrec.front import OpenedBundle, opened
from spyrec.runtime.inputs.binding import argument_size_bytes
from spyrec.runtime.inputs.random_inputs import random_inputs


def peak_bytes() -> int:
    """Return the most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def device_bytes(bundle: spyrec.Bundle) -> int:
    """Return what the arguments of a bundle and its pool take on the device."""
    return bundle.manifest.pool_bytes + sum(argument_size_bytes(item) for item in bundle.manifest.arguments)


def run(bundle: spyrec.Bundle) -> None:
    """Load a bundle and run it twice with random inputs."""
    with opened(bundle, spyrec.RunOptions()) as ready:
        assert isinstance(ready, OpenedBundle)
        inputs = random_inputs(ready.inputs, 1)
        for _ in range(2):
            ready.run(inputs)


def main(graph: str) -> None:
    """Run the narrow block, then the one at ``graph``; print the peaks and the device bytes."""
    with tempfile.TemporaryDirectory() as directory:
        run(spyrec.compile(make_graph.write(Path(directory), make_graph.NARROW)))
    before = peak_bytes()
    bundle = spyrec.compile(graph)
    run(bundle)
    print(json.dumps({"before_bytes": before, "peak_bytes": peak_bytes(), "device_bytes": device_bytes(bundle)}))


if __name__ == "__main__":
    main(sys.argv[1])
