"""The types of values: a shape of integers and a dtype."""

from __future__ import annotations

import math

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape (elements per dim, outermost first) and dtype of one value."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def element_count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.value}[{','.join(map(str, self.shape))}]"
