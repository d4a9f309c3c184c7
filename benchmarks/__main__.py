"""``python -m benchmarks [NAME ...]``: measure and print JSON, one object per benchmark; all of them without a name.

``NAME:PART`` measures one part of a benchmark that has parts.  ``machine`` says on which processor, for which of its
vectors kernels are compiled, and what NumPy's sgemm is compiled for.  ``load_before`` is the machine's load average of
the last minute: figures taken with others at work are worth little.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules

import benchmarks
from benchmarks import calibration
from benchmarks.campaign import command as campaign
from benchmarks.machine import machine
from benchmarks.measure import Figures
from benchmarks.model_ops import command as model_ops
from benchmarks.models import command as models
from benchmarks.torch_ops import command as torch_ops

_HELPERS = {"__main__", "calibration", "machine", "measure", "device_launch", "guard"}


def names() -> list[str]:
    """Return the benchmarks: the modules of this folder that are no helpers."""
    modules = [module.name for module in iter_modules(benchmarks.__path__) if not module.ispkg]
    return sorted(name for name in modules if name not in _HELPERS)


def parts_of(name: str) -> Mapping[str, Callable[[], Figures]]:
    """Return the parts of a benchmark that can be measured alone, by name."""
    return getattr(import_module(f"benchmarks.{name}"), "PARTS", {})


def figures_of(chosen: str) -> Figures:
    """Measure ``NAME`` or ``NAME:PART``."""
    name, _, part = chosen.partition(":")
    return parts_of(name)[part]() if part else import_module(f"benchmarks.{name}").measure()


def unknown_in(chosen: str) -> str | None:
    """Return what to answer to a name that is none; ``None`` for a benchmark or a part of one."""
    name, _, part = chosen.partition(":")
    if name not in names():
        return f"no benchmark {name!r}; there are: all, {', '.join(names())}"
    if part and part not in parts_of(name):
        return f"no part {part!r} of {name!r}; there are: {', '.join(parts_of(name)) or 'none'}"
    return None


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmarks; exit code 2 for a name that is none."""
    commands = {
        "calibration": calibration.main,
        "campaign": campaign.main,
        "model_ops": model_ops.main,
        "models": models.main,
        "torch_ops": torch_ops.main,
    }
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    chosen = names() if not arguments or "all" in arguments else list(arguments)
    problems = [problem for problem in map(unknown_in, chosen) if problem is not None]
    if problems:
        print(problems[0], file=sys.stderr)
        return 2
    for name in chosen:
        load = os.getloadavg()[0]  # ratios on a busy machine flatter whoever uses fewer threads
        about = {"benchmark": name, "machine": machine(), "load_before": round(load, 2)}
        print(json.dumps({**about, **figures_of(name)}, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
