"""What sanitizers are there, and what they report: plain data for the front, the runtime and the emulator."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.diagnostics.near_names import one_of


class Sanitizer(Enum):
    """One kind of bug that is looked for while a program runs."""

    BOUNDS = "bounds"
    INIT = "init"
    LX = "lx"
    RACE = "race"
    GAP = "gap"
    SYNC = "sync"


NO_SANITIZERS: frozenset[Sanitizer] = frozenset()

_CODES = {
    Sanitizer.BOUNDS: "SPY0730",
    Sanitizer.INIT: "SPY0731",
    Sanitizer.LX: "SPY0732",
    Sanitizer.RACE: "SPY0733",
    Sanitizer.GAP: "SPY0734",
    Sanitizer.SYNC: "SPY0980",
}

_KIND_OF_RULE = {
    "SPY0706": Sanitizer.BOUNDS,
    "SPY0716": Sanitizer.BOUNDS,
    "SPY0717": Sanitizer.RACE,
    "SPY0718": Sanitizer.LX,
    "SPY0720": Sanitizer.BOUNDS,
}
"""The sanitizer that a load-time rule belongs to, by the rule's code."""


@dataclass(frozen=True, slots=True)
class FaultPlace:
    """Where a broken rule shows in memory, as far as it is known when a program is loaded.

    Fields as in :class:`Finding`; before anything is allocated, ``address`` is that in the segments which programs with
    baked addresses use.
    """

    op: str | None = None
    core: int | None = None
    tensor: str | None = None
    operand: str | None = None
    address: int | None = None
    element: tuple[int, ...] | None = None
    device_coordinate: tuple[int, ...] | None = None
    field: str | None = None
    iteration: tuple[int, ...] | None = None
    provenance: str | None = None

    def __str__(self) -> str:
        return _place_text(self, field=self.field)


@dataclass(frozen=True, slots=True)
class RuleDiagnostic(Diagnostic):
    """A broken rule of the executor, and where it shows; the note of it comes last."""

    place: FaultPlace = FaultPlace()

    @staticmethod
    def of(found: Diagnostic, place: FaultPlace) -> RuleDiagnostic:
        """Return a diagnostic with its place."""
        notes = (*found.notes, str(place))
        said = found.code, found.message, found.location, notes, found.hint, found.severity
        return RuleDiagnostic(*said, place, count=found.count)

    def with_element(self, element: tuple[int, ...] | None) -> RuleDiagnostic:
        """Return the diagnostic with the host index of the element."""
        place = replace(self.place, element=element)
        return replace(self, place=place, notes=(*self.notes[:-1], str(place)))


ElementOf = Callable[[str, tuple[int, ...]], tuple[int, ...] | None]
"""From an argument and a device coordinate to the host index of the element there."""


class LaunchRefused(SpyrecError):
    """A launch was refused at one of its operations; ``stored``: what earlier ones may have stored to.

    These are numbers of the program's arguments; what is none of them holds what it did.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], stored: frozenset[int]) -> None:
        super().__init__(diagnostics)
        self.stored = stored


@contextmanager
def naming_elements(element_of: ElementOf) -> Generator[None]:
    """Name the host element of what is refused inside, where it lies in an argument."""
    try:
        yield
    except SpyrecError as error:
        raise SpyrecError([_with_element(item, element_of) for item in error.diagnostics]) from error


def _with_element(item: Diagnostic, element_of: ElementOf) -> Diagnostic:
    if not isinstance(item, RuleDiagnostic) or item.place.tensor is None or item.place.device_coordinate is None:
        return item
    try:
        return item.with_element(element_of(item.place.tensor, item.place.device_coordinate))
    except SpyrecError:  # the argument's own table is refused when it is used; the rule comes first
        return item


@dataclass(frozen=True, slots=True)
class Finding:
    """One bug that a sanitizer saw.

    ``file`` and ``op`` are the SuperDSC to look into, ``field`` the place in it.  ``tensor`` is the argument's name,
    ``pool`` or ``lx``; ``operand`` the operand of ``file`` that lies there.  ``address`` is a device address in bytes,
    in LX the core's own.  ``iteration`` is the round of each loop around the operation, outermost first, from 0.
    ``element`` is the host index where a conversion table knows it; ``device_coordinate`` the place in the argument's
    device layout.  ``provenance``: the operation of the user's program that it comes from, as the bundle says.
    ``None`` where there is no such thing or it is not known.  ``details``: what else there is to say,
    ``advice``: what to do.  ``code``: where its sanitizer has several.
    """

    sanitizer: Sanitizer
    message: str
    file: str | None = None
    op: str | None = None
    core: int | None = None
    tensor: str | None = None
    operand: str | None = None
    address: int | None = None
    element: tuple[int, ...] | None = None
    device_coordinate: tuple[int, ...] | None = None
    field: str | None = None
    iteration: tuple[int, ...] | None = None
    details: tuple[str, ...] = ()
    advice: str | None = None
    code: str | None = None
    provenance: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the record under its names in ``spyrec.run/1``."""
        return {
            "sanitizer": self.sanitizer.value,
            "op": self.op,
            "provenance": self.provenance,
            "file": self.file,
            "iteration": None if self.iteration is None else list(self.iteration),
            "core": self.core,
            "tensor": self.tensor,
            "operand": self.operand,
            "address": self.address,
            "element": None if self.element is None else list(self.element),
            "device_coordinate": None if self.device_coordinate is None else list(self.device_coordinate),
            "field": self.field,
            "message": self.message,
            "details": list(self.details),
        }

    def to_diagnostic(self) -> Diagnostic:
        """Return the record as a message."""
        note = _place_text(self, operand=self.operand and self.operand.removeprefix("operand "))
        return Diagnostic(
            self.code or _CODES[self.sanitizer],
            f"{self.sanitizer.value}: {self.message}",
            Location(self.file) if self.file else None,
            ((note,) if note else ()) + self.details,
            f"look at {self.field}" if self.field else self.advice,
        )


def _place_text(place: FaultPlace | Finding, *, operand: str | None = None, field: str | None = None) -> str:
    """Return where something is, as far as it is known, for a note of a message."""
    facts = {
        "op": place.op,
        "iteration": place.iteration and f"({', '.join(map(str, place.iteration))})",
        "core": place.core,
        "tensor": place.tensor,
        "operand": operand,
        "address": place.address,
        "element": None if place.element is None else list(place.element),
        "device coordinate": None if place.device_coordinate is None else list(place.device_coordinate),
        "field": field,
        "from": place.provenance,
    }
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)


def sanitizers_named(text: str | None) -> frozenset[Sanitizer]:
    """Return the sanitizers of a list such as ``init,lx``, or ``all`` of them; errors SPY0735.

    >>> sorted(item.value for item in sanitizers_named("lx,init"))
    ['init', 'lx']
    """
    if text is None:
        return NO_SANITIZERS
    known = {item.value: item for item in Sanitizer}
    chosen: set[Sanitizer] = set()
    for name in (part.strip() for part in text.split(",")):
        if name == "all":
            chosen |= set(Sanitizer)
        elif name in known:
            chosen.add(known[name])
        else:
            hint = one_of(name, [*known, "all"], "choose of")
            raise refuse("SPY0735", f'sanitizer "{name}" is not known', hint=hint)
    return frozenset(chosen)


def findings_of_refusal(error: SpyrecError, sanitizers: frozenset[Sanitizer]) -> tuple[Finding, ...]:
    """Return a refusal of the device as findings, none where it is no matter of the chosen sanitizers.

    The rules on bounds, races and LX are checked at load whatever was chosen; asked for, they report in one form.
    """
    return tuple(
        _finding_of(kind, item)
        for item in error.diagnostics
        if (kind := _KIND_OF_RULE.get(item.code)) is not None and kind in sanitizers
    )


def findings_of_faults(faults: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """Return what the sanitizer of streams has found, under its codes."""
    return tuple(
        Finding(Sanitizer.SYNC, item.message, details=item.notes, advice=item.hint, code=item.code) for item in faults
    )


def _finding_of(kind: Sanitizer, item: Diagnostic) -> Finding:
    place = item.place if isinstance(item, RuleDiagnostic) else FaultPlace()
    return Finding(
        kind,
        item.message,
        file=item.location.file if item.location is not None else None,
        op=place.op,
        core=place.core,
        tensor=place.tensor,
        operand=place.operand,
        address=place.address,
        element=place.element,
        device_coordinate=place.device_coordinate,
        field=place.field or _FIELDS[kind],
        iteration=place.iteration,
        provenance=place.provenance,
    )


_FIELDS = {
    Sanitizer.BOUNDS: "scheduleTree_.startAddressCoreCorelet_, N_, backGapCore_",
    Sanitizer.RACE: "scheduleTree_.startAddressCoreCorelet_, coreIdToWkSlice_",
    Sanitizer.LX: "scheduleTree_.startAddressCoreCorelet_, numWkSlicesPerDim_",
}


def diagnostics_of(findings: Iterable[Finding]) -> list[Diagnostic]:
    """Return findings as messages."""
    return [item.to_diagnostic() for item in findings]
