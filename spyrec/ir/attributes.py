"""The vocabulary of op attributes: frozen dataclasses whose field types say how a graph file writes the value.

The reader, the writer and the graph schema are driven by these annotations.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from spyrec.dataclass import dataclass


class Spelling(Enum):
    """How a graph file may write an attribute beyond its plain type."""

    DIMS = "dims"
    """Several dims: a list, or one int."""
    SIZE = "size"
    """One extent: an int, a dim name, or a product of those."""
    SIZES = "sizes"
    """Several extents: a list of those, or one."""
    FACTORS = "factors"
    """Several floats: a list, or one."""


Dims = Annotated[tuple[int, ...], Spelling.DIMS]
Size = Annotated[int, Spelling.SIZE]
Sizes = Annotated[tuple[int, ...], Spelling.SIZES]
Factors = Annotated[tuple[float, ...], Spelling.FACTORS]
Number = float | int | bool
Real = float | int
"""A number that stays what it is written as: beside integers 2.0 makes floats and 2 does not, as in PyTorch."""


@dataclass(frozen=True, slots=True)
class NoAttributes:
    """No attributes."""


@dataclass(frozen=True, slots=True)
class DimAttributes:
    """One dim."""

    dim: int


NO_ATTRIBUTES = NoAttributes()
