"""OpSpec: the last compiler IR before SuperDSC; the data behind ``spyrec.opspec/1``, and what its JSON is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from math import inf, isfinite, prod
from operator import attrgetter
from typing import Literal, Self

from spyrec.bundle.debug_handle import DebugHandle
from spyrec.codegen.expression import INTEGER_LIMIT, CoordinateExpression, parse_expression
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, refuse
from spyrec.files.json_form import NOT_IN_FILE, Form, Parsed, Shape, json, omitted, optional
from spyrec.hardware.dtypes import DeviceFormat

FORMAT = "spyrec.opspec/1"
MAX_DIMS = 64
"""Longest list of dims that is read; far beyond what a SuperDSC has names for."""

MALFORMED = "SPY0503"
"""Code of a missing or unknown key, of a wrong type or value."""

_LIMIT = INTEGER_LIMIT - 1
_COUNT = Form(at_least=0, at_most=_LIMIT)
_NAME = Form(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$")
_NAMES = Form(max_length=MAX_DIMS, each=_NAME)
_SIZE = Form(at_least=1, at_most=_LIMIT)


def _described(form: Form, text: str) -> Form:
    return replace(form, schema={"description": text})


class AllocationKind(Enum):
    """Where an argument lies: a kernel argument's segment, the core's scratchpad, or the pool."""

    HBM = "hbm"
    LX = "lx"
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class ArgumentAllocation:
    """Where an argument lies, with the byte address there."""

    kind: AllocationKind
    start_bytes: int


@dataclass(frozen=True, slots=True)
class AllocationEntry:
    """Exactly one memory, with the byte address in it."""

    hbm: int | None = field(default=None, metadata=omitted(_COUNT))
    lx: int | None = field(default=None, metadata=omitted(_COUNT))
    pool: int | None = field(default=None, metadata=omitted(_COUNT))

    @staticmethod
    def of(allocation: ArgumentAllocation) -> AllocationEntry:
        """Return the entry of an allocation: the address under the name of its memory."""
        return AllocationEntry(**{allocation.kind.value: allocation.start_bytes})

    def allocation(self) -> ArgumentAllocation:
        """Return the allocation; SPY0505 where there is none, or more than one."""
        starts = ((AllocationKind.HBM, self.hbm), (AllocationKind.LX, self.lx), (AllocationKind.POOL, self.pool))
        given = [ArgumentAllocation(kind, start) for kind, start in starts if start is not None]
        if len(given) != 1:
            names = ", ".join(f'"{item.kind.value}"' for item in given) or "none"
            raise refuse("SPY0505", f'an allocation has one of "hbm", "lx" and "pool", found {names}')
        return given[0]


_ALLOCATION = Form(
    shape=Shape(
        AllocationEntry,
        AllocationEntry.allocation,
        AllocationEntry.of,
        otherwise=ArgumentAllocation(AllocationKind.HBM, 0),
    )
)


@dataclass(frozen=True, slots=True)
class DynamicBound:
    """What is known of a dynamic size before a launch: the largest one, and what every one is a multiple of."""

    max: int = field(metadata=json(_SIZE))
    granularity: int = field(metadata=json(_SIZE))


class DynamicSize(int):
    """The extent of a dim whose size a launch gives: a number, the largest there can be, with the size's name."""

    name: str

    def __new__(cls, name: str, largest: int = 1) -> Self:
        """Return the size; whoever reads a file learns the largest number later."""
        found = super().__new__(cls, largest)
        found.name = name
        return found

    def __reduce__(self) -> tuple[type[DynamicSize], tuple[str, int]]:
        """Return what a copy is made of."""
        return DynamicSize, (self.name, int(self))


_SIZE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}")


def _extent(found: int | str) -> int:
    if isinstance(found, str):
        if not _SIZE_NAME.fullmatch(found):
            raise refuse(MALFORMED, f'"{found[:60]}" is neither an extent nor the name of a dynamic size')
        return DynamicSize(found)
    if not 1 <= found <= _LIMIT:
        raise refuse(MALFORMED, f"input should be greater than or equal to 1 and less than 2**63, found {found}")
    return found


def _shown_extent(size: int) -> int | str:
    return size.name if isinstance(size, DynamicSize) else size


_EXTENT = Form(
    shape=Shape(
        int | str,
        _extent,
        _shown_extent,
        _described(
            Form(), "extent in elements; inside a loop that of one tile; or the name of one of symbolic_dim_bounds"
        ),
        otherwise=1,
    )
)


@dataclass(frozen=True, slots=True)
class IterationDim:
    """One iteration symbol: its extent in elements and the number of work slices (cores) along it.

    Their order in an OpSpec matters.
    """

    symbol: str = field(metadata=json(_NAME))
    size: int = field(metadata=json(_EXTENT))
    work_division: int = field(default=1, metadata=optional(_described(_SIZE, "slices (cores) along the symbol")))


def _format_by_name(name: str) -> DeviceFormat:
    known = DeviceFormat.__members__
    if name not in known:
        raise refuse("SPY0513", f'unknown device format "{name[:60]}"', hint=f"one of {', '.join(known)}")
    return known[name]


def _index(found: int | None) -> int | None:
    return None if found is None or found < 0 else found


def _shown_index(index: int | None) -> int:
    return -1 if index is None else index


_ARG_INDEX = Form(
    shape=Shape(
        int | None,
        _index,
        _shown_index,
        _described(
            Form(at_least=-1, at_most=1000), "position in the kernel's argument list; -1 or null for LX and pool"
        ),
    )
)
_DEVICE_FORMAT = Form(
    shape=Shape(
        str,
        _format_by_name,
        attrgetter("name"),
        Form(schema={"enum": list(DeviceFormat.__members__)}),
        otherwise=DeviceFormat.INVALID,
    )
)
_COORDINATE = Form(shape=Shape(str, parse_expression, str, otherwise=CoordinateExpression.constant(0)))


_ADVANCE = replace(_COORDINATE, schema={"description": "elements of the device layout per step of each loop level"})


@dataclass(frozen=True, slots=True)
class OwnedSlices:
    """Who owns what of an LX tensor: slices per symbol (1 where absent), and each core's slice of them (else 0)."""

    work_slices: Mapping[str, int] = field(metadata=json(Form(keys=_NAME, each=_SIZE)))
    core_id_to_work_slice: Mapping[str, CoordinateExpression] = field(metadata=json(Form(keys=_NAME, each=_COORDINATE)))


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """One operand of an operation; ``device_coordinates`` has one expression per device dim.

    ``moves`` is the compiler's word, never a file's, how many positions each device dim moves per iteration of each
    loop around the operation, outermost first; ``None``: it follows from ``tile_advance`` or ``tiled_symbols``.
    ``ends_in_padding`` is the compiler's word, never a file's, that no element lies behind the window along the stick
    dim, so that a store may fill its last stick.
    """

    is_input: bool
    arg_index: int | None = field(metadata=optional(_ARG_INDEX, absent=None))
    device_dtype: DeviceFormat = field(metadata=json(_DEVICE_FORMAT))
    device_size: tuple[int, ...] = field(metadata=json(Form(min_length=1, max_length=MAX_DIMS, each=_SIZE)))
    device_coordinates: tuple[CoordinateExpression, ...] = field(
        metadata=json(Form(min_length=1, max_length=MAX_DIMS, each=_COORDINATE))
    )
    allocation: ArgumentAllocation = field(metadata=json(_ALLOCATION))
    stride_map: tuple[int, ...] | None = field(
        default=None, metadata=optional(Form(max_length=MAX_DIMS, each=Form(at_least=-_LIMIT, at_most=_LIMIT)))
    )
    per_tile_fixed: bool = field(default=False, metadata=optional())
    name: str | None = field(
        default=None, metadata=optional(_described(_NAME, "only needed on the index tensor of a gather"))
    )
    tile_advance: CoordinateExpression | None = field(default=None, metadata=omitted(_ADVANCE))
    element_arrangement: Literal["STANDARD", "DL16_TO_FP32", "QFP8CH", "EXX2", "FP32_TO_DL16", "QFP8WT"] = field(
        default="STANDARD", metadata=omitted(_described(Form(), "how elements lie inside of a stick"))
    )
    work_division: OwnedSlices | None = field(default=None, metadata=omitted())
    ends_in_padding: bool = field(default=False, metadata=NOT_IN_FILE)
    moves: tuple[tuple[int, ...], ...] | None = field(default=None, metadata=NOT_IN_FILE)

    def contradictions(self) -> Iterator[Diagnostic]:
        """Yield what parts of an argument that was read say against one another (SPY0503)."""
        if self.allocation.kind is AllocationKind.POOL and self.arg_index is not None:
            fact = f"an operand in the pool is no kernel argument, found arg_index {self.arg_index}"
            yield Diagnostic(MALFORMED, fact, Location().child("arg_index"))
        rank = len(self.device_size)
        for key, items in (("device_coordinates", self.device_coordinates), ("stride_map", self.stride_map)):
            if items is not None and len(items) != rank:
                fact = f'"{key}" has {len(items)} entries, "device_size" {rank}'
                yield Diagnostic(MALFORMED, fact, Location().child(key))
        if prod(self.device_size) >= INTEGER_LIMIT:
            fact = "the device tensor has 2**63 elements or more"
            yield Diagnostic(MALFORMED, fact, Location().child("device_size"))


def _constant(found: object) -> object:
    if isinstance(found, int | float) and isfinite(found):
        return found
    if found in ("inf", "-inf"):
        return inf if found == "inf" else -inf
    raise ValueError('a constant is a finite number, "inf" or "-inf"')


def _shown_constant(value: float) -> float | str:
    if isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"


_CONSTANT_SCHEMA: Mapping[str, object] = {
    "anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"enum": ["inf", "-inf"], "type": "string"}]
}
_CONSTANTS = Form(each=Form(parsed=Parsed(_constant, _shown_constant, _CONSTANT_SCHEMA, type=object)))
_PARAMETERS = Form(schema={"description": "window, strides and padding of a convolution"})


@dataclass(frozen=True, slots=True)
class OpInfo:
    """What an operation carries besides its operands.

    ``conv_params``: of convolutions.  ``shared_weight_unit_bmm``: torch-spyre's, not lowered.
    """

    constants: Mapping[str, float] = field(default_factory=dict[str, float], metadata=omitted(_CONSTANTS))
    conv_params: Mapping[str, float | str] = field(
        default_factory=dict[str, float | str], metadata=omitted(_PARAMETERS)
    )
    shared_weight_unit_bmm: object = field(
        default=None, metadata=omitted(_described(Form(), "torch-spyre's; refused by name (SPY0532)"))
    )


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One device operation over an iteration space.

    Of the arguments index tensors come first, then inputs, the output last.

    ``tiled_levels``: for each enclosing loop, outermost first, the symbols that stand for one of its steps in the
    operands' ``tile_advance``; ``None``: loops are told by ``tiled_symbols``.  ``tiled_symbol_trip_counts``: carried
    along.  ``node_output_ranges``: of pools and convolutions, [N, C, H, W].  ``symbolic_dim_bounds``: of the dynamic
    sizes that the iteration space names.
    """

    op: str = field(metadata=json(_NAME))
    is_reduction: bool
    iteration_space: tuple[IterationDim, ...] = field(metadata=json(Form(max_length=MAX_DIMS)))
    op_info: OpInfo = field(default=OpInfo(), kw_only=True, metadata=optional())
    tiled_symbols: tuple[str, ...] = field(default=(), kw_only=True, metadata=optional(_NAMES))
    tiled_levels: tuple[tuple[str, ...], ...] | None = field(
        default=None, kw_only=True, metadata=omitted(Form(max_length=MAX_DIMS, each=_NAMES))
    )
    tiled_symbol_trip_counts: Mapping[str, int] = field(
        default_factory=dict[str, int], kw_only=True, metadata=omitted(Form(keys=_NAME, each=_COUNT))
    )
    node_output_ranges: tuple[int, ...] | None = field(
        default=None, kw_only=True, metadata=omitted(Form(max_length=MAX_DIMS, each=_SIZE))
    )
    debug_handle: DebugHandle | None = field(default=None, kw_only=True, metadata=omitted())
    symbolic_dim_bounds: Mapping[str, DynamicBound] = field(
        default_factory=dict[str, DynamicBound], kw_only=True, metadata=omitted(Form(keys=_NAME))
    )
    args: tuple[TensorArgument, ...] = field(
        metadata=json(Form(min_length=1, max_length=MAX_DIMS, each=Form(check=TensorArgument.contradictions)))
    )


def _refusals(spec: OpSpec | LoopSpec) -> Iterator[Diagnostic]:
    """Yield what no operation may carry: SPY0532 for a unit batch dim, SPY0503 for a constant, SPY0546 for a size."""
    if isinstance(spec, LoopSpec):
        return
    for position, dim in enumerate(spec.iteration_space):
        if isinstance(dim.size, DynamicSize) and dim.size.name not in spec.symbolic_dim_bounds:
            fact = (
                f'size "{dim.size.name}" is none of symbolic_dim_bounds, which has {sorted(spec.symbolic_dim_bounds)}'
            )
            yield Diagnostic("SPY0546", fact, Location().child("iteration_space", position, "size"))
    place = Location().child("op_info")
    if spec.op_info.shared_weight_unit_bmm is not None:
        fact = f'"{spec.op}" with a unit batch dim is not lowered'
        yield Diagnostic("SPY0532", fact, place.child("shared_weight_unit_bmm"))
    for name, value in spec.op_info.constants.items():
        if isinstance(value, int) and abs(value) >= INTEGER_LIMIT:
            fact = "an integer constant stays below 2**63"
            yield Diagnostic(MALFORMED, fact, place.child("constants", name))
        elif not name.isascii():
            yield Diagnostic(MALFORMED, "the name of a constant is ASCII", place.child("constants", name))


_SPEC = Form(second_under="loop", check=_refusals)


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """A counted loop over OpSpecs and loops.

    ``parameter`` is the compiler's: the value parameter that gives the trips of a run, at most ``count``.
    """

    count: int = field(metadata=json(_COUNT))
    tiled_symbols: tuple[str, ...] = field(metadata=optional(_NAMES, absent=()))
    body: tuple[OpSpec | LoopSpec, ...] = field(metadata=json(Form(each=_SPEC)))
    parameter: str | None = field(default=None, metadata=NOT_IN_FILE)


@dataclass(frozen=True, slots=True)
class OpSpecFile:
    """The whole of one ``spyrec.opspec/1`` file; ``location`` is where it was read from.

    ``checked_by``: the schema that an editor checks the file by.
    """

    checked_by: str | None = field(default=None, kw_only=True, metadata=omitted(name="$schema"))
    format: Literal["spyrec.opspec/1"] = field(default=FORMAT, kw_only=True, metadata=json())
    symbolic_args: bool = field(metadata=optional(absent=False))
    unroll_loops: bool = field(metadata=optional(absent=True))
    specs: tuple[OpSpec | LoopSpec, ...] = field(metadata=json(Form(min_length=1, each=_SPEC)))
    location: Location | None = field(default=None, compare=False, metadata=NOT_IN_FILE)
