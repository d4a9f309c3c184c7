"""The kinds of cases of a campaign, and which of them a number stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from benchmarks.campaign import files, graphs, nnsmith, programs, schedules
from benchmarks.campaign.graph_reduction import graph_size, operations_of, smaller_graphs
from benchmarks.campaign.verdicts import Case, Verdict

Size = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of case.

    ``share``: of a hundred cases.  ``make``: a case from its seed, a pure function.  ``trial``: what becomes of one.
    ``smaller``: cases that are smaller by ``size``, the smallest first, each of which may fail as well.
    """

    name: str
    share: int
    make: Callable[[int], Case]
    trial: Callable[[Case], Verdict]
    smaller: Callable[[Case], Iterator[Case]]
    size: Callable[[Case], Size]
    parts: Callable[[Case], Sequence[str]]
    seal: Callable[[Case], Case] = lambda case: case


def _of_graphs(name: str, share: int, make: Callable[[int], Case], trial: Callable[[Case], Verdict]) -> Kind:
    return Kind(name, share, make, trial, smaller_graphs, graph_size, operations_of)


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        _of_graphs("reference", 24, graphs.make_reference, graphs.try_reference),
        _of_graphs("loops", 10, graphs.make_loops, graphs.try_loops),
        _of_graphs("launches", 8, graphs.make_launch, graphs.try_launch),
        _of_graphs("planners", 12, graphs.make_planners, graphs.try_planners),
        _of_graphs("engines", 10, graphs.make_engines, graphs.try_engines),
        Kind("programs", 8, programs.make, programs.trial, programs.smaller, programs.size, programs.parts),
        Kind("schedules", 8, schedules.make, schedules.trial, schedules.smaller, schedules.size, schedules.parts),
        Kind("files", 14, files.make, files.trial, files.smaller, files.size, files.parts),
        Kind("nnsmith", 6, nnsmith.make, nnsmith.trial, nnsmith.smaller, nnsmith.size, nnsmith.parts, nnsmith.seal),
    )
}


def order_of(kinds: Sequence[Kind]) -> list[str]:
    """Return names of kinds, each as often as its share says, spread evenly."""
    places = [((number + 0.5) / kind.share, kind.name) for kind in kinds for number in range(kind.share)]
    return [name for _, name in sorted(places)]


def seed_of(run_seed: int, kind: str, number: int) -> int:
    """Return the seed of a case: far from those of its neighbours, and of those of other campaigns."""
    return int.from_bytes(sha256(f"{run_seed}/{kind}/{number}".encode()).digest()[:4], "little") >> 1
