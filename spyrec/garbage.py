"""Fewer searches for cycles of references while many records are made that stay.

CPython looks for cycles whenever 700 more objects were made than freed, and at all objects there are whenever a quarter
of them is new.  A compile makes records that refer to older records alone: not one cycle, and the searches were a fifth
of its time, more in a large graph (D195).
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_OBJECTS_BETWEEN = 100_000
"""Objects more than freed until the next search: what cycles of others hold that long is some tens of megabytes."""

_SEARCHES_BETWEEN = 1_000
"""Searches of new objects until one looks at those again that the last ones found in use (D232)."""

_lock = threading.Lock()
_usual: list[tuple[int, int, int]] = []
"""Of the process, while anybody asks for fewer searches: its thresholds, once for each who asks."""


@contextmanager
def rarely_searched() -> Generator[None]:
    """Search for cycles rarely in this process until the block ends; also a decorator.

    Blocks may be nested and may overlap among threads: the last one to end gives the process its thresholds back.  A
    process that searches never, or more rarely still, goes on so; and so does one that chose other thresholds inside
    of the block.
    """
    with _lock:
        found = _usual[0] if _usual else gc.get_threshold()
        _usual.append(found)
        fewer = (_OBJECTS_BETWEEN, max(_SEARCHES_BETWEEN, found[1]), found[2])
        if 0 < found[0] < _OBJECTS_BETWEEN:
            gc.set_threshold(*fewer)
    try:
        yield
    finally:
        with _lock:
            _usual.pop()
            if not _usual and gc.get_threshold() == fewer:
                gc.set_threshold(*found)
