"""``python -m benchmarks [NAME ...]``: measure and print JSON, one object per benchmark; all of them without a name."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

import benchmarks

_HELPERS = {"__main__", "measure", "device_launch"}


def names() -> list[str]:
    """Return the benchmarks: the modules of this folder that are no helpers."""
    return sorted(module.name for module in iter_modules(benchmarks.__path__) if module.name not in _HELPERS)


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmarks; exit code 2 for a name that is none."""
    chosen = names() if not arguments or "all" in arguments else list(arguments)
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: all, {', '.join(names())}", file=sys.stderr)
        return 2
    for name in chosen:
        figures = import_module(f"benchmarks.{name}").measure()
        print(json.dumps({"benchmark": name, **figures}, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
