"""Calls of a loaded model on 4096 x 4096 float16 arrays, copies included, beside torch's and NumPy's own operations.

``torch`` is measured where it is installed, in the same rounds, with as many threads as there are processors and a
result of its own each time; of a matmul the figure beside is float32 ``sgemm`` through NumPy.  ``beside`` says what
stands beside, and for which vectors torch computes: ``ATEN_CPU_CAPABILITY=avx2`` with ``SPYREC_PROCESSOR=avx2``
compares like with like.  ``*_cpu_ms`` are of all threads: where others use the machine too, they say more than times.
``copies_share`` is what copies and conversions take of a call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import spyrec
from benchmarks.measure import Figures, interleaved_seconds, rounded
from spyrec.emulator.device import EmulatedDevice

SIZE = 4096
ROUNDS = 9
_PAUSE_SECONDS = 0.02
"""Before each: idle threads of torch and of BLAS spin for a while, which would count as the next one's time."""

Halves = npt.NDArray[np.float16]
Action = Callable[[], object]


def _builders() -> Iterator[tuple[str, spyrec.GraphBuilder]]:
    for name in ("add", "softmax", "gelu", "layer_norm", "matmul"):
        builder = spyrec.GraphBuilder(name)
        x = builder.input("x", (SIZE, SIZE))
        match name:
            case "add":
                result = builder.add(x, builder.input("y", (SIZE, SIZE)), name="result")
            case "matmul":
                result = builder.matmul(x, builder.input("y", (SIZE, SIZE)), name="result")
            case "softmax":
                result = builder.softmax(x, dim=-1, name="result")
            case "gelu":
                result = builder.gelu(x, name="result")
            case _:
                result = builder.layer_norm(x, normalized_shape=(SIZE,), name="result")
        builder.output(result)
        yield name, builder


def _others(name: str, x: Halves, y: Halves) -> dict[str, Action]:
    """Return what does the same elsewhere: each returns an array of its own."""
    if name == "matmul":
        left, right = x.astype(np.float32), y.astype(np.float32)
        return {"sgemm": lambda: left @ right}
    found: dict[str, Action] = {"copyto": x.copy}
    if name == "add":
        found["numpy"] = lambda: x + y
    if find_spec("torch") is not None:
        torch: Any = import_module("torch")
        torch.set_num_threads(os.cpu_count() or 1)
        a, b = torch.from_numpy(x), torch.from_numpy(y)
        found["torch"] = {
            "add": lambda: a + b,
            "softmax": lambda: torch.softmax(a, -1),
            "gelu": lambda: torch.nn.functional.gelu(a),
            "layer_norm": lambda: torch.nn.functional.layer_norm(a, (SIZE,)),
        }[name]
    return found


@contextmanager
def _kernels_timed(spent: list[float]) -> Generator[None]:
    """Add the CPU time of each launch of a program to ``spent``."""
    launch = EmulatedDevice.launch

    def timed(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 -- as the method it stands for
        start = time.process_time()
        try:
            return launch(*arguments, **options)
        finally:
            spent.append(time.process_time() - start)

    EmulatedDevice.launch = timed
    try:
        yield
    finally:
        EmulatedDevice.launch = launch


def _beside() -> str:
    """Return what stands beside the calls."""
    if find_spec("torch") is None:
        return "torch is not installed: a plain copy by NumPy stands beside element by element operations, no claim"
    torch: Any = import_module("torch")
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {capability}, {os.cpu_count() or 1} threads"


def measure() -> Figures:
    """Return, per operation, milliseconds and CPU milliseconds of a call and of what it stands beside, and ratios."""
    generator = np.random.Generator(np.random.PCG64(0))
    x, y = (generator.standard_normal((SIZE, SIZE), dtype=np.float32).astype(np.float16) for _ in range(2))
    figures: Figures = {"beside": _beside()}
    for name, builder in _builders():
        kernels: list[float] = []
        with spyrec.load(spyrec.compile(builder)) as model, _kernels_timed(kernels):
            inputs = {item: {"x": x, "y": y}[item] for item in model.inputs}
            actions: dict[str, Action] = {"call": lambda: model(**inputs)}  # noqa: B023 -- called within this turn
            candidates = {**actions, **_others(name, x, y)}
            least = interleaved_seconds(candidates, ROUNDS, pause_seconds=_PAUSE_SECONDS, statistic=min)
        times = {f"{key}_ms": rounded(seconds.wall * 1e3) for key, seconds in least.items()}
        cpu = {f"{key}_cpu_ms": rounded(seconds.cpu * 1e3) for key, seconds in least.items()}
        beside = "sgemm" if name == "matmul" else "torch" if "torch" in least else "copyto"
        figures[name] = {
            **times,
            **cpu,
            "kernel_cpu_ms": rounded(min(kernels) * 1e3),
            "copies_share": rounded(1 - min(kernels) / least["call"].cpu),
            f"time_over_{beside}": rounded(least["call"].wall / least[beside].wall),
            f"cpu_over_{beside}": rounded(least["call"].cpu / least[beside].cpu),
            "claim": {"sgemm": "time_over_sgemm <= 1.2", "torch": "time_over_torch <= 1.3"}.get(beside, "none"),
        }
    return figures
