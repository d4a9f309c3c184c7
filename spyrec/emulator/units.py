"""A program's schedule as units: what one dispatch executes, a call or consecutive calls that one executable serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.emulator.chain import Chain
from spyrec.emulator.engine import Executable
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.resolve import Schedule, ScheduledCall, ScheduledLoop


@dataclass(frozen=True, slots=True, eq=False)
class DispatchUnit:
    """What is dispatched at once.

    ``executable`` takes the starts of all members' operands, one member's below the other's; members use equally
    many cores.  ``chain``: between dispatches of one chain nobody waits.
    """

    members: tuple[PlannedCall, ...]
    executable: Executable
    chain: Chain | None = None


@dataclass(frozen=True, slots=True, eq=False)
class UnitLoop:
    """A loop and the units it repeats."""

    loop: ScheduledLoop
    body: tuple[DispatchUnit | UnitLoop, ...]


Units = tuple[DispatchUnit | UnitLoop, ...]

Grouping = Callable[[Sequence[DispatchUnit]], Sequence[DispatchUnit]]
"""Makes fewer units of consecutive ones, each of one call as it comes; it may do so only where no one can tell."""


def units_of(schedule: Schedule, planned: Mapping[int, PlannedCall], group: Grouping = lambda units: units) -> Units:
    """Return the schedule with each call's plan, runs of consecutive calls grouped by ``group``."""
    units: list[DispatchUnit | UnitLoop] = []
    consecutive: list[DispatchUnit] = []
    for item in schedule:
        if isinstance(item, ScheduledCall):
            plan = planned[id(item)]
            consecutive.append(DispatchUnit((plan,), plan.executable))
        else:
            units += [*group(consecutive), UnitLoop(item.loop, units_of(item.body, planned, group))]
            consecutive = []
    return (*units, *group(consecutive))


def every_unit(units: Units) -> Iterator[DispatchUnit]:
    """Yield every unit in program order, each once."""
    for item in units:
        if isinstance(item, UnitLoop):
            yield from every_unit(item.body)
        else:
            yield item
