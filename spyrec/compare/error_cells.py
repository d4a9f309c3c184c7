"""An output's errors over their bounds, reduced to at most 64 x 64 cells: what a picture of it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from spyrec.compare.storage import Floats
from spyrec.dataclass import dataclass

MAX_CELLS = 64
"""Most rows and columns of cells."""


@dataclass(frozen=True, slots=True)
class CellGrid:
    """An array as rows and columns, the last axis columns, all others rows, cut into at most 64 x 64 cells.

    >>> CellGrid.of((2, 50, 100)).rows, CellGrid.of((2, 50, 100)).row_step
    (50, 2)
    """

    row_count: int
    column_count: int

    @classmethod
    def of(cls, shape: Sequence[int]) -> CellGrid:
        """Return the grid of a shape."""
        return cls(math.prod(shape[:-1]), shape[-1] if shape else 1)

    @property
    def row_step(self) -> int:
        """Rows of a cell."""
        return max(1, -(-self.row_count // MAX_CELLS))

    @property
    def column_step(self) -> int:
        """Columns of a cell."""
        return max(1, -(-self.column_count // MAX_CELLS))

    @property
    def rows(self) -> int:
        """Cells from top to bottom."""
        return -(-self.row_count // self.row_step)

    @property
    def columns(self) -> int:
        """Cells from left to right."""
        return -(-self.column_count // self.column_step)

    def firsts(self) -> Iterator[tuple[int, int]]:
        """Yield row and column of the first element of each cell, row by row."""
        for row in range(0, self.row_count, self.row_step):
            yield from ((row, column) for column in range(0, self.column_count, self.column_step))


@dataclass(frozen=True, slots=True)
class ErrorCells:
    """By cell, row by row: the largest error over its bound, and the row and column of the element that has it."""

    grid: CellGrid
    ratio: tuple[float, ...]
    worst: tuple[tuple[int, int], ...]


def error_cells(ratio: Floats) -> ErrorCells:
    """Return the cells of an array of errors over their bounds, without NaN."""
    grid = CellGrid.of(ratio.shape)
    flat = ratio.reshape(grid.row_count, grid.column_count)
    worst: list[tuple[int, int]] = []
    for row, column in grid.firsts():
        cell = flat[row : row + grid.row_step, column : column + grid.column_step]
        place = divmod(int(cell.argmax()), cell.shape[1])
        worst.append((row + place[0], column + place[1]))
    return ErrorCells(grid, tuple(float(np.float64(flat[place])) for place in worst), tuple(worst))
