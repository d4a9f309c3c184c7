"""The arguments of a call with numbers in their tensors' places, as the oracle reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.sweep.model_calls.cases import Argument, Tensor

Array: TypeAlias = "npt.NDArray[Any]"
"""Float64, int64 or bool: NumPy's stubs know no arithmetic of either."""


def tensors_of(bound: Mapping[str, Argument]) -> dict[str, Tensor]:
    """Return the tensors of a call by the names that they have in its graph."""
    found: dict[str, Tensor] = {}
    for name, value in bound.items():
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, tuple):
            found |= {f"{name}_{index}": item for index, item in enumerate(value) if isinstance(item, Tensor)}
    return found


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments by parameter: float64, int64 and bool arrays where tensors stand."""

    bound: Mapping[str, Argument]
    arrays: Mapping[str, Array]

    def has(self, name: str) -> bool:
        """Return whether a parameter has a value other than None."""
        return self.bound.get(name) is not None

    def array(self, name: str = "input") -> Array:
        """Return a tensor's numbers, or a number as an array without dims."""
        if name in self.arrays:
            return self.arrays[name]
        return np.asarray(self.number(name))

    def every(self, name: str) -> list[Array]:
        """Return the tensors of a list."""
        value = self.bound[name]
        assert isinstance(value, tuple)
        return [self.arrays[f"{name}_{index}"] for index in range(len(value))]

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a number."""
        value = self.bound.get(name, default)
        assert isinstance(value, int | float), (name, value)
        return value

    def whole(self, name: str, default: int = 0) -> int:
        """Return an integer."""
        value = self.bound.get(name, default)
        assert isinstance(value, int), (name, value)
        return value

    def wholes(self, name: str) -> tuple[int, ...]:
        """Return several integers, also of one."""
        value = self.bound[name]
        values = value if isinstance(value, tuple) else (value,)
        assert all(isinstance(item, int) for item in values), (name, value)
        return tuple(item for item in values if isinstance(item, int))

    def dims(self, name: str = "dim") -> tuple[int, ...] | None:
        """Return dims, ``None`` for all."""
        return self.wholes(name) if self.has(name) else None

    def flag(self, name: str) -> bool:
        """Return a truth value, false by default."""
        return bool(self.bound.get(name, False))

    def dtype(self) -> DType | None:
        """Return the dtype that the call asks for."""
        return next((value for value in self.bound.values() if isinstance(value, DType)), None)

    def tensor(self, name: str = "input") -> Tensor:
        """Return what a tensor is."""
        value = self.bound[name]
        assert isinstance(value, Tensor), (name, value)
        return value
