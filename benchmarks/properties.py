"""The randomised tests at ten times their ordinary count, on fresh examples: how many properties held, and how long.

Among them are 3,000 programs of each kind of operation that came with August 2026 (``tests/support/kinds``).
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

_PROJECT = Path(__file__).resolve().parent.parent
_TESTS = (
    *("tests/ir", "tests/passes", "tests/properties", "tests/compare/test_bisect_tiles.py"),
    *("tests/emulator/test_loops.py", "tests/emulator/test_core_chains.py"),
)


def measure() -> dict[str, object]:
    """Run the tests with the profile ``tenfold`` of ``tests/conftest.py``; a failure prints its example and raises."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile", "tenfold"]
    done = subprocess.run([*command, *_TESTS], cwd=_PROJECT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(done.stdout[-4000:])
    return {
        "what": "randomised tests with ten times the examples",
        "result": done.stdout.strip().splitlines()[-1],
        "seconds": round(time.perf_counter() - start, 1),
    }
