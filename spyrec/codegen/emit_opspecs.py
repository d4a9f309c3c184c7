"""OpSpecs to one device program: what ``spyrec codegen`` and the compiler's last step both call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from spyrec.bundle.dialects import NEWEST, Dialect
from spyrec.bundle.program import (
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.bundle.superdsc import SuperDsc
from spyrec.codegen.known_code import KnownCode
from spyrec.codegen.loops import (
    MAX_UNROLLED,
    EnclosingLoop,
    PlacedOp,
    count_unrolled,
    tile_steps,
    unrolled,
    without_tiled_symbols,
)
from spyrec.codegen.lower_opspec import LoweringOptions, lower_opspec
from spyrec.codegen.opspec import AllocationKind, DynamicBound, LoopSpec, OpSpec, OpSpecFile, TensorArgument
from spyrec.codegen.symbols import Address, LoopStep, PlaceSymbols, SymbolTable, WindowSymbols
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.hardware.plan_record import PlanOptions
from spyrec.hardware.target import TARGETS, Target
from spyrec.progress import counted


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """Options of code generation.

    ``dialect``: whose files are written.  ``is_exact``: as its own writer writes them, known mistakes included
    (``docs/compatibility.md``).
    ``symbolic_args`` and ``unroll_loops``: override what the OpSpec file says; ``None`` keeps it.
    ``target``: whose limits programs keep; ``None``: the device at the date of the dialect.
    ``planned_with``: the options that a compiled bundle's manifest names as those of the plan.
    ``correction_slots``: of each launch artefact, 1 to 16.
    ``symbolic_strides``: the stick strides of arguments that a launch may tile arrive with the correction.
    ``tile_reductions``: programs that join the parts of a result stand beside those of the plan.
    ``known``: names the code of programs, and knows that of some.
    """

    dialect: Dialect = NEWEST
    is_exact: bool = False
    symbolic_args: bool | None = None
    unroll_loops: bool | None = None
    target: Target | None = None
    planned_with: PlanOptions | None = None
    correction_slots: int = 1
    symbolic_strides: bool = False
    tile_reductions: bool = False
    known: KnownCode | None = field(default=None, compare=False)

    @property
    def device(self) -> Target:
        """The target that programs are generated for."""
        return TARGETS.get(self.dialect.name, Target()) if self.target is None else self.target


@dataclass(frozen=True, slots=True)
class EmittedProgram:
    """One device program: ``bundle.mlir`` and its SuperDSCs by file name, in order of execution."""

    program: Program
    superdscs: Mapping[str, SuperDsc]


def emit_opspecs(file: OpSpecFile, options: CodegenOptions | None = None) -> EmittedProgram:
    """Return the program of ``file``: the module and its SuperDSCs, in order of execution.

    Raises one :class:`~spyrec.diagnostics.SpyrecError` with the first problem of every operation, codes SPY0505 to
    SPY0529.
    """
    chosen = options or CodegenOptions()
    lowering = LoweringOptions(chosen.device, chosen.dialect, chosen.is_exact)
    symbolic = file.symbolic_args if chosen.symbolic_args is None else chosen.symbolic_args
    unroll = file.unroll_loops if chosen.unroll_loops is None else chosen.unroll_loops
    if chosen.is_exact and chosen.dialect.advances:
        # its writer knows one way only, whatever the file and its older keys say
        if chosen.symbolic_args is False or chosen.unroll_loops:
            fact = f"dialect {chosen.dialect.name} has symbolic addresses and kept loops only"
            raise refuse("SPY0534", fact, file.location, hint="leave out --no-symbolic-args and --loops unroll")
        file, symbolic, unroll = replace(file, specs=without_tiled_symbols(file.specs)), True, False
    return ProgramLowering(file, _ProgramOptions(symbolic, unroll, lowering)).run()


@dataclass(frozen=True, slots=True)
class _ProgramOptions:
    """How loops and addresses are emitted, beside the options of each lowering."""

    symbolic_args: bool
    unroll_loops: bool
    lowering: LoweringOptions


class _BakedStarts:
    """Start addresses as numbers: the allocation plus the core's offset."""

    is_symbolic = False

    def bind_size(self, name: str, bound: DynamicBound) -> int:
        raise AssertionError(f"{name} of {bound} without symbolic addresses is refused before")

    def bind(
        self, position: int, argument: TensorArgument, offsets_bytes: Sequence[int], *, is_unplaced: bool
    ) -> tuple[int, ...]:
        assert position >= 0
        assert not is_unplaced
        return tuple(argument.allocation.start_bytes + offset for offset in offsets_bytes)


@dataclass(frozen=True, slots=True)
class _SymbolicStarts:
    """Start addresses as symbol ids of one operation."""

    table: SymbolTable
    steps: Sequence[tuple[LoopStep, ...]]
    number: int
    location: Location | None
    is_symbolic: bool = True

    def bind_size(self, name: str, bound: DynamicBound) -> int:
        at = None if self.location is None else self.location.child("symbolic_dim_bounds")
        return self.table.bind_size(name, bound, self.number, at)

    def bind(
        self, position: int, argument: TensorArgument, offsets_bytes: Sequence[int], *, is_unplaced: bool
    ) -> tuple[int, ...]:
        at = None if self.location is None else self.location.child("args", position)
        steps = self.steps[position]
        if is_unplaced and steps:
            fact = "an operand moves along a loop and lies along a dynamic dim that cores share"
            raise refuse("SPY0547", fact, at)
        if is_unplaced and argument.arg_index is not None and argument.allocation.kind is AllocationKind.HBM:
            return self.table.bind_unplaced(argument, offsets_bytes, at)
        return self.table.bind(argument, offsets_bytes, steps, at)


def _loop_steps(op: PlacedOp, position: int) -> tuple[LoopStep, ...]:
    """Return the loops along which an operand moves, outermost first, with its steps."""
    if not op.loops:
        return ()
    steps = tile_steps(op, position)
    return tuple(LoopStep(loop.number, step) for loop, step in zip(op.loops, steps, strict=True) if step)


class ProgramLowering:
    """One walk over the specs of a program; afterwards the parts of the program are put together.

    Problems are collected over all operations.  Errors: those of ``lower_opspec``, SPY0523 to SPY0525, SPY0527.
    """

    def __init__(self, file: OpSpecFile, options: _ProgramOptions) -> None:
        self._file = file
        self._options = options
        self._symbols = _symbol_table(file, options.lowering)
        self._superdscs: dict[str, SuperDsc] = {}
        self._maps: dict[tuple[int, ...], AffineMap] = {}
        self._loop_bounds: list[int | str] = []
        self._applied = 0
        # A dictionary for its order: unrolling meets the same problem in every iteration.
        self._problems: dict[Diagnostic, None] = {}

    def run(self) -> EmittedProgram:
        """Lower everything and return the program."""
        location = self._file.location
        count = count_unrolled(self._file.specs)
        if self._options.unroll_loops and count > MAX_UNROLLED:
            fact = f"the loops unroll to {count} operations, at most {MAX_UNROLLED} are emitted"
            raise refuse("SPY0527", fact, location, hint="keep the loops")
        body = self._block(self._file.specs, _Nest((), ()), None if location is None else location.child("specs"))
        if self._problems:
            raise SpyrecError(list(self._problems))
        names = self._value_parameters()
        values = tuple(ArgumentExtract(_trips(name), name) for name in names)
        prologue = (*self._symbols.extracts(), *values, *self._loop_constants(), *self._symbols.declarations())
        parameters = (*self._symbols.parameters(), *(InputArgument(name) for name in names))
        program = Program(tuple(self._maps.values()), parameters, (*prologue, *body))
        return EmittedProgram(program, self._superdscs)

    def _loop_constants(self) -> tuple[Statement, ...]:
        if not self._loop_bounds:
            return ()
        bounds = (
            Constant(f"loop_bound_{number}", count)
            for number, count in enumerate(self._loop_bounds)
            if isinstance(count, int)
        )
        return (Constant("c0", 0), Constant("c1", 1), *bounds)

    def _value_parameters(self) -> tuple[str, ...]:
        """Return the parameters that give trip counts, each once."""
        return tuple(dict.fromkeys(bound for bound in self._loop_bounds if isinstance(bound, str)))

    def _block(
        self, specs: Sequence[OpSpec | LoopSpec], nest: _Nest, location: Location | None
    ) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for position, spec in counted(enumerate(specs), "operations", len(specs)):
            at = None if location is None else location.child(position)
            if isinstance(spec, OpSpec):
                statements.extend(self._operation(PlacedOp(spec, nest.loops, at), nest.iterations))
            else:
                statements.extend(self._loop(spec, nest, None if at is None else at.child("loop", "body")))
        return tuple(statements)

    def _loop(self, loop: LoopSpec, nest: _Nest, location: Location | None) -> tuple[Statement, ...]:
        if self._options.unroll_loops:
            if loop.parameter is not None:
                fact = f"a loop of at most {loop.count} trips, as many as a run needs, cannot be unrolled"
                raise refuse("SPY0533", fact, location, hint="keep the loops, or give the dim one extent")
            inside = (*nest.loops, EnclosingLoop(0, loop.count, loop.tiled_symbols))
            return tuple(
                statement
                for iteration in range(loop.count)
                for statement in self._block(loop.body, _Nest(inside, (*nest.iterations, iteration)), location)
            )
        number = len(self._loop_bounds)
        self._loop_bounds.append(loop.count if loop.parameter is None else loop.parameter)
        bound = f"loop_bound_{number}" if loop.parameter is None else _trips(loop.parameter)
        inside = (*nest.loops, EnclosingLoop(number, loop.count, loop.tiled_symbols))
        body = self._block(loop.body, _Nest(inside, ()), location)
        return (For(f"i_{number}", "c0", bound, "c1", body),)

    def _operation(self, op: PlacedOp, iterations: tuple[int, ...]) -> tuple[Statement, ...]:
        try:
            if self._options.unroll_loops and op.loops:
                op = PlacedOp(unrolled(op, iterations), (), op.location)
            return self._lowered(op)
        except SpyrecError as error:
            self._problems.update(dict.fromkeys(error.diagnostics))
            return ()

    def _lowered(self, op: PlacedOp) -> tuple[Statement, ...]:
        steps = self._movements(op)
        symbolic = self._options.symbolic_args
        self._symbols.begin_superdsc()
        binder = (
            _SymbolicStarts(self._symbols, steps, len(self._superdscs), op.location) if symbolic else _BakedStarts()
        )
        superdsc = lower_opspec(op.spec, len(self._superdscs), binder, self._options.lowering, op.location)
        self._superdscs[superdsc.file_name] = superdsc
        if not symbolic:
            return (SdscExecute(superdsc.file_name),)
        applies = self._applies(superdsc, steps)
        sizes = (item.symbol_id for item in superdsc.dynamic_dims.values())
        places = (start for item in superdsc.operands if item.is_symbolic for start in item.start_addresses)
        ids = tuple(dict.fromkeys((*sizes, *places)))
        operands = tuple(
            applies[number].result if number in applies else self._symbols.address(number).value for number in ids
        )
        return (*applies.values(), SdscExecute(superdsc.file_name, operands, ids))

    def _applies(self, superdsc: SuperDsc, steps: Sequence[tuple[LoopStep, ...]]) -> dict[int, AffineApply]:
        """Return what moves the symbols of an operation along its loops, by id; the first operand's word counts."""
        found: dict[int, AffineApply] = {}
        for operand, own in zip(superdsc.operands, steps, strict=True):
            for number in operand.start_addresses if own and operand.is_symbolic else ():
                if number not in found:
                    found[number] = self._apply(self._symbols.address(number), own)
        return found

    def _movements(self, op: PlacedOp) -> tuple[tuple[LoopStep, ...], ...]:
        """Return how each operand moves; what moves along a kept loop needs an address that can."""
        found: list[tuple[LoopStep, ...]] = []
        for position, argument in enumerate(op.spec.args):
            found.append(_loop_steps(op, position))
            if not found[-1]:
                continue
            at = None if op.location is None else op.location.child("args", position)
            if argument.allocation.kind is AllocationKind.LX:
                fact = "an LX operand moves along a kept loop, but LX addresses are constants"
                hint = 'unroll the loops, or mark a buffer that every tile reuses "per_tile_fixed"'
                raise refuse("SPY0525", fact, at, hint=hint)
            if not self._options.symbolic_args:
                fact = "a tiled operand lies in device memory, its baked address would be the same in every iteration"
                hint = "use --symbolic-args, or --loops unroll"
                raise refuse("SPY0524", fact, at, hint=hint)
        return tuple(found)

    def _apply(self, address: Address, steps: tuple[LoopStep, ...]) -> AffineApply:
        coefficients = tuple(step.step_bytes for step in steps)
        affine_map = self._maps.get(coefficients)
        if affine_map is None:
            affine_map = self._maps[coefficients] = AffineMap(f"map_{len(self._maps)}", coefficients)
        result = f"addr_{self._applied}"
        self._applied += 1
        return AffineApply(result, affine_map.name, tuple(f"i_{step.loop}" for step in steps), address.value)


def _symbol_table(file: OpSpecFile, lowering: LoweringOptions) -> SymbolTable:
    if lowering.dialect.has_windows:
        return WindowSymbols(separates_steps=not lowering.is_exact)
    return PlaceSymbols(_argument_bases(file.specs))


def _trips(parameter: str) -> str:
    """Return the name of the value that is read from a value parameter."""
    return f"trips_{parameter}"


@dataclass(frozen=True, slots=True)
class _Nest:
    """The loops around a block, outermost first, and the iteration of each where they are unrolled."""

    loops: tuple[EnclosingLoop, ...]
    iterations: tuple[int, ...]


def _argument_bases(specs: Sequence[OpSpec | LoopSpec]) -> dict[int, int]:
    """Return where each kernel argument begins: at the lowest allocation that names it."""
    bases: dict[int, int] = {}
    for spec in specs:
        if isinstance(spec, LoopSpec):
            found = _argument_bases(spec.body)
        else:
            found = dict[int, int]()
            for argument in spec.args:
                if argument.arg_index is not None and argument.allocation.kind is AllocationKind.HBM:
                    start = argument.allocation.start_bytes
                    found[argument.arg_index] = min(start, found.get(argument.arg_index, start))
        for index, start in found.items():
            bases[index] = min(start, bases.get(index, start))
    return bases
