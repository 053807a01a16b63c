"""The kinds of tables: confidential (true counts and cell keys), noisy (to be fitted) and protected (published)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.maths.cells.counting import counts_of
from discreet.programme.cube import Cube


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialTable:
    """The cells of one cube with all margins, each as one accumulator (see maths.counting)."""

    cube: Cube
    cells: NDArray[np.uint64]  # accumulators: of the whole grid, or of the positions below
    positions: NDArray[np.int64] | None = None  # ascending; None where the whole grid is stored
    weights: NDArray[np.uint64] | None = None  # sums of weights in millionths, parallel to ``cells``
    largest: NDArray[np.uint64] | None = None  # the largest weight of each, beside ``weights``

    def __repr__(self) -> str:
        return f"ConfidentialTable({self.cube.id})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a confidential table cannot be pickled or copied")

    @property
    def total(self) -> int:
        """The number of all who are counted: the first cell."""
        has_first = len(self.cells) > 0 and (self.positions is None or self.positions[0] == 0)
        return int(counts_of(self.cells[:1])[0]) if has_first else 0


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """The perturbed cells of one cube before any post-processing: what tables that add up are fitted to.

    Cells that are not stored have the noisy count zero; finest cells that are not stored stay zero.
    """

    cube: Cube
    cells: NDArray[np.int64]  # flat positions in the cube's grid, ascending
    values: NDArray[np.int64]  # noisy counts, also zero and negative ones
    variances: NDArray[np.float64]  # of the noise, by the depth along each axis


@dataclass(frozen=True, eq=False)
class ProtectedTable:
    """The published cells of one cube.

    Cells whose published value is zero are not stored, whether they were empty or perturbed to zero:
    a stored zero would reveal that the cell is not empty.
    """

    cube: Cube
    cells: NDArray[np.int64]  # flat positions in the cube's grid, ascending
    values: NDArray[np.int64]  # published counts, all positive
    weighted: NDArray[np.float64] | None = None  # published sums of weights, where the cube has a weight

    def __len__(self) -> int:
        return len(self.cells)


def added_up(cube: Cube, cells: NDArray[np.int64], values: NDArray[np.int64]) -> ProtectedTable:
    """The table of counts that were fitted to noisy ones so that all totals add up."""
    return ProtectedTable(cube, cells, values)


def read_back(cube: Cube, cells: NDArray[np.int64], values: NDArray[np.int64]) -> ProtectedTable:
    """The table of published cells that were read from a release, or picked from such a table."""
    return ProtectedTable(cube, cells, values)
