"""The device's operations, one record each; :func:`device_operation` finds them by ``opFuncName``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spyrec.device_ops import folds, moves, pointwise, windows
from spyrec.device_ops.record import FP8, DeviceOperation, ErrorKind, Family, WindowForm
from spyrec.hardware.dtypes import DeviceFormat


def _by_name() -> dict[str, DeviceOperation]:
    found: dict[str, DeviceOperation] = {}
    for record in (*pointwise.OPERATIONS, *folds.OPERATIONS, *moves.OPERATIONS, *windows.OPERATIONS):
        for name in (record.name, record.outer_name):
            assert name is None or name not in found, name
            if name is not None:
                found[name] = record
    return found


DEVICE_OPERATIONS: Mapping[str, DeviceOperation] = MappingProxyType(_by_name())
"""Every operation that is emitted and executed, by each of its names."""


def device_operation(name: str) -> DeviceOperation:
    """Return the record of an operation that the device has."""
    return DEVICE_OPERATIONS[name]


def window_of(name: str) -> WindowForm | None:
    """Return how an operation slides a window, ``None`` where it has none or is not known."""
    record = DEVICE_OPERATIONS.get(name)
    return None if record is None else record.window


def names_of(family: Family) -> frozenset[str]:
    """Return the names of a family's operations."""
    return frozenset(name for name, record in DEVICE_OPERATIONS.items() if record.family is family)


MULTIPLICATION = pointwise.MULTIPLICATION
MATMULS = names_of(Family.MATMUL)
CASTS = names_of(Family.CAST)
FP8_PRODUCTS = frozenset(name for name in MATMULS if DEVICE_OPERATIONS[name].accepts == FP8)
"""Products whose first operand has sticks with interleaved halves."""

FP8_CASTS = frozenset(name for name in CASTS if DEVICE_OPERATIONS[name].gives == FP8)
"""Casts that leave such sticks."""

TOPKS = names_of(Family.TOP)
(RESTICKIFY,) = names_of(Family.RESTICKIFY)
(IDENTITY,) = names_of(Family.IDENTITY)
COPIES = frozenset({IDENTITY, RESTICKIFY})
"""Operations by which every element of a tensor comes to stand elsewhere in device memory, as it is."""

(SHUFFLE,) = names_of(Family.SHUFFLE)
(LAYERNORM_SCALE,) = names_of(Family.NORM_SCALE)
(TOP_PLACES,) = (name for name in TOPKS if DeviceFormat.IEEE_INT32 in DEVICE_OPERATIONS[name].gives)
(LAYERNORM_NORM,) = (name for name, record in DEVICE_OPERATIONS.items() if record.error.kind is ErrorKind.NORMALISATION)


def cast_between(source: DeviceFormat, target: DeviceFormat) -> str | None:
    """Return the cast from one format to another, ``None`` where the device has none."""
    found = (name for name in sorted(CASTS) if _takes(DEVICE_OPERATIONS[name], source, target))
    return next(found, None)


def _takes(record: DeviceOperation, source: DeviceFormat, target: DeviceFormat) -> bool:
    return source in record.accepts and target in record.gives


def known_operations(found: str) -> str | None:
    """Return the hint that lists the known operations, ``None`` where ``found`` is one of them."""
    return None if found in DEVICE_OPERATIONS else f"known operations: {', '.join(sorted(DEVICE_OPERATIONS))}"


def _formulas_join() -> None:
    """A fold's parts are joined by an operation that there is."""
    for record in DEVICE_OPERATIONS.values():
        if record.fold is not None:
            join = DEVICE_OPERATIONS.get(record.fold.join)
            assert join is not None, (record.name, record.fold.join)
            assert join.family is Family.POINTWISE, (record.name, record.fold.join)


_formulas_join()
