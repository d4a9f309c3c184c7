"""``python -m tests.support.fuzzing.worker HOME RUN_SEED BEGIN END STEP [READER ...]``: runs cases, a line for each.

Before a case its number is printed, after it a JSON object: whoever reads along knows which case a worker died of.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.fuzzing.readers import READERS, Reader
from tests.support.fuzzing.trials import MOST_BYTES, Laboratory, StoppedError


def schedule(readers: Sequence[Reader]) -> list[str]:
    """Return names of readers, each as often as its share says, spread evenly."""
    places = [((number + 0.5) / reader.share, reader.name) for reader in readers for number in range(reader.share)]
    return [name for _, name in sorted(places)]


def chosen_readers(names: Sequence[str]) -> tuple[Reader, ...]:
    """Return the readers of these names, all without one."""
    return tuple(reader for reader in READERS if not names or reader.name in names)


def main(arguments: Sequence[str]) -> int:
    """Run cases, and print what came of them."""
    home, run_seed, begin, end, step, *names = arguments
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES + (MOST_BYTES >> 2), resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    readers = chosen_readers(names)
    laboratory = Laboratory(Path(home).resolve(), readers)
    order = schedule([reader for reader in readers if laboratory.seeds[reader.name]])
    for number in range(int(begin), int(end), int(step)):
        lines.write(f"{number}\n")
        reader = order[number % len(order)]
        outcome = laboratory.run(laboratory.case(reader, number, int(run_seed)), is_text=number % 10 == 0)
        found = {"number": number, "reader": reader, "code": outcome.exit_code, "seconds": round(outcome.seconds, 3)}
        if outcome.fault:
            found |= {"fault": outcome.fault, "where": outcome.where}
        lines.write(json.dumps(found) + "\n")
        if StoppedError.__name__ in outcome.fault or outcome.fault.startswith(("takes", "holds")):
            return 3  # what a case that was ended leaves behind in this process is nobody's guess
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
