"""Rules inside one program: values defined once and before use, maps known, loops whose bounds are known or given."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from spyrec.bundle.program import (
    Add,
    AffineApply,
    ArgumentExtract,
    Constant,
    DeviceMemoryAllocate,
    For,
    Program,
    SdscExecute,
    Statement,
    is_value_parameter,
)
from spyrec.diagnostics import DiagnosticSink, Location

UNDEFINED = "SPY0632"
"""Code of a value or map that is not defined where it is used, or defined twice."""

BAD_LOOP = "SPY0635"
"""Code of a loop whose bounds are neither constants nor given with the launch, or whose step is not positive."""


class _Kind(Enum):
    ARGUMENT = "an argument"
    INDEX = "an index"
    GIVEN = "a value that the launch gives"


def check_scope(program: Program, where: Location, sink: DiagnosticSink) -> None:
    """Check names and loops of a program; errors SPY0632 and SPY0635."""
    _Scope(program, where, sink).check(program)


class _Scope:
    """What is defined at one point of the walk; a loop's own values end with it."""

    def __init__(self, program: Program, where: Location, sink: DiagnosticSink) -> None:
        self.kinds: dict[str, _Kind] = {}
        self.constants: dict[str, int] = {}
        self.map_dims = {item.name: len(item.coefficients) for item in program.maps}
        self.where = where
        self.sink = sink

    def check(self, program: Program) -> None:
        if len(self.map_dims) != len(program.maps):
            self.error(UNDEFINED, "a map is defined twice")
        for parameter in program.parameters:
            self.define(parameter.name, _Kind.ARGUMENT)
        self.block(program.body)

    def error(self, code: str, fact: str) -> None:
        hint = "write the program again, or mend the statement by hand"
        self.sink.error(code, fact, self.where, hint=hint)

    def define(self, name: str, kind: _Kind) -> None:
        if name in self.kinds:
            self.error(UNDEFINED, f'value "%{name}" is defined twice')
        self.kinds[name] = kind

    def use(self, names: Iterable[str], kind: _Kind = _Kind.INDEX) -> None:
        for name in names:
            found = self.kinds.get(name)
            if found is None:
                self.error(UNDEFINED, f'value "%{name}" is used but not defined before')
            elif found is not kind:
                self.error(UNDEFINED, f'value "%{name}" is {found.value} where {kind.value} is due')

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case ArgumentExtract(result, argument):
                self.use((argument,), _Kind.ARGUMENT)
                self.define(result, _Kind.GIVEN if is_value_parameter(argument) else _Kind.INDEX)
            case Constant(result, value):
                self.define(result, _Kind.INDEX)
                self.constants[result] = value
            case Add(result, left, right):
                self.use((left, right))
                self.define(result, _Kind.INDEX)
            case AffineApply():
                self.apply(statement)
            case DeviceMemoryAllocate(result, size_bytes):
                if size_bytes <= 0:
                    self.error(UNDEFINED, f'allocation "%{result}" of {size_bytes} bytes')
                self.define(result, _Kind.INDEX)
            case SdscExecute(_, operands, _):
                self.use(name for name in operands if self.kinds.get(name) is not _Kind.GIVEN)
            case For():
                self.loop(statement)

    def apply(self, statement: AffineApply) -> None:
        dims = self.map_dims.get(statement.map_name)
        if dims is None:
            self.error(UNDEFINED, f'map "#{statement.map_name}" is not defined')
        elif dims != len(statement.dims):
            fact = f'map "#{statement.map_name}" has {dims} dims, "%{statement.result}" gives {len(statement.dims)}'
            self.error(UNDEFINED, fact)
        self.use((*statement.dims, statement.symbol))
        self.define(statement.result, _Kind.INDEX)

    def loop(self, statement: For) -> None:
        is_given = self.kinds.get(statement.upper) is _Kind.GIVEN
        bounds = (statement.lower, *(() if is_given else (statement.upper,)), statement.step)
        self.use(bounds)
        for name in bounds:
            if name in self.kinds and name not in self.constants:
                self.error(BAD_LOOP, f'bound "%{name}" of a loop is no arith.constant')
        if self.constants.get(statement.step, 1) <= 0:
            fact = f'step "%{statement.step}" of a loop is {self.constants[statement.step]}, not positive'
            self.error(BAD_LOOP, fact)
        outer_kinds, outer_constants = dict(self.kinds), dict(self.constants)
        self.define(statement.induction, _Kind.INDEX)
        self.block(statement.body)
        self.kinds, self.constants = outer_kinds, outer_constants
