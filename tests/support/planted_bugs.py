"""A campaign's worker whose spyrec has bugs: what it computes, where it breaks off, what it forgets to wait for.

They are planted in the process of the worker alone, where ``SPYREC_TEST_PLANTED`` names a folder; ``kill`` there is the
number of a case that ends its worker, once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from functools import cache
from pathlib import Path

from benchmarks.campaign import task


def run_case(payload: bytes, held: Path) -> bytes:
    """Plant the bugs and run the case."""
    folder = Path(os.environ["SPYREC_TEST_PLANTED"])
    _plant()
    _kill_worker(json.loads(payload).get("number"), folder / "kill")
    return task.run_case(payload, held)


def _kill_worker(number: int | None, path: Path) -> None:
    if path.exists() and number == int(path.read_text()):
        path.unlink()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)


@cache
def _plant() -> None:
    from spyrec.emulator.kernels.direct import COMBINATIONS
    from spyrec.emulator.kernels.pointwise import OPERATIONS
    from spyrec.passes.decompose import normalizations
    from spyrec.runtime.streams.events import Event

    for table in (COMBINATIONS, OPERATIONS):
        table["sub"] = table["add"]  # type: ignore[index]
    normalizations._softmax.__code__ = _broken.__code__  # pyright: ignore[reportPrivateUsage] -- a bug in it
    Event.wait = _forgotten  # type: ignore[method-assign]


def _broken(builder: object) -> str:
    raise LookupError(f"no {type(builder).__name__}")


def _forgotten(self: object, stream: object) -> None:
    pass
