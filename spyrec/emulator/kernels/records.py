"""Records: integers by name, which Python writes and kernels read; one frozen dataclass says it for both sides.

The fields of a record class are int64, in the order in which they are declared.  A field that is an address is written
with :meth:`Held.at`, so that the array lives as long as the record.
"""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from spyrec.files.numba_names import intrinsic, numpy_support, types

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[np.generic]


class KernelRecord(Protocol):
    """A dataclass of integers."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


R = TypeVar("R", bound=KernelRecord)


@cache
def names_of(kind: type[KernelRecord]) -> tuple[str, ...]:
    """Return the names of a record's fields in their order."""
    return tuple(field.name for field in fields(kind))


def columns_of(kind: type[KernelRecord]) -> int:
    """Return how many integers a record has."""
    return len(names_of(kind))


def bytes_of(kind: type[KernelRecord]) -> int:
    """Return the bytes of a record: from one row of a table to the next."""
    return 8 * columns_of(kind)


@cache
def dtype_of(kind: type[KernelRecord]) -> np.dtype[np.void]:
    """Return the record as NumPy sees it."""
    return np.dtype([(name, np.int64) for name in names_of(kind)], align=True)


def reader_of(kind: type[R]) -> Callable[[int], R]:
    """Return what gives the record at an address, its fields read when they are named (inside kernels only)."""

    @intrinsic
    def read(_context: Any, _address: Any):  # noqa: ANN202, ANN401 - numba's own protocol
        record = numpy_support.from_dtype(dtype_of(kind))

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.int64), generate

    return cast("Callable[[int], R]", read)


@cache
def _values_of(kind: type[KernelRecord]) -> Callable[[KernelRecord], tuple[int, ...]]:
    """Return what gives a record's integers; found once, for steps are bound at every launch."""
    return cast("Callable[[KernelRecord], tuple[int, ...]]", attrgetter(*names_of(kind)))


def written(record: KernelRecord) -> Integers:
    """Return the integers of a record."""
    return np.array(_values_of(type(record))(record), np.int64)


def read_back(kind: type[R], integers: Integers) -> R:
    """Return the record that integers are, after kernels have written into it."""
    return kind(*integers.tolist())


def table_of(kind: type[R], rows: Sequence[R]) -> Integers:
    """Return records of one kind as the rows of a table."""
    return np.array([*map(_values_of(kind), rows)], np.int64).reshape(-1, columns_of(kind))


class Held:
    """Arrays that live as long as somebody knows their addresses."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays so far."""
        return tuple(self._arrays)

    def at(self, array: Array) -> int:
        """Hold an array and return its address."""
        assert array.flags.c_contiguous
        self._arrays.append(array)
        return array.ctypes.data
