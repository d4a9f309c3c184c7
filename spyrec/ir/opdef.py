"""One declaration per op, and the catalogue of them.

A declaration lives in ``spyrec/ir/ops/<family>.py``; everything else about the op is derived from it: the graph
schema entry, reader, verifier, evaluator, the SuperDSC ``computeOp_``, emulator tables and the documentation row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, field, replace
from enum import Enum
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import DeviceOperation
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.ir.types import TensorType

Array = npt.NDArray[np.generic]


class Attributes(Protocol):
    """The attributes of one op: a frozen dataclass; attribute names are its field names."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # what makes a class a dataclass; `Any` is typeshed's


class OpError(Exception):
    """A node's operands or attributes contradict the op: message with both sides, and a hint.

    ``operand`` is the index of the operand at fault, ``attribute`` the name of the attribute at fault, if one is.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        operand: int | None = None,
        attribute: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.operand = operand
        self.attribute = attribute


class OpKind(Enum):
    """What class an op belongs to; passes decide by it, never by name."""

    POINTWISE = "pointwise"
    """Result element = function of the operands' elements at the same (broadcast) index."""
    REDUCTION = "reduction"
    """Folds one or several dims of its only tensor operand (attributes ``dim`` and ``keepdim``)."""
    CONTRACTION = "contraction"
    """The matmul family."""
    VIEW = "view"
    """Result element = operand element at another index; no arithmetic, no memory of its own."""
    MOVEMENT = "movement"
    """Writes elements of its operands into new memory unchanged (cat, stack, clone, contiguous, repeat)."""
    CAST = "cast"
    """Changes the dtype element by element."""
    CREATION = "creation"
    """Makes values from attributes alone (full)."""
    COMPOSITE = "composite"
    """Defined by a decomposition into other ops."""
    HOST = "host"
    """The device has no form of it: the host computes it, between two programs."""
    WINDOW = "window"
    """Slides a window over the last two dims of its first operand: the device's pools and convolutions."""
    LAYER_NORM = "layer_norm"
    """The device's layer norm trio: exx2, layernormscale, layernormnorm."""


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand of an op.

    ``is_variadic`` is legal on the last one only: it takes one or more remaining operands.  ``accepts_number``: a
    number may stand here instead of a tensor.  ``is_condition``: it does not tell the dtype of the numbers beside it.
    ``is_fill``: a number here takes a place among those of the first operand, and its dtype where it is one of these.
    ``no_bool``: what to use in place of the op where this operand is a bool, which PyTorch refuses here.
    """

    name: str
    is_optional: bool = False
    is_variadic: bool = False
    accepts_number: bool = False
    is_condition: bool = False
    is_fill: bool = False
    no_bool: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceOp:
    """How an op that the device has is written into ``computeOp_``.

    ``op_func`` is the OpSpec op name: ``sum`` whatever dim it folds, the other name is the record's ``outer_name``.
    ``constants`` gives ``op_info["constants"]`` in order from the operand types and the attributes; ``rounded`` are the
    attributes that reach the device as such constants.
    """

    op_func: str
    constants: Callable[[Sequence[TensorType], Attributes], Mapping[str, float]] | None = None
    rounded: tuple[str, ...] = ()

    @property
    def record(self) -> DeviceOperation:
        """What there is to say of the device's operation."""
        return device_operation(self.op_func)


@dataclass(frozen=True, slots=True)
class Centre:
    """Numbers that rows of the first operand may be moved by: ``of`` gives one for each row, kept as a dim of 1.

    ``name``: what they are, after "distance from".
    """

    name: str
    of: Callable[[Array, Attributes], npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Roundings:
    """How far the results of an op may be off, whatever it is made of; ``--check`` holds a run to it.

    As if each operand had been off by ``operands`` roundings of its format, and by sixteen float32 roundings of what is
    added up inside, and the result had then been rounded ``result`` times.  Where the result depends on the first
    operand's distances from a ``centre`` alone, these are what is off, however far from 0 the row lies.

    ``gated``: what of the operands a float32 factor inside multiplies that goes to 0, in the result's shape.  Below
    float32's normal numbers a rounding is absolute: the factor is off by up to half of the least subnormal, 2**-150,
    and the product by that times the magnitude of what is multiplied: ``silu(-100) = -100 * 3.7e-44`` by 1.9 %.  The
    factor rounded to 0 or to the least subnormal is off by at most itself, so the product is by no more than all of it,
    and where the exact product is 0 nothing is forgiven.

    An op of 0 roundings is exact: its result is the op at the operands that the device holds, and nothing is forgiven.
    """

    result: float
    operands: float = 0.0
    centre: Centre | None = None
    gated: Callable[[Sequence[Array | None], Attributes], Array] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether nothing inside rounds."""
        return self.result == 0.0


OperandTypes = Sequence[TensorType | None]
"""The types of all operands of a node: absent optional ones are ``None``, a number has the 0-d type it takes."""

InferRule = Callable[[OperandTypes, Attributes], tuple[TensorType, ...]]
"""Result types from operand types; a number operand arrives as the 0-d type it takes, an absent one as ``None``."""

AxisSources = tuple[tuple[tuple[int, int], ...], ...]
"""Per axis of a result the operand axes ``(operand index, axis)`` that it runs along, in operand order."""

AxisRule = Callable[[OperandTypes, Attributes], AxisSources]
"""Which operand axes each axis of the (first) result runs along; an axis of its own has no sources."""

Reference = Callable[[Sequence[Array | None], Attributes], tuple[Array, ...]]
"""NumPy semantics on float64 (floats), bool and int64 arrays of the operand shapes."""


HostRule = Callable[[OperandTypes, Attributes], str | None]
"""Why the host computes a node, lower case, or ``None``."""


@dataclass(frozen=True, slots=True)
class RowAccess:
    """Slices of a tensor along ``dim`` that the whole numbers of an index name: operands by position.

    ``source``: what is written there, ``None`` where the slices are read.
    """

    table: int
    index: int
    dim: int
    source: int | None = None

    def walked(self, table: TensorType, index: TensorType) -> tuple[int, ...]:
        """Return the shape of what is read or written: the table's, with the index's elements along ``dim``."""
        return (*table.shape[: self.dim], index.element_count, *table.shape[self.dim + 1 :])


ROW_DTYPES = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32})
"""What a table may be whose rows the device reads or writes by an index."""

RowRule = Callable[[OperandTypes, Attributes], RowAccess | None]
"""What a node with these operands and attributes reads or writes by an index, ``None`` where that is not all of it."""

PieceRule = Callable[[OperandTypes, Attributes], tuple[tuple[str, Attributes], ...]]
"""(op, attributes) of each result of an op that has several."""

ChainRule = Callable[[OperandTypes, Attributes], tuple[tuple[str, Attributes], ...]]
"""(op, attributes) of each step from the first operand to the result."""


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """What makes the weight ``[n, k]`` of an op that is ``linear`` otherwise: an op of some operands, by position.

    It has the attributes of the node.  Each row of the weight is made of the same rows, or whole dims, of its operands,
    as the op's axes say.
    """

    op: str
    operands: tuple[int, ...]


Sample = tuple[tuple[TensorType | None, ...], Attributes]
"""Operand types and attributes on which the catalogue tests run an op."""


@dataclass(frozen=True, slots=True)
class OpDef:
    """The declaration of one op.

    ``is_public``: may stand in a graph file; the others are made by passes only.  ``device`` is set where the device
    executes the op as it is; an op of kind COMPOSITE (and any other without ``device``) has a decomposition in
    ``spyrec/passes/decompose/``.  ``formats`` are the device formats that its tensor operands may have: those of
    ``device``, filled in when it is registered unless it states its own, or those that all ops of its decomposition
    have: an op may be the device's in one format and made of others in another.
    ``number_attributes`` may stand as numbers after the tensors in a graph file too (the tensor overload's place).
    ``result_sizes``: the attribute that has an extent for each axis of the result; a dim name there names the axis.
    ``result_count``: ``None`` where attributes and operands say how many there are, which a node then has to name,
    unless ``is_first_enough``: one that names none has the first, and one result is no list.
    ``host_when``: why the host computes a node with these operands and attributes although the device takes their
    formats, ``None`` where it does.
    ``pieces``: of an op with several results, the op of the same operands that each of them is.
    ``chain``: of an op that is others, one on the result of the other, these.
    ``rows``: of an op that reads or writes slices of a tensor which an index names.
    ``moves``: the reference only moves elements of its float operands, all of one dtype, whatever carries them.
    ``top``: of an op that takes the largest elements along dim 0 of a matrix, the device's operation.
    ``packed``: of an op that is ``linear`` of its first operand, how its weight is unpacked, where that is constant.
    ``is_promoted``: operands that are no conditions are converted to the dtype it computes in, as PyTorch's promotion
    does, before anything is computed: that of its result, of a question its operands' common one.
    ``roundings``: how far its results may be off where it is made of others that round, ``None`` where these move,
    choose or contract, and their own bounds are the op's.
    ``poles``: of a function of one operand, its pole that is nearest to each number, in float64.
    ``exact_with``: an attribute with which, where it is given, the op states 0 roundings.
    ``complete`` fills in attribute defaults that depend on the operand types; the reader calls it.
    ``samples`` are (operand types, attributes) on which the catalogue tests run the op.
    """

    name: str
    summary: str
    kind: OpKind
    operands: tuple[OperandSpec, ...]
    attributes: type
    infer: InferRule
    reference: Reference
    axes: AxisRule
    formats: frozenset[DeviceFormat] = frozenset()
    device: DeviceOp | None = None
    number_attributes: tuple[str, ...] = ()
    complete: Callable[[OperandTypes, Attributes], Attributes] | None = None
    result_sizes: str | None = None
    result_count: int | None = 1
    is_first_enough: bool = False
    host_when: HostRule | None = None
    pieces: PieceRule | None = None
    rows: RowRule | None = None
    moves: bool = False
    top: str | None = None
    chain: ChainRule | None = None
    packed: PackedWeight | None = None
    is_promoted: bool = False
    roundings: Roundings | None = None
    exact_with: str | None = None
    poles: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]] | None = None
    is_public: bool = True
    samples: tuple[Sample, ...] = field(default=())

    @property
    def is_variadic(self) -> bool:
        """Whether the last operand stands for one or more."""
        return bool(self.operands) and self.operands[-1].is_variadic

    def stated_roundings(self, attributes: Attributes) -> Roundings | None:
        """Return how far results may be off with these attributes, ``None`` where nothing is stated."""
        is_exact = self.exact_with is not None and getattr(attributes, self.exact_with) is not None
        return Roundings(0.0) if is_exact else self.roundings

    def operand_spec(self, index: int) -> OperandSpec:
        """Return what the operand at ``index`` may be."""
        return self.operands[min(index, len(self.operands) - 1)] if self.is_variadic else self.operands[index]


A = TypeVar("A", bound=Attributes)
R = TypeVar("R")
T = TypeVar("T")


def rule(attributes: type[A], function: Callable[[T, A], R]) -> Callable[[T, Attributes], R]:
    """Return ``function``, written for the attribute class of one op, as a rule that fits every :class:`OpDef`."""

    def checked(operands: T, values: Attributes) -> R:
        assert isinstance(values, attributes), (values, attributes)
        return function(operands, values)

    return checked


_REGISTRY: dict[str, OpDef] = {}


def register(definition: OpDef) -> OpDef:
    """Add one declaration to the catalogue; called at import of its family module."""
    assert definition.name not in _REGISTRY, definition.name
    formats = definition.formats
    if definition.device is not None:
        formats = formats or definition.device.record.accepts
    assert formats or definition.kind is OpKind.HOST, definition.name
    registered = replace(definition, reference=_returning_arrays(definition.reference), formats=formats)
    _REGISTRY[definition.name] = registered
    return registered


def _returning_arrays(reference: Reference) -> Reference:
    """Return the reference with its results as arrays: NumPy turns 0-d results into scalars."""

    def checked(operands: Sequence[Array | None], attributes: Attributes) -> tuple[Array, ...]:
        return tuple(np.asarray(result) for result in reference(operands, attributes))

    return checked


@cache
def catalogue() -> Mapping[str, OpDef]:
    """Return all declarations by name, sorted; imports the family modules on first use."""
    package = import_module("spyrec.ir.ops")
    for module in sorted(info.name for info in iter_modules(package.__path__)):
        import_module(f"spyrec.ir.ops.{module}")
    return dict(sorted(_REGISTRY.items()))
