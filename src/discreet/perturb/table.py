"""The protected table: what may be published; only this package makes one from a confidential table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.schema.cube import Cube


@dataclass(frozen=True, eq=False)
class ProtectedTable:
    """The published cells of one cube.

    Cells whose published value is zero are not stored, whether they were empty or perturbed to zero:
    a stored zero would tell that somebody is there.
    """

    cube: Cube
    cells: NDArray[np.int64]  # flat positions in the cube's grid, ascending
    values: NDArray[np.int64]  # published counts, all positive
    weighted: NDArray[np.float64] | None = None  # perturbed count x mean weight, where the cube has a weight

    def __len__(self) -> int:
        return len(self.cells)


def read_back(cube: Cube, cells: NDArray[np.int64], values: NDArray[np.int64]) -> ProtectedTable:
    """The table of published cells that were read from a release, or picked from such a table."""
    return ProtectedTable(cube, cells, values)
