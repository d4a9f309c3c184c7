"""The emulator's speed claims, as ratios within one run: ``python -m benchmarks emulator`` or ``emulator:softmax``.

PyTorch's figures are there where the extra ``torch`` is installed; a claim that needs it is undecided (``null``) else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.emulator_parts import granite_block, growth, operations, processors
from benchmarks.measure import Figures

PARTS: Mapping[str, Callable[[], Figures]] = {
    "add": operations.add,
    "softmax": operations.softmax,
    "matmul": operations.matmul,
    "bmm": operations.bmm,
    "processors": processors.variants,
    "layer_norm": operations.layer_norm,
    "gelu": operations.gelu,
    "granite_block": granite_block.speed,
    "granite_memory": granite_block.memory,
    "elements": growth.elements,
    "superdscs": growth.superdscs,
    "loops": growth.loops,
}
"""Name of a part -> what measures it, in the order of the report."""


def measure() -> Figures:
    """Return the figures of every part by name."""
    return {name: part() for name, part in PARTS.items()}
