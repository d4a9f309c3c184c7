"""``bundle.mlir`` as data: the subset of MLIR a device program is written in.

Values are names without the leading ``%``.  ``mlir_printer`` and ``mlir_parser`` are exact inverses over this.
"""

from __future__ import annotations

import re

from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AffineMap:
    """``affine_map<(d0, ..)[s0] -> (s0 + c0*d0 + ..)>`` with byte coefficients; ``name`` without ``#``."""

    name: str
    coefficients: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InputArgument:
    """A function parameter of type ``!sdscbundle.input_arg<index>``; the optional limits are those of its type."""

    name: str
    granularity: int | None = None
    max_value: int | None = None


ARGUMENT_PARAMETER = re.compile(r"arg_([0-9]{1,6})_base_addr")
"""The name of the parameter that holds an argument's address."""

VALUE_SUFFIX = "_value"
"""What the name of a value parameter ends with."""


def is_value_parameter(name: str) -> bool:
    """Whether a parameter of this name holds an integer that each launch gives, not an address."""
    return (name.endswith(VALUE_SUFFIX) and len(name) > len(VALUE_SUFFIX)) or is_size_parameter(name)


_SIZE = re.compile(r"sym_[0-9]{1,9}_[0-9]{1,9}_base")


def is_size_parameter(name: str) -> bool:
    """Whether a parameter of this name is a dynamic size: the extent of dims, which each launch may give."""
    return _SIZE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class ArgumentExtract:
    """``%result = sdscbundle.input_arg_extract value from %argument``."""

    result: str
    argument: str


@dataclass(frozen=True, slots=True)
class Constant:
    """``%result = arith.constant value : index``."""

    result: str
    value: int


@dataclass(frozen=True, slots=True)
class Add:
    """``%result = arith.addi %left, %right : index``."""

    result: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class AffineApply:
    """``%result = affine.apply #map(%dims)[%symbol]``."""

    result: str
    map_name: str
    dims: tuple[str, ...]
    symbol: str


@dataclass(frozen=True, slots=True)
class DeviceMemoryAllocate:
    """``%result = sdscbundle.device_mem_allocate size_bytes bytes : index``: memory that lives for the whole program.

    The public bundle specification has it; torch-spyre and spyrec pass a pool parameter instead.
    """

    result: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SdscExecute:
    """``sdscbundle.sdsc_execute (%operands) {sdsc_filename=.., "symbol_ids"=[..]}``.

    ``symbol_ids`` is ``None`` where the attribute is absent (a program with baked addresses).
    """

    sdsc_filename: str
    operands: tuple[str, ...] = ()
    symbol_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class For:
    """``scf.for %induction = %lower to %upper step %step { body }``."""

    induction: str
    lower: str
    upper: str
    step: str
    body: tuple[Statement, ...]


Statement = ArgumentExtract | Constant | Add | AffineApply | DeviceMemoryAllocate | SdscExecute | For


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Program:
    """The module: affine maps, the parameters of ``@sdsc_bundle`` and its body without ``return``."""

    maps: tuple[AffineMap, ...]
    parameters: tuple[InputArgument, ...]
    body: tuple[Statement, ...]
