"""A guard against going back: ratios of a short run beside those that were committed for this class of processor.

``make bench-guard`` measures each benchmark of ``GUARDED`` three times, in turns, and takes the median of every ratio.
A ratio that is worse than the committed one by more than its tolerance is printed, and the exit code is 1.  It is no
part of ``make test``: a ratio cancels the machine's speed, not its load.  ``python -m benchmarks.guard --record``
writes the ratios of this machine's class into ``benchmarks/guarded_ratios.json``; those of other classes stay.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import cast

from benchmarks.__main__ import figures_of
from benchmarks.measure import Figures, rounded

COMMITTED = Path(__file__).with_name("guarded_ratios.json")

_ROUNDS = 3

Ratios = Mapping[str, float]
"""By the name of a guarded ratio."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A ratio of a benchmark.

    ``path``: keys of its figures, one inside the other.  ``tolerance``: the part by which it may get worse, more than
    three runs on a quiet machine differ by.  ``is_speed``: whether more is better.
    """

    benchmark: str
    path: tuple[str | int, ...]
    tolerance: float
    is_speed: bool = False

    @property
    def name(self) -> str:
        """How it is called in the file and in what is printed."""
        return " ".join((self.benchmark, *map(str, self.path)))

    def in_figures(self, figures: Figures) -> float:
        """Return the ratio out of what the benchmark gave."""
        found: object = figures
        for key in self.path:
            found = cast("Mapping[str | int, object]", found)[key]
        assert isinstance(found, int | float), f"{self.name} is {found}"
        return float(found)

    def is_worse(self, measured: float, committed: float) -> bool:
        """Whether a ratio is beyond its tolerance."""
        if self.is_speed:
            return measured < committed * (1 - self.tolerance)
        return measured > committed * (1 + self.tolerance)


GUARDED = (
    Guarded("compile", ("layers_over_lookups",), 0.25),
    Guarded("compile", ("repeated_over_lookups",), 0.25),
    Guarded("compile", ("unlike_over_lookups",), 0.25),
    Guarded("launch", ("launch_over_three_lookups",), 0.25),
    Guarded("launch", ("tile_over_three_lookups",), 0.25),
    Guarded("replay", ("replay_per_launch",), 0.3),
    Guarded("emulator:add", ("claims", 0, "measured"), 0.2, is_speed=True),
    Guarded("emulator:matmul", ("claims", 0, "measured"), 0.15, is_speed=True),
    Guarded("copies", ("rows_4096x4096", "h2d_speed_ratio"), 0.3, is_speed=True),
    Guarded("copies", ("rows_4096x4096", "d2h_speed_ratio"), 0.3, is_speed=True),
)
"""What is guarded; about two minutes of measuring."""


def measured(guarded: Sequence[Guarded], figures: Callable[[str], Figures], rounds: int = _ROUNDS) -> dict[str, float]:
    """Return the median of each ratio; the benchmarks are run in turns."""
    found: dict[str, list[float]] = {item.name: [] for item in guarded}
    for _ in range(rounds):
        for benchmark in dict.fromkeys(item.benchmark for item in guarded):
            run = figures(benchmark)
            for item in guarded:
                if item.benchmark == benchmark:
                    found[item.name].append(item.in_figures(run))
    return {name: rounded(median(values)) for name, values in found.items()}


def worse(guarded: Iterable[Guarded], now: Ratios, committed: Ratios) -> list[str]:
    """Return a line for each ratio that got worse."""
    return [
        f"{item.name}: {now[item.name]:g}, was {committed[item.name]:g} (tolerance {item.tolerance:.0%})"
        for item in guarded
        if item.name in committed and item.is_worse(now[item.name], committed[item.name])
    ]


def committed_ratios(file: Path, processor_class: str) -> dict[str, float]:
    """Return what is committed for a class of processors; nothing for a class that has none."""
    return _known(file).get(processor_class, {})


def _known(file: Path) -> dict[str, dict[str, float]]:
    return json.loads(file.read_text()) if file.exists() else {}


def record(file: Path, processor_class: str, now: Ratios) -> None:
    """Write the ratios of a class; those of others stay."""
    file.write_text(json.dumps({**_known(file), processor_class: dict(now)}, indent=1, sort_keys=True) + "\n")


def main(arguments: Sequence[str]) -> int:
    """Measure and compare, or record; exit code 1 where something got worse, 2 for an option that is none."""
    if set(arguments) - {"--record"}:
        print(f"no option {' '.join(arguments)!r}; there is --record", file=sys.stderr)
        return 2
    from benchmarks.machine import machine

    about = machine()
    processor_class = str(about["kernels"])
    print(json.dumps(about))
    now = measured(GUARDED, figures_of)
    committed = committed_ratios(COMMITTED, processor_class)
    for item in GUARDED:
        before = committed.get(item.name)
        print(f"{item.name}: {now[item.name]:g}" + ("" if before is None else f", was {before:g}"))
    if "--record" in arguments:
        record(COMMITTED, processor_class, now)
        return 0
    lines = worse(GUARDED, now, committed)
    print("\n".join(["worse:", *lines]) if lines else f"nothing is worse than what is committed for {processor_class}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
