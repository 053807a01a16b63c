"""The confidential table: true counts and cell keys of one cube; it is never written, shown or published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.schema.cube import Cube


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialTable:
    """The cells of one cube with all margins, each as one accumulator (see maths.counting)."""

    cube: Cube
    cells: NDArray[np.uint64]  # accumulators: of the whole grid, or of the positions below
    positions: NDArray[np.int64] | None = None  # ascending; None where the whole grid is stored
    weights: NDArray[np.uint64] | None = None  # sums of weights in millionths, beside ``cells``

    def __repr__(self) -> str:
        return f"ConfidentialTable({self.cube.id})"
