"""One device operation in a process of its own: ``python -m benchmarks.emulator_parts.first_run OP`` prints JSON.

It runs from an OpSpec through the code generator and the emulator; what is timed is all of it: inputs encoded, program
loaded, kernels compiled or read from numba's cache, launched, output decoded.  Imports stand beside it.
"""

from __future__ import annotations

import time

_START = time.perf_counter()

import json  # noqa: E402 -- imports are a part of what is timed
import sys  # noqa: E402
from collections.abc import Callable, Iterable, Mapping  # noqa: E402
from importlib import import_module  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from tests.codegen.builders import FP16  # noqa: E402
from tests.conformance.op_runner import Operand, execute, gathered, specification  # noqa: E402

_WHOLE = Operand(("i", "j"), ("j", "i"), "j", FP16)
_SIZES = {"i": 64, "j": 128}


def _pointwise(op: str, inputs: int) -> Callable[[], object]:
    return _one(op, [_WHOLE] * (inputs + 1), _SIZES)


def _one(
    op: str, operands: list[Operand], sizes: Mapping[str, int], *, is_reduction: bool = False
) -> Callable[[], object]:
    spec = specification(op, operands, sizes, {}, is_reduction=is_reduction)
    arrays = [np.ones([sizes[symbol] for symbol in item.symbols]) for item in operands[:-1]]
    return lambda: execute(spec, operands, arrays, sizes)


def _product() -> Callable[[], object]:
    operands = [
        Operand(("m", "k"), ("k", "m"), "k"),
        Operand(("k", "n"), ("n", "k"), "n"),
        Operand(("m", "n"), ("n", "m"), "n"),
    ]
    return _one("matmul", operands, {"m": 64, "n": 128, "k": 128}, is_reduction=True)


OPERATIONS: Mapping[str, Callable[[], Callable[[], object]]] = {
    "add": lambda: _pointwise("add", 2),
    "exp": lambda: _pointwise("exp", 1),
    "sum": lambda: _one("sum", [_WHOLE, Operand(("i",), (None, "i"), None)], _SIZES, is_reduction=True),
    "matmul": _product,
    "restickify": lambda: _one("ReStickifyOpHBM", [_WHOLE, Operand(("i", "j"), ("i", "j"), "i")], _SIZES),
    "gather": lambda: lambda: gathered({}),
    "topk": lambda: _one(
        "topkvalue",
        [Operand(("m", "n"), ("m", "n"), "m"), Operand(("m", "k"), ("m", "k"), "m")],
        {"m": 64, "k": 4, "n": 40},
        is_reduction=True,
    ),
}
"""One operation of each family of kernels -> what makes its run."""


def compile_seconds(events: Iterable[tuple[float, Any]]) -> dict[str, float]:
    """Return the seconds of each compiled function, those of the functions that it calls left out."""
    seconds: dict[str, float] = {}
    open_calls: list[list[float]] = []  # start, seconds of what was compiled inside
    for moment, item in events:
        if item.is_start:
            open_calls.append([moment, 0.0])
            continue
        start, inside = open_calls.pop()
        if open_calls:
            open_calls[-1][1] += moment - start
        function = item.data["dispatcher"].py_func.__name__
        seconds[function] = seconds.get(function, 0.0) + moment - start - inside
    return seconds


def numba_recorder() -> Any:  # noqa: ANN401 -- numba ships no types
    """Return a context that records what numba compiles, as ``buffer`` of what it gives."""
    event: Any = import_module("numba.core.event")
    return event.install_recorder("numba:compile")


def main(name: str) -> None:
    """Run the operation twice; print seconds, and those that numba compiled for, by function."""
    imported = time.perf_counter()
    run = OPERATIONS[name]()
    with numba_recorder() as recorder:
        start = time.perf_counter()
        run()
        first = time.perf_counter()
        run()
        second = time.perf_counter()
    figures = {"import_s": imported - _START, "first_run_s": first - start, "next_run_s": second - first}
    print(json.dumps({**figures, "compiled_s": compile_seconds(recorder.buffer)}))


if __name__ == "__main__":
    main(sys.argv[1])
