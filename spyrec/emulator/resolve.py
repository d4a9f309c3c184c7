"""Walking ``bundle.mlir`` once, at load: every ``sdsc_execute`` with its operands' places, loops still symbolic.

An address is a base (an argument, the pool, or nothing), a constant, and a step per enclosing loop.  Launching then
only adds numbers; all rules can be checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from spyrec.bundle.data_dsc import DataDsc
from spyrec.bundle.device_program import executes
from spyrec.bundle.dsc_actions import DscNode, DscPart, actions_of
from spyrec.bundle.dynamic_sizes import refuse_shared
from spyrec.bundle.program import (
    Add,
    AffineApply,
    ArgumentExtract,
    Constant,
    DeviceMemoryAllocate,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
    is_value_parameter,
)
from spyrec.bundle.superdsc import Component, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.emulator.moved_pieces import superdsc_of
from spyrec.emulator.rules.superdsc import name_of
from spyrec.runtime.device import ArgumentTable
from spyrec.runtime.findings import FaultPlace, RuleDiagnostic

PROGRAM_FILE = "bundle.mlir"
_MOST_ROUNDS = 1 << 62  # of one loop: more than a range can count is no program
POOL = -1
"""The base of addresses in the pool; other bases are argument indices, or below this: the program's own allocations."""


@dataclass(frozen=True, slots=True)
class AddressPlace:
    """An address in bytes: ``offset`` and, per loop variable, ``steps`` beyond ``base`` (``None``: a plain number).

    ``maps`` are the affine maps that the steps came through.  ``parameter``: the value parameter that holds the number,
    which only a launch knows; nothing else counts then.
    """

    base: int | None
    offset: int
    steps: Mapping[int, int] = field(default_factory=dict[int, int])
    maps: tuple[str, ...] = ()
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduledLoop:
    """One ``scf.for``: its number in depth-first order and the values its variable takes.

    ``parameter``: the value parameter that is its upper bound, bound by a launch; ``values`` are then the most there
    can be.
    """

    number: int
    values: range
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class SchedulePlace:
    """Where a call stands in the schedule of its SuperDSC: ``group`` numbers the ``sdsc_execute`` that it is part of.

    ``number``: of the action in the group.  ``part``: of a DSC; ``data_dsc``: of a call that moves pieces.
    """

    group: int
    number: int
    node: DscNode
    part: DscPart | None = None
    data_dsc: DataDsc | None = None


@dataclass(frozen=True, slots=True)
class ScheduledCall:
    """One ``sdsc_execute`` and the loops around it; ``places[t]``: one place per core, ``None`` where it lies in LX.

    A SuperDSC with a schedule is several calls one after the other; ``place``: which of them this is.
    """

    file: str
    superdsc: SuperDsc
    places: tuple[tuple[AddressPlace, ...] | None, ...]
    loops: tuple[ScheduledLoop, ...]
    place: SchedulePlace | None = None

    @property
    def data_dsc(self) -> DataDsc | None:
        """The data DSC that it executes, if it is one."""
        return None if self.place is None else self.place.data_dsc

    @property
    def core_ids(self) -> tuple[int, ...]:
        """The cores that take part."""
        return self.superdsc.core_ids if self.data_dsc is None else self.data_dsc.core_ids

    @property
    def tile(self) -> Mapping[str, int]:
        """Extents of what all cores of its SuperDSC compute, of which it may be a part."""
        part = None if self.place is None else self.place.part
        return self.superdsc.iteration if part is None else part.whole

    @property
    def subject(self) -> str:
        """Which part of its SuperDSC it is, for messages; nothing where it is all of it."""
        return "" if self.place is None else self.place.node.name

    @property
    def is_executed(self) -> bool:
        """Whether every loop around it goes round at all."""
        return all(len(loop.values) for loop in self.loops)


@dataclass(frozen=True, slots=True)
class LoopBody:
    """A loop and what it repeats."""

    loop: ScheduledLoop
    body: tuple[ScheduledCall | LoopBody, ...]


Schedule = tuple[ScheduledCall | LoopBody, ...]


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """What runs, and the bytes of each region that is no argument: the pool and the program's own allocations.

    ``value_maxima``: the largest value of each value parameter.
    """

    schedule: Schedule
    region_bytes: Mapping[int, int]
    value_maxima: Mapping[str, int] = field(default_factory=dict[str, int])


def calls_of(schedule: Schedule) -> Iterator[ScheduledCall]:
    """Yield every call in program order, each once."""
    for item in schedule:
        if isinstance(item, LoopBody):
            yield from calls_of(item.body)
        else:
            yield item


def loops_of(schedule: Schedule) -> Iterator[ScheduledLoop]:
    """Yield every loop in program order."""
    for item in schedule:
        if isinstance(item, LoopBody):
            yield item.loop
            yield from loops_of(item.body)


def resolve(
    program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable, *, is_executed: bool = True
) -> ResolvedProgram:
    """Return the calls and loops of a program; errors SPY0704 (values, files), SPY0719 (symbols), SPY0547 (cores).

    ``is_executed``: it shall run, so that where each core begins has to be known at every size.
    """
    if is_executed:
        for call in executes(program.body):
            if call.sdsc_filename in superdscs:
                refuse_shared(superdscs[call.sdsc_filename], call.sdsc_filename)
    return _Walker(program, superdscs, table).walk()


class _Walker:
    def __init__(self, program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable) -> None:
        self.program = program
        self.superdscs = superdscs
        self.table = table
        self.maps = {item.name: item.coefficients for item in program.maps}
        self.loop_count = self.group_count = 0
        self.problems: list[Diagnostic] = []
        self.region_bytes = {POOL: table.pool_bytes} if table.pool_bytes else {}
        self.value_maxima = {
            parameter.name: self.maximum_of(parameter)
            for parameter in program.parameters
            if is_value_parameter(parameter.name)
        }

    def walk(self) -> ResolvedProgram:
        schedule = self.statements(self.program.body, {}, ())
        if self.problems:
            raise SpyrecError(self.problems)
        return ResolvedProgram(schedule, self.region_bytes, self.value_maxima)

    def statements(
        self, body: Sequence[Statement], outer: Mapping[str, AddressPlace], loops: tuple[ScheduledLoop, ...]
    ) -> Schedule:
        scope = dict(outer)
        items: list[ScheduledCall | LoopBody] = []
        for statement in body:
            match statement:
                case Constant(result, value):
                    scope[result] = AddressPlace(None, value)
                case ArgumentExtract(result, argument):
                    scope[result] = self.extracted(argument)
                case Add(result, left, right):
                    scope[result] = self.add(self.known(scope, left), self.known(scope, right))
                case AffineApply():
                    scope[statement.result] = self.apply(statement, scope)
                case DeviceMemoryAllocate(result, size_bytes):
                    scope[result] = AddressPlace(self.own_memory(size_bytes), 0)
                case SdscExecute():
                    items += self.calls(statement, scope, loops)
                case For():
                    items.append(self.loop(statement, scope, loops))
        return tuple(items)

    def maximum_of(self, parameter: InputArgument) -> int:
        """Return the largest value of a value parameter: the table's, or that of the parameter's type."""
        found = [self.table.value_maxima.get(parameter.name), parameter.max_value]
        known = [maximum for maximum in found if maximum is not None]
        if not known:
            message = f'nothing says how large the value of parameter "%{parameter.name}" may be'
            raise self.wrong(message, "state trip_counts in the plan, max_value in its type, or values with --args")
        if min(known) < 0:
            raise self.wrong(f'the largest value of parameter "%{parameter.name}" is {min(known)}')
        return min(known)

    def extracted(self, argument: str) -> AddressPlace:
        if argument in self.value_maxima:
            return AddressPlace(None, 0, parameter=argument)
        return AddressPlace(self.base_of(argument), 0)

    def base_of(self, argument: str) -> int:
        if all(parameter.name != argument for parameter in self.program.parameters):
            raise self.wrong(f'"%{argument}" is extracted but is no parameter of the function')
        if argument == "pool_base_addr":
            if self.table.pool_bytes == 0:
                raise self.wrong("the program has a pool, the argument table gives it 0 bytes", "set pool_bytes")
            return POOL
        digits = argument.removeprefix("arg_").removesuffix("_base_addr")
        known = sorted(entry.arg_index for entry in self.table.entries)
        if not digits.isdecimal() or int(digits) not in known:
            raise self.wrong(f'parameter "%{argument}" names no argument of the table, which has {known}')
        return int(digits)

    def own_memory(self, size_bytes: int) -> int:
        base = min([POOL, *self.region_bytes]) - 1
        self.region_bytes[base] = size_bytes
        return base

    def value(self, scope: Mapping[str, AddressPlace], name: str) -> AddressPlace:
        if name not in scope:
            raise self.wrong(f'"%{name}" is used before it is defined')
        return scope[name]

    def known(self, scope: Mapping[str, AddressPlace], name: str) -> AddressPlace:
        """Return a value that may be computed with: one that is known at load."""
        place = self.value(scope, name)
        if place.parameter is not None:
            message = f'"%{name}" holds the value of parameter "%{place.parameter}"'
            raise self.wrong(f"{message}, which can only be the upper bound of a loop")
        return place

    def add(self, left: AddressPlace, right: AddressPlace) -> AddressPlace:
        if left.base is not None and right.base is not None:
            raise self.wrong(f"two base addresses are added: {_base_name(left.base)} and {_base_name(right.base)}")
        steps = dict(left.steps)
        for loop, step in right.steps.items():
            steps[loop] = steps.get(loop, 0) + step
        base = right.base if left.base is None else left.base
        return AddressPlace(base, left.offset + right.offset, steps, tuple(dict.fromkeys((*left.maps, *right.maps))))

    def apply(self, statement: AffineApply, scope: Mapping[str, AddressPlace]) -> AddressPlace:
        coefficients = self.maps.get(statement.map_name)
        if coefficients is None or len(coefficients) != len(statement.dims):
            found = "is not defined" if coefficients is None else f"takes {len(coefficients)} dims"
            raise self.wrong(f'affine map "#{statement.map_name}" {found}, given {len(statement.dims)} dims')
        total = self.known(scope, statement.symbol)
        for coefficient, name in zip(coefficients, statement.dims):
            dim = self.known(scope, name)
            if dim.base is not None:
                raise self.wrong(f'"%{name}" is an address, not a loop variable')
            scaled = {loop: coefficient * step for loop, step in dim.steps.items()}
            total = self.add(total, AddressPlace(None, coefficient * dim.offset, scaled, (statement.map_name,)))
        return total

    def loop(self, statement: For, scope: Mapping[str, AddressPlace], loops: tuple[ScheduledLoop, ...]) -> LoopBody:
        last = self.value(scope, statement.upper)
        if last.parameter is not None:
            last = AddressPlace(None, self.value_maxima[last.parameter], parameter=last.parameter)
        bounds = [self.known(scope, statement.lower), last, self.known(scope, statement.step)]
        if any(place.base is not None or place.steps for place in bounds):
            raise self.wrong(f'the bounds of loop "%{statement.induction}" are not constants')
        lower, upper, step = (place.offset for place in bounds)
        if step <= 0:
            raise self.wrong(f'the step of loop "%{statement.induction}" is {step}, it must be positive')
        if -(-(upper - lower) // step) > _MOST_ROUNDS:
            raise self.wrong(f'loop "%{statement.induction}" from {lower} to {upper} goes round more than 2**62 times')
        loop = ScheduledLoop(self.loop_count, range(lower, upper, step), last.parameter)
        self.loop_count += 1
        inner = dict(scope)
        inner[statement.induction] = AddressPlace(None, 0, {loop.number: 1})
        return LoopBody(loop, self.statements(statement.body, inner, (*loops, loop)))

    def calls(
        self, statement: SdscExecute, scope: Mapping[str, AddressPlace], loops: tuple[ScheduledLoop, ...]
    ) -> list[ScheduledCall]:
        file = statement.sdsc_filename
        superdsc = self.superdscs.get(file)
        if superdsc is None:
            raise self.wrong(f'"{file}" is executed but there is no such SuperDSC')
        bound = self.bind(statement, superdsc, scope)
        if superdsc.schedule is None:
            return [ScheduledCall(file, superdsc, self.places(superdsc, bound, file), loops)]
        group, found = self.group_count, list[ScheduledCall]()
        self.group_count += 1
        for number, action in enumerate(actions_of(superdsc, file)):
            own = superdsc_of(action, superdsc)
            place = SchedulePlace(group, number, action.node, action.part, action.data_dsc)
            found.append(ScheduledCall(file, own, self.places(own, bound, file), loops, place))
        return found

    def places(
        self, superdsc: SuperDsc, bound: Mapping[int, AddressPlace], file: str
    ) -> tuple[tuple[AddressPlace, ...] | None, ...]:
        """Return where the operands begin on each core; LX has no place here."""
        return tuple(
            None
            if operand.component is Component.LX
            else tuple(
                bound.get(start, AddressPlace(None, 0)) if operand.is_symbolic or start < 0 else self.baked(start, file)
                for start in operand.start_addresses
            )
            for operand in superdsc.operands
        )

    def bind(
        self, statement: SdscExecute, superdsc: SuperDsc, scope: Mapping[str, AddressPlace]
    ) -> dict[int, AddressPlace]:
        """Bind symbol ids to operands of the same call (rule V9); the binding lives for this call only."""
        ids = statement.symbol_ids or ()
        used = {
            start
            for dsc in superdsc.dscs
            for operand in dsc.operands
            if operand.component is Component.HBM
            for start in operand.start_addresses
            if operand.is_symbolic or start < 0
        }
        sizes = {item.symbol_id for item in superdsc.dynamic_dims.values()}
        used |= sizes
        where = Location(statement.sdsc_filename)
        if len(ids) != len(statement.operands):
            self.problem(f"{len(statement.operands)} operands are bound to {len(ids)} symbol ids", where)
        elif len(set(ids)) != len(ids):
            self.problem(f"symbol ids are bound twice: {sorted(i for i in set(ids) if ids.count(i) > 1)}", where)
        elif used != set(ids):
            missing, unused = sorted(used - set(ids)), sorted(set(ids) - used)
            self.problem(f"symbol ids of the file that are not bound: {missing}; bound but not in it: {unused}", where)
        else:
            for identity, name in zip(ids, statement.operands, strict=True):
                if (self.value(scope, name).parameter is None) == (identity in sizes):
                    raise self.wrong(f'"%{name}" is bound to symbol {identity} of "{statement.sdsc_filename}"')
            values = (self.value(scope, name) for name in statement.operands)
            return {
                identity: self.baked(place.offset, statement.sdsc_filename, place) if place.base is None else place
                for identity, place in zip(ids, values, strict=True)
                if identity not in sizes
            }
        return {}

    def baked(self, address: int, file: str, place: AddressPlace | None = None) -> AddressPlace:
        """Return the place of an absolute address: the argument whose segment holds it, or the pool."""
        for entry in self.table.entries:
            if entry.baked_base <= address < entry.baked_base + entry.size_bytes:
                found = AddressPlace(entry.arg_index, address - entry.baked_base)
                return replace(found, steps=place.steps, maps=place.maps) if place is not None else found
        if 0 <= address < self.table.pool_bytes:
            return replace(place, base=POOL, offset=address) if place is not None else AddressPlace(POOL, address)
        known = [f'"{entry.name}" {_range(entry.baked_base, entry.size_bytes)}' for entry in self.table.entries]
        found = Diagnostic(
            "SPY0716",
            f"address {address} lies in no argument and not in the pool of {self.table.pool_bytes} bytes",
            Location(file),
            notes=tuple(known),
            hint="give the argument's address and device_size in the argument table",
        )
        raise SpyrecError([RuleDiagnostic.of(found, _place_of_start(self.superdscs[file], address))])

    def problem(self, message: str, where: Location) -> None:
        self.problems.append(Diagnostic("SPY0719", message, where, hint="bind each symbol id of the file exactly once"))

    @staticmethod
    def wrong(message: str, hint: str | None = None) -> SpyrecError:
        return refuse("SPY0704", message, Location(PROGRAM_FILE), hint=hint)


def _place_of_start(superdsc: SuperDsc, address: int) -> FaultPlace:
    """Return the place of an address that a file may hold itself."""
    place = FaultPlace(superdsc.op_func_name, address=address, provenance=superdsc.provenance)
    for position, operand in enumerate(superdsc.operands):
        for core, start in zip(superdsc.core_ids, operand.start_addresses):
            if start == address and operand.component is Component.HBM:
                field = f"scheduleTree_[{position}].startAddressCoreCorelet_"
                return replace(place, core=core, operand=name_of(superdsc, position), field=field)
    return replace(place, field="sdsc_execute of bundle.mlir")


def _base_name(base: int) -> str:
    if base < POOL:
        return "memory of the program"
    return "the pool" if base == POOL else f"argument {base}"


def _range(first: int, size: int) -> str:
    return f"[{first}, {first + size})"
